//! One look over all records, after the rules that change gates and slots: who may be submitted, who
//! pends, who holds a reservation. The rules after it go over these short lists, not over every
//! record again: most of a cycle of ten thousand shards is waiting for memory.

use crate::model::caution::Caution;
use crate::model::cluster::JobState;
use crate::model::policy::{Policy, Shard, SubmitMode};
use crate::model::state::{ShardRecord, Slot, State};

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
    /// Of these: kept off nodes, or Slurm may not have been told yet that they no longer are.
    pub kept_off: Vec<usize>,
    /// Their job was sent to one placement, and does not run yet.
    pub pinned: Vec<usize>,
    /// They hold a reservation, or one that ended is not charged yet.
    pub accounts: Vec<usize>,
}

impl Census {
    pub fn new(policy: &Policy, state: &State) -> Census {
        let mut census = Census::default();
        for (i, (shard, record)) in policy.shards.iter().zip(&state.shards).enumerate() {
            census.add(i, shard, record, &state.caution);
        }
        census
    }

    /// The next record, in the order of the policy.
    pub fn add(&mut self, i: usize, shard: &Shard, record: &ShardRecord, caution: &Caution) {
        if record.reservation.is_some() || !record.owed.is_empty() {
            self.accounts.push(i);
        }
        if about_to_start(record).is_some_and(|attempt| attempt.pin.is_some()) {
            self.pinned.push(i);
            return;
        }
        match &record.slot {
            Slot::Live(live) if live.state == JobState::Pending => {
                self.pending.push(i);
                if !record.kept_off.nodes.is_empty() || !record.kept_off.told {
                    self.kept_off.push(i);
                }
            }
            Slot::Free if is_ready(shard, record, caution) => match shard.submit {
                SubmitMode::Queued => self.queued.push(i),
                SubmitMode::Placed => self.placed.push(i),
            },
            Slot::Free | Slot::Live(_) | Slot::Submitting(_) | Slot::Settling(_) => {}
        }
    }
}
