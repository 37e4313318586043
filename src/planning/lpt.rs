//! Longest processing time first (policy.md section 3, v4.1): the order of every choice between
//! shards that wait.

use crate::model::policy::Policy;
use crate::model::state::State;
use crate::model::units::Time;

use super::measure::{row_times, rows_left};

/// Work left of each shard, and the order it gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Lpt {
    /// By shard index: seconds of work left.
    pub remaining: Vec<f64>,
    /// By shard index: the rate behind it was measured (in the shard or its family).
    pub measured: Vec<bool>,
    pub seconds_per_row: Vec<f64>,
    since: Vec<Time>,
}

impl Lpt {
    pub fn new(policy: &Policy, state: &State) -> Lpt {
        let times = row_times(policy, state);
        let left = policy.shards.iter().zip(&state.shards).map(|(s, r)| rows_left(s, r));
        Lpt {
            remaining: left.zip(&times).map(|(rows, (each, _))| f64::from(rows) * each).collect(),
            measured: times.iter().map(|(_, measured)| *measured).collect(),
            seconds_per_row: times.iter().map(|(each, _)| *each).collect(),
            since: state.shards.iter().map(|record| record.queued_since).collect(),
        }
    }

    /// Longest first; ties: earlier queued, then id (the caller's indices are in id order only
    /// within a family, so the ids are compared).
    pub fn sort<T>(&self, policy: &Policy, items: &mut Vec<T>, shard: impl Fn(&T) -> usize) {
        // The keys beside the items: a sort that looks each of them up again is mostly waiting.
        let keyed = |item: T| {
            let i = shard(&item);
            (self.remaining[i], self.since[i], &policy.shards[i].id, item)
        };
        let mut all: Vec<_> = items.drain(..).map(keyed).collect();
        all.sort_unstable_by(|(left, queued, id, _), (left_b, queued_b, id_b, _)| {
            left_b.total_cmp(left).then_with(|| queued.cmp(queued_b)).then_with(|| id.cmp(id_b))
        });
        items.extend(all.into_iter().map(|(.., item)| item));
    }
}
