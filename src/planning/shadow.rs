//! Reservations without a mark (`[policy] reserve = "shadow"`): each cycle derives anew when every
//! shard of several GPUs could start, from the ends of what runs, and nobody behind may delay it.
//!
//! Nothing is stored, so that nothing can be broken by a new order of the labs, and nothing is
//! charged. Short jobs may use the hole before a start.

use std::collections::HashMap;

use crate::model::cluster::QueueJob;
use crate::model::id::JobId;
use crate::model::policy::Policy;
use crate::model::state::{Live, State};
use crate::model::units::{Secs, Time};

use super::census::Census;
use super::lpt::Lpt;
use super::placement::{Placement, about_to_start};
use super::submit::Moment;

/// A job whose end is not known, or is overdue, may end in any moment: whoever waits for its GPUs
/// has them kept, as a mark would.
const ANY_MOMENT: Secs = Secs::minutes(10);

/// The GPUs of every placement over time, and what shards ahead in the queue will take of them.
#[derive(Debug, Clone)]
pub struct Shadow {
    now: Time,
    /// By placement.
    free: Vec<Profile>,
    /// By shard: how long it runs, as far as one can say.
    lengths: Vec<Secs>,
}

/// Free GPUs from each moment until the next, the first of which is now.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Profile(Vec<(Time, i64)>);

impl Shadow {
    pub fn new(
        moment: &Moment<'_>,
        state: &State,
        census: &Census,
        placements: &[Placement],
    ) -> Shadow {
        let Moment { policy, cluster, now, .. } = *moment;
        let lengths = lengths(policy, state);
        let mut ends: Vec<Vec<(Time, u32)>> = vec![Vec::new(); placements.len()];
        let ours = ours(state);
        for job in cluster.jobs.iter().filter(|job| job.state.holds_gpus()) {
            let known = ours.get(&job.id).and_then(|&(shard, live)| {
                let begun = live.mark.map(|mark| mark.at).or(live.started)?;
                Some(begun + *lengths.get(shard)?)
            });
            let end = [known, job.ends].into_iter().flatten().min();
            let at = placement_of(job, placements);
            if let (Some(at), Some(end)) = (at.and_then(|at| ends.get_mut(at)), end) {
                at.push((end, job.gpus.unwrap_or(0)));
            }
        }
        for &shard in &census.pinned {
            let Some(attempt) = state.shards.get(shard).and_then(about_to_start) else { continue };
            let at = placements.iter().position(|p| attempt.pin.as_ref() == Some(&p.pin));
            let length = lengths.get(shard).copied().unwrap_or_default();
            if let Some(at) = at.and_then(|at| ends.get_mut(at)) {
                at.push((now + length, attempt.gpus));
            }
        }
        let free = placements.iter().zip(&ends).map(|(at, ends)| Profile::of(at, ends, now));
        Shadow { now, free: free.collect(), lengths }
    }

    /// From when on its GPUs are free there for as long as it runs; never: the end of time.
    pub fn earliest(&self, shard: usize, gpus: u32, at: usize) -> Time {
        let found = self.free.get(at).and_then(|free| free.earliest(gpus, self.length(shard)));
        found.unwrap_or(Time(i64::MAX))
    }

    fn length(&self, shard: usize) -> Secs {
        self.lengths.get(shard).copied().unwrap_or_default()
    }

    /// Would a start there, now, delay nobody ahead?
    pub fn lets_start(&self, shard: usize, gpus: u32, at: usize) -> bool {
        let end = self.now + self.length(shard);
        self.free.get(at).is_some_and(|free| free.least(self.now, end) >= i64::from(gpus))
    }

    /// It starts now.
    pub fn starts(&mut self, shard: usize, gpus: u32, at: usize) {
        self.take(shard, gpus, at, self.now);
    }

    /// It waits: of these placements, best first, the one where it can start first is kept for it.
    pub fn waits(&mut self, shard: usize, gpus: u32, fit: &[usize]) -> Option<(usize, Time)> {
        let length = self.length(shard);
        let earliest = |&at: &usize| Some((self.free.get(at)?.earliest(gpus, length)?, at));
        let found = fit.iter().filter_map(earliest);
        let (start, at) = found.reduce(|best, next| if next.0 < best.0 { next } else { best })?;
        self.take(shard, gpus, at, start);
        Some((at, start))
    }

    fn take(&mut self, shard: usize, gpus: u32, at: usize, start: Time) {
        let end = start + self.length(shard);
        if let Some(free) = self.free.get_mut(at) {
            free.take(start, end, i64::from(gpus));
        }
    }
}

/// What is left of each shard, in time.
fn lengths(policy: &Policy, state: &State) -> Vec<Secs> {
    let left = Lpt::new(policy, state).remaining;
    left.iter().map(|seconds| Secs((seconds.ceil() as i64).max(1))).collect()
}

