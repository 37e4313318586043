//! Cycles in which there is nothing to decide: Slurm shows what it showed, and files have grown.
//!
//! A campaign on a virtual clock may leave such cycles out; the real tick never does. What is asked
//! here is asked of the rules themselves (measure, LPT), so that there is no second copy of them.

use crate::model::caution::Caution;
use crate::model::observation::{Cluster, Measured, Observation, Seen};
use crate::model::policy::{LaneMode, Policy, SubmitMode};
use crate::model::state::{Gate, ShardRecord, Slot, State};
use crate::model::units::Time;

use super::census::Census;
use super::lpt::Lpt;
use super::measure::{is_done, measure};
use super::own_share;
use super::parking;
use super::turnover::Turnover;

/// A state in which only a change of the cluster or another order of the shards that wait can make
/// the next cycle do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    me: u32,
    waiting: Vec<Place>,
    /// K, where it depends on how far those are that run.
    park: usize,
    /// GPUs of own that are ours, where that depends on what others hold.
    share: Option<u32>,
}

/// A waiting shard in the order of parking, and whether it has as much left as the one before.
type Place = (usize, bool);

/// After a cycle; `None` where time alone may bring the next decision.
pub fn rest(policy: &Policy, state: &State, me: u32, now: Time) -> Option<Rest> {
    // What babysit is wary of it forgives by time.
    if state.caution != Caution::default() {
        return None;
    }
    let still = |(i, record): (usize, &ShardRecord)| {
        let shard = policy.shards.get(i)?;
        let ends = match &record.slot {
            Slot::Live(live) => live.absent.is_none() && live.stop.is_none(),
            Slot::Free => is_done(shard, record),
            Slot::Submitting(_) | Slot::Settling(_) => false,
        };
        let calm = ends
            && record.gate == Gate::Open
            && record.over_cap.is_none()
            && record.move_refused.is_none()
            && record.progress.gap.is_none()
            && record.reservation.is_none()
            // A stall is a matter of time; told later it is still told, restarted it must be at once.
            && !shard.restart_stalled
            && shard.submit == SubmitMode::Queued;
        calm.then_some(())
    };
    state.shards.iter().enumerate().map(still).collect::<Option<()>>()?;
    let (waiting, park) = order(policy, state, me, now);
    Some(Rest { me, waiting, park, share: share(policy, state, now) })
}

/// Takes the readings in, as a cycle would. False: a cycle is due, and will find all as it would
/// have found it. `readings`: one per shard of the policy.
pub fn stays_at_rest(
    policy: &Policy,
    state: &mut State,
    rest: &Rest,
    readings: Vec<Option<Seen<Measured>>>,
    now: Time,
) -> bool {
    let tells = |(i, reading): (usize, &Option<Seen<Measured>>)| {
        let (Some(shard), Some(record)) = (policy.shards.get(i), state.shards.get(i)) else {
            return true;
        };
        match reading {
            None => false,
            Some(Err(_)) => true,
            Some(Ok(measured)) => {
                let cap = state.cap_of(&shard.id, shard.cap);
                let over = cap.is_some_and(|cap| measured.spent.is_some_and(|s| s >= cap));
                over || measured.rows < record.progress.rows || measured.rows >= shard.rows
            }
        }
    };
    // A cycle tells of these, and tells it once.
    if readings.iter().enumerate().any(tells) {
        return false;
    }
    let cluster = Cluster { jobs: Vec::new(), nodes: Vec::new(), me: rest.me };
    let seen = Observation {
        cluster,
        accounting: None,
        progress: readings,
        logs: Vec::new(),
        own_gpus: None,
        takes_both: None,
        claims: None,
    };
    let mut events = Vec::new();
    measure(policy, state, &seen, now, &mut events);
    events.is_empty()
        && (rest.waiting.is_empty() || {
            let (waiting, park) = order(policy, state, rest.me, now);
            let same = waiting == rest.waiting && park == rest.park;
            same && share(policy, state, now) == rest.share
        })
}

fn share(policy: &Policy, state: &State, now: Time) -> Option<u32> {
    own_share::share(policy.rules.lanes.own_share, state, state.learned.own_lane.as_ref()?, now)
}

fn order(policy: &Policy, state: &State, me: u32, now: Time) -> (Vec<Place>, usize) {
    // Most quiet cycles by far are those in which nothing pends.
    let pends = |record: &ShardRecord| matches!(&record.slot, Slot::Live(l) if l.started.is_none());
    if !state.shards.iter().any(pends) {
        return (Vec::new(), 0);
    }
    let mut waiting = parking::movable(state, &Census::new(policy, state), me, now);
    if waiting.len() < 2 {
        return (waiting.iter().map(|w| (w.shard, false)).collect(), 0);
    }
    let lpt = Lpt::new(policy, state);
    parking::sort(policy, &lpt, &mut waiting);
    let mut before = None;
    let places = waiting.iter().map(|w| {
        let left = lpt.remaining.get(w.shard).copied();
        (w.shard, std::mem::replace(&mut before, left) == left)
    });
    let places = places.collect();
    let park = match policy.rules.lanes.mode {
        LaneMode::Fixed => 0,
        LaneMode::Adaptive | LaneMode::Both => {
            Turnover { lpt: &lpt, pending: waiting.len(), now }.park(state)
        }
    };
    (places, park)
}
