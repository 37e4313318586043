#![allow(clippy::disallowed_methods, reason = "tests damage files on purpose")]

use std::path::Path;

use proptest::prelude::*;

use super::super::v1::dice::{Dice, observation, policy, state};
use super::segments::{Bounds, append_within, segments};
use super::{Before, Given, Recorded, read};
use crate::model::observation::Observation;
use crate::model::policy::Policy;
use crate::model::state::State;
use crate::model::units::Time;

/// A cycle from a seed.
struct Made {
    policy: Policy,
    state: State,
    seen: Observation,
    plan: String,
}

impl Made {
    fn new(seed: u64, shards: usize) -> Made {
        let mut dice = Dice::new(seed);
        let policy = policy(&mut dice, shards);
        let (state, seen) = (state(&mut dice, shards), observation(&mut dice, shards));
        Made { policy, state, seen, plan: format!("Plan {{\n    seed: {seed},\n}}\n") }
    }

    /// The same, and something of it changed.
    fn next(&self, seed: u64) -> Made {
        let mut dice = Dice::new(seed);
        let Made { policy, mut state, mut seen, plan } = Made {
            policy: self.policy.clone(),
            state: self.state.clone(),
            seen: self.seen.clone(),
            plan: self.plan.clone(),
        };
        if let Some(record) = state.shards.last_mut() {
            record.attempts = record.attempts.wrapping_add(1);
        }
        state.generation = state.generation.wrapping_add(1);
        // Lines that move, go and come.
        seen.cluster.jobs.reverse();
        seen.cluster.nodes = observation(&mut dice, 0).cluster.nodes;
        Made { policy, state, seen, plan }
    }

    fn append(&self, folder: &Path, at: u64, bounds: Bounds) -> std::io::Result<()> {
        let before = Before::of(self.state.clone());
        let Made { policy, state: _, seen, plan } = self;
        let now = Time(1_790_000_000 + at as i64);
        append_within(folder, &Given { policy, before: &before, seen, now, seed: at, plan }, bounds)
    }

    #[track_caller]
    fn is(&self, read: &Recorded) {
        let Recorded { policy, state, seen, now: _, seed: _, plan, version, place: _ } = read;
        let same =
            (policy, state, seen, plan) == (&self.policy, &self.state, &self.seen, &self.plan);
        assert!(same, "cycle {} came back otherwise", read.place);
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
    }
}

const WIDE: Bounds = Bounds { segment: 1 << 20, all: 1 << 30 };

/// Some cycles, recorded in one segment.
fn some(folder: &Path, cycles: u64) -> Vec<Made> {
    let mut made = vec![Made::new(7, 5)];
    for n in 1..cycles {
        let next = made.last().expect("one").next(n);
        made.push(next);
    }
    for (n, made) in made.iter().enumerate() {
        made.append(folder, n as u64, WIDE).expect("written");
    }
    made
}

fn good(folder: &Path) -> (Vec<Recorded>, Vec<String>) {
    let (mut cycles, mut damage) = (Vec::new(), Vec::new());
    for read in read(folder).expect("a recording") {
        match read {
            Ok(cycle) => cycles.push(cycle),
            Err(fault) => damage.push(fault.to_string()),
        }
    }
    (cycles, damage)
}

fn only_segment(folder: &Path) -> std::path::PathBuf {
    let found = segments(folder).expect("listed");
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].1.clone()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn cycles_come_back_as_they_were(seed: u64, shards in 0usize..8, more in 0u64..5) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut made = vec![Made::new(seed, shards)];
        for n in 0..more {
            let next = made.last().expect("one").next(seed ^ n);
            made.push(next);
        }
        for (n, made) in made.iter().enumerate() {
            made.append(folder.path(), n as u64, WIDE).expect("written");
        }
        let (cycles, damage) = good(folder.path());
        prop_assert_eq!((cycles.len(), damage), (made.len(), Vec::new()));
        for (n, (made, read)) in made.iter().zip(&cycles).enumerate() {
            made.is(read);
            prop_assert_eq!((read.now, read.seed), (Time(1_790_000_000 + n as i64), n as u64));
        }
    }

    #[test]
    fn damage_anywhere_is_told_with_its_place_and_what_is_before_it_is_used(
        at in 0usize..1_000_000, bit in 0u8..8, cut: bool,
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let made = some(folder.path(), 4);
        let path = only_segment(folder.path());
        let mut bytes = std::fs::read(&path).expect("read");
        let at = at % bytes.len();
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << bit;
        }
        std::fs::write(&path, &bytes).expect("written");
        let (cycles, damage) = good(folder.path());
        for (made, read) in made.iter().zip(&cycles) {
            made.is(read);
        }
        // A cut between two cycles leaves a shorter recording, and in the head of a gzip member
        // there are bytes that say nothing (when it was made, by which system).
        let whole = cycles.len() == made.len() || cut;
        prop_assert!(!damage.is_empty() || whole, "{} cycles, no damage", cycles.len());
        for fault in damage {
            prop_assert!(fault.contains("000001.gz: cycle ") && fault.contains("(byte "), "{}", fault);
        }
    }
}

#[test]
fn a_cycle_like_the_one_before_it_is_next_to_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Made::new(3, 200);
    made.append(folder.path(), 0, WIDE).expect("written");
    let first = only_segment(folder.path()).metadata().expect("there").len();
    made.append(folder.path(), 1, WIDE).expect("written");
    let both = only_segment(folder.path()).metadata().expect("there").len();
    assert!(both - first < 300, "{} after {first}", both - first);
}

