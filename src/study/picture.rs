//! Campaigns as they can be drawn: what was left at each moment, and who ran where.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use crate::model::cluster::EndWord;
use crate::model::id::JobId;
use crate::model::policy::Lane;
use crate::model::units::{Secs, Time};

use super::bound::least_left;
use super::campaign::{BEGINS, ME, Ran, go};
use super::method::Method;
use super::path::Path;
use super::setting::Setting;
use super::world::World;

/// GPU-hours of rows left: at the beginning, and each so often after it until the last row.
pub type Curve = Vec<f64>;

/// One run of a shard, in hours from the beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Place among the setting's shards.
    pub shard: usize,
    /// Of the shard's helper with this number.
    pub helper: Option<u32>,
    pub lane: Lane,
    pub from: f64,
    pub to: f64,
    pub end: EndWord,
}

/// One campaign as it went.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    pub curve: Curve,
    /// What would have been left, had every GPU always worked.
    pub least: Curve,
    pub runs: Vec<Run>,
}

/// `None`: broken off, since `stop` was set.
///
/// # Errors
/// As of `campaign::run`.
pub fn run_with_curve(
    setting: &Setting,
    method: &Method,
    seed: u64,
    every: Secs,
    stop: &AtomicBool,
) -> Result<Option<(Ran, Curve)>, String> {
    let Some((ran, world)) = go(setting, method, seed, stop)? else { return Ok(None) };
    let curve = curve(setting, &world, seed, every);
    Ok(Some((ran, curve)))
}

/// `None`: broken off, since `stop` was set.
///
/// # Errors
/// As of `campaign::run`.
pub fn picture(
    setting: &Setting,
    method: &Method,
    seed: u64,
    every: Secs,
    stop: &AtomicBool,
) -> Result<Option<Picture>, String> {
    let Some((_, world)) = go(setting, method, seed, stop)? else { return Ok(None) };
    let mut path = Path::new(setting.scenario.clone(), seed, BEGINS, setting.extra_at_begin());
    let shortest = setting.shortest(&setting.tables(seed));
    Ok(Some(Picture {
        curve: curve(setting, &world, seed, every),
        least: least_left(&mut path, BEGINS, setting.own_free(), setting.limit, &shortest, every),
        runs: runs(setting, &world),
    }))
}

/// What a shard's rows say at a moment, for all shards at each moment until the last row.
fn each_moment<T>(
    setting: &Setting,
    world: &World,
    every: Secs,
    at: impl Fn(&[(usize, usize)], Time) -> T,
) -> Vec<T> {
    let rows = &world.cluster.work;
    let pairs: Vec<(usize, usize)> = setting
        .work
        .iter()
        .enumerate()
        .filter_map(|(n, work)| Some((n, rows.index_of_shard(&work.id)?)))
        .collect();
    let ends = pairs.iter().map(|(_, index)| rows.finished_at(*index).unwrap_or(world.now()));
    let end = ends.max().unwrap_or(BEGINS);
    let mut found = Vec::new();
    let mut moment = BEGINS;
    loop {
        found.push(at(&pairs, moment));
        if moment >= end {
            return found;
        }
        moment = moment + every;
    }
}

fn curve(setting: &Setting, world: &World, seed: u64, every: Secs) -> Curve {
    // By shard: what is left after each number of rows.
    let left: Vec<Vec<i64>> = setting
        .tables(seed)
        .iter()
        .zip(&setting.work)
        .map(|(rows, work)| {
            let mut left: Vec<i64> = vec![0];
            for row in rows.iter().rev() {
                left.push(left.last().copied().unwrap_or(0) + row.0 * i64::from(work.gpus));
            }
            left.reverse();
            left
        })
        .collect();
    let rows = &world.cluster.work;
    each_moment(setting, world, every, |pairs, moment| {
        let of = |(n, index): &(usize, usize)| {
            let done = rows.rows_at(*index, moment) as usize;
            left.get(*n).and_then(|left| left.get(done)).copied().unwrap_or(0)
        };
        pairs.iter().map(of).sum::<i64>() as f64 / 3600.0
    })
}

/// Hours until each shard is done; and finished rows of all of them, those before the beginning
/// included: at the beginning and each `every` after it.
pub(super) type Finished = (Vec<f64>, Vec<u32>);

