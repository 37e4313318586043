//! DECISIONS. Pure: (policy, state, observation, now, seed) -> state and plan. The same input gives
//! the same plan, and a plan that has taken effect is followed by an empty one.
//!
//! Nothing here reads a file, a clock or the environment, or starts a process.

pub mod account;
pub mod alike;
pub mod apply;
pub mod ask;
pub mod backfill;
pub mod bad_nodes;
pub mod both;
pub mod breaker;
mod cancel;
pub mod caps;
pub mod census;
pub mod check;
pub mod differences;
pub mod dispatch;
pub mod draft;
pub mod eta;
pub mod event;
pub mod exclude;
pub mod fit;
pub mod fit_places;
pub mod foresight;
pub mod guard;
pub mod helpers;
pub mod kept_off;
pub mod known_gpus;
pub mod lpt;
pub mod measure;
pub mod no_fit;
pub mod notices;
pub mod oom;
pub mod orphans;
pub mod own_share;
pub mod parking;
pub mod past;
pub mod person;
pub mod pilots;
pub mod placement;
pub mod plan;
pub mod questions;
pub mod queue;
mod quick;
pub mod quiet;
mod rank;
pub mod reason;
pub mod reconcile;
pub mod records;
pub mod reservation;
pub mod retry;
pub mod roster;
pub mod row_claims;
pub mod shadow;
pub mod stall;
pub mod stranded;
pub mod submit;
pub mod totals;
pub mod turnover;

use crate::model::observation::Observation;
use crate::model::policy::Policy;
use crate::model::reason::Reason;
use crate::model::state::{Slot, State, Stop};
use crate::model::units::Time;

use cancel::cancel;
use census::Census;
use dispatch::{Dispatch, Start};
use event::{Event, What};
use foresight::Foresight;
use no_fit::Largest;
use parking::{Room, Seat, Waiting};
use placement::Placement;
use plan::{Action, Plan};
use records::Records;
use roster::Roster;
use submit::{Moment, Way};
use turnover::Turnover;

/// One cycle's decisions, in the order of policy.md section 2. `state` is brought up to what was
/// seen; the actions are left to be carried out.
pub fn plan(policy: &Policy, state: &mut State, seen: &Observation, now: Time, seed: u64) -> Plan {
    let roster = Roster::new(state, &seen.cluster.jobs, seen.cluster.me);
    plan_with(policy, state, seen, &roster, now, seed)
}