/// What a power cut leaves: half a cycle, and a tip of before it.
#[test]
fn after_half_a_cycle_the_next_one_begins_a_segment() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = some(folder.path(), 3);
    let path = only_segment(folder.path());
    let tip = std::fs::read(folder.path().join("tip")).expect("a tip");
    let before = std::fs::read(&path).expect("read");
    made[2].append(folder.path(), 3, WIDE).expect("written");
    let mut bytes = std::fs::read(&path).expect("read");
    bytes.truncate((before.len() + bytes.len()) / 2);
    std::fs::write(&path, &bytes).expect("written");
    std::fs::write(folder.path().join("tip"), tip).expect("written");

    made[0].append(folder.path(), 4, WIDE).expect("written");
    let (cycles, damage) = good(folder.path());
    assert_eq!(cycles.iter().map(|c| c.seed).collect::<Vec<_>>(), [0, 1, 2, 4]);
    assert_eq!(damage.len(), 1);
    assert!(damage[0].contains("000001.gz: cycle 4 of it"), "{damage:?}");
    assert!(damage[0].contains(&format!("(byte {}): it is cut off", before.len())), "{damage:?}");
}

#[test]
fn a_lost_or_damaged_tip_costs_a_whole_cycle_and_nothing_else() {
    for tip in [None, Some("{\"at\": 1"), Some("")] {
        let folder = tempfile::tempdir().expect("a folder");
        let made = some(folder.path(), 2);
        let path = folder.path().join("tip");
        match tip {
            None => std::fs::remove_file(&path).expect("removed"),
            Some(text) => std::fs::write(&path, text).expect("written"),
        }
        made[1].append(folder.path(), 2, WIDE).expect("written");
        let (cycles, damage) = good(folder.path());
        assert_eq!((cycles.len(), damage), (3, Vec::new()), "{tip:?}");
        assert_eq!(segments(folder.path()).expect("listed").len(), 2, "{tip:?}");
    }
}

#[test]
fn all_segments_together_never_pass_the_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut made = Made::new(11, 6);
    made.append(folder.path(), 0, WIDE).expect("written");
    let one = only_segment(folder.path()).metadata().expect("there").len();
    let bounds = Bounds { segment: 3 * one, all: 10 * one };
    for n in 1..200 {
        made = made.next(n);
        made.append(folder.path(), n, bounds).expect("written");
        let all: u64 = segments(folder.path()).expect("listed").iter().map(|s| s.2).sum();
        assert!(all <= bounds.all, "{all} after cycle {n}");
    }
    let (cycles, damage) = good(folder.path());
    assert_eq!(damage, Vec::<String>::new());
    made.is(cycles.last().expect("some"));
    let seeds: Vec<u64> = cycles.iter().map(|cycle| cycle.seed).collect();
    assert!(seeds.len() > 8 && seeds[0] > 0, "{seeds:?}");
    assert!(seeds.windows(2).all(|two| two[0] + 1 == two[1]), "{seeds:?}");

    let small = Bounds { segment: 1, all: one / 2 };
    let error = made.append(folder.path(), 200, small).expect_err("it does not fit");
    assert!(error.to_string().contains("more than is kept"), "{error}");
}

#[test]
fn what_another_version_wrote_is_told_and_the_rest_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Made::new(5, 2);
    let before = Before::of(made.state.clone());
    let mut foreign = patch_of(&made, &before, "9.9.9", super::FORM, |line| {
        String::from_utf8_lossy(line).replace("\"label\":", "\"name\":").into_bytes()
    });
    // A part that this build does not know, a form that it does not know, and a good one.
    foreign.extend(patch_of(&made, &before, "9.9.9", super::FORM, |line| {
        if line == b"#logs" { b"#moods".to_vec() } else { line.to_vec() }
    }));
    foreign.extend(patch_of(&made, &before, "0.0.9", super::FORM, <[u8]>::to_vec));
    foreign.extend(patch_of(&made, &before, "9.9.9", super::FORM + 1, <[u8]>::to_vec));
    let path = folder.path().join("000001.gz");
    std::fs::write(&path, foreign).expect("written");
    let (cycles, damage) = good(&path);
    assert_eq!(cycles.last().map(|cycle| cycle.version.as_str()), Some("0.0.9"));
    let told = damage.join("\n");
    assert!(told.contains("does not know: #moods (written by babysit 9.9.9)"), "{told}");
    assert!(told.contains("it is of form 2, of babysit 9.9.9"), "{told}");
}

fn patch_of(
    made: &Made,
    before: &Before,
    version: &str,
    form: u64,
    change: impl Fn(&[u8]) -> Vec<u8>,
) -> Vec<u8> {
    let head = super::patch::Head {
        recording: form,
        babysit: version.to_owned(),
        at: super::super::v1::Moment(Time(0)),
        seed: 1,
        whole: true,
    };
    let mut writer = super::patch::Writer::new(&head, &[]).expect("begun");
    let Made { policy, state: _, seen, plan } = made;
    let given = Given { policy, before, seen, now: Time(0), seed: 1, plan };
    super::super::v1::cycle::write(&given, &mut |line| writer.line(&change(line)))
        .expect("written");
    writer.finish().expect("finished").0
}
