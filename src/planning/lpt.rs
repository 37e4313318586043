//! Longest processing time first (policy.md section 3, v4.1): the order of every choice between
//! shards that wait.

use std::cmp::Ordering;

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
    pub fn compare(&self, policy: &Policy, a: usize, b: usize) -> Ordering {
        self.remaining[b]
            .total_cmp(&self.remaining[a])
            .then(self.since[a].cmp(&self.since[b]))
            .then_with(|| policy.shards[a].id.cmp(&policy.shards[b].id))
    }

    pub fn sort(&self, policy: &Policy, shards: &mut [usize]) {
        shards.sort_by(|a, b| self.compare(policy, *a, *b));
    }
}