/// The same for who has the roster of these jobs and this state already.
pub fn plan_with(
    policy: &Policy,
    state: &mut State,
    seen: &Observation,
    roster: &Roster<'_>,
    now: Time,
    seed: u64,
) -> Plan {
    let mut plan = Plan::default();
    let events = &mut plan.events;
    learn(state, seen, now);
    turnover::clock(state, now);
    own_share::note(state, now);

    let booked = pilots::book(policy, state, seen, roster, now, events);
    let anew;
    let roster = if booked.changed {
        anew = Roster::without(state, &seen.cluster.jobs, seen.cluster.me, &booked.aside);
        &anew
    } else {
        roster
    };
    let records = records::bring_up(policy, state, seen, roster, &booked.wait, now, events);
    let Records { twins, over_cap, cancelled, stalled, mut census, lpt } = records;
    census.queued.retain(|shard| !booked.claimed.contains(shard));
    orphans::follow(policy, state, seen, &booked.wait, now, events);
    turnover::count_starts(state, events);

    let me = seen.cluster.me;
    cancel(state, me, Stop::Cancelled, cancelled, &mut plan);
    cancel(state, me, Stop::OverCap, over_cap, &mut plan);
    cancel(state, me, Stop::Twin, twins, &mut plan);
    cancel(state, me, Stop::Unclaimed, booked.surplus, &mut plan);
    cancel(state, me, Stop::Stalled, stalled, &mut plan);

    plan.actions.extend(row_claims::review(policy, state, seen, roster, now, &mut plan.events));
    let helpers = helpers::review(policy, state, &mut census, &lpt, &seen.cluster);
    cancel(state, me, Stop::Unwanted, helpers.unwanted, &mut plan);

    let moment = Moment { policy, cluster: &seen.cluster, now, seed };
    let seen_before = std::mem::take(&mut state.learned.placements);
    let dispatched = place(&moment, state, &census, &mut plan);
    let mut budget = breaker::most_submissions(policy, &state.caution, now)
        .saturating_sub(dispatched.starts.len());
    let reserved = kept_off::reserved(&dispatched.placements, state, &census, &dispatched.starts);
    // Before anything that could start a pending job: moves to another lane, freed GPUs.
    let (off, back) = kept_off::updates(&moment, state, &census, me, &reserved)
        .into_iter()
        .partition::<Vec<Action>, _>(kept_off::keeps_off);
    plan.actions.extend(off);

    let mut waiting = parking::movable(state, &census.pending, me, now);
    let mut waits = Waits::default();
    let mut largest = Largest::new(&seen.cluster);
    for shard in census.queued.iter().copied() {
        if let Some(reason) = largest.refuses(policy, state, &seen.cluster, shard) {
            waits.put(policy, shard, reason);
        } else if let Some(reason) = kept_off::whole_wait(&moment, state, shard, &reserved) {
            waits.put(policy, shard, reason);
        } else {
            waiting.push(Waiting::new(shard));
        }
    }
    parking::sort(policy, &lpt, &mut waiting);

    let mut room = Room::Unknown;
    let mut seats = Vec::new();
    state.learned.own_lane = None;
    if let Some(lanes) = &policy.lanes {
        let own = parking::own_lane(lanes, &seen.cluster, roster, state, &census);
        room = parking::room(policy, state, &own);
        let turnover = Turnover::new(policy, &lpt, &waiting, now);
        let rest = parking::own(policy, state, &own, &turnover);
        state.learned.own_lane = Some(own);
        seats = parking::seats(policy, room, &waiting, rest);
        plan.actions.extend(parking::moves(lanes, state, &seats, now));
        for lane in parking::ordered(&policy.rules.lanes) {
            plan.actions.extend(parking::order(state, roster, &seats, &lpt, *lane));
        }
        room = parking::room_left(policy, room, &seats);
    }
    for start in backfill::again(&moment, state, &census) {
        plan.actions.extend(backfill::stop(policy, &start));
    }
    let mut submitted = start(&moment, state, &dispatched.starts, room, &mut plan);

    plan.actions.extend(back);

    let seat_of = seats_by_shard(policy, &seats);
    let mut new: Vec<usize> = waiting.iter().filter(|w| w.job.is_none()).map(|w| w.shard).collect();
    if !policy.rules.lanes.longest_first {
        new.sort_unstable();
    }
    for shard in &new {
        if budget == 0 {
            break;
        }
        budget -= 1;
        let lane = seat_of[*shard].map(|seat| seat.lane);
        let keep = kept_off::nodes_for(&moment, state, *shard, &reserved);
        let way = Way::Queued { kept_off: &keep };
        let submit = submit::request(&moment, state, *shard, lane, &way);
        submitted[*shard] = true;
        plan.actions.push(Action::Submit(Box::new(submit)));
    }

    let waits_in_slurm = !(census.pending.is_empty() && census.queued.is_empty());
    if waits_in_slurm && state.learned.placements.is_empty() {
        state.learned.placements = match dispatched.placements.as_slice() {
            [] => alike::seen(policy, &seen.cluster, seen_before),
            placements => alike::alike(policy, placements),
        };
    }
    state.learned.gpus_at_hand = eta::gpus_at_hand(policy, state, seen, roster);
    let of = waiting.len() as u32;
    let rank = ranks(policy, &waiting);
    for (shard, reason) in dispatched.waits {
        waits.put(policy, shard, reason);
    }
    for (shard, rows) in helpers.in_hand {
        waits.put(policy, shard, Reason::RowsInHand { rows });
    }
    let named = policy.named();
    for (i, shard) in policy.shards.iter().enumerate() {
        let record = &mut state.shards[i];
        let place = reason::Place { seat: seat_of[i], rank: rank[i], of };
        let wait = waits.take(i);
        let by_slot = wait.is_none() && !submitted[i];
        if by_slot && (reason::still_pends(record, place) || reason::still_runs(record)) {
            continue;
        }
        let helps = i >= named;
        if helps && record.slot == Slot::Free && !submitted[i] && rank[i] == 0 {
            record.why = reason::standing(shard, record).unwrap_or(Reason::NoHelpNeeded);
            continue;
        }
        let why = match wait {
            _ if submitted[i] => Reason::Submitted,
            Some(reason) => reason,
            None => {
                let why = reason::of_slot(policy, shard, record, place);
                match why {
                    Reason::SubmitBudget { rank } => breaker::reason(&state.caution, record)
                        .unwrap_or_else(|| breaker::not_now(&state.caution, rank, now)),
                    why => why,
                }
            }
        };
        if let (Reason::NoFit { asked, largest }, false) = (&why, record.why == why) {
            let what = What::NoFit { asked: asked.clone(), largest: largest.clone() };
            plan.events.push(Event { at: now, shard: Some(shard.id.clone()), what });
        }
        record.why = why;
    }
    plan
}

