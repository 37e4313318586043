//! Many campaigns on all cores, and what their figures say side by side.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::campaign::{Ran, run_with};
use super::luck::Lucks;
use super::measures::Measures;
use super::method::Method;
use super::setting::Setting;
use super::statistics::{Estimate, estimate};

/// How many campaigns, on how many threads, and who wants to know of each one done.
pub struct Orders<'a> {
    pub seeds: u64,
    pub threads: usize,
    /// Set by somebody else: no further campaign is begun, and those under way are broken off.
    pub stop: &'a AtomicBool,
    /// Called with the number of campaigns done so far, from any thread.
    pub done: &'a (dyn Fn(usize) + Sync),
}

/// What ran under each policy, by seed.
pub type BySeed<T> = Vec<Vec<(u64, T)>>;

/// All seeds under so many policies. Seed by seed, so that what is there after a stop can be
/// compared: only seeds that ran under every policy are kept. `one`: `None` where it was broken off.
///
/// # Errors
/// The first campaign that broke.
pub fn side_by_side<T: Send>(
    policies: usize,
    orders: &Orders<'_>,
    one: impl Fn(usize, u64) -> Result<Option<T>, String> + Sync,
) -> Result<BySeed<T>, String> {
    let each = policies.max(1);
    let jobs = usize::try_from(orders.seeds).unwrap_or(usize::MAX).saturating_mul(policies);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found: Mutex<Vec<(usize, Result<T, String>)>> = Mutex::new(Vec::new());
    let work = || {
        while !orders.stop.load(Ordering::Relaxed) {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                break;
            }
            let Some(ran) = one(job % each, (job / each) as u64 + 1).transpose() else { break };
            let broke = ran.is_err();
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
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
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(job, _)| *job);
    let mut by_policy: BySeed<T> = (0..policies).map(|_| Vec::new()).collect();
    for (job, ran) in found {
        if let Some(list) = by_policy.get_mut(job % each) {
            list.push(((job / each) as u64 + 1, ran?));
        }
    }
    let has = |list: &Vec<(u64, T)>, seed| list.binary_search_by_key(&seed, |(s, _)| *s).is_ok();
    let all = |seed: &u64| by_policy.iter().all(|list| has(list, *seed));
    let seeds = by_policy.first().into_iter().flatten().map(|(seed, _)| *seed);
    let whole: Vec<u64> = seeds.filter(all).collect();
    for list in &mut by_policy {
        list.retain(|(seed, _)| whole.binary_search(seed).is_ok());
    }
    Ok(by_policy)
}

/// Campaigns of two lanes.
///
/// # Errors
/// As `side_by_side`.
pub fn run_all(
    setting: &Setting,
    methods: &[Method],
    orders: &Orders<'_>,
) -> Result<Vec<Vec<Ran>>, String> {
    let lucks = Lucks::new(setting, orders.threads);
    let one = |n: usize, seed| match methods.get(n) {
        Some(method) => run_with(setting, method, &lucks.of(seed), orders.stop),
        None => Err(format!("no policy number {n}")),
    };
    let found = side_by_side(methods.len(), orders, one)?;
    let plain = |list: Vec<(u64, Ran)>| list.into_iter().map(|(_, ran)| ran).collect();
    Ok(found.into_iter().map(plain).collect())
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
    /// Shards that their cap stopped.
    pub capped: Option<Estimate>,
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
        capped: over(|m| m.capped),
    }
}

/// How much more `a` has of something than `b`, over the seeds for which both ended.
pub fn more(a: &[Ran], b: &[Ran], of: impl Fn(&Measures) -> f64) -> Option<Estimate> {
    let pairs = a.iter().zip(b).filter(|(a, b)| a.seed == b.seed);
    let both = pairs.filter_map(|(a, b)| Some(of(a.measures.as_ref()?) - of(b.measures.as_ref()?)));
    estimate(&both.collect::<Vec<_>>())
}

/// The same of any campaigns, over the seeds for which both have it.
pub fn paired<T>(
    a: &[(u64, T)],
    b: &[(u64, T)],
    of: impl Fn(&T) -> Option<f64>,
) -> Option<Estimate> {
    let pairs = a.iter().zip(b).filter(|((a, _), (b, _))| a == b);
    let both = pairs.filter_map(|((_, a), (_, b))| Some(of(a)? - of(b)?));
    estimate(&both.collect::<Vec<_>>())
}

/// How much longer `a` took than `b`, in hours.
pub fn longer_by(a: &[Ran], b: &[Ran]) -> Option<Estimate> {
    more(a, b, |measures| measures.makespan)
}
