//! The nodes that a user's own sbatch options keep out. Slurm's update replaces the whole list of a
//! job, so whoever changes it must know them.

/// Names in `--exclude=x`, `--exclude x`, `-x x` and `-xx`, host lists expanded. A file name (it has
/// a slash) is given back as it is.
pub fn users_own(args: &[String]) -> Vec<String> {
    let mut lists: Vec<&str> = Vec::new();
    let mut args = args.iter().map(String::as_str);
    while let Some(arg) = args.next() {
        // sbatch takes `--exclud` for it, too; shorter forms could also mean --exclusive.
        let long = arg.strip_prefix("--exclude").or_else(|| arg.strip_prefix("--exclud"));
        match (long, arg.strip_prefix("-x")) {
            (Some(""), _) | (_, Some("")) => lists.extend(args.next()),
            (Some(value), _) => lists.extend(value.strip_prefix('=')),
            (None, Some(value)) => lists.push(value),
            (None, None) => {}
        }
    }
    let mut names: Vec<String> = lists.into_iter().flat_map(expand).collect();
    names.sort();
    names.dedup();
    names
}

/// More names than any cluster has nodes: what asks for more is no host list.
const MOST: usize = 100_000;

/// `a1,b[1-3,7]x` -> a1 b1x b2x b3x b7x. What cannot be expanded stays as it is.
fn expand(list: &str) -> Vec<String> {
    split(list).into_iter().flat_map(one).collect()
}

/// At the commas outside of brackets.
fn split(list: &str) -> Vec<&str> {
    let mut depth = 0i32;
    let outside = |c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    };
    list.split(outside).map(str::trim).filter(|name| !name.is_empty()).collect()
}

fn one(name: &str) -> Vec<String> {
    let as_it_is = || vec![name.to_owned()];
    let Some((front, rest)) = name.split_once('[') else { return as_it_is() };
    let Some((ranges, back)) = rest.split_once(']') else { return as_it_is() };
    let backs = one(back);
    let mut all = Vec::new();
    for range in ranges.split(',') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (Ok(first), Ok(last)) = (from.parse::<usize>(), to.parse::<usize>()) else {
            return as_it_is();
        };
        let names = last.saturating_sub(first).saturating_add(1).saturating_mul(backs.len());
        if names.saturating_add(all.len()) > MOST {
            return as_it_is();
        }
        let width = from.len();
        for n in first..=last {
            all.extend(backs.iter().map(|back| format!("{front}{n:0width$}{back}")));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::users_own;

    fn check(args: &[&str], expected: &str) {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        assert_eq!(users_own(&args).join(" "), expected, "{args:?}");
    }

    #[test]
    fn every_spelling_of_exclude() {
        check(&["--exclude=b,a", "--exclusive", "-x", "c"], "a b c");
        check(&["--exclude", "n1", "-xn2", "--constraint=ib"], "n1 n2");
        check(&["-x", "n[08-10,12],m1"], "m1 n08 n09 n10 n12");
        check(&["-xr[1-2]n[1-2]"], "r1n1 r1n2 r2n1 r2n2");
        check(&["--exclude=./bad-nodes"], "./bad-nodes");
        check(&["--exclude=n[1-", "--exclude"], "n[1-");
        check(&["--exclude=r[1-99999]n[1-99999]"], "r[1-99999]n[1-99999]");
        check(&[], "");
    }
}
