//! GRES and TRES strings: which GPUs a node has and a job asks for.
//!
//! What cannot be read is `None`, never zero: a node whose GPUs are unknown must not look free.
//! MIG slices, shards and other resources are kept apart from whole GPUs.

use crate::model::cluster::GpuCount;

/// Entries of one string; real nodes have a handful. More are a torn output's, and would be looked
/// through again for each of them.
const MOST_ENTRIES: usize = 64;

/// One GRES or TRES string, read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gres {
    /// In the order of the string; models of one name are added up, zero counts are kept.
    pub gpus: Vec<GpuCount>,
    /// What is no GPU: name (with its type), and the amount as it was written.
    pub others: Vec<(String, String)>,
    /// The last entry looks cut off, so more may have followed.
    pub torn: bool,
}

impl Gres {
    /// GPUs of all models.
    pub fn total(&self) -> u32 {
        self.gpus.iter().fold(0, |sum, gpu| sum.saturating_add(gpu.count))
    }

    fn add(&mut self, model: Option<&str>, count: u32) {
        let model = model.filter(|m| !m.is_empty() && *m != "(null)");
        match self.gpus.iter_mut().find(|gpu| gpu.model.as_deref() == model) {
            Some(gpu) => gpu.count = gpu.count.saturating_add(count),
            None => self.gpus.push(GpuCount { model: model.map(str::to_owned), count }),
        }
    }
}

/// sinfo's Gres and GresUsed: `gpu[:model]:count[(S:..)|(IDX:..)]`, with the count always there.
pub fn of_node(text: &str) -> Option<Gres> {
    entries(text, false)
}

/// What a job asks per node: as of a node, after `gres:` (22.05) or `gres/` (24.11), and a count
/// left out is 1.
pub fn of_job(text: &str) -> Option<Gres> {
    entries(text, true)
}

/// A MIG slice (`1g.10gb`, `nvidia_h100_80gb_hbm3_3g.40gb`), which Slurm counts as a GPU of that
/// model and no program can use as a whole one.
pub fn is_slice(model: &str) -> bool {
    let end = model.rsplit('_').next().unwrap_or(model);
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    end.split_once("g.").is_some_and(|(compute, memory)| {
        digits(compute) && memory.split_once("gb").is_some_and(|(size, _)| digits(size))
    })
}

fn entries(text: &str, of_job: bool) -> Option<Gres> {
    let text = text.trim();
    let mut found = Gres::default();
    if is_nothing(text) {
        return Some(found);
    }
    for entry in top_level(text)? {
        let entry = match of_job {
            true => {
                entry.strip_prefix("gres/").or_else(|| entry.strip_prefix("gres:")).unwrap_or(entry)
            }
            false => entry,
        };
        if found.gpus.len() + found.others.len() >= MOST_ENTRIES {
            return None;
        }
        let words = without_places(entry)?.split([':', '=']).filter(|part| *part != "no_consume");
        // One more than can be: that is how too many are seen.
        let parts: Vec<&str> = words.take(4).collect();
        // The count is the last part, where it is a number and not the name itself.
        let (name, kind, count) = match parts.as_slice() {
            [name] => (*name, None, None),
            [name, last] if is_amount(last) => (*name, None, Some(*last)),
            [name, kind] => (*name, Some(*kind), None),
            [name, kind, last] if is_amount(last) => (*name, Some(*kind), Some(*last)),
            _ => return None,
        };
        if name.is_empty() || kind == Some("") {
            return None;
        }
        if name == "gpu" {
            let count = match count {
                Some(count) => count.parse().ok()?,
                None if of_job => 1,
                None => return None,
            };
            found.add(kind, count);
            continue;
        }
        match count {
            Some(count) => found.others.push((full(name, kind), count.to_owned())),
            None if of_job => found.others.push((full(name, kind), "1".to_owned())),
            None => found.torn = true,
        }
    }
    Some(found)
}

