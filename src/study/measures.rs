//! What a campaign took, told from its history alone.

use crate::model::units::{Money, Time};
use crate::sim::Job;

use super::campaign::{BEGINS, ME, VISITOR};
use super::path::Path;
use super::setting::Setting;
use super::world::World;

/// Figures of one campaign. Hours, but where it says otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measures {
    /// From the beginning to the last row.
    pub makespan: f64,
    /// Mean over the shards of the time at which each was finished.
    pub completion: f64,
    /// Rows in flight that preemptions took.
    pub lost_rows: f64,
    pub preemptions: f64,
    /// GPU-hours during which a GPU that we could have had stood idle while a shard waited.
    pub idle: f64,
    /// GPU-hours that our jobs ran.
    pub gpu_hours: f64,
    pub cost: Money,
    /// Shards that their cap stopped.
    pub capped: f64,
    /// Mean wait of the visitors who came before our end; 0 where there was none.
    pub others_wait: f64,
    pub visitors: f64,
}

const HOUR: f64 = 3600.0;

pub fn measure(setting: &Setting, world: &World, path: &Path) -> Measures {
    let cluster = &world.cluster;
    let ours = || cluster.history().iter().filter(|job| *job.user == *ME);
    let rows = &cluster.work;
    let index = |n: usize| rows.index_of_shard(&setting.work.get(n)?.id);
    let shards = 0..setting.work.len();
    // A shard that its cap stopped has ended where its last row was finished.
    let end_of = |i: usize| rows.finished_at(i).or_else(|| rows.last_row_at(i));
    let ends: Vec<Time> = shards.clone().filter_map(index).filter_map(end_of).collect();
    let widths: Vec<i64> = setting.work.iter().map(|work| i64::from(work.gpus)).collect();
    let hours = |at: Time| at.since(BEGINS).as_f64() / HOUR;
    let end = ends.iter().max().copied().unwrap_or(BEGINS);
    let waits: Vec<f64> = cluster
        .history()
        .iter()
        .filter(|job| *job.user == *VISITOR && job.submitted < end)
        .map(|job| first_start(job).unwrap_or(end).min(end).since(job.submitted).as_f64() / HOUR)
        .collect();
    let mean = |sum: f64, n: usize| if n == 0 { 0.0 } else { sum / n as f64 };
    let lost: u32 = shards.filter_map(index).map(|i| rows.lost(i)).sum();
    let named = || world.state.shards.iter().take(world.policy.named());
    Measures {
        makespan: hours(end),
        completion: mean(ends.iter().map(|at| hours(*at)).sum(), ends.len()),
        lost_rows: f64::from(lost),
        preemptions: world.state.shards.iter().map(|r| f64::from(r.preemptions)).sum(),
        idle: idle(setting, world, path, &ends, &widths, end),
        gpu_hours: ours()
            .flat_map(|job| cluster.runs_of(job))
            .map(|(from, to, gpus)| to.since(from).as_f64() * f64::from(gpus) / HOUR)
            .sum(),
        cost: named().filter_map(|r| r.progress.spent).sum(),
        capped: named().filter(|r| r.over_cap.is_some()).count() as f64,
        others_wait: mean(waits.iter().sum(), waits.len()),
        visitors: waits.len() as f64,
    }
}

fn first_start(job: &Job) -> Option<Time> {
    job.stays.iter().find_map(|stay| stay.started).or(job.started())
}

/// Sweeps over the changes: at each moment the idle GPUs count as far as shards wait for them.
fn idle(
    setting: &Setting,
    world: &World,
    path: &Path,
    ends: &[Time],
    widths: &[i64],
    end: Time,
) -> f64 {
    let mut changes: Vec<(Time, i64, i64)> = Vec::new();
    for life in &path.extra {
        changes.push((life.from, 1, 0));
        changes.push((life.to, -1, 0));
    }
    for job in world.cluster.history() {
        for (from, to, gpus) in world.cluster.runs_of(job) {
            if *job.user == *ME || *job.user == *VISITOR {
                let waits = if *job.user == *ME { -i64::from(gpus) } else { 0 };
                changes.push((from, -i64::from(gpus), waits));
                changes.push((to, i64::from(gpus), -waits));
            }
        }
    }
    // A finished shard waits for nothing.
    changes.extend(ends.iter().zip(widths).map(|(at, gpus)| (*at, 0, -gpus)));
    changes.sort_unstable();
    let (mut free, mut waiting, mut at) =
        (i64::from(setting.own_free()), widths.iter().sum::<i64>(), BEGINS);
    let mut seconds = 0i64;
    for (moment, gpus, shards) in changes {
        let until = moment.clamp(BEGINS, end);
        seconds += free.min(waiting).max(0) * until.since(at).0;
        at = at.max(until);
        free += gpus;
        waiting += shards;
    }
    seconds as f64 / HOUR
}
