use proptest::prelude::*;

use super::dice::{Dice, state};
use super::spell::PIECE;
use super::{Unreadable, decode, encode};

/// Kept for ever: a state as version 1 wrote it, with every variant there was.
const KEPT: &str = include_str!("../../../tests/fixtures/state/v1.json");

/// `usual`, or as many as $PROPTEST_CASES says (scripts/fuzz).
fn cases(usual: u32) -> u32 {
    const UNSET: u32 = 256;
    Some(ProptestConfig::default().cases).filter(|wish| *wish != UNSET).unwrap_or(usual)
}

/// Two threads spell a large state; nothing of that shows.
#[test]
fn a_state_of_any_size_is_one_shard_a_line() {
    for shards in [0, 1, 2, PIECE, PIECE + 1, 2 * PIECE + 1, 3 * PIECE + 7] {
        let before = state(&mut Dice::new(7), shards);
        let bytes = encode(&before, before.generation).expect("encodes");
        let text = std::str::from_utf8(&bytes).expect("UTF-8");
        let (_, list) = text.split_once("\"shards\": [").expect("the list");
        let lines = list.lines().skip(1).take_while(|line| line.starts_with('{')).count();
        assert_eq!(lines, shards);
        assert_eq!(decode(&bytes), Ok(before), "{shards}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200), ..ProptestConfig::default() })]

    #[test]
    fn a_state_comes_back_as_it_was(seed: u64, shards in 0usize..12) {
        let before = state(&mut Dice::new(seed), shards);
        let bytes = encode(&before, before.generation).expect("encodes");
        prop_assert_eq!(decode(&bytes), Ok(before));
    }

    #[test]
    fn damaged_bytes_are_an_error_or_a_state_but_never_a_panic(
        at in 0usize..1_000_000, byte: u8, cut: bool,
    ) {
        let mut bytes = KEPT.as_bytes().to_vec();
        let at = at % bytes.len();
        if cut {
            bytes.truncate(at);
            // Without its last brace it is no document; the newline after it may go.
            if at < KEPT.trim_end().len() {
                prop_assert!(decode(&bytes).is_err());
            }
        } else {
            bytes[at] = byte;
            match decode(&bytes) {
                Ok(_) | Err(Unreadable::Damaged(_) | Unreadable::Newer(..)) => {}
            }
        }
    }

    #[test]
    fn noise_is_no_state(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(decode(&bytes).is_err());
    }
}

#[test]
fn the_kept_file_of_version_1_loads_and_is_written_the_same() {
    let state = decode(KEPT.as_bytes()).expect("version 1 is readable for ever");
    let again = encode(&state, state.generation).expect("encodes");
    assert!(again == KEPT.as_bytes(), "the disk form changed: that needs a version of its own");
}

const WORDS: &[&str] = &[
    "not_looked_yet",
    "running",
    "done",
    "over_cap",
    "held_by_person",
    "job_cancelled",
    "too_many_failures",
    "top_tier_out_of_memory",
    "host_out_of_memory",
    "refused",
    "no_fit",
    "cancelled",
    "backoff",
    "settling",
    "outcome_unknown",
    "end_unknown",
    "pending_in_slurm",
    "stuck_in_slurm",
    "in_slurm",
    "stopping",
    "submit_budget",
    "slurm_busy",
    "collecting",
    "queue_wait",
    "submitted",
    "held",
    "person",
    "failures",
    "top_tier",
    "host_memory",
    "submitting",
    "live",
    "free",
    "pending",
    "alive",
    "over",
    "vanished",
    "word",
    "run",
    "reserved",
    "released",
    "own",
    "extra",
    "twin",
    "reservation",
    "kept_off",
    "told",
    "owed",
    "restarts",
    "exclude",
    "tier",
    "move_refused",
    "charges",
    "absent",
    "mark",
    "pin",
    "finished",
    "min_tier",
    "own_gpus",
    "target",
    "gap",
    "cancelled_by",
    "stop",
];

#[test]
fn the_kept_file_holds_every_kind_of_thing() {
    for word in WORDS {
        // A blank value is left out, so the default reason is the one word that never shows.
        let is_there = KEPT.contains(&format!("\"{word}\""));
        assert_eq!(is_there, *word != "not_looked_yet", "{word}");
    }
}

#[track_caller]
fn check_refused(from: &str, to: &str, expected: &str) {
    assert!(KEPT.contains(from), "the kept file has no {from}");
    match decode(KEPT.replacen(from, to, 1).as_bytes()) {
        Err(Unreadable::Damaged(text)) => assert!(text.contains(expected), "{text}"),
        other => panic!("{from} -> {to} gave {other:?}"),
    }
}

#[test]
fn what_this_build_does_not_know_is_refused_rather_than_dropped() {
    check_refused("\"attempts\":", "\"attempt5\":", "unknown field `attempt5`");
    check_refused("\"gate\":\"open\"", "\"gate\":\"ajar\"", "unknown variant `ajar`");
    check_refused("\"version\": 1", "\"version\": 0", "no version 0");
    check_refused("\"version\": 1", "\"version\": \"1\"", "invalid type");
    check_refused("/s1\"", "/s0\"", "twice");
    check_refused("Z\"", "\"", "a moment like");
    check_refused("\"target\":\"", "\"target\":\"../", "neither family nor family/shard");
}

#[test]
fn a_newer_version_is_named_whatever_else_is_in_it() {
    for text in ["{\"version\": 7}", &KEPT.replacen("\"version\": 1", "\"version\": 7", 1)] {
        assert_eq!(decode(text.as_bytes()), Err(Unreadable::Newer(7, 0)));
    }
}

#[test]
fn empty_is_damaged() {
    for text in ["", "\n", "  \n"] {
        assert_eq!(decode(text.as_bytes()), Err(Unreadable::Damaged("it is empty".to_owned())));
    }
}
