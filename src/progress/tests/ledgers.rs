//! A ledger: whole lines, distinct keys, money; read on from where it was left.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;

use super::super::cache::{Ledgers, Source, decode, encode};
use super::super::ledger::{Count, Ledger};
use super::{append, cases, dollars, fifo, folder, put};
use crate::model::observation::GapKind;

fn by_key() -> Count {
    Count { rows: Some(Some("row_id".to_owned())), field: Some("cost_usd".to_owned()) }
}

/// Rows, dollars, bad lines of a file with this text.
#[track_caller]
fn check_ledger(text: impl AsRef<[u8]>, rows: u64, spent: f64, bad: u64) {
    let folder = folder();
    let path = folder.path().join("s0.jsonl");
    put(&path, &text);
    let mut ledger = Ledger::default();
    ledger.refresh(&path, &by_key(), &mut u64::MAX.clone()).expect("reads");
    let shown = String::from_utf8_lossy(text.as_ref()).chars().take(300).collect::<String>();
    assert_eq!((ledger.rows(&by_key()), ledger.bad), (rows, bad), "{shown}");
    assert_eq!(ledger.spent, dollars(spent), "{shown}");
}

#[test]
fn rows_are_distinct_keys_and_money_is_every_line() {
    check_ledger("", 0, 0.0, 0);
    check_ledger("{\"row_id\": 1, \"cost_usd\": 0.1}\n", 1, 0.1, 0);
    check_ledger(
        "{\"row_id\": 1, \"cost_usd\": 0.1}\n{\"row_id\": 1, \"cost_usd\": 0.2}\n",
        1,
        0.3,
        0,
    );
    // A broken line in the middle is passed over; blank ones are no lines at all.
    check_ledger(
        "{\"row_id\": 1, \"cost_usd\": 1}\r\n{\"row_id\": 2, \"co\n\n  \n{\"row_id\": 3, \"cost_usd\": 1}\n",
        2,
        2.0,
        1,
    );
    for amount in ["NaN", "null", "\"1\"", "-1"] {
        let text = format!(
            "{{\"row_id\": 1, \"cost_usd\": {amount}}}\n{{\"row_id\": 2, \"cost_usd\": 0.5}}\n"
        );
        check_ledger(text, 2, 0.5, 1);
    }
    check_ledger("{\"row_id\": 1}\n", 1, 0.0, 1);
    check_ledger("{\"cost_usd\": 4}\n", 0, 4.0, 1);
    check_ledger("\u{feff}{\"row_id\": 1, \"cost_usd\": 1}\n", 1, 1.0, 0);
    // Only a newline byte ends a line: U+2028 is text, a lone carriage return is white space.
    check_ledger("{\"row_id\": \"a\u{2028}b\",\r \"cost_usd\": 1}\n", 1, 1.0, 0);
}

#[test]
fn a_torn_last_line_counts_when_its_newline_is_there() {
    check_ledger("{\"row_id\": 1, \"cost_usd\": 1}\n{\"row_id\": 2, \"cos", 1, 1.0, 0);
    check_ledger("{\"row_id\": 1, \"cost_usd\": 1}", 0, 0.0, 0);
}

#[test]
fn monsters_are_passed_over() {
    let good = "{\"row_id\": 1, \"cost_usd\": 1}\n";
    let long = format!("{{\"row_id\": 2, \"text\": \"{}\"}}\n", "x".repeat(3 << 20));
    check_ledger(format!("{good}{long}{}", good.replace('1', "3")), 2, 4.0, 1);
    let mut bytes = vec![0; 5 << 20];
    bytes.extend_from_slice(format!("\n{good}").as_bytes());
    check_ledger(bytes, 1, 1.0, 1);
    check_ledger(vec![0; 5 << 20], 0, 0.0, 0);
    check_ledger(format!("{}\n{good}", "[".repeat(900_000)), 1, 1.0, 1);
}