/// `cpu=1,mem=100G,gres/gpu=2,gres/gpu:a100=2`: the untyped count is the total, of which the typed
/// ones are a part.
pub fn of_tres(text: &str) -> Option<Gres> {
    let text = text.trim();
    let mut found = Gres::default();
    if is_nothing(text) {
        return Some(found);
    }
    let mut total: Option<u32> = None;
    let mut untyped: Vec<(&str, &str)> = Vec::new();
    for entry in text.split(',') {
        let (name, amount) = entry.split_once('=')?;
        if name.is_empty() || amount.is_empty() {
            return None;
        }
        let Some(gres) = name.strip_prefix("gres/") else { continue };
        if found.gpus.len() + found.others.len() + untyped.len() >= MOST_ENTRIES {
            return None;
        }
        match (gres, gres.strip_prefix("gpu:")) {
            ("gpu", _) => total = Some(amount.parse().ok()?),
            (_, Some(model)) => found.add(Some(model), amount.parse().ok()?),
            _ if gres.contains(':') => found.others.push((gres.to_owned(), amount.to_owned())),
            _ => untyped.push((gres, amount)),
        }
    }
    // `gres/gg=1,gres/gg:g0=1` is one thing, told twice.
    for (name, amount) in untyped {
        let typed = |(other, _): &(String, String)| {
            other.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'))
        };
        if !found.others.iter().any(typed) {
            found.others.push((name.to_owned(), amount.to_owned()));
        }
    }
    if let Some(total) = total {
        let rest = total.saturating_sub(found.total());
        if rest > 0 || found.gpus.is_empty() {
            found.add(None, rest);
        }
    }
    Some(found)
}

fn is_nothing(text: &str) -> bool {
    matches!(text, "" | "N/A" | "n/a" | "(null)" | "none" | "None")
}

fn full(name: &str, kind: Option<&str>) -> String {
    kind.map_or_else(|| name.to_owned(), |kind| format!("{name}:{kind}"))
}

/// Digits, maybe with a unit (`2G`).
fn is_amount(text: &str) -> bool {
    let digits = text.strip_suffix(['K', 'M', 'G', 'T', 'P']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Splits at the commas outside of parentheses.
fn top_level(text: &str) -> Option<impl Iterator<Item = &str>> {
    let mut depth = 0_u32;
    for byte in text.bytes() {
        match byte {
            b'(' => depth = depth.checked_add(1)?,
            b')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    if depth != 0 {
        return None;
    }
    Some(text.split(move |c| {
        depth = match c {
            '(' => depth.saturating_add(1),
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        c == ',' && depth == 0
    }))
}

/// Takes `(S:0-1)` or `(IDX:0-3)` off the end; anything after it is damage. `(null)` is a type.
fn without_places(entry: &str) -> Option<&str> {
    let at = entry.find("(S:").or_else(|| entry.find("(IDX:"));
    match at {
        None => Some(entry),
        Some(at) => {
            let (before, places) = entry.split_at_checked(at)?;
            (places.find(')')? + 1 == places.len()).then_some(before)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_entries_than_any_node_has_are_unreadable() {
        let models = |count: usize| {
            let entries: Vec<String> = (0..count).map(|n| format!("gpu:m{n}:1")).collect();
            entries.join(",")
        };
        let read = |count| of_node(&models(count)).map(|gres| gres.total());
        assert_eq!((read(MOST_ENTRIES), read(MOST_ENTRIES + 1)), (Some(64), None));
    }

    #[test]
    fn mig_slices_are_told_from_models() {
        for slice in
            ["1g.10gb", "nvidia_h100_80gb_hbm3_3g.40gb", "nvidia_a100_1g.5gb", "1g.10gb+me"]
        {
            assert!(is_slice(slice), "{slice}");
        }
        for model in ["rtx4090", "4090", "nvidia_a100-sxm4-80gb", "nvidia_a100_80gb", "gh200"] {
            assert!(!is_slice(model), "{model}");
        }
    }
}
