//! DECISIONS. Pure: (policy, state, observation, now, seed) -> state and plan. The same input gives
//! the same plan, and a plan that has taken effect is followed by an empty one.
//!
//! Nothing here reads a file, a clock or the environment, or starts a process.

pub mod apply;
pub mod ask;
pub mod caps;
pub mod check;
pub mod eta;
pub mod event;
pub mod fit;
pub mod lpt;
pub mod measure;
pub mod parking;
pub mod person;
pub mod plan;
pub mod reason;
pub mod reconcile;
pub mod retry;
pub mod roster;
pub mod submit;

use crate::model::observation::Observation;
use crate::model::policy::Policy;
use crate::model::reason::Reason;
use crate::model::state::{Slot, State, Stop};
use crate::model::units::Time;

use lpt::Lpt;
use parking::{Seat, Waiting};
use plan::{Action, Plan, Target};
use roster::Roster;

/// One cycle's decisions, in the order of policy.md section 2. `state` is brought up to what was
/// seen; the actions are left to be carried out.
pub fn plan(policy: &Policy, state: &mut State, seen: &Observation, now: Time, seed: u64) -> Plan {
    let mut plan = Plan::default();
    let events = &mut plan.events;
    let roster = Roster::new(state, &seen.cluster.jobs, seen.cluster.me);
    learn(state, seen, now);

    let twins = reconcile::reconcile(policy, state, seen, &roster, now, events);
    measure::measure(policy, state, seen, now, events);
    retry::judge(policy, state, seen, now, events);
    let over = caps::caps(policy, state, now, events);
    let cancelled = retry::cancelled_but_live(state);

    let me = seen.cluster.me;
    cancel(state, me, Stop::Cancelled, cancelled, &mut plan);
    cancel(state, me, Stop::OverCap, over, &mut plan);
    cancel(state, me, Stop::Twin, twins, &mut plan);

    let lpt = Lpt::new(policy, state);
    let mut waiting = parking::movable(state, me);
    let ready = submit::ready(policy, state);
    waiting.extend(ready.iter().map(|&shard| Waiting { shard, job: None }));
    waiting.sort_by(|a, b| lpt.compare(policy, a.shard, b.shard));

    let seats = match &policy.lanes {
        Some(lanes) => {
            let own = parking::own_lane(lanes, &seen.cluster, &roster);
            let room = parking::room(lanes, state, &own);
            let seats = parking::seats(policy, lanes, room, &waiting);
            plan.actions.extend(parking::moves(lanes, state, &seats, now));
            plan.actions.extend(parking::order(state, &roster, &seats, &lpt));
            seats
        }
        None => Vec::new(),
    };
    let seat_of = seats_by_shard(policy, &seats);
    let mut submitted = vec![false; policy.shards.len()];
    let turn = waiting.iter().filter(|w| w.job.is_none());
    for Waiting { shard, .. } in turn.take(policy.rules.max_submits_per_tick) {
        let lane = seat_of[*shard].map(|seat| seat.lane);
        let submit = submit::request(policy, state, &seen.cluster, *shard, lane, seed, now);
        submitted[*shard] = true;
        plan.actions.push(Action::Submit(Box::new(submit)));
    }

    state.learned.gpus_at_hand = eta::gpus_at_hand(policy, state, seen, &roster);
    let count = waiting.len() as u32;
    let rank: Vec<u32> = ranks(policy, &waiting);
    for (i, shard) in policy.shards.iter().enumerate() {
        let record = &mut state.shards[i];
        record.why = if submitted[i] {
            Reason::Submitted
        } else {
            let place = reason::Place { seat: seat_of[i], rank: rank[i], of: count };
            reason::of_slot(policy, shard, record, place)
        };
    }
    plan
}

fn learn(state: &mut State, seen: &Observation, now: Time) {
    if let Some(Ok(limit)) = seen.own_gpus {
        state.learned.own_gpus = Some((limit, now));
    }
}

/// Asks for the end of jobs, and notes on the record that it was babysit who asked. Jobs of other
/// users in a shared state are theirs to cancel; Slurm would refuse us.
fn cancel(state: &mut State, me: u32, why: Stop, mut jobs: Vec<Target>, plan: &mut Plan) {
    jobs.retain(|target| {
        let record = &mut state.shards[target.shard];
        let Slot::Live(live) = &mut record.slot else { return true };
        if live.job != target.job {
            return true;
        }
        let first = live.stop.get_or_insert(why);
        *first == why && live.attempt.uid == me
    });
    if !jobs.is_empty() {
        plan.actions.push(Action::Cancel { why, jobs });
    }
}

fn seats_by_shard(policy: &Policy, seats: &[Seat]) -> Vec<Option<Seat>> {
    let mut by_shard = vec![None; policy.shards.len()];
    for seat in seats {
        by_shard[seat.shard] = Some(*seat);
    }
    by_shard
}

/// Place in LPT order among all that wait, from 1; 0 for those that do not.
fn ranks(policy: &Policy, waiting: &[Waiting]) -> Vec<u32> {
    let mut ranks = vec![0; policy.shards.len()];
    for (place, w) in waiting.iter().enumerate() {
        ranks[w.shard] = place as u32 + 1;
    }
    ranks
}
