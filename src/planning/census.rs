//! One look over all records, after the rules that change gates and slots: who may be submitted, who
//! pends, who holds a reservation. The rules after it go over these short lists, not over every
//! record again: most of a cycle of ten thousand shards is waiting for memory.

use crate::model::cluster::JobState;
use crate::model::policy::{Policy, SubmitMode};
use crate::model::state::{Slot, State};

use super::placement::about_to_start;
use super::submit::is_ready;

/// Shard indices, ascending.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Census {
    /// May be submitted now, and go to Slurm's queue.
    pub queued: Vec<usize>,
    /// May be submitted now, and wait in babysit's own.
    pub placed: Vec<usize>,
    /// Their job is PENDING in Slurm, free to start on any node.
    pub pending: Vec<usize>,
    /// Their job was sent to one placement, and does not run yet.
    pub pinned: Vec<usize>,
    /// They hold a reservation, or one that ended is not charged yet.
    pub accounts: Vec<usize>,
}

impl Census {
    pub fn new(policy: &Policy, state: &State) -> Census {
        let mut census = Census::default();
        for (i, (shard, record)) in policy.shards.iter().zip(&state.shards).enumerate() {
            if record.reservation.is_some() || !record.owed.is_empty() {
                census.accounts.push(i);
            }
            if about_to_start(record).is_some_and(|attempt| attempt.pin.is_some()) {
                census.pinned.push(i);
                continue;
            }
            match &record.slot {
                Slot::Live(live) if live.state == JobState::Pending => census.pending.push(i),
                Slot::Free if is_ready(shard, record, &state.caution) => match shard.submit {
                    SubmitMode::Queued => census.queued.push(i),
                    SubmitMode::Placed => census.placed.push(i),
                },
                Slot::Free | Slot::Live(_) | Slot::Submitting(_) | Slot::Settling(_) => {}
            }
        }
        census
    }
}
