//! What a person asks of a shard: hold, release, retry, cancel. The rule for each state it may be
//! in; Slurm is not asked for anything here.

use crate::model::policy::Shard;
use crate::model::reason::Reason;
use crate::model::state::{Gate, HeldWhy, ShardRecord, Slot, Stop};
use crate::model::units::Time;

use super::measure::is_done;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// No further submissions; what is in Slurm goes on.
    Hold,
    /// Undo a hold.
    Release,
    /// Clear the failure count and queue again.
    Retry,
    /// Never again.
    Cancel,
}

/// What became of a wish, as a sentence with the shard as its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Done(String),
    /// It was so already; nothing changed.
    Already(String),
    /// Not possible, and what to do instead.
    Refused(String),
}

pub fn wish(wish: Wish, shard: &Shard, record: &mut ShardRecord, by: &str, now: Time) -> Answer {
    let gone = matches!(record.gate, Gate::Cancelled { .. });
    if gone && wish != Wish::Cancel {
        return Answer::Refused(
            "was cancelled for good; give the work to a shard of another name".into(),
        );
    }
    if is_done(shard, record) && record.live().is_none() {
        return Answer::Already("is done".into());
    }
    let answer = match wish {
        Wish::Hold => hold(record, by, now),
        Wish::Release => release(record),
        Wish::Retry => retry(record),
        Wish::Cancel => cancel(record, by, now),
    };
    if matches!(answer, Answer::Done(_)) && record.slot == Slot::Free {
        record.why = Reason::NotLookedYet;
    }
    answer
}

/// A person said so: only a person undoes it, whatever becomes of a job that was there by then.
pub fn decided(gate: &Gate) -> bool {
    matches!(gate, Gate::Held { why: HeldWhy::Person { .. }, .. } | Gate::Cancelled { .. })
}

fn hold(record: &mut ShardRecord, by: &str, now: Time) -> Answer {
    if let Gate::Held { .. } = record.gate {
        return Answer::Already("is held already".into());
    }
    record.gate = Gate::Held { why: HeldWhy::Person { by: by.to_owned() }, at: now };
    Answer::Done(match &record.slot {
        Slot::Live(live) => format!(
            "is held: nothing more is submitted for it. Its job {} goes on; `babysit cancel` would \
             end it",
            live.job
        ),
        _ => "is held: nothing is submitted for it".into(),
    })
}

fn release(record: &mut ShardRecord) -> Answer {
    match &record.gate {
        Gate::Held { why: HeldWhy::Person { .. } | HeldWhy::JobCancelled { .. }, .. } => {
            record.gate = Gate::Open;
            Answer::Done("is released: the next tick decides about it".into())
        }
        Gate::Held { .. } => Answer::Refused(
            "is held because it failed, not by a person: once the cause is put right, `babysit \
             retry` queues it again"
                .into(),
        ),
        Gate::Open | Gate::Backoff { .. } | Gate::Refused { .. } | Gate::Cancelled { .. } => {
            Answer::Already("is not held".into())
        }
    }
}

fn retry(record: &mut ShardRecord) -> Answer {
    let shut = record.gate != Gate::Open || record.failures > 0;
    record.gate = Gate::Open;
    record.failures = 0;
    match (shut, record.over_cap.is_some()) {
        (true, false) => Answer::Done("is queued again, its failures forgotten".into()),
        (true, true) => Answer::Done(
            "has its failures forgotten, but is over its cost cap: only `babysit cap set` lets it \
             go on"
                .into(),
        ),
        (false, true) => Answer::Refused(
            "is over its cost cap: only a raised cap (`babysit cap set`) lets it go on".into(),
        ),
        (false, false) => Answer::Already("has no failure to clear".into()),
    }
}

fn cancel(record: &mut ShardRecord, by: &str, now: Time) -> Answer {
    if let Gate::Cancelled { .. } = record.gate {
        return Answer::Already("is cancelled already".into());
    }
    record.gate = Gate::Cancelled { by: by.to_owned(), at: now };
    Answer::Done(match &mut record.slot {
        Slot::Live(live) => {
            live.stop.get_or_insert(Stop::Cancelled);
            format!("is cancelled for good; its job {} is being ended", live.job)
        }
        Slot::Submitting(_) => {
            "is cancelled for good; a tick ends its job once it is found in the queue".into()
        }
        Slot::Free | Slot::Settling(_) => "is cancelled for good".into(),
    })
}
