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
        Work::of(policy).all(policy, state)
    }

    /// The same anew, in the memory of this one.
    pub fn renew(&mut self, policy: &Policy, state: &State) {
        if policy.named() == policy.shards.len() {
            return self.renew_some(policy, state, 0..policy.named());
        }
        *self = Work::over(policy, std::mem::take(self)).all(policy, state);
    }

    /// The same of these alone, none of them a helper.
    pub fn renew_some(
        &mut self,
        policy: &Policy,
        state: &State,
        some: impl Iterator<Item = usize>,
    ) {
        let family = policy.shards.family_of();
        let mut measured = vec![(0, 0.0); policy.shards.families()];
        for (record, family) in state.shards.iter().zip(family) {
            if record.pace.rows > 0 {
                add_pace(&mut measured[*family as usize], record);
            }
        }
        for i in some {
            let (shard, record) = (&policy.shards[i], &state.shards[i]);
            let own = record.pace.seconds_per_row();
            let each = own.or_else(|| of_family(measured[family[i] as usize]));
            self.measured[i] = each.is_some();
            self.seconds_per_row[i] = each.unwrap_or(shard.row_time.as_f64());
            self.remaining[i] = f64::from(rows_left(shard, record)) * self.seconds_per_row[i];
        }
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
    /// By shard index: its family.
    family: &'a [u32],
    /// Rows and seconds that were measured, by family.
    measured: Vec<(u64, f64)>,
}

impl<'a> Work<'a> {
    pub fn of(policy: &'a Policy) -> Work<'a> {
        let shards = policy.shards.len();
        let lpt = Lpt {
            remaining: Vec::with_capacity(shards),
            measured: Vec::with_capacity(shards),
            seconds_per_row: Vec::with_capacity(shards),
            since: Vec::with_capacity(shards),
        };
        Work::over(policy, lpt)
    }

    fn over(policy: &'a Policy, mut lpt: Lpt) -> Work<'a> {
        lpt.remaining.clear();
        lpt.measured.clear();
        lpt.seconds_per_row.clear();
        lpt.since.clear();
        let measured = vec![(0, 0.0); policy.shards.families()];
        Work { lpt, family: policy.shards.family_of(), measured }
    }

    fn all(mut self, policy: &Policy, state: &State) -> Lpt {
        policy.shards.iter().zip(&state.shards).for_each(|(shard, record)| self.add(shard, record));
        self.order(policy)
    }

    /// The next one in the order of the policy.
    pub fn add(&mut self, shard: &Shard, record: &ShardRecord) {
        let own = record.pace.seconds_per_row();
        let i = self.lpt.remaining.len();
        self.lpt.remaining.push(f64::from(rows_left(shard, record)));
        self.lpt.measured.push(own.is_some());
        self.lpt.seconds_per_row.push(own.unwrap_or(shard.row_time.as_f64()));
        self.lpt.since.push(record.queued_since);
        if own.is_some() {
            add_pace(&mut self.measured[self.family[i] as usize], record);
        }
    }

    /// Seconds per row of every shard are its own if measured, else its family's, else as
    /// configured.
    pub fn order(self, policy: &Policy) -> Lpt {
        let Work { mut lpt, family, measured } = self;
        for i in 0..policy.named().min(lpt.measured.len()) {
            let each = of_family(measured[family[i] as usize]).filter(|_| !lpt.measured[i]);
            if let Some(each) = each {
                (lpt.seconds_per_row[i], lpt.measured[i]) = (each, true);
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

fn add_pace((rows, time): &mut (u64, f64), record: &ShardRecord) {
    *rows += u64::from(record.pace.rows);
    *time += record.pace.time.as_f64();
}

fn of_family((rows, time): (u64, f64)) -> Option<f64> {
    (rows > 0).then(|| time / rows as f64)
}