fn ours(state: &State) -> HashMap<JobId, (usize, &Live)> {
    let live = state.shards.iter().enumerate().filter_map(|(i, r)| Some((i, r.live()?)));
    live.map(|(i, live)| (live.job, (i, live))).collect()
}

/// Where a running job has its GPUs; `None` where its node has several models and it named none.
fn placement_of(job: &QueueJob, placements: &[Placement]) -> Option<usize> {
    let node = job.nodes.first().filter(|_| job.nodes.len() == 1)?;
    let model = job.asked.iter().find_map(|asked| asked.model.as_deref());
    let here = |p: &Placement| p.pin.node == *node;
    let same = |p: &Placement| model.is_none_or(|model| p.model.eq_ignore_ascii_case(model));
    let mut found = placements.iter().enumerate().filter(|(_, p)| here(p) && same(p));
    let (at, _) = found.next()?;
    found.next().is_none().then_some(at)
}

impl Profile {
    fn of(at: &Placement, ends: &[(Time, u32)], now: Time) -> Profile {
        let soon = now + ANY_MOMENT;
        let busy = at.capacity.saturating_sub(at.idle);
        let mut unknown = busy;
        let mut frees: Vec<(Time, i64)> = Vec::with_capacity(ends.len() + 1);
        for (end, gpus) in ends {
            let gpus = (*gpus).min(unknown);
            unknown -= gpus;
            frees.push((if *end > now { *end } else { soon }, i64::from(gpus)));
        }
        frees.push((soon, i64::from(unknown)));
        frees.sort_unstable();
        let mut free = i64::from(at.idle);
        let mut steps = vec![(now, free)];
        for (end, gpus) in frees.into_iter().filter(|(_, gpus)| *gpus > 0) {
            free += gpus;
            match steps.last_mut() {
                Some(last) if last.0 == end => last.1 = free,
                _ => steps.push((end, free)),
            }
        }
        Profile(steps)
    }

    /// Fewest free GPUs from one moment until another.
    fn least(&self, from: Time, until: Time) -> i64 {
        let Profile(steps) = self;
        let first = steps.partition_point(|(at, _)| *at <= from).saturating_sub(1);
        let during = steps.iter().skip(first).take_while(|(at, _)| *at < until);
        during.map(|(_, free)| *free).min().unwrap_or(0)
    }

    /// First moment from which so many stay free for that long.
    fn earliest(&self, gpus: u32, length: Secs) -> Option<Time> {
        let Profile(steps) = self;
        let mut start = None;
        for (at, free) in steps {
            match start {
                Some(from) if *at >= from + length => break,
                _ if *free < i64::from(gpus) => start = None,
                None => start = Some(*at),
                Some(_) => {}
            }
        }
        start
    }

    fn take(&mut self, from: Time, until: Time, gpus: i64) {
        for moment in [from, until] {
            let Profile(steps) = self;
            let at = steps.partition_point(|(at, _)| *at < moment);
            if steps.get(at).is_none_or(|(there, _)| *there != moment) {
                let before = at.checked_sub(1).and_then(|before| steps.get(before));
                let free = before.map_or(0, |(_, free)| *free);
                steps.insert(at, (moment, free));
            }
        }
        let during = self.0.iter_mut().filter(|(at, _)| (from..until).contains(at));
        during.for_each(|(_, free)| *free -= gpus);
    }
}

/// GPUs that stand idle for the first of the queue are kept from our jobs in Slurm's queue too.
pub fn keep(at: &mut Placement, gpus: u32) {
    at.reserved = at.free().min(gpus);
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Time = Time(1000);

    fn at(second: i64) -> Time {
        T0 + Secs(second)
    }

    fn profile(steps: &[(i64, i64)]) -> Profile {
        Profile(steps.iter().map(|(second, free)| (at(*second), *free)).collect())
    }

    #[test]
    fn the_first_hole_that_is_long_enough() {
        let free = profile(&[(0, 2), (10, 1), (20, 4), (100, 8)]);
        for (gpus, length, expected) in [
            (1, 1000, Some(0)),
            (2, 10, Some(0)),
            (2, 11, Some(20)),
            (4, 500, Some(20)),
            (8, 1, Some(100)),
            (9, 1, None),
        ] {
            let found = free.earliest(gpus, Secs(length));
            assert_eq!(found, expected.map(at), "{gpus} for {length} s");
        }
    }

    #[test]
    fn what_is_taken_is_missing_for_that_long_only() {
        let mut free = profile(&[(0, 2), (20, 4)]);
        free.take(at(10), at(30), 2);
        assert_eq!(free, profile(&[(0, 2), (10, 0), (20, 2), (30, 4)]));
        assert_eq!(free.least(at(0), at(10)), 2);
        assert_eq!(free.least(at(0), at(11)), 0);
        assert_eq!(free.least(at(25), at(26)), 2);
        assert_eq!(free.earliest(4, Secs(5)), Some(at(30)));
    }
}
