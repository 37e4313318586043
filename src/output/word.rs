//! The one word for a shard's state: the contract's `state`.

use serde::Serialize;

use crate::model::cluster::JobState;
use crate::model::reason::Reason;
use crate::model::state::{Gate, HeldWhy, Live, ShardRecord, Slot};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    Waiting,
    Reserving,
    Submitting,
    Pending,
    Running,
    Done,
    OverCap,
    Held,
    Backoff,
    Refused,
    Cancelled,
}

impl Word {
    pub const ALL: [Word; 11] = [
        Word::Waiting,
        Word::Reserving,
        Word::Submitting,
        Word::Pending,
        Word::Running,
        Word::Done,
        Word::OverCap,
        Word::Held,
        Word::Backoff,
        Word::Refused,
        Word::Cancelled,
    ];

    pub fn text(self) -> &'static str {
        match self {
            Word::Waiting => "waiting",
            Word::Reserving => "reserving",
            Word::Submitting => "submitting",
            Word::Pending => "pending",
            Word::Running => "running",
            Word::Done => "done",
            Word::OverCap => "over-cap",
            Word::Held => "held",
            Word::Backoff => "backoff",
            Word::Refused => "refused",
            Word::Cancelled => "cancelled",
        }
    }
}

/// What a person decided, and a cap that is reached, count at once, also while Slurm still has the
/// job; a hold does not, since it ends nothing.
pub fn of(record: &ShardRecord, done: bool, reason: &Reason) -> Word {
    let in_slurm = match &record.slot {
        Slot::Live(live) => Some(live),
        Slot::Free | Slot::Submitting(_) | Slot::Settling(_) => None,
    };
    if done && in_slurm.is_none() {
        return Word::Done;
    }
    if matches!(record.gate, Gate::Cancelled { .. }) {
        return Word::Cancelled;
    }
    if record.over_cap.is_some() {
        return Word::OverCap;
    }
    match (&record.slot, &record.gate) {
        (Slot::Live(live), _) => of_live(live),
        (Slot::Submitting(_), _) => Word::Submitting,
        (_, Gate::Held { .. }) => Word::Held,
        (_, Gate::Refused { .. }) => Word::Refused,
        (_, Gate::Backoff { .. }) => Word::Backoff,
        (Slot::Free, _) if matches!(reason, Reason::NoFit { .. } | Reason::BreakerOpen { .. }) => {
            Word::Refused
        }
        _ if record.reservation.is_some() => Word::Reserving,
        _ => Word::Waiting,
    }
}

fn of_live(live: &Live) -> Word {
    match &live.state {
        JobState::Pending => Word::Pending,
        state if state.holds_gpus() => Word::Running,
        // Slurm may put it back, or it is settled by the next cycle.
        JobState::Running | JobState::Alive(_) | JobState::Over(_) => Word::Pending,
    }
}

/// Nothing moves here until a person does something. A hold or cancel that a person asked for is
/// no question to anybody.
pub fn needs_person(word: Word, record: &ShardRecord, reason: &Reason) -> bool {
    match word {
        Word::OverCap | Word::Refused => true,
        Word::Held => !matches!(record.gate, Gate::Held { why: HeldWhy::Person { .. }, .. }),
        Word::Pending => matches!(reason, Reason::StuckInSlurm { .. }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_text_are_the_same_word() {
        for word in Word::ALL {
            let json = serde_json::to_value(word).expect("a word");
            assert_eq!(json, serde_json::json!(word.text()));
        }
    }
}
