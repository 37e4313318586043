//! The places of the shards that wait, as long as nobody of them starts or ends.

use crate::model::policy::{Lane, LaneMode, OwnShare, Policy};
use crate::model::state::{OwnLane, State};
use crate::model::units::Time;

use super::super::both;
use super::super::census::Census;
use super::super::lpt::Lpt;
use super::super::own_share;
use super::super::parking::{self, Waiting};
use super::super::turnover::Turnover;

/// The places of the shards that wait, where they can change while none of our jobs does.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Places {
    waiting: Vec<Waiting>,
    /// One that has never run is taken to be as fast as its family is, and of one that waits itself
    /// helpers may do the rows.
    on_rows: bool,
    /// K, where it counts those that are about to end.
    park: Option<usize>,
    /// GPUs of own that are ours, where that depends on what others held.
    share: Option<u32>,
    /// Own's room counts.
    on_room: bool,
    lpt: Lpt,
    order: Vec<Place>,
}

/// A waiting shard in the order of parking, its lane, and whether it has as much left as the one
/// before.
type Place = (usize, Lane, bool);

/// All that wait, wait in both lanes: neither own's room nor K decides where.
pub(super) fn in_both(policy: &Policy, state: &State) -> bool {
    policy.rules.lanes.mode == LaneMode::Both && both::works(policy, state)
}

impl Places {
    /// `grows`: a job is at work at this shard.
    pub fn new(
        policy: &Policy,
        state: &State,
        census: &Census,
        grows: impl Fn(usize) -> bool,
        me: u32,
        now: Time,
    ) -> Option<Places> {
        let both = in_both(policy, state);
        let rule = policy.rules.lanes.own_share;
        let mut pending = census.pending.as_slice();
        if both && rule == OwnShare::All {
            // Each is in both, and only shards are put in order there.
            let shards = pending.partition_point(|i| *i < policy.named());
            pending = pending.get(..shards).unwrap_or_default();
        }
        let waiting = parking::movable(state, pending, me, now);
        let on_time = policy.rules.lanes.mode != LaneMode::Fixed && !both;
        let stays = |w: &Waiting| {
            let has_run = state.shards.get(w.shard).is_some_and(|r| r.pace.rows > 0);
            has_run && !grows(w.shard)
        };
        let on_rows = waiting.len() >= 2 && !waiting.iter().all(stays);
        // Own's room is asked for by them alone who go straight to where they belong.
        let on_room = !waiting.is_empty() && policy.rules.lanes.straight && !both;
        let on_share = !waiting.is_empty() && rule == OwnShare::Average;
        if !(on_rows || on_room || on_share || (on_time && waiting.len() >= 2)) {
            return None;
        }
        let lpt = Lpt::new(policy, state);
        let lane = state.learned.own_lane?;
        let share = own_share::share(rule, state, &lane, now);
        let (park, order) = (None, Vec::new());
        let mut places = Places { waiting, on_rows, on_room, park, share, lpt, order };
        if on_time {
            places.park = Some(places.turnover(policy, now).park(state));
        }
        places.order = places.now(policy, state, &lane, now, |all| all.collect());
        Some(places)
    }

    fn turnover(&self, policy: &Policy, now: Time) -> Turnover<'_> {
        Turnover::new(policy, &self.lpt, &self.waiting, now)
    }

    /// By the rules of parking, as a cycle has them.
    fn now<T>(
        &mut self,
        policy: &Policy,
        state: &State,
        lane: &OwnLane,
        now: Time,
        with: impl FnOnce(&mut dyn Iterator<Item = Place>) -> T,
    ) -> T {
        // No two are equal in it, so the order in which they were before does not matter.
        parking::sort(policy, &self.lpt, &mut self.waiting);
        let room = parking::room(policy, state, lane);
        let own = parking::own(policy, state, lane, &self.turnover(policy, now));
        let mut before = None;
        let seats = parking::seats(policy, room, &self.waiting, own);
        with(&mut seats.iter().map(|seat| {
            let left = self.lpt.remaining.get(seat.shard).copied();
            (seat.shard, seat.lane, std::mem::replace(&mut before, left) == left)
        }))
    }

    /// `grew`: some shard has more rows than in the cycle before; `others`: others hold or wait for
    /// more of own, or less.
    pub fn stay(
        &mut self,
        policy: &Policy,
        state: &State,
        grew: bool,
        others: bool,
        now: Time,
    ) -> bool {
        let Some(lane) = state.learned.own_lane else { return false };
        let share = own_share::share(policy.rules.lanes.own_share, state, &lane, now);
        if share != self.share {
            return false;
        }
        if grew && self.park.is_none() && self.waiting.iter().all(|w| w.shard < policy.named()) {
            self.lpt.renew_some(policy, state, self.waiting.iter().map(|w| w.shard));
        } else if grew {
            self.lpt.renew(policy, state);
        }
        let mut asks = others && self.on_room;
        if let Some(park) = self.park {
            let new = self.turnover(policy, now).park(state);
            asks |= new != park;
            self.park = Some(new);
        }
        if !asks && (!(grew && self.on_rows) || self.is_in_order(policy)) {
            return true;
        }
        let order = std::mem::take(&mut self.order);
        let same = self.now(policy, state, &lane, now, |all| all.eq(order.iter().copied()));
        self.order = order;
        same
    }

    /// Seen at once where nothing but rows has changed: they go as they went.
    fn is_in_order(&self, policy: &Policy) -> bool {
        let mut before = None;
        let mut as_before = |(w, (_, _, same)): (&Waiting, &Place)| {
            let left = self.lpt.remaining.get(w.shard).copied();
            (std::mem::replace(&mut before, left) == left) == *same
        };
        parking::is_sorted(policy, &self.lpt, &self.waiting)
            && self.waiting.iter().zip(&self.order).all(&mut as_before)
    }
}