/// The placed shards of this cycle (policy.md sections 5-7).
struct Dispatched {
    starts: Vec<Start>,
    waits: Vec<(usize, Reason)>,
    placements: Vec<Placement>,
}

fn place(moment: &Moment<'_>, state: &mut State, census: &Census, plan: &mut Plan) -> Dispatched {
    let Moment { policy, cluster, now, .. } = *moment;
    queue::welcome(policy, state);
    reservation::accrue(state, census, now);
    if census.placed.is_empty() && census.pinned.is_empty() && census.accounts.is_empty() {
        return Dispatched { starts: Vec::new(), waits: Vec::new(), placements: Vec::new() };
    }
    // Before the queue: what is charged here counts for the order of this very cycle.
    reservation::close_accounts(policy, state, census, now);
    let queue = queue::queue(policy, state, &census.placed);
    let mut placements = placement::all(policy, cluster);
    let stranded = stranded::stranded(policy, state, census, &placements, cluster.me, now);
    cancel(state, cluster.me, Stop::Stranded, stranded, plan);
    placement::keep_promises(policy, state, census, &mut placements);
    let (mut queue, mut refused) = dispatch::fitting(moment, state, queue, &placements);
    let events = &mut plan.events;
    let released = reservation::review(policy, state, census, &queue, &mut placements, now, events);
    // And again for one that was released by its shard's end, charged with "job-end".
    if reservation::close_accounts(policy, state, census, now) || released {
        // A released reservation was charged: the order is made anew for this cycle's dispatch.
        let anew = queue::queue(policy, state, &census.placed);
        (queue, refused) = dispatch::fitting(moment, state, anew, &placements);
    }
    let foresight = Foresight::new(moment, state, census, &queue, &placements);
    let Dispatch { starts, mut waits } =
        dispatch::dispatch(moment, state, &queue, &mut placements, foresight, &mut plan.events);
    waits.extend(refused);
    if !waits.is_empty() {
        state.learned.placements = alike::alike(policy, &placements);
    }
    Dispatched { starts, waits, placements }
}

/// The actions of the starts: backfill first, then sbatch, pinned; in own while it has room.
fn start(
    moment: &Moment<'_>,
    state: &State,
    starts: &[Start],
    mut room: Room,
    plan: &mut Plan,
) -> Vec<bool> {
    let mut submitted = vec![false; moment.policy.shards.len()];
    for start in starts {
        let gpus = moment.policy.shards[start.shard].gpus;
        let lane = moment.policy.lanes.as_ref().map(|_| room.take(gpus));
        if !start.stop.is_empty() {
            plan.actions.extend(backfill::stop(moment.policy, start));
        }
        let way = Way::Placed { pin: &start.pin, model: &start.model };
        let submit = submit::request(moment, state, start.shard, lane, &way);
        submitted[start.shard] = true;
        plan.actions.push(Action::Submit(Box::new(submit)));
    }
    submitted
}

fn learn(state: &mut State, seen: &Observation, now: Time) {
    if let Some(Ok(limit)) = seen.own_gpus {
        state.learned.own_gpus = Some((limit, now));
    }
    if let Some(answer) = &seen.takes_both {
        state.learned.takes_both = Some(answer.clone());
    }
}

/// Why shards wait that Slurm does not have, by shard index. No room is made for them in the many
/// cycles in which none does.
#[derive(Default)]
struct Waits(Vec<Option<Reason>>);

impl Waits {
    fn put(&mut self, policy: &Policy, shard: usize, reason: Reason) {
        if self.0.is_empty() {
            self.0.resize_with(policy.shards.len(), || None);
        }
        self.0[shard] = Some(reason);
    }

    fn take(&mut self, shard: usize) -> Option<Reason> {
        self.0.get_mut(shard).and_then(Option::take)
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
