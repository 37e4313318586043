//! Pilots in the queue that no record holds, since the shard that they were submitted for has another
//! job: whose they become, and which are left over.

use std::cell::LazyCell;

use crate::model::cluster::{JobState, QueueJob};
use crate::model::id::Token;
use crate::model::observation::Observation;
use crate::model::policy::Policy;
use crate::model::state::{Attempt, Gate, Live, ShardRecord, Slot, State, Stop};
use crate::model::units::Time;

use super::super::lpt::Lpt;
use super::super::plan::Target;
use super::super::roster::{Ours, Roster, lane_of};
use super::book::{Booked, holders};
use super::group;

/// Such a pilot, as the queue shows it.
pub(super) fn stray(policy: &Policy, job: &QueueJob, now: Time) -> Live {
    let lane = lane_of(policy.lanes.as_ref(), job);
    let attempt = Attempt {
        number: 0,
        token: Token { name: job.name.clone(), comment: job.comment.clone() },
        lane,
        gpus: job.gpus.unwrap_or(1),
        pin: None,
        rows_before: 0,
        asked_at: job.submitted.unwrap_or(now),
        uid: job.uid,
        exclude: Vec::new(),
        pilot: true,
    };
    // Left over and cancelled, it may have started and claimed in between: nobody's fault.
    let over = job.state.is_over().then_some(Stop::Twin);
    Live {
        submitted: job.submitted,
        restarts: job.restarts,
        // Whoever had it before.
        paid: job.restarts,
        stop: over,
        ..Live::new(attempt, job.id)
    }
}

/// Pilots in the queue that no record holds: one that pends is the job of whoever waits without one,
/// else it is left over.
pub(super) fn strays(
    policy: &Policy,
    state: &mut State,
    seen: &Observation,
    roster: &Roster<'_>,
    now: Time,
    booked: &mut Booked,
) {
    // Nearly every job is that of its own shard's record, and the roster says so.
    let holders_now = LazyCell::new(|| holders(state));
    let by_roster = !booked.changed;
    let is_held =
        |ours: &Ours<'_>| (by_roster && ours.held) || holders_now.contains_key(&ours.job.id);
    let mut loose: Vec<(usize, &QueueJob)> = Vec::new();
    for (i, shard) in policy.shards.iter().enumerate().filter(|(_, shard)| shard.pilot) {
        let Some(record) = state.shards.get(i) else { continue };
        let awaited = |job: &QueueJob| match &record.slot {
            Slot::Submitting(intent) => intent.attempt.token.comment == job.comment,
            _ => false,
        };
        let jobs = roster.of(i).iter().filter(|ours| !ours.job.state.is_over() && !is_held(ours));
        let mut jobs = jobs.map(|ours| ours.job).filter(|job| !awaited(job));
        // Its own place is free: it is adopted there, as any job of a shard without one.
        let own = record.slot == Slot::Free && is_wanted(shard.rows, record);
        if own {
            jobs.next();
        }
        loose.extend(jobs.map(|job| (i, job)));
    }
    if loose.is_empty() {
        return;
    }
    let held = holders(state);
    let lpt = Lpt::new(policy, state);
    for (i, job) in loose {
        let (Some(shard), Some(record)) = (policy.shards.get(i), state.shards.get(i)) else {
            continue;
        };
        let id = record.id.clone();
        let kin = group(shard, record.min_tier);
        let pends = job.state == JobState::Pending;
        let home = |j: &usize| {
            let (Some(shard), Some(record)) = (policy.shards.get(*j), state.shards.get(*j)) else {
                return false;
            };
            // One that has a job of its own to be adopted is not without one.
            let empty = record.slot == Slot::Free
                && !roster
                    .of(*j)
                    .iter()
                    .any(|ours| !ours.job.state.is_over() && !held.contains_key(&ours.job.id));
            shard.pilot
                && empty
                && is_wanted(shard.rows, record)
                && group(shard, record.min_tier) == kin
        };
        let mut homes: Vec<usize> = (0..policy.shards.len()).filter(home).collect();
        lpt.sort(policy, &mut homes, |j| *j);
        match homes.first().and_then(|j| state.shards.get_mut(*j)) {
            Some(record) if pends => {
                record.attempts = record.attempts.saturating_add(1);
                let live = stray(policy, job, now);
                let (number, rows_before) = (record.attempts, record.progress.rows);
                let attempt = Attempt { number, rows_before, ..live.attempt };
                record.slot = Slot::Live(Box::new(Live { attempt, ..live }));
                booked.changed = true;
            }
            _ => {
                booked.aside.insert(job.id);
                booked.changed = true;
                if pends && job.uid == seen.cluster.me {
                    booked.surplus.push(Target::new(i, &id, job.id));
                }
            }
        }
    }
}

/// Would it be submitted, now or by itself later?
pub(super) fn is_wanted(rows: u32, record: &ShardRecord) -> bool {
    matches!(record.gate, Gate::Open | Gate::Backoff { .. })
        && record.over_cap.is_none()
        && record.finished.is_none_or(|finished| finished.rows < rows)
}
