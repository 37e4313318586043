//! What a save may leave to the clock, and what it may not, on a real folder.
#![allow(clippy::disallowed_methods, reason = "the tests play the hand that damages files")]

use std::fs;

use proptest::prelude::*;

use super::super::Locked;
use super::super::recording::{Given, read};
use super::super::tests::Place;
use super::super::v1::dice::{Dice, Roll, observation, policy, state};
use crate::model::state::{OthersInOwn, ShardRecord, State, TickOutcome, TickRecord};
use crate::model::units::{GpuSeconds, Secs, Time};

const FIRST: Time = Time(1_790_000_000);

impl Place {
    /// What another process finds.
    fn loaded(&self) -> (Locked, State) {
        let mut locked = self.lock();
        let state = locked.load().expect("loads").expect("is there");
        assert_eq!(self.store.read().expect("reads"), Some(state.clone()), "with or without lock");
        (locked, state)
    }

    /// As a tick ends: the state is saved under the number that it then bears.
    fn saved(&self, mut locked: Locked, state: &mut State) {
        state.generation = locked.save(state).expect("saves");
    }

    fn begun(&self, seed: u64, shards: usize) {
        let mut begun = state(&mut Dice::new(seed), shards);
        begun.generation = 1;
        ticks(&mut begun, FIRST);
        self.saved(self.lock(), &mut begun);
    }

    fn text(&self) -> String {
        fs::read_to_string(self.store.path()).expect("a state")
    }

    fn clock(&self) -> Option<String> {
        fs::read_to_string(self.store.clock_path()).ok()
    }
}

/// What every tick does: it notes its time, and reads every third shard's files.
fn ticks(state: &mut State, at: Time) {
    state.last_tick =
        Some(TickRecord { at, outcome: TickOutcome::Ok, skipped_in_a_row: 0, last_ok: Some(at) });
    state.learned.tick_every = Some(at.since(FIRST));
    let over = at.since(FIRST);
    state.learned.others_in_own =
        Some(OthersInOwn { gpu_seconds: GpuSeconds(over.0 as u64), over, until: at });
    for record in state.shards.iter_mut().step_by(3) {
        record.progress.measured_at = Some(at);
    }
}

#[test]
fn a_tick_that_moves_the_clock_alone_leaves_the_file_as_it_is() {
    let place = Place::new();
    place.begun(3, 2500);
    let file = place.text();
    for minute in 1..4 {
        let (locked, mut state) = place.loaded();
        ticks(&mut state, FIRST + Secs::minutes(minute));
        place.saved(locked, &mut state);
        assert_eq!((place.text() == file, state.generation), (true, 1));
        assert_eq!(place.loaded().1, state, "all of it is read back");
    }
    let (locked, mut state) = place.loaded();
    ticks(&mut state, FIRST + Secs::minutes(9));
    state.shards[1700].attempts += 1;
    place.saved(locked, &mut state);
    assert_eq!((place.text() == file, state.generation, place.clock()), (false, 2, None));
    assert_eq!(place.loaded().1, state);
}

#[test]
fn a_shard_that_is_read_for_the_first_time_or_no_more_is_worth_a_save() {
    let (tick, long_ago) = (FIRST + Secs(60), FIRST + Secs(-900));
    // A shard that is read in every tick, and one that is read in none.
    for (shard, before, now) in [
        (0, Some(FIRST), Some(FIRST)),
        (0, Some(FIRST), None),
        (1, None, Some(tick)),
        (1, Some(long_ago), Some(tick)),
        (1, Some(long_ago), None),
    ] {
        let place = Place::new();
        let mut first = state(&mut Dice::new(3), 10);
        first.generation = 1;
        ticks(&mut first, FIRST);
        first.shards[shard].progress.measured_at = before;
        place.saved(place.lock(), &mut first);
        let (locked, mut next) = place.loaded();
        ticks(&mut next, tick);
        next.shards[shard].progress.measured_at = now;
        place.saved(locked, &mut next);
        assert_eq!((place.clock(), next.generation), (None, 2), "{before:?} {now:?}");
        assert_eq!(place.loaded().1, next);
    }
}

