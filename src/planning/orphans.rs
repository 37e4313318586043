//! Shards that shards.toml no longer names, with a job that still lives, or GPUs that were kept for
//! them: followed to their end and charged as any other, and nothing is decided for them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::mem;

use crate::model::id::JobId;
use crate::model::observation::Observation;
use crate::model::policy::{Policy, Shard};
use crate::model::state::{Attempt, LabRecord, ShardRecord, Slot, State};
use crate::model::units::{GpuSeconds, Time};

use super::account;
use super::event::{Event, What};
use super::reconcile::reconcile;
use super::reservation;
use super::roster::Roster;

/// Has something that is not charged yet.
pub fn is_open(record: &ShardRecord) -> bool {
    record.slot != Slot::Free || record.reservation.is_some() || !record.owed.is_empty()
}

/// The attempt that accounting must be asked about: its job is not in the queue, or not known.
pub fn unclear<'a>(record: &'a ShardRecord, roster: &Roster<'_>) -> Option<&'a Attempt> {
    match &record.slot {
        Slot::Submitting(intent) => Some(&intent.attempt),
        Slot::Live(live) => {
            let job = roster.by_id(live.job).filter(|job| job.name == live.attempt.token.name);
            job.is_none_or(|job| job.state.is_over() && job.restarts > 0).then_some(&live.attempt)
        }
        Slot::Free | Slot::Settling(_) => None,
    }
}

/// Brings them up to what Slurm shows, by the rules of those that are named.
pub fn follow(
    policy: &Policy,
    state: &mut State,
    seen: &Observation,
    wait: &HashSet<JobId>,
    now: Time,
    events: &mut Vec<Event>,
) {
    // Most campaigns have none, and then this costs nothing.
    if state.orphans.is_empty() {
        return;
    }
    let late = late(state, seen);
    let is_open = |record: &ShardRecord| is_open(record) || late.contains(&record.id.to_string());
    if !state.orphans.iter().any(is_open) {
        return;
    }
    let (open, rest) = mem::take(&mut state.orphans).into_iter().partition(is_open);
    let mut apart = State {
        shards: open,
        labs: mem::take(&mut state.labs),
        learned: state.learned.clone(),
        ..State::new(&state.project, &state.instance)
    };
    let shards = apart.shards.iter().filter_map(|record| as_was(policy, record)).collect();
    let policy = Policy { shards, ..policy.clone() };
    if policy.shards.len() == apart.shards.len() {
        for (i, _) in policy.shards.iter().enumerate() {
            release(&policy, &mut apart, i, now, events);
        }
        let roster = Roster::new(&apart, &seen.cluster.jobs, seen.cluster.me);
        // Nothing is cancelled here, so nothing may say that it was: a second job of one is listed by
        // `babysit reconcile`, for a person.
        let mut told = Vec::new();
        reconcile(&policy, &mut apart, seen, &roster, wait, now, &mut told);
        events.extend(told.into_iter().filter(|event| !matches!(event.what, What::Twin { .. })));
        for (record, shard) in apart.shards.iter_mut().zip(&policy.shards) {
            close(&policy, shard, record, &mut apart.labs, now);
        }
    }
    state.labs = apart.labs;
    state.orphans = rest;
    state.orphans.extend(apart.shards);
    state.orphans.sort_by(|a, b| a.id.cmp(&b.id));
}

/// Shards of ours with a live job: that of a submission which was given up may show up later, and is
/// adopted as any other.
fn late(state: &State, seen: &Observation) -> BTreeSet<String> {
    let ours = format!("babysit:{}:", state.instance);
    let alive = seen.cluster.jobs.iter().filter(|job| !job.state.is_over());
    let shard = |comment: &str| Some(comment.strip_prefix(&ours)?.split(':').next()?.to_owned());
    alive.filter_map(|job| shard(&job.comment)).collect()
}

/// The shard as shards.toml had it, as far as a charge needs it.
fn as_was(policy: &Policy, record: &ShardRecord) -> Option<Shard> {
    let kin = |shard: &&Shard| shard.id.family == record.id.family;
    let model = policy.shards.iter().find(kin).or_else(|| policy.shards.first())?;
    let charged = record.charges.last().map(|charge| charge.lab.as_str());
    // States of older builds do not have it.
    let lab = Some(record.lab.as_str()).filter(|lab| !lab.is_empty()).or(charged);
    let lab = lab.unwrap_or(&model.lab).into();
    let gpus = match &record.slot {
        Slot::Submitting(intent) => intent.attempt.gpus,
        Slot::Live(live) => live.attempt.gpus,
        Slot::Free | Slot::Settling(_) => model.gpus,
    };
    Some(Shard { id: record.id.clone(), lab, gpus, ..model.clone() })
}

/// R4: it waits for no start any more.
fn release(policy: &Policy, state: &mut State, i: usize, now: Time, events: &mut Vec<Event>) {
    let Some(held) = state.shards.get_mut(i).and_then(|record| record.reservation.as_mut()) else {
        return;
    };
    held.gpu_seconds += GpuSeconds::of(held.gpus, now.since(held.accrued_at));
    held.accrued_at = held.accrued_at.max(now);
    reservation::release(policy, state, i, "R4: shards.toml no longer names it", now, events);
}

/// What ended is not judged: nobody is going to submit it again.
fn close(
    policy: &Policy,
    shard: &Shard,
    record: &mut ShardRecord,
    labs: &mut BTreeMap<String, LabRecord>,
    now: Time,
) {
    if let Slot::Settling(end) = &record.slot {
        record.last_end = Some(end.clone());
        record.slot = Slot::Free;
    }
    if record.slot == Slot::Free {
        account::charge_owed(policy, &shard.lab, record, labs, now);
    }
}
