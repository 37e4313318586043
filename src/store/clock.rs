//! Most cycles change nothing but the time: of the last tick, of what was read in it, of what is
//! measured over time. Such a cycle leaves the state file as it is, and writes these few numbers
//! beside it.
//!
//! That file may be lost at any time, and is then no more than a cycle that did not take place: so
//! it is not synced, and what cannot be read of it, or belongs to another save, is as good as none.

use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::quality::{FixedState, FoldHasher};

use crate::model::state::{Learned, OthersInOwn, ShardRecord, State, TickRecord};
use crate::model::units::{Secs, Time};

/// What a cycle in which only the clock moved leaves behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clock {
    /// The save that it belongs to: of this instance, under this number, made by the tick of then.
    pub instance: String,
    pub generation: u64,
    pub since: Time,
    pub last_tick: TickRecord,
    pub tick_every: Option<Secs>,
    pub others_in_own: Option<OthersInOwn>,
}

/// Which save a state came from, and what no clock changes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Still {
    since: Time,
    sum: u64,
}

impl Still {
    /// Of a state as it was read, with this clock set; `None`: no tick has saved it yet.
    pub(super) fn of(state: &State, clock: Option<&Clock>) -> Option<Still> {
        let at = state.last_tick.as_ref()?.at;
        Some(Still { since: clock.map_or(at, |clock| clock.since), sum: sum(state, at) })
    }

    /// The clock that says all in which `now` differs from the state that this was taken of, the
    /// one that is in the file under this number; `None`: it differs in more.
    pub(super) fn clock(&self, generation: u64, now: &State) -> Option<Clock> {
        let last_tick = now.last_tick.clone()?;
        (sum(now, last_tick.at) == self.sum).then(|| Clock {
            instance: now.instance.clone(),
            generation,
            since: self.since,
            last_tick,
            tick_every: now.learned.tick_every,
            others_in_own: now.learned.others_in_own,
        })
    }
}

impl Clock {
    /// Moves the clock of a state that was read from the file; `false`: it is another one's.
    pub(super) fn set(&self, state: &mut State) -> bool {
        let Clock { instance, generation, since, last_tick, tick_every, others_in_own } = self;
        let here = state.last_tick.as_ref().map(|tick| tick.at);
        if (instance, *generation, Some(*since)) != (&state.instance, state.generation, here) {
            return false;
        }
        for record in &mut state.shards {
            let read = &mut record.progress.measured_at;
            if *read == Some(*since) {
                *read = Some(last_tick.at);
            }
        }
        state.last_tick = Some(last_tick.clone());
        state.learned.tick_every = *tick_every;
        state.learned.others_in_own = *others_in_own;
        true
    }
}

/// Records that are worth a thread of their own.
const MANY: usize = 1000;

/// Of all that a clock does not say. A shard whose files were read in the tick at `tick` is as one
/// whose files were read in the tick of the other.
fn sum(state: &State, tick: Time) -> u64 {
    let State {
        project,
        instance,
        // The store counts.
        generation: _,
        shards,
        orphans,
        labs,
        caps,
        last_tick: _,
        learned,
        caution,
        notices,
        host,
    } = state;
    let mut all = FixedState::default().build_hasher();
    let rest = Learned { tick_every: None, others_in_own: None, ..learned.clone() };
    (project, instance, labs, caps, rest, caution, notices, host).hash(&mut all);
    // Of these no clock moves anything.
    orphans.len().hash(&mut all);
    orphans.iter().for_each(|record| (record.progress.measured_at, record).hash(&mut all));
    let (front, back) = shards.split_at(if shards.len() < MANY { 0 } else { shards.len() / 2 });
    let of = |records: &[ShardRecord]| {
        let mut sum = FixedState::default().build_hasher();
        records.len().hash(&mut sum);
        records.iter().for_each(|record| one(record, tick, &mut sum));
        sum.finish()
    };
    let (front, back) = std::thread::scope(|threads| {
        let front = (!front.is_empty()).then(|| threads.spawn(|| of(front)));
        let back = of(back);
        let front =
            front.map(|sum| sum.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (front, back)
    });
    (front, back).hash(&mut all);
    all.finish()
}

fn one(record: &ShardRecord, tick: Time, sum: &mut FoldHasher<'_>) {
    let measured = record.progress.measured_at;
    measured.filter(|at| *at != tick).hash(sum);
    (measured == Some(tick)).hash(sum);
    record.hash(sum);
}

#[cfg(test)]
mod tests;
