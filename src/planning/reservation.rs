//! Reservations (policy.md section 6, R1-R5): babysit's own mark "no other shard gets these idle
//! GPUs". Only rank 1 may begin one, and by the field's R3 keep it, so that there is at most one at any
//! time; with `r3 = "soft"` there may be several, and rank 1 draws from those of the others.

use crate::model::policy::{Policy, R3, ReservationCharge, Reserve};
use crate::model::state::{Gate, Owed, Reservation, ShardRecord, Slot, State};
use crate::model::units::{GpuSeconds, Time};

use super::account;
use super::bad_nodes;
use super::census::Census;
use super::event::{Event, What};
use super::measure::is_done;
use super::placement::{Placement, fits};

/// Moves every reservation's clock on: raw GPU-seconds, weighted only when charged. A clock that
/// stepped back adds nothing, and the stretch it then goes through again is not counted twice.
pub fn accrue(state: &mut State, census: &Census, now: Time) {
    for &i in &census.accounts {
        let Some(reservation) = &mut state.shards[i].reservation else { continue };
        let length = now.since(reservation.accrued_at);
        reservation.gpu_seconds += GpuSeconds::of(reservation.gpus, length);
        reservation.accrued_at = reservation.accrued_at.max(now);
    }
}

/// Ends the reservations that the rules end, shrinks those whose GPUs others took, and marks what
/// stays on the placements. `queue` is the queue of this cycle, rank 1 first. Says whether any ended.
pub fn review(
    policy: &Policy,
    state: &mut State,
    census: &Census,
    queue: &[usize],
    placements: &mut [Placement],
    now: Time,
    events: &mut Vec<Event>,
) -> bool {
    let mut any = false;
    for &i in &census.accounts {
        let record = &state.shards[i];
        let Some(reservation) = &record.reservation else { continue };
        let pin = &reservation.pin;
        let at = placements.iter().position(|p| p.up && p.pin == *pin);
        let still_fits = |at: &Placement| fits(policy, &policy.shards[i], record.min_tier, at);
        let why = match (queue.first(), at) {
            (_, _) if policy.rules.place.reserve != Reserve::Mark => {
                Some("R4: reservations are no longer kept as marks")
            }
            (_, _) if !queue.contains(&i) => Some("R4: the shard no longer waits for a start"),
            (_, None) => Some("R5: its placement is gone"),
            (_, Some(at)) if !still_fits(&placements[at]) => Some("R5: it no longer fits there"),
            _ if bad_nodes::shunned(policy, state, i, placements, now).contains(&pin.node) => {
                Some("R5: jobs die on its node")
            }
            (Some(first), _) if *first != i && policy.rules.place.r3 == R3::Release => {
                Some("R3: it is no longer rank 1")
            }
            _ => None,
        };
        if let Some(why) = why {
            release(policy, state, i, why, now, events);
            any = true;
            continue;
        }
        let Some(at) = at else { continue };
        let record = &mut state.shards[i];
        if let Some(reservation) = &mut record.reservation {
            let left = placements[at].free();
            if reservation.gpus > left {
                let what = What::ReservationShrank { before: reservation.gpus, now: left };
                events.push(Event { at: now, shard: Some(record.id.clone()), what });
                reservation.gpus = left;
            }
            placements[at].reserved += reservation.gpus;
            // A mark on nothing would only bind its holder to a full node.
            if left == 0 {
                release(policy, state, i, "R5: others took the last of its GPUs", now, events);
                any = true;
            }
        }
    }
    any
}

/// `r3 = "soft"`: rank 1 takes so many GPUs of a placement out of what others have reserved there. Who is
/// left with none has no reservation any more.
pub fn draw(
    policy: &Policy,
    state: &mut State,
    rank_1: usize,
    at: &mut Placement,
    mut gpus: u32,
    now: Time,
    events: &mut Vec<Event>,
) {
    for i in 0..state.shards.len() {
        let record = &mut state.shards[i];
        let held =
            record.reservation.as_mut().filter(|r| i != rank_1 && gpus > 0 && r.pin == at.pin);
        let Some(reservation) = held else { continue };
        let taken = gpus.min(reservation.gpus);
        let what =
            What::ReservationShrank { before: reservation.gpus, now: reservation.gpus - taken };
        reservation.gpus -= taken;
        at.reserved = at.reserved.saturating_sub(taken);
        gpus -= taken;
        let none_left = reservation.gpus == 0;
        events.push(Event { at: now, shard: Some(record.id.clone()), what });
        if none_left {
            release(policy, state, i, "R3: rank 1 took the last of its GPUs", now, events);
        }
    }
}

/// Without a start: charged now, or with the job's end where the policy says so.
pub fn release(
    policy: &Policy,
    state: &mut State,
    shard: usize,
    why: &str,
    now: Time,
    events: &mut Vec<Event>,
) {
    let record = &mut state.shards[shard];
    let Some(reservation) = record.reservation.take() else { return };
    let what = What::ReservationReleased {
        node: reservation.pin.node.clone(),
        tier: reservation.pin.tier.clone(),
        gpu_seconds: reservation.gpu_seconds.0,
        why: why.to_owned(),
    };
    events.push(Event { at: now, shard: Some(record.id.clone()), what });
    let owed = Owed { reservation, started: false };
    match policy.rules.reservation_charge {
        ReservationCharge::JobEnd => record.owed.push(owed),
        ReservationCharge::Release => {
            let lab = &policy.shards[shard].lab;
            account::charge_reservation(policy, lab, record, &mut state.labs, &owed, now);
        }
    }
}

/// Charges what `reservation_charge = "job-end"`, or a start that never came to be, left open for
/// shards that will have no further job: cancelled, or done by somebody else. Says whether any was.
pub fn close_accounts(policy: &Policy, state: &mut State, census: &Census, now: Time) -> bool {
    let State { shards, labs, .. } = state;
    let mut any = false;
    for &i in &census.accounts {
        let (shard, record) = (&policy.shards[i], &mut shards[i]);
        let ended = matches!(record.gate, Gate::Cancelled { .. }) || is_done(shard, record);
        if ended && record.slot == Slot::Free && !record.owed.is_empty() {
            account::charge_owed(policy, &shard.lab, record, labs, now);
            any = true;
        }
    }
    any
}

/// R4: the shard starts, here or on another placement; charged with the run.
pub fn led_to_start(record: &mut ShardRecord) {
    if let Some(reservation) = record.reservation.take() {
        record.owed.push(Owed { reservation, started: true });
    }
}

/// R2: rank 1 begins one on this placement.
pub fn begin(record: &mut ShardRecord, at: &mut Placement, gpus: u32, now: Time) -> What {
    at.reserved += gpus;
    record.reservation = Some(Reservation {
        pin: at.pin.clone(),
        gpus,
        since: now,
        accrued_at: now,
        gpu_seconds: GpuSeconds::default(),
    });
    What::Reserved { node: at.pin.node.clone(), tier: at.pin.tier.clone(), gpus }
}
