//! What a placement campaign was like for the labs: waits by width, shares, idle GPUs.

use std::collections::BTreeMap;

use crate::model::units::{Secs, Time};

use super::backfill::filled;
use super::campaign::BEGINS;
use super::lab_mix::Arrival;
use super::placing::{Field, Told, capacity, moment};
use super::statistics::{jain, quantile};

/// One job and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    pub lab: String,
    pub gpus: u32,
    pub arrived: Time,
    /// GPU-seconds that it brought.
    pub work: f64,
    pub started: Option<Time>,
    pub ran: Vec<(Time, Time)>,
}

impl Served {
    pub fn waiting(job: &Arrival) -> Served {
        Served {
            lab: job.lab.clone(),
            gpus: job.gpus,
            arrived: moment(job.at),
            work: f64::from(job.gpus) * job.runs.as_f64(),
            started: None,
            ran: Vec::new(),
        }
    }
}

/// Waits of the jobs of one width. Hours; a job that never started has waited until the end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Width {
    /// `None`: all widths.
    pub gpus: Option<u32>,
    pub jobs: usize,
    pub mean: f64,
    pub p95: f64,
    pub max: f64,
    /// Mean time from a job's arrival to its end, or to the end of the campaign.
    pub turnaround: f64,
    pub not_started: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Waits {
    pub widths: Vec<Width>,
    /// Hours until the last job had ended; `None`: one never did.
    pub makespan: Option<f64>,
    /// Share of all GPU-seconds after the warm-up that jobs ran.
    pub utilization: f64,
    /// The rest: what backfill could have had, reserved GPUs included.
    pub idle: f64,
    /// `utilization` with what backfill could do on GPUs that were idle.
    pub with_backfill: f64,
    /// Share that stood reserved without leading to a start.
    pub failed_share: f64,
    pub reservations: u32,
    pub failed: u32,
    /// Of what each lab got over what is fair for it.
    pub jain: f64,
    /// Largest distance of a lab's share from its fair share.
    pub deviation: f64,
}

pub fn waits(field: &Field, gpus: u32, served: &[Served], told: &Told) -> Waits {
    let end = BEGINS + Secs(i64::from(field.days) * 86_400);
    let from = BEGINS + Secs(i64::from(field.warm_up) * 86_400);
    let counted = || served.iter().filter(|job| job.arrived >= from && job.arrived < end);
    let width = |gpus: Option<u32>| {
        let of = || counted().filter(|job| gpus.is_none_or(|gpus| job.gpus == gpus));
        let started = |job: &&Served| job.started.is_some_and(|at| at < end);
        let ended = |job: &Served| job.ran.last().map_or(end, |(_, to)| *to).min(end);
        let whole: f64 = of().map(|job| ended(job).since(job.arrived).as_f64() / 3600.0).sum();
        let hours: Vec<f64> = of()
            .map(|job| {
                let until = job.started.unwrap_or(end).min(end);
                until.since(job.arrived).as_f64() / 3600.0
            })
            .collect();
        (!hours.is_empty()).then(|| Width {
            gpus,
            jobs: hours.len(),
            mean: hours.iter().sum::<f64>() / hours.len() as f64,
            p95: quantile(&hours, 0.95).unwrap_or(0.0),
            max: quantile(&hours, 1.0).unwrap_or(0.0),
            turnaround: whole / hours.len() as f64,
            not_started: of().filter(|job| !started(job)).count(),
        })
    };
    let mut all: Vec<u32> = served.iter().map(|job| job.gpus).collect();
    all.sort_unstable();
    all.dedup();
    let widths = all.into_iter().map(Some).chain([None]).filter_map(width).collect();
    let inside = |job: &Served| {
        let ran = job.ran.iter().map(|(a, b)| (*b).min(end).since((*a).max(from)).as_f64());
        f64::from(job.gpus) * ran.sum::<f64>()
    };
    let whole = capacity(gpus, end.since(from));
    let used = served.iter().map(inside).sum::<f64>() / whole;
    let runs = served.iter().flat_map(|job| job.ran.iter().map(|(a, b)| (*a, *b, job.gpus)));
    let filled = filled(gpus, &runs.collect::<Vec<_>>(), from, end);
    let mut labs: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for job in served.iter().filter(|job| job.arrived < end) {
        let lab = labs.entry(job.lab.as_str()).or_default();
        lab.0 += inside(job) / whole;
        // What a lab brought before the warm-up was over it may still be owed.
        let before = job.ran.iter().map(|(a, b)| (*b).min(from).since(*a).as_f64()).sum::<f64>();
        lab.1 += (job.work - f64::from(job.gpus) * before).max(0.0) / whole;
    }
    let (got, wanted): (Vec<f64>, Vec<f64>) = labs.into_values().unzip();
    let fair = fair_shares(&wanted, used);
    let ratios: Vec<f64> =
        got.iter().zip(&fair).filter(|(_, f)| **f > 0.0).map(|(g, f)| g / f).collect();
    let last_end = |job: &Served| job.ran.last().map(|(_, to)| *to).filter(|to| *to <= end);
    let ends: Option<Vec<Time>> = served.iter().map(last_end).collect();
    let makespan = ends.and_then(|ends| ends.into_iter().max()).map(|at| at.since(BEGINS));
    Waits {
        widths,
        makespan: makespan.map(|length| length.as_f64() / 3600.0),
        utilization: used,
        idle: 1.0 - used,
        with_backfill: used + filled.used / whole,
        failed_share: told.failed_seconds as f64 / whole,
        reservations: told.begun,
        failed: told.failed,
        jain: jain(&ratios),
        deviation: got.iter().zip(&fair).map(|(g, f)| (g - f).abs()).fold(0.0, f64::max),
    }
}

/// What was served, dealt out equally, but to nobody more than it wanted.
fn fair_shares(wanted: &[f64], served: f64) -> Vec<f64> {
    let mut shares = vec![0.0; wanted.len()];
    let mut order: Vec<(f64, usize)> = wanted.iter().copied().zip(0..).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut left = served;
    for (n, (wants, lab)) in order.iter().enumerate() {
        let share = wants.min(left / (order.len() - n) as f64);
        if let Some(own) = shares.get_mut(*lab) {
            *own = share;
        }
        left -= share;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_s_fair_share_is_more_than_it_wanted() {
        let near = |wanted: &[f64], served, expected: &[f64]| {
            let found = fair_shares(wanted, served);
            let same = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9);
            assert!(same, "{wanted:?}: {found:?}");
        };
        near(&[0.1, 0.5, 0.9], 0.9, &[0.1, 0.4, 0.4]);
        near(&[0.2, 0.2], 0.9, &[0.2, 0.2]);
        near(&[0.6, 0.6, 0.6], 0.9, &[0.3, 0.3, 0.3]);
    }
}