/// `None`: broken off, since `stop` was set.
///
/// # Errors
/// As of `campaign::run`; and a campaign that had not ended after `Setting::limit`.
pub(super) fn finish(
    setting: &Setting,
    method: &Method,
    seed: u64,
    every: Secs,
    stop: &AtomicBool,
) -> Result<Option<Finished>, String> {
    let Some((_, world)) = go(setting, method, seed, stop)? else { return Ok(None) };
    let rows = &world.cluster.work;
    let ends: Option<Vec<f64>> = setting
        .work
        .iter()
        .map(|work| {
            let at = rows.finished_at(rows.index_of_shard(&work.id)?)?;
            Some(at.since(BEGINS).as_f64() / 3600.0)
        })
        .collect();
    let ends = ends.ok_or_else(|| {
        let hours = setting.limit.0 / 3600;
        format!("with scenario {} it has not ended after {hours} h", setting.scenario.word())
    })?;
    let done = each_moment(setting, &world, every, |pairs, moment| {
        pairs.iter().map(|(_, index)| rows.rows_at(*index, moment)).sum()
    });
    Ok(Some((ends, done)))
}

fn runs(setting: &Setting, world: &World) -> Vec<Run> {
    let hours = |at: Time| at.since(BEGINS).as_f64() / 3600.0;
    // What pilots work on, they claim; of any other job its name tells.
    let mut turns: BTreeMap<(JobId, u32), Vec<(Time, usize)>> = BTreeMap::new();
    for claim in world.cluster.work.claims_made() {
        let shard = setting.work.iter().position(|work| work.id == claim.shard);
        let of_run = turns.entry((claim.job, claim.run)).or_default();
        of_run.extend(shard.map(|shard| (claim.at, shard)));
    }
    let mut runs = Vec::new();
    for job in world.cluster.history().iter().filter(|job| *job.user == *ME) {
        let shard = setting.work.iter().position(|work| {
            let id = &work.id;
            let named = |end| job.name.contains(&format!(".{}.{}{end}", id.family, id.shard));
            named('.') || named('~')
        });
        let Some(shard) = shard else { continue };
        // No other name holds a `~`.
        let number = |(_, after): (&str, &str)| after.split('.').next()?.parse().ok();
        let helper = job.name.split_once('~').and_then(number);
        for (run, stay) in (0..).zip(&job.stays) {
            let Some(started) = stay.started else { continue };
            let lane = if *stay.qos == *Lane::Own.word() { Lane::Own } else { Lane::Extra };
            let mut turns = turns.remove(&(job.id, run)).unwrap_or_else(|| vec![(started, shard)]);
            turns.sort_unstable();
            let mut to = (hours(stay.ended), stay.end);
            for (from, shard) in turns.into_iter().rev() {
                let from = hours(from);
                runs.push(Run { shard, helper, lane, from, to: to.0, end: to.1 });
                to = (from, EndWord::Completed);
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::super::method::by_name;
    use super::super::scenario::Scenario;
    use super::*;

    #[test]
    fn a_picture_is_of_the_same_campaign_as_its_figures() {
        ["v4.1", "pilots", "split"].into_iter().for_each(a_picture_shows);
    }

    fn a_picture_shows(policy: &str) {
        let setting = Setting::field(Scenario::Seed);
        let method = by_name(policy).expect("a policy");
        let every = Secs::hours(1);
        let never = AtomicBool::new(false);
        let both = run_with_curve(&setting, &method, 4, every, &never).expect("adds up");
        let (ran, curve) = both.expect("nobody stops it");
        let measures = ran.measures.expect("it ends");
        let seen = picture(&setting, &method, 4, every, &never).expect("adds up");
        let seen = seen.expect("nobody stops it");
        assert_eq!(seen.curve, curve);
        assert!(curve.is_sorted_by(|a, b| a >= b) && curve.last() == Some(&0.0), "{curve:?}");
        assert_eq!(curve.len(), measures.makespan.ceil() as usize + 1);
        let hours: f64 = seen.runs.iter().map(|run| run.to - run.from).sum();
        assert!((hours - measures.gpu_hours).abs() < 1e-6, "{hours} {}", measures.gpu_hours);
        let preempted = seen.runs.iter().filter(|run| run.end == EndWord::Preempted).count();
        assert_eq!(preempted as f64, measures.preemptions);
        // Nobody can be faster than if every GPU had always worked.
        let pairs = seen.least.iter().zip(&seen.curve);
        assert!(pairs.clone().all(|(least, left)| *least <= left + 1.3), "starts: 6 min a shard");
    }
}
