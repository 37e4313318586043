//! Cycles in which there is nothing to decide: Slurm shows what it showed, and files have grown.
//!
//! A campaign on a virtual clock may leave such cycles out; the real tick never does. What is asked
//! here is asked of the rules themselves (measure, LPT), so that there is no second copy of them.

use crate::model::caution::Caution;
use crate::model::observation::{Measured, Seen};
use crate::model::policy::{Lane, LaneMode, OwnShare, Policy, SubmitMode};
use crate::model::state::{Gate, OwnLane, ShardRecord, Slot, State};
use crate::model::units::Time;

use super::both;
use super::census::Census;
use super::lpt::Lpt;
use super::measure::{is_done, measure_one};
use super::own_share;
use super::parking::{self, Waiting};
use super::turnover::Turnover;

/// A state in which only a change of the cluster or another place of a shard that waits can make the
/// next cycle do something.
#[derive(Debug, Clone, PartialEq)]
pub struct Rest {
    /// Shards whose files grow.
    running: Vec<usize>,
    /// `None`: no place changes while none of our jobs does.
    places: Option<Places>,
}

/// The places of the shards that wait, where they can change while none of our jobs does.
#[derive(Debug, Clone, PartialEq)]
struct Places {
    waiting: Vec<Waiting>,
    /// One that has never run is taken to be as fast as its family is.
    on_rows: bool,
    /// K, where it counts those that are about to end.
    park: Option<usize>,
    /// GPUs of own that are ours, where that depends on what others held.
    share: Option<u32>,
    /// Who was in own when the places were last looked at.
    lane: OwnLane,
    lpt: Lpt,
    order: Vec<Place>,
}

/// A waiting shard in the order of parking, its lane, and whether it has as much left as the one
/// before.
type Place = (usize, Lane, bool);

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
    let runs = |record: &ShardRecord| record.live().is_some_and(|live| live.started.is_some());
    let running = (0..).zip(&state.shards).filter(|(_, record)| runs(record)).map(|(i, _)| i);
    let running = running.collect();
    let waiting = waiting(policy, state, me, now);
    let places = Places::new(policy, state, waiting, now);
    Some(Rest { running, places })
}

/// Takes the readings of the shards that run in, as a cycle would. False: a cycle is due, and will
/// find all as it would have found it. `others`: GPUs of own that other people's jobs hold or wait
/// for; `read`: what a shard's files say now, `None` where they say what they said. A file that is not
/// read is taken as read by the next cycle, which reads those of all that run.
pub fn stays_at_rest(
    policy: &Policy,
    state: &mut State,
    rest: &mut Rest,
    others: impl FnOnce() -> u32,
    mut read: impl FnMut(usize) -> Option<Seen<Measured>>,
    now: Time,
) -> bool {
    let mut events = Vec::new();
    let mut grew = false;
    for &i in &rest.running {
        let cap = policy.shards.get(i).and_then(|shard| state.cap_of(&shard.id, shard.cap));
        let (Some(shard), Some(record)) = (policy.shards.get(i), state.shards.get_mut(i)) else {
            return false;
        };
        let reading = read(i);
        let before = record.progress.rows;
        let tells = match &reading {
            None => false,
            Some(Err(_)) => true,
            Some(Ok(measured)) => measured.rows < before || measured.rows >= shard.rows,
        };
        // A cycle tells of these, and tells it once.
        if tells {
            return false;
        }
        // Read again in the same moment it changes nothing any more.
        measure_one(shard, record, &[], reading.as_ref(), now, &mut events);
        let spent = record.progress.spent.unwrap_or_default();
        if !events.is_empty() || cap.is_some_and(|cap| spent >= cap) {
            return false;
        }
        grew |= record.progress.rows > before;
    }
    rest.places.as_mut().is_none_or(|places| places.stay(policy, state, others(), grew, now))
}

fn waiting(policy: &Policy, state: &State, me: u32, now: Time) -> Vec<Waiting> {
    // Most quiet cycles by far are those in which nothing pends.
    let pends = |record: &ShardRecord| matches!(&record.slot, Slot::Live(l) if l.started.is_none());
    if !state.shards.iter().any(pends) {
        return Vec::new();
    }
    parking::movable(state, &Census::new(policy, state), me, now)
}

/// All that wait, wait in both lanes: neither own's room nor K decides where.
fn in_both(policy: &Policy, state: &State) -> bool {
    policy.rules.lanes.mode == LaneMode::Both && both::works(policy, state)
}

impl Places {
    fn new(policy: &Policy, state: &State, waiting: Vec<Waiting>, now: Time) -> Option<Places> {
        let both = in_both(policy, state);
        let on_time = policy.rules.lanes.mode != LaneMode::Fixed && !both;
        let has_run = |w: &Waiting| state.shards.get(w.shard).is_some_and(|r| r.pace.rows > 0);
        let on_rows = waiting.len() >= 2 && !waiting.iter().all(has_run);
        // Own's room is asked for by them alone who go straight to where they belong.
        let on_others = !waiting.is_empty() && policy.rules.lanes.straight && !both;
        let rule = policy.rules.lanes.own_share;
        let on_share = !waiting.is_empty() && rule == OwnShare::Average;
        if !(on_rows || on_others || on_share || (on_time && waiting.len() >= 2)) {
            return None;
        }
        let lpt = Lpt::new(policy, state);
        let lane = state.learned.own_lane?;
        let share = own_share::share(rule, state, &lane, now);
        let (park, order) = (None, Vec::new());
        let mut places = Places { waiting, on_rows, park, share, lane, lpt, order };
        if on_time {
            places.park = Some(places.turnover(now).park(state));
        }
        places.order = places.now(policy, state, now, |all| all.collect());
        Some(places)
    }

    fn turnover(&self, now: Time) -> Turnover<'_> {
        Turnover { lpt: &self.lpt, pending: self.waiting.len(), now }
    }

    /// By the rules of parking, as a cycle has them.
    fn now<T>(
        &mut self,
        policy: &Policy,
        state: &State,
        now: Time,
        with: impl FnOnce(&mut dyn Iterator<Item = Place>) -> T,
    ) -> T {
        // No two are equal in it, so the order in which they were before does not matter.
        parking::sort(policy, &self.lpt, &mut self.waiting);
        let room = parking::room(policy, state, &self.lane);
        let own = parking::own(policy, state, &self.lane, &self.turnover(now));
        let mut before = None;
        let seats = parking::seats(policy, room, &self.waiting, own);
        with(&mut seats.iter().map(|seat| {
            let left = self.lpt.remaining.get(seat.shard).copied();
            (seat.shard, seat.lane, std::mem::replace(&mut before, left) == left)
        }))
    }

    /// `grew`: some shard has more rows than in the cycle before.
    fn stay(&mut self, policy: &Policy, state: &State, others: u32, grew: bool, now: Time) -> bool {
        let rule = policy.rules.lanes.own_share;
        if own_share::share(rule, state, &self.lane, now) != self.share {
            return false;
        }
        let mut asks = grew && self.on_rows;
        if grew {
            self.lpt.renew(policy, state);
        }
        if let Some(park) = self.park {
            let new = self.turnover(now).park(state);
            asks |= new != park;
            self.park = Some(new);
        }
        // Which of theirs run and which wait is all the same to its room.
        if others != self.lane.running_others + self.lane.pending_others {
            self.lane.running_others = others;
            self.lane.pending_others = 0;
            asks = true;
        }
        if !asks {
            return true;
        }
        let order = std::mem::take(&mut self.order);
        let same = self.now(policy, state, now, |all| all.eq(order.iter().copied()));
        self.order = order;
        same
    }
}
