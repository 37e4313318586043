//! Longest processing time first (policy.md section 3, v4.1): the order of every choice between
//! shards that wait.

use crate::model::policy::{Policy, Shard};
use crate::model::state::{ShardRecord, State};
use crate::model::units::Time;

use super::measure::rows_left;
use super::rank;

/// Work left of each shard, and the order it gives.
#[derive(Debug, Clone, PartialEq, Default)]
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
        Work::of(policy.shards.len()).all(policy, state)
    }

    /// The same anew, in the memory of this one.
    pub fn renew(&mut self, policy: &Policy, state: &State) {
        *self = Work::over(std::mem::take(self)).all(policy, state);
    }

    /// Longest first; ties: earlier queued, then id (indices are in id order only within a family).
    pub fn sort<T>(&self, policy: &Policy, items: &mut [T], shard: impl Fn(&T) -> usize) {
        // Also whoever is alone, or nobody: nearly every cycle in which little waits.
        if !self.is_sorted(policy, items, &shard) {
            items.sort_by_cached_key(self.key(policy, shard));
        }
    }

    /// Is that the order already?
    pub fn is_sorted<T>(&self, policy: &Policy, items: &[T], shard: impl Fn(&T) -> usize) -> bool {
        items.is_sorted_by_key(self.key(policy, shard))
    }

    fn key<T>(&self, policy: &Policy, shard: impl Fn(&T) -> usize) -> impl Fn(&T) -> u128 {
        let by_id = policy.shards.by_id();
        move |item| {
            let i = shard(item);
            rank::key(rank::longest_first(self.remaining[i]), self.since[i], by_id[i])
        }
    }
}

/// What the records tell of the work left, gathered one by one in the order of the policy.
#[derive(Debug)]
pub struct Work<'a> {
    /// Rows, not seconds, are what `remaining` holds until all are there.
    lpt: Lpt,
    /// Rows and seconds that were measured, by family.
    families: Vec<(&'a str, u64, f64)>,
}

impl<'a> Work<'a> {
    pub fn of(shards: usize) -> Work<'a> {
        let lpt = Lpt {
            remaining: Vec::with_capacity(shards),
            measured: Vec::with_capacity(shards),
            seconds_per_row: Vec::with_capacity(shards),
            since: Vec::with_capacity(shards),
        };
        Work { lpt, families: Vec::new() }
    }

    fn over(mut lpt: Lpt) -> Work<'a> {
        lpt.remaining.clear();
        lpt.measured.clear();
        lpt.seconds_per_row.clear();
        lpt.since.clear();
        Work { lpt, families: Vec::new() }
    }

    fn all(mut self, policy: &'a Policy, state: &State) -> Lpt {
        policy.shards.iter().zip(&state.shards).for_each(|(shard, record)| self.add(shard, record));
        self.order(policy)
    }

    pub fn add(&mut self, shard: &'a Shard, record: &ShardRecord) {
        let own = record.pace.seconds_per_row();
        self.lpt.remaining.push(f64::from(rows_left(shard, record)));
        self.lpt.measured.push(own.is_some());
        self.lpt.seconds_per_row.push(own.unwrap_or(shard.row_time.as_f64()));
        self.lpt.since.push(record.queued_since);
        if own.is_none() {
            return;
        }
        let (rows, time) = (u64::from(record.pace.rows), record.pace.time.as_f64());
        // Shards of a family stand together: nearly always it is the last one.
        match self.families.iter_mut().rev().find(|(name, ..)| *name == shard.id.family) {
            Some(entry) => {
                entry.1 += rows;
                entry.2 += time;
            }
            None => self.families.push((&shard.id.family, rows, time)),
        }
    }

    /// Seconds per row of every shard are its own if measured, else its family's, else as
    /// configured.
    pub fn order(self, policy: &Policy) -> Lpt {
        let Work { mut lpt, families } = self;
        if !families.is_empty() {
            for (i, shard) in policy.shards.iter().enumerate().take(policy.named()) {
                if lpt.measured[i] {
                    continue;
                }
                let family = families.iter().find(|(name, ..)| *name == shard.id.family);
                if let Some((_, rows, time)) = family {
                    lpt.seconds_per_row[i] = time / *rows as f64;
                    lpt.measured[i] = true;
                }
            }
        }
        for (i, shard) in policy.shards.iter().enumerate().skip(policy.named()) {
            if let Some(helped) = shard.helps {
                lpt.seconds_per_row[i] = lpt.seconds_per_row[helped];
                lpt.measured[i] = lpt.measured[helped];
            }
        }
        lpt.remaining.iter_mut().zip(&lpt.seconds_per_row).for_each(|(left, each)| *left *= each);
        // Of helpers: what there would be for each worker, were this one the last to come.
        let mut last = (None, 1u32);
        for (i, shard) in policy.shards.iter().enumerate().skip(policy.named()) {
            // The shard's own job is the first.
            let number = if last.0 == shard.helps { last.1 + 1 } else { 2 };
            last = (shard.helps, number);
            lpt.remaining[i] /= f64::from(number);
        }
        lpt
    }
}
