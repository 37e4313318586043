//! What a job asks of a node: GPUs by `--gres`, CPUs, memory, time. Reads the spellings of sbatch.
//!
//! Apart from the adapter's own parsers on purpose: the two sides must not share a mistake.

use crate::model::cluster::GpuCount;
use crate::model::units::Secs;

/// What one job takes of the node it runs on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ask {
    /// Typed and untyped parts, as asked.
    pub gpus: Vec<GpuCount>,
    pub cpus: u32,
    /// MiB.
    pub mem: u64,
}

impl Ask {
    pub fn total(&self) -> u32 {
        self.gpus.iter().map(|g| g.count).sum()
    }

    /// No model is named.
    pub fn is_untyped(&self) -> bool {
        self.gpus.iter().all(|part| part.model.is_none())
    }
}

/// `gpu`, `gpu:2`, `gpu:rtx4090`, `gpu:rtx4090:2` and lists of them; a missing count is 1
/// (slurm-facts.md section 1). `None`: no GRES that this cluster has.
pub fn gres(text: &str) -> Option<Vec<GpuCount>> {
    text.split(',').map(one_gres).collect()
}

fn one_gres(text: &str) -> Option<GpuCount> {
    let mut parts = text.split(':');
    if parts.next() != Some("gpu") {
        return None;
    }
    let typed = |model: &str, count| {
        (!model.is_empty()).then(|| GpuCount { model: Some(model.to_owned()), count })
    };
    let found = match (parts.next(), parts.next(), parts.next()) {
        (None, _, _) => Some(GpuCount { model: None, count: 1 }),
        (Some(word), None, _) => match word.parse() {
            Ok(count) => Some(GpuCount { model: None, count }),
            Err(_) => typed(word, 1),
        },
        (Some(model), Some(count), None) => typed(model, count.parse().ok()?),
        (Some(_), Some(_), Some(_)) => None,
    };
    found.filter(|g| g.count > 0)
}

/// `--mem` in MiB: `64G`, `500M`, `1T`, `2048` (MiB), `1048576K`.
pub fn mem(text: &str) -> Option<u64> {
    let (digits, factor, divisor) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 1, 1024),
        b'M' | b'm' => (&text[..text.len() - 1], 1, 1),
        b'G' | b'g' => (&text[..text.len() - 1], 1024, 1),
        b'T' | b't' => (&text[..text.len() - 1], 1024 * 1024, 1),
        _ => (text, 1, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor).map(|mib| mib.div_ceil(divisor))
}

/// `--time`: `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`.
pub fn time(text: &str) -> Option<Secs> {
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (Some(days.parse::<i64>().ok()?), clock),
        None => (None, text),
    };
    let parts: Vec<i64> =
        clock.split(':').map(|p| p.parse::<u32>().ok().map(i64::from)).collect::<Option<_>>()?;
    let seconds = match (days, parts.as_slice()) {
        (Some(d), [h]) => d * 86_400 + h * 3600,
        (Some(d), [h, m]) => d * 86_400 + h * 3600 + m * 60,
        (Some(d), [h, m, s]) => d * 86_400 + h * 3600 + m * 60 + s,
        (None, [m]) => m * 60,
        (None, [m, s]) => m * 60 + s,
        (None, [h, m, s]) => h * 3600 + m * 60 + s,
        _ => return None,
    };
    Some(Secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gres_is_read_as_sbatch_takes_it() {
        let check = |text: &str, expected: Option<&[(Option<&str>, u32)]>| {
            let expected = expected.map(|list| {
                let part = |(m, n): &(Option<&str>, u32)| GpuCount {
                    model: m.map(str::to_owned),
                    count: *n,
                };
                list.iter().map(part).collect::<Vec<_>>()
            });
            assert_eq!(gres(text), expected, "{text}");
        };
        check("gpu", Some(&[(None, 1)]));
        check("gpu:3", Some(&[(None, 3)]));
        check("gpu:rtx4090", Some(&[(Some("rtx4090"), 1)]));
        check("gpu:4090:2", Some(&[(Some("4090"), 2)]));
        check("gpu:a:1,gpu:b:2", Some(&[(Some("a"), 1), (Some("b"), 2)]));
        for bad in ["", "mps:1", "gpu:0", "gpu:a:x", "gpu:a:1:2", "gpu:a:1,"] {
            check(bad, None);
        }
    }

    #[test]
    fn memory_and_time_are_read_as_sbatch_takes_them() {
        for (text, expected) in
            [("64G", Some(65_536)), ("10", Some(10)), ("1500K", Some(2)), ("G", None), ("", None)]
        {
            assert_eq!(mem(text), expected, "{text}");
        }
        for (text, expected) in [
            ("30", Some(1800)),
            ("1:30", Some(90)),
            ("2:00:00", Some(7200)),
            ("2-00:00:00", Some(172_800)),
            ("1-12", Some(129_600)),
            ("", None),
            ("1:2:3:4", None),
            ("x", None),
        ] {
            assert_eq!(time(text), expected.map(Secs), "{text}");
        }
    }
}
