//! `a[1-3,07-09],b1`: Slurm's short form of many node names.

/// Names that one list may stand for; the largest clusters have a tenth of it, and a list from a
/// torn output must not fill the memory.
pub const MOST_NAMES: usize = 100_000;

/// Bytes that all names of one entry may have: a long text before a bracket is repeated for each.
pub const MOST_BYTES: usize = 8 << 20;

/// Every name, in Slurm's order. `None` where it cannot be read or stands for too many.
pub fn expand(text: &str) -> Option<Vec<String>> {
    let text = text.trim();
    if matches!(text, "" | "(null)" | "N/A" | "n/a" | "None" | "None assigned") {
        return Some(Vec::new());
    }
    let mut names = Vec::new();
    for part in top_level(text)? {
        names.extend(one(part)?);
        if names.len() > MOST_NAMES {
            return None;
        }
    }
    Some(names)
}

/// Splits at the commas outside of brackets.
fn top_level(text: &str) -> Option<impl Iterator<Item = &str>> {
    let mut inside = false;
    for byte in text.bytes() {
        inside = match (byte, inside) {
            (b'[', true) | (b']', false) => return None,
            (b'[', false) => true,
            (b']', true) => false,
            _ => inside,
        };
    }
    if inside {
        return None;
    }
    let mut depth = 0_u32;
    Some(text.split(move |c| {
        depth = match c {
            '[' => depth.saturating_add(1),
            ']' => depth.saturating_sub(1),
            _ => depth,
        };
        c == ',' && depth == 0
    }))
}

/// One entry: plain text and any number of `[..]`, the last of which counts fastest.
fn one(part: &str) -> Option<Vec<String>> {
    if part.is_empty() || part.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return None;
    }
    let mut names = vec![String::new()];
    let mut rest = part;
    let longest = longest_name(part)?;
    while let Some((plain, after)) = rest.split_once('[') {
        let (ranges, after) = after.split_once(']')?;
        let numbers = numbers(ranges)?;
        let count = names.len().checked_mul(numbers.len())?;
        if count > MOST_NAMES || count.checked_mul(longest)? > MOST_BYTES {
            return None;
        }
        names = names
            .iter()
            .flat_map(|name| numbers.iter().map(move |n| format!("{name}{plain}{n}")))
            .collect();
        rest = after;
    }
    for name in &mut names {
        name.push_str(rest);
    }
    Some(names)
}

/// The text outside of brackets, and the most digits for each of these.
fn longest_name(part: &str) -> Option<usize> {
    let (mut longest, mut rest) = (0_usize, part);
    while let Some((plain, after)) = rest.split_once('[') {
        longest = longest.checked_add(plain.len())?.checked_add(MOST_DIGITS)?;
        rest = after.split_once(']')?.1;
    }
    longest.checked_add(rest.len())
}

/// `1-3,07-09`: the width of the first number of a range is kept.
fn numbers(ranges: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for range in ranges.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (number(low)?, number(high)?);
        let count = usize::try_from(last.checked_sub(first)?).ok()?.checked_add(1)?;
        if found.len().checked_add(count)? > MOST_NAMES {
            return None;
        }
        let width = low.len();
        found.extend((first..=last).map(|n| format!("{n:0width$}")));
    }
    Some(found)
}

/// So many always fit.
const MOST_DIGITS: usize = 18;

fn number(text: &str) -> Option<u64> {
    let plain = (1..=MOST_DIGITS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_mean_what_slurm_means() {
        let check = |text: &str, expected: &str| {
            let names = expand(text).map_or("unreadable".to_owned(), |names| names.join(" "));
            assert_eq!(names, expected, "{text:?}");
        };
        check("a1", "a1");
        check("a[1-3,07-09],b1", "a1 a2 a3 a07 a08 a09 b1");
        check("r[1-2]n[01-02]", "r1n01 r1n02 r2n01 r2n02");
        check("c[8-11]-ib", "c8-ib c9-ib c10-ib c11-ib");
        check("n[098-101]", "n098 n099 n100 n101");
        check("(null)", "");
        check("", "");
        check("None assigned", "");
        for bad in ["a[1-3", "a]1", "a[3-1]", "a[x]", "a,,b", "a[]", "a[[1]]", "a[1-999999999]"] {
            check(bad, "unreadable");
        }
        check("a[1-1000]b[1-1000]", "unreadable");
        check(&format!("{}[1-90000]", "a".repeat(300)), "unreadable");
    }
}