#[test]
fn only_what_is_new_is_read() {
    let folder = folder();
    let path = folder.path().join("s0.jsonl");
    let line = "{\"row_id\": 1, \"cost_usd\": 1}\n";
    let mut ledger = Ledger::default();
    let mut read = |text: &str| {
        append(&path, text);
        let mut budget = 1 << 30;
        ledger.refresh(&path, &by_key(), &mut budget).expect("reads");
        ((1 << 30) - budget, ledger.keys.len())
    };
    assert_eq!(read(&line.repeat(100)), (100 * line.len() as u64, 1));
    assert_eq!(read(""), (0, 1));
    assert_eq!(read(&line.replace('1', "2")), (line.len() as u64, 2));
    assert_eq!(read("{\"row"), (5, 2));
    assert_eq!(read("_id\": 3}\n"), (14, 3));
}

#[test]
fn a_file_that_shrank_or_is_another_is_read_anew() {
    let line = |id: u32| format!("{{\"row_id\": {id}, \"cost_usd\": 1}}\n");
    let five: String = (0..5).map(line).collect();
    type Change = fn(&Path);
    let changes: [(&str, Change, u64); 5] = [
        ("shrunk", |p| put(p, "{\"row_id\": 9}\n"), 1),
        ("emptied", |p| put(p, ""), 0),
        ("removed", |p| fs::remove_file(p).expect("removes"), 0),
        (
            "replaced",
            |p| {
                let text = fs::read_to_string(p).expect("reads");
                put(
                    &p.with_extension("new"),
                    text.replacen("{\"row_id\": 0", "\n", 1) + "{\"row_id\": 7}\n",
                );
                fs::rename(p.with_extension("new"), p).expect("renames");
            },
            5,
        ),
        (
            "rewritten in place, longer",
            |p| {
                put(
                    p,
                    fs::read_to_string(p).expect("reads").replace("\"row_id\": 3", "\"row_id\": 4")
                        + "{}\n",
                )
            },
            4,
        ),
    ];
    for (what, change, rows) in changes {
        let folder = folder();
        let path = folder.path().join("s0.jsonl");
        put(&path, &five);
        let mut ledger = Ledger::default();
        let mut refresh = || {
            ledger.refresh(&path, &by_key(), &mut (1 << 30)).expect("reads");
            ledger.rows(&by_key())
        };
        assert_eq!(refresh(), 5, "{what}");
        change(&path);
        assert_eq!(refresh(), rows, "{what}");
    }
}

#[test]
fn a_file_too_large_for_one_cycle_is_a_gap_until_it_is_read() {
    let folder = folder();
    let path = folder.path().join("s0.jsonl");
    let text: String =
        (0..1000).map(|id| format!("{{\"row_id\": {id}, \"cost_usd\": 1}}\n")).collect();
    put(&path, &text);
    let mut ledger = Ledger::default();
    let mut gaps = 0;
    while let Err(gap) = ledger.refresh(&path, &by_key(), &mut 10_000) {
        assert_eq!(gap.kind, GapKind::TimedOut);
        gaps += 1;
        assert!(gaps < 10, "{gap}");
    }
    assert_eq!((gaps, ledger.rows(&by_key())), (text.len() / 10_000, 1000));
}

