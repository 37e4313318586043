//! Cycles in which there is nothing to decide: Slurm shows what it showed, and files have grown.
//!
//! A campaign on a virtual clock may leave such cycles out; the real tick never does. What is asked
//! here is asked of the rules themselves (measure, helpers, LPT), so that there is no second copy of
//! them.

mod places;

use std::ops::Range;

use crate::model::caution::Caution;
use crate::model::observation::{Measured, Seen};
use crate::model::policy::{CostIn, OwnShare, Policy, SubmitMode};
use crate::model::state::{Gate, ShardRecord, Slot, State};
use crate::model::units::Time;

use super::census::Census;
use super::helpers::{self, Demand, Team};
use super::measure::{is_done, measure_one};
use super::own_share;
use super::pilots::Order;
use places::Places;

/// A state in which only a change of the cluster, another place of a shard that waits, or rows that
/// helpers are asked for can make the next cycle do something.
#[derive(Debug, Clone, PartialEq)]
pub struct Rest {
    /// Shards whose files every cycle reads.
    read: Vec<Read>,
    /// Who may be submitted: helpers that nobody asks for, and shards whose rows helpers have.
    census: Census,
    /// `None`: no place changes while none of our jobs does.
    places: Option<Places>,
    /// The order in which pilots are offered shards; `None`: it stays as it is.
    offered: Option<Order>,
    /// Some rule asks what others have of own.
    others: bool,
}

/// A shard at which a job is at work, its own or a helper's, or for which a helper waits.
#[derive(Debug, Clone, PartialEq)]
struct Read {
    shard: usize,
    helpers: Range<usize>,
    /// Jobs that run: no more rows are in anybody's hands, or one of them has to be given back.
    running: u32,
    /// It costs more with each hour, whatever its files say.
    by_time: bool,
    /// What is asked for it; `None`: it has no helpers.
    demand: Option<Demand>,
}

