//! Many campaigns on all cores, and what their figures say side by side.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::campaign::{Ran, run};
use super::measures::Measures;
use super::method::Method;
use super::setting::Setting;
use super::statistics::{Estimate, estimate};

/// How many campaigns, on how many threads, and who wants to know of each one done.
pub struct Orders<'a> {
    pub seeds: u64,
    pub threads: usize,
    /// Set by somebody else: no further campaign is begun.
    pub stop: &'a AtomicBool,
    /// Called with the number of campaigns done so far, from any thread.
    pub done: &'a (dyn Fn(usize) + Sync),
}

/// All seeds under all methods. Seed by seed, so that what is there after a stop can be compared:
/// only seeds that ran under every method are kept.
///
/// # Errors
/// The first campaign that broke.
pub fn run_all(
    setting: &Setting,
    methods: &[Method],
    orders: &Orders<'_>,
) -> Result<Vec<Vec<Ran>>, String> {
    let each = methods.len().max(1);
    let jobs = usize::try_from(orders.seeds).unwrap_or(usize::MAX).saturating_mul(methods.len());
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found: Mutex<Vec<(usize, Result<Ran, String>)>> = Mutex::new(Vec::new());
    let work = || {
        while !orders.stop.load(Ordering::Relaxed) {
            let job = next.fetch_add(1, Ordering::Relaxed);
            let Some(method) = methods.get(job % each).filter(|_| job < jobs) else { break };
            let ran = run(setting, method, (job / each) as u64 + 1);
            let broke = ran.is_err();
            let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            found.push((job, ran));
            drop(found);
            (orders.done)(done.fetch_add(1, Ordering::Relaxed) + 1);
            if broke {
                break;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..orders.threads.max(1) {
            scope.spawn(work);
        }
    });
    let mut found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    found.sort_by_key(|(job, _)| *job);
    let mut by_method: Vec<Vec<Ran>> = vec![Vec::new(); methods.len()];
    for (job, ran) in found {
        if let Some(list) = by_method.get_mut(job % each) {
            list.push(ran?);
        }
    }
    let whole = |seed: u64| by_method.iter().all(|list| list.iter().any(|ran| ran.seed == seed));
    let seeds: Vec<u64> =
        by_method.first().into_iter().flatten().map(|r| r.seed).filter(|s| whole(*s)).collect();
    for list in &mut by_method {
        list.retain(|ran| seeds.binary_search(&ran.seed).is_ok());
    }
    Ok(by_method)
}

/// Figures of one method over its seeds; of campaigns that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub ended: usize,
    pub never: usize,
    pub bound: Option<Estimate>,
    pub makespan: Option<Estimate>,
    /// Makespan over its own bound, seed by seed.
    pub times_bound: Option<Estimate>,
    pub completion: Option<Estimate>,
    pub lost_rows: Option<Estimate>,
    pub preemptions: Option<Estimate>,
    pub idle: Option<Estimate>,
    pub gpu_hours: Option<Estimate>,
    pub cost: Option<Estimate>,
    pub others_wait: Option<Estimate>,
}

pub fn summary(runs: &[Ran]) -> Summary {
    let ended = || runs.iter().filter_map(|ran| Some((ran, ran.measures?)));
    let over = |value: fn(&Measures) -> f64| {
        estimate(&ended().map(|(_, measures)| value(&measures)).collect::<Vec<_>>())
    };
    let finite = || ended().filter(|(ran, _)| ran.bound.is_finite());
    let times = |(ran, measures): (&Ran, Measures)| measures.makespan / ran.bound;
    Summary {
        ended: ended().count(),
        never: runs.iter().filter(|ran| ran.measures.is_none()).count(),
        bound: estimate(&finite().map(|(ran, _)| ran.bound).collect::<Vec<_>>()),
        makespan: over(|m| m.makespan),
        times_bound: estimate(&finite().map(times).collect::<Vec<_>>()),
        completion: over(|m| m.completion),
        lost_rows: over(|m| m.lost_rows),
        preemptions: over(|m| m.preemptions),
        idle: over(|m| m.idle),
        gpu_hours: over(|m| m.gpu_hours),
        cost: over(|m| m.cost.dollars()),
        others_wait: over(|m| m.others_wait),
    }
}

/// How much longer `a` took than `b`, in hours, over the seeds for which both ended.
pub fn longer_by(a: &[Ran], b: &[Ran]) -> Option<Estimate> {
    let pairs = a.iter().zip(b).filter(|(a, b)| a.seed == b.seed);
    let both = pairs.filter_map(|(a, b)| Some(a.measures?.makespan - b.measures?.makespan));
    estimate(&both.collect::<Vec<_>>())
}