#[test]
fn nothing_but_a_regular_file_is_opened() {
    let folder = folder();
    let pipe = folder.path().join("pipe");
    fifo(&pipe);
    for path in [pipe.as_path(), folder.path(), Path::new("/dev/null")] {
        let gap = Ledger::default().refresh(path, &by_key(), &mut 99).expect_err("refused");
        assert_eq!(gap.source, path.display().to_string());
        assert!(gap.detail.contains("no regular file"), "{gap}");
    }
    // A symlink to one is a regular file; a loop of them is an error that names the path.
    put(&folder.path().join("real"), "{\"row_id\": 1}\n");
    symlink("real", folder.path().join("link")).expect("links");
    symlink("loop", folder.path().join("loop")).expect("links");
    let mut ledger = Ledger::default();
    ledger.refresh(&folder.path().join("link"), &by_key(), &mut 99).expect("reads");
    assert_eq!(ledger.rows(&by_key()), 1);
    let gap = ledger.refresh(&folder.path().join("loop"), &by_key(), &mut 99).expect_err("a loop");
    assert!(gap.source.ends_with("/loop"), "{gap}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), ..ProptestConfig::default() })]

    /// However a file grows between cycles, and though what is remembered goes through the cache
    /// each time, the sums are those of one reading of the whole.
    #[test]
    fn growth_in_pieces_is_growth_at_once(
        picks in prop::collection::vec(0usize..9, 0..40), cuts in prop::collection::vec(1usize..60, 1..30),
    ) {
        let lines = [
            "{\"row_id\": 1, \"cost_usd\": 0.25}\n", "{\"row_id\": \"b\", \"cost_usd\": 0.5}\n",
            "{\"row_id\": 2}\n", "torn\n", "\n", "{\"row_id\": 3, \"cost_usd\": NaN}\n",
            "{\"cost_usd\": 1}\r\n", "\0\0\n", "{\"row_id\": 4.0, \"cost_usd\": 2}\n",
        ];
        let text: String = picks.iter().map(|n| lines[*n]).collect();
        let folder = folder();
        let (whole, growing) = (folder.path().join("whole"), folder.path().join("growing"));
        put(&whole, &text);
        let mut at_once = Ledger::default();
        at_once.refresh(&whole, &by_key(), &mut (1 << 30)).expect("reads");
        let mut in_pieces = Ledger::default();
        let mut rest = text.as_bytes();
        for cut in cuts.iter().cycle() {
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            append(&growing, piece);
            in_pieces.refresh(&growing, &by_key(), &mut (1 << 30)).expect("reads");
            let source = Source { path: growing.clone().into(), count: by_key() };
            let kept = encode(&Ledgers::from([(source.clone(), in_pieces)]));
            in_pieces = decode(&kept).expect("is a cache").remove(&source).expect("is in it");
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        let sums = |l: &Ledger| (l.keys.clone(), l.lines, l.spent, l.bad, l.offset);
        prop_assert_eq!(sums(&in_pieces), sums(&at_once));
    }

    /// Whatever a program writes into its ledger: no row and no bad line without a line of its own,
    /// and nothing is remembered beyond the bytes that were read.
    #[test]
    fn any_bytes_are_a_ledger(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..12),
                prop::sample::select(vec!["\n", "{", "}", "\"row_id\":", "\"cost_usd\":", "1e999", "[", ","])
                    .prop_map(|text| text.as_bytes().to_vec()),
            ],
            0..60,
        ),
    ) {
        let bytes = pieces.concat();
        let folder = folder();
        let path = folder.path().join("s0.jsonl");
        put(&path, &bytes);
        let mut ledger = Ledger::default();
        ledger.refresh(&path, &by_key(), &mut (1 << 30)).expect("reads");
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        prop_assert!(ledger.rows(&by_key()) <= lines && ledger.bad <= lines);
        prop_assert!(ledger.keys.len() as u64 <= lines && ledger.offset <= bytes.len() as u64);
    }

    #[test]
    fn a_damaged_cache_is_none(at in 0usize..10_000, byte: u8, cut: bool) {
        let source = Source { path: "/runs/s0.jsonl".into(), count: by_key() };
        let ledger = Ledger { keys: vec![1, 2, 3], modified: (-1, 5), ..Ledger::default() };
        let ledgers = Ledgers::from([(source, ledger)]);
        let good = encode(&ledgers);
        let mut bytes = good.clone();
        let at = at % bytes.len();
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        prop_assert_eq!(decode(&bytes), (bytes == good).then_some(ledgers));
    }
}