/// After a cycle; `None` where time alone may bring the next decision.
pub fn rest(policy: &Policy, state: &State, me: u32, now: Time) -> Option<Rest> {
    // What babysit is wary of it forgives by time.
    if state.caution != Caution::default() {
        return None;
    }
    let still = |(i, record): (usize, &ShardRecord)| {
        let shard = policy.shards.get(i)?;
        let ends = match &record.slot {
            Slot::Live(live) => live.absent.is_none() && live.stop.is_none() && !live.owes(),
            // Of those whose rows are shared `demands` knows whether a job is due.
            Slot::Free => is_done(shard, record) || shard.split.is_some(),
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
    // Most quiet cycles by far are those in which nothing pends.
    let pends = |record: &ShardRecord| matches!(&record.slot, Slot::Live(l) if l.started.is_none());
    let shared = policy.named() < policy.shards.len();
    let census = match shared || state.shards.iter().any(pends) {
        true => Census::new(policy, state),
        false => Census::default(),
    };
    let demands = helpers::demands(policy, state, &census)?;
    let read = read(policy, state, demands)?;
    let grows = |shard: usize| read.iter().any(|read| read.shard == shard && read.running > 0);
    let places = Places::new(policy, state, &census, grows, me, now);
    let offered = Order::of_offer(policy, state);
    let lanes = &policy.rules.lanes;
    let room = lanes.straight && !places::in_both(policy, state);
    let others = room || lanes.own_share == OwnShare::Average;
    Some(Rest { read, census, places, offered, others })
}

/// `None`: a row is to be given back, as soon as Slurm says that its job is over.
fn read(policy: &Policy, state: &State, demands: Vec<(Team, Demand)>) -> Option<Vec<Read>> {
    let runs = |i: &usize| {
        let live = state.shards.get(*i).and_then(ShardRecord::live);
        live.is_some_and(|live| live.started.is_some())
    };
    let has_job = |i: usize| state.shards.get(i).is_some_and(|r| r.slot != Slot::Free);
    let mut demands = demands.into_iter().peekable();
    let mut all = Vec::new();
    for (shard, record) in state.shards.iter().enumerate().take(policy.named()) {
        let team = demands.next_if(|(team, _)| team.shard == shard);
        let (helpers, demand) = match team {
            Some((team, demand)) => (team.helpers, Some(demand)),
            None => (0..0, None),
        };
        let running = std::iter::once(shard).chain(helpers.clone()).filter(runs).count() as u32;
        if record.progress.begun > running {
            return None;
        }
        if running > 0 || helpers.clone().any(has_job) {
            let cost = policy.shards.get(shard).and_then(|shard| shard.cost.as_ref());
            let by_time = matches!(cost, Some(CostIn::GpuHour(_)));
            all.push(Read { shard, helpers, running, by_time, demand });
        }
    }
    Some(all)
}

/// Takes in what a cycle would: the readings of the shards that run, and who is in own. False: a cycle
/// is due, and will find all as it would have found it.
///
/// `others`: GPUs of own that other people's jobs hold, and those that they wait for; `read`: what a
/// shard's files say now, `None` where they say what they said. A file that is not read is taken as
/// read by the next cycle, which reads those of all that run.
pub fn stays_at_rest(
    policy: &Policy,
    state: &mut State,
    rest: &mut Rest,
    others: impl FnOnce() -> (u32, u32),
    mut read: impl FnMut(usize) -> Option<Seen<Measured>>,
    now: Time,
) -> bool {
    own_share::note(state, now);
    let others = rest.others && take_others(state, others());
    let mut grew = false;
    for file in &rest.read {
        let reading = read(file.shard);
        if reading.is_none() && !file.by_time {
            continue;
        }
        let Some(more) = file.take(policy, state, reading.as_ref(), now) else { return false };
        grew |= more;
        let Some(demand) = file.demand.filter(|_| reading.is_some()) else { continue };
        let team = Team { shard: file.shard, helpers: file.helpers.clone() };
        if helpers::demand(policy, state, &rest.census, &team) != Some(demand) {
            return false;
        }
    }
    if let Some(offered) = &mut rest.offered
        && grew
        && !offered.stays(policy, state)
    {
        return false;
    }
    rest.places.as_mut().is_none_or(|places| places.stay(policy, state, grew, others, now))
}

/// Notes what they have of own. Have they more in all, or less? Which of them run and which wait is
/// all the same to its room.
fn take_others(state: &mut State, (running, pending): (u32, u32)) -> bool {
    let Some(lane) = &mut state.learned.own_lane else { return false };
    let before = lane.running_others.saturating_add(lane.pending_others);
    (lane.running_others, lane.pending_others) = (running, pending);
    before != running.saturating_add(pending)
}

impl Read {
    /// Takes a reading in. Are there more rows? `None`: a cycle has something to tell.
    fn take(
        &self,
        policy: &Policy,
        state: &mut State,
        reading: Option<&Seen<Measured>>,
        now: Time,
    ) -> Option<bool> {
        let shard = policy.shards.get(self.shard)?;
        let cap = state.cap_of(&shard.id, shard.cap);
        let (first, rest) = state.shards.split_at_mut_checked(policy.named())?;
        let record = first.get_mut(self.shard)?;
        let named = policy.named();
        let range =
            self.helpers.start.saturating_sub(named)..self.helpers.end.saturating_sub(named);
        let helping = rest.get_mut(range)?;
        let before = record.progress.rows;
        let begun = |m: &Measured| m.claims.as_ref().map_or(0, |c| c.begun.len() as u32);
        let tells = match reading {
            None => false,
            Some(Err(_)) => true,
            Some(Ok(measured)) => {
                measured.rows < before
                    || measured.rows >= shard.rows
                    || begun(measured) > self.running
            }
        };
        // A cycle tells of these, and tells it once.
        if tells {
            return None;
        }
        // Read again in the same moment it changes nothing any more.
        let mut events = Vec::new();
        measure_one(shard, record, helping, reading, now, &mut events);
        let spent = record.progress.spent.unwrap_or_default();
        if !events.is_empty() || cap.is_some_and(|cap| spent >= cap) {
            return None;
        }
        if reading.is_some() {
            helping.iter_mut().for_each(|helper| helpers::follow(helper, record, None));
        }
        Some(record.progress.rows > before)
    }
}
