//! Why each shard is (not) running: exactly one reason, for every shard, also where nothing is
//! done about it.

use crate::model::cluster::{EndWord, JobState};
use crate::model::policy::{Policy, RowsIn, Shard};
use crate::model::reason::Reason;
use crate::model::state::{EndHow, Gate, HeldWhy, Live, ShardRecord, Slot};

use super::measure::is_done;
use super::parking::{Seat, is_stuck};
use super::stall;

/// The reason that the record alone gives, whatever the cluster does: what a person or a rule
/// decided. `None`: it depends on Slurm, and the last cycle's answer stands.
pub fn standing(shard: &Shard, record: &ShardRecord) -> Option<Reason> {
    // Late files of a job that is over change nothing about a cap or a hold.
    let in_slurm = matches!(record.slot, Slot::Live(_) | Slot::Submitting(_));
    if !in_slurm && is_done(shard, record) {
        return Some(Reason::Done);
    }
    if let Slot::Live(live) = &record.slot
        && live.stop.is_none()
    {
        return running_on(shard, record, live);
    }
    match &record.gate {
        Gate::Cancelled { by, .. } if !in_slurm => {
            return Some(Reason::Cancelled { by: by.clone() });
        }
        Gate::Held { why: HeldWhy::Failures { count, .. }, .. }
            if !in_slurm && ended_well(record) =>
        {
            return Some(Reason::NothingFinished { count: *count, looked_for: looked_for(shard) });
        }
        Gate::Held { why, .. } if !in_slurm => return Some(held(why)),
        Gate::Refused { text, .. } if !in_slurm => {
            return Some(Reason::Refused { text: text.clone() });
        }
        _ => {}
    }
    if let Some(over) = record.over_cap
        && !in_slurm
    {
        return Some(Reason::OverCap { spent: over.spent, cap: over.cap });
    }
    match (&record.gate, &record.slot) {
        (Gate::Backoff { until }, Slot::Free) => {
            Some(Reason::Backoff { until: *until, failures: record.failures })
        }
        (_, Slot::Live(live)) => Some(Reason::Stopping { job: live.job }),
        _ => None,
    }
}

/// A running job that no other will follow, whatever it does.
fn running_on(shard: &Shard, record: &ShardRecord, live: &Live) -> Option<Reason> {
    if live.state != JobState::Running || live.absent.is_some() {
        return None;
    }
    let node = live.nodes.join(",");
    if is_done(shard, record) {
        return Some(Reason::AllRows { node, since: live.stalled });
    }
    match &record.gate {
        Gate::Held { why: HeldWhy::Person { by }, .. } if live.stalled.is_none() => {
            Some(Reason::RunsHeld { node, by: by.clone() })
        }
        _ => None,
    }
}

/// Its last job said that it did its work.
fn ended_well(record: &ShardRecord) -> bool {
    let how = record.last_end.as_ref().map(|end| end.how);
    how == Some(EndHow::Word(EndWord::Completed))
}

fn looked_for(shard: &Shard) -> String {
    match &shard.done {
        RowsIn::Glob(pattern) => format!("a file like {pattern}"),
        RowsIn::Jsonl { path, .. } => format!("a line in {}", path.display()),
    }
}

fn held(why: &HeldWhy) -> Reason {
    match why {
        HeldWhy::Person { by } => Reason::HeldByPerson { by: by.clone() },
        HeldWhy::JobCancelled { job, by } => Reason::JobCancelled { job: *job, by: *by },
        HeldWhy::Failures { count, log } => {
            Reason::TooManyFailures { count: *count, last: log.last().cloned().unwrap_or_default() }
        }
        HeldWhy::TopTier => Reason::TopTierOutOfMemory,
        HeldWhy::HostMemory => Reason::HostOutOfMemory,
    }
}

/// Where a shard stands among those that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    pub seat: Option<Seat>,
    /// In LPT order, from 1; 0 for one that does not wait.
    pub rank: u32,
    pub of: u32,
}

/// The reason of a shard that Slurm, or a submission, has to do with.
pub fn of_slot(policy: &Policy, shard: &Shard, record: &ShardRecord, place: Place) -> Reason {
    if let Some(reason) = standing(shard, record) {
        return reason;
    }
    match &record.slot {
        Slot::Live(live) => of_live(live, place),
        Slot::Submitting(intent) => {
            Reason::OutcomeUnknown { since: intent.attempt.asked_at, said: intent.said.clone() }
        }
        Slot::Settling(end) => Reason::Settling { until: end.seen_at + policy.rules.settle },
        Slot::Free => match &record.progress.gap {
            Some(gap) => Reason::SlurmBusy { said: format!("its files cannot be read: {gap}") },
            None => Reason::SubmitBudget { rank: place.rank },
        },
    }
}

/// A shard that pended and pends, as nearly all do in nearly every cycle: its place is brought up
/// to date within the reason it has. False: its reason has to be found.
pub fn still_pends(record: &mut ShardRecord, place: Place) -> bool {
    let Slot::Live(live) = &record.slot else { return false };
    let Reason::PendingInSlurm { lane, parked, rank, of, slurm } = &mut record.why else {
        return false;
    };
    let stopped = live.stop.is_some() || live.absent.is_some();
    if stopped || live.state != JobState::Pending || is_stuck(&live.reason) {
        return false;
    }
    (*lane, *parked) = (live.lane, place.seat.is_some_and(|seat| seat.parked));
    (*rank, *of) = (place.rank, place.of);
    slurm.clone_from(&live.reason);
    true
}

/// The same for a shard that ran and runs, on the node that its reason names.
pub fn still_runs(record: &ShardRecord) -> bool {
    let (Slot::Live(live), Reason::Running { node }) = (&record.slot, &record.why) else {
        return false;
    };
    let as_was = live.stop.is_none() && live.absent.is_none() && stall::reason(live).is_none();
    // All rows there, or held after this job: then it runs for another reason.
    let open = record.finished.is_none() && record.gate == Gate::Open;
    as_was
        && open
        && live.state == JobState::Running
        && matches!(live.nodes.as_slice(), [on] if on == node)
}

fn of_live(live: &Live, place: Place) -> Reason {
    if let Some(absent) = live.absent {
        return Reason::EndUnknown { since: absent.since, said: "not in the queue".into() };
    }
    match &live.state {
        JobState::Running => {
            stall::reason(live).unwrap_or_else(|| Reason::Running { node: live.nodes.join(",") })
        }
        JobState::Pending if is_stuck(&live.reason) => {
            Reason::StuckInSlurm { slurm: live.reason.clone() }
        }
        JobState::Pending => Reason::PendingInSlurm {
            lane: live.lane,
            parked: place.seat.is_some_and(|seat| seat.parked),
            rank: place.rank,
            of: place.of,
            slurm: live.reason.clone(),
        },
        JobState::Alive(word) => Reason::InSlurm { word: word.clone() },
        JobState::Over(word) => Reason::InSlurm { word: word.word().to_owned() },
    }
}