/// No tick reads the files of a shard that shards.toml no longer names.
#[test]
fn when_an_orphan_was_read_is_no_matter_of_the_clock() {
    for at in [FIRST, FIRST + Secs(30), FIRST + Secs(60)] {
        let place = Place::new();
        let mut first = state(&mut Dice::new(3), 4);
        first.orphans = first.shards.split_off(3);
        first.orphans[0].progress.measured_at = Some(FIRST);
        first.generation = 1;
        ticks(&mut first, FIRST);
        place.saved(place.lock(), &mut first);
        let (locked, mut next) = place.loaded();
        ticks(&mut next, FIRST + Secs(60));
        next.orphans[0].progress.measured_at = Some(at);
        place.saved(locked, &mut next);
        assert_eq!(place.loaded().1, next);
    }
}

#[test]
fn a_clock_of_another_save_or_half_of_one_is_as_good_as_none() {
    let place = Place::new();
    place.begun(3, 10);
    let (locked, first) = place.loaded();
    let mut state = first.clone();
    ticks(&mut state, FIRST + Secs(60));
    place.saved(locked, &mut state);
    let clock = place.clock().expect("a clock");
    for other in [
        String::new(),
        clock[..clock.len() / 2].to_owned(),
        clock.replace("\"generation\":1", "\"generation\":2"),
        clock.replace("1f3a9c", "2f3a9c"),
        clock.replacen("2026-09-21", "2026-09-20", 1),
    ] {
        assert_ne!(other, clock, "it was changed");
        fs::write(place.store.clock_path(), &other).expect("writes");
        assert_eq!(place.loaded().1, first, "{other}");
    }
}

#[test]
fn a_recorded_cycle_begins_with_the_clock_as_it_stood() {
    let place = Place::new();
    place.begun(3, 5);
    let (locked, mut state) = place.loaded();
    ticks(&mut state, FIRST + Secs(60));
    place.saved(locked, &mut state);
    let (mut locked, state) = place.loaded();
    let mut dice = Dice::new(5);
    let (policy, seen) = (policy(&mut dice, 5), observation(&mut dice, 5));
    let before = locked.before(&state).expect("opens");
    let (before, seen, policy) = (&before, &seen, &policy);
    let given = Given { policy, before, seen, now: FIRST + Secs(120), seed: 1, plan: "Plan\n" };
    locked.record(&given).expect("is written");
    let recorded = read(&place.store.recording_path()).expect("is there").next().expect("one");
    assert_eq!(recorded.expect("is good").state, state);
}

proptest! {
    /// Whatever a cycle changed, the next one finds it.
    #[test]
    fn what_is_saved_is_what_is_read(seed: u64, shards in 1usize..9, change in 0..9) {
        let place = Place::new();
        place.begun(seed, shards);
        let (locked, mut next) = place.loaded();
        ticks(&mut next, FIRST + Secs(60));
        let other = state(&mut Dice::new(seed.wrapping_add(1)), shards);
        let at = seed as usize % shards;
        match change {
            0 => next.shards[at].why = other.shards[at].why.clone(),
            1 => next.shards[at].slot = other.shards[at].slot.clone(),
            2 => next.shards[at].progress = other.shards[at].progress.clone(),
            3 => {
                let id = next.shards[at].id.clone();
                next.shards[at] = ShardRecord { id, ..Roll::roll(&mut Dice::new(seed)) };
            }
            4 => next.learned = other.learned,
            5 => (next.caps, next.labs) = (other.caps, other.labs),
            6 => (next.caution, next.notices) = (other.caution, other.notices),
            7 => next.orphans = other.orphans,
            _ => {}
        }
        place.saved(locked, &mut next);
        prop_assert_eq!(place.loaded().1, next);
    }
}
