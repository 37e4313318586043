//! Jobs of several labs, of several widths: drawn by chance, or read from a trace.

use crate::model::units::Secs;
use crate::sim::Rng;

/// One job as it arrives.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// Seconds since the beginning.
    pub at: Secs,
    pub lab: String,
    /// 1..=8.
    pub gpus: u32,
    /// How long it runs on the reference tier.
    pub runs: Secs,
    /// What it asks for.
    pub limit: Secs,
    /// Rank of the lowest tier.
    pub min_tier: Option<u32>,
}

/// GPUs of the cluster (`Site::field`).
pub const CAPACITY: u32 = 40;
/// Widest job that any placement there holds.
pub const WIDEST: u32 = 8;

const LABS: [(&str, f64); 5] =
    [("lab1", 0.36), ("lab2", 0.24), ("lab3", 0.18), ("lab4", 0.12), ("lab5", 0.10)];
const WIDTHS: [(u32, f64); 4] = [(1, 0.62), (2, 0.22), (4, 0.12), (8, 0.02)];
const TIERS: [(u32, f64); 3] = [(1, 0.60), (2, 0.30), (3, 0.10)];
/// Mean run time before it is cut, and sigma of its logarithm.
const RUN_HOURS: f64 = 3.5;
const RUN_SIGMA: f64 = 1.3;
const LONGEST_HOURS: f64 = 48.0;
/// By day three times as many jobs arrive as by night; both last twelve hours.
const DAY_SHARE: f64 = 0.75;

/// Jobs over so many days whose GPU-hours are this share of the cluster's. Arrivals are spread over
/// days and nights.
pub fn mix(seed: u64, load: f64, days: u32) -> Vec<Arrival> {
    let mut rng = Rng::stream(seed, 20);
    let hours = f64::from(days) * 24.0;
    let offered = load * f64::from(CAPACITY) * hours;
    let mut jobs = Vec::new();
    let mut sum = 0.0;
    while sum < offered {
        let run = rng.lognormal(RUN_HOURS, RUN_SIGMA).clamp(1.0 / 60.0, LONGEST_HOURS);
        let job = Arrival {
            at: at(&mut rng, days),
            lab: pick(&mut rng, &LABS).to_owned(),
            gpus: pick(&mut rng, &WIDTHS),
            runs: seconds(run),
            limit: seconds(run * (1.0 + 4.0 * rng.unit())),
            min_tier: Some(pick(&mut rng, &TIERS)),
        };
        sum += f64::from(job.gpus) * run;
        jobs.push(job);
    }
    jobs.sort_by_key(|job| job.at);
    jobs
}

/// A moment of some day, twelve hours of which are busy.
fn at(rng: &mut Rng, days: u32) -> Secs {
    let day = rng.below(u64::from(days)) as f64;
    let half = rng.unit() * 12.0;
    let hour = if rng.chance(DAY_SHARE) { 8.0 + half } else { (20.0 + half) % 24.0 };
    seconds(day * 24.0 + hour)
}

fn pick<T: Copy>(rng: &mut Rng, choices: &[(T, f64)]) -> T {
    let all: f64 = choices.iter().map(|(_, share)| share).sum();
    let mut left = rng.unit() * all;
    let found = choices.iter().find(|(_, share)| {
        left -= share;
        left < 0.0
    });
    // Rounding may leave a hair's breadth at the end; the last choice takes it.
    found.or(choices.last()).map(|(value, _)| *value).unwrap_or_else(|| choices[0].0)
}

pub(super) fn seconds(hours: f64) -> Secs {
    Secs((hours * 3600.0).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_offers_the_asked_load_with_the_asked_shares() {
        let jobs: Vec<Arrival> = (0..20).flat_map(|seed| mix(seed, 0.85, 28)).collect();
        let hours: f64 = jobs.iter().map(|j| f64::from(j.gpus) * j.runs.as_f64() / 3600.0).sum();
        let capacity = f64::from(CAPACITY) * 28.0 * 24.0 * 20.0;
        assert!((hours / capacity - 0.85).abs() < 0.01, "{}", hours / capacity);
        let share = |good: &dyn Fn(&Arrival) -> bool| {
            jobs.iter().filter(|job| good(job)).count() as f64 / jobs.len() as f64
        };
        assert!((share(&|j| j.lab == "lab1") - 0.36).abs() < 0.01);
        assert!((share(&|j| j.min_tier == Some(3)) - 0.10).abs() < 0.01);
        let by_day = |j: &Arrival| (8..20).contains(&(j.at.0 / 3600 % 24));
        assert!((share(&by_day) - 0.75).abs() < 0.01);
        assert!(jobs.iter().all(|j| j.limit >= j.runs && j.runs.0 <= 48 * 3600));
        assert_eq!(mix(3, 0.6, 7), mix(3, 0.6, 7));
    }
}
