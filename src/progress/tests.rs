//! Rows and money out of real files, however they grow, break or are replaced.
#![allow(clippy::disallowed_methods, reason = "the tests play the program that writes rows")]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::cache::{Ledgers, Source, decode, encode};
use super::glob::Reader;
use super::ledger::{Count, Ledger};
use super::pattern::Pattern;
use super::{Files, Progress, in_turn, log_since};
use crate::model::id::{JobId, ShardId};
use crate::model::observation::{GapKind, Measured, Seen};
use crate::model::policy::{CostIn, Kin, Launch, RowsIn, Shard, SubmitMode};
use crate::model::units::{Money, Secs};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn put(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("makes");
    fs::write(path, text).expect("writes");
}

fn append(path: &Path, text: impl AsRef<[u8]>) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).expect("opens");
    file.write_all(text.as_ref()).expect("writes");
}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("makes a FIFO");
}

pub(super) fn shard(name: &str, done: RowsIn, cost: Option<CostIn>) -> Shard {
    Shard {
        id: ShardId::new("find", name),
        index: 0,
        lab: "BCG".into(),
        launch: Launch::Command("true".to_owned()),
        workdir: PathBuf::from("/").into(),
        gpus: 1,
        cpus: None,
        mem: None,
        min_tier: None,
        submit: SubmitMode::Queued,
        args: Vec::new(),
        time: None,
        rows: 44,
        row_time: Secs(60),
        done,
        cost,
        cap: None,
        oom: Vec::new(),
        restart_stalled: false,
        split: None,
        helps: None,
        pilot: false,
        kin: Kin::Family,
        log_dir: PathBuf::from("/"),
    }
}

fn by_key() -> Count {
    Count { rows: Some(Some("row_id".to_owned())), field: Some("cost_usd".to_owned()) }
}

fn dollars(amount: f64) -> Money {
    Money::from_dollars(amount).expect("an amount")
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

/// `usual`, or as many as $PROPTEST_CASES says (scripts/fuzz).
fn cases(usual: u32) -> u32 {
    const UNSET: u32 = 256;
    Some(ProptestConfig::default().cases).filter(|wish| *wish != UNSET).unwrap_or(usual)
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

    /// The quick matcher says what globset says.
    #[test]
    fn simple_patterns_match_as_globset_has_it(pattern in "[ab.?*]{1,8}", name in "[ab.]{1,10}") {
        prop_assume!(!pattern.contains("**"));
        let hidden = name.starts_with('.') && !pattern.starts_with('.');
        let folder = folder();
        prop_assume!(name.bytes().any(|b| b != b'.') && pattern.bytes().any(|b| b != b'.'));
        put(&folder.path().join("d").join(&name), "");
        let glob = GlobBuilder::new(&pattern).literal_separator(true).build().expect("a pattern");
        let expected = glob.compile_matcher().is_match(&name) && !hidden;
        let text = format!("{}/d/{pattern}", folder.path().display());
        let counted = Reader::default().count(&Pattern::parse(&text).expect("a pattern"));
        prop_assert_eq!(counted, Ok(u32::from(expected)));
    }
}

/// A folder with some of everything.
fn tree() -> TempDir {
    let folder = folder();
    for name in [
        "s0/row_1.json",
        "s0/row_2.json",
        "s0/row_10.json",
        "s0/row_3.json.tmp",
        "s0/.row_4.json",
        "s0/note.txt",
        "s0/Zürich.json",
        "s0/deep/row_1.json",
        "s0/deep/er/row_1.json",
        "s0/.git/row_1.json",
        "s1/row_1.json",
        "odd [x]/row_1.json",
    ] {
        put(&folder.path().join(name), "");
    }
    let s0 = folder.path().join("s0");
    fs::create_dir(s0.join("row_5.json")).expect("makes");
    fifo(&s0.join("row_6.json"));
    symlink("note.txt", s0.join("row_7.json")).expect("links");
    symlink("nowhere", s0.join("row_8.json")).expect("links");
    symlink("deep", s0.join("again")).expect("links");
    symlink("..", s0.join("deep/up")).expect("links");
    folder
}

#[test]
fn patterns_count_files_and_nothing_else() {
    let tree = tree();
    for (pattern, count) in [
        ("s0/row_*.json", 4),
        ("s0/row_?.json", 3),
        ("s0/row_[12].json", 2),
        ("s0/row_{1,10}.json", 2),
        ("s0/*", 7),
        ("s0/.*", 1),
        ("s0/Z?rich.json", 1),
        ("s*/row_1.json", 2),
        ("s?/*.json", 6),
        ("*/*/row_1.json", 2),
        ("s0/again/*", 1),
        ("s0/**/row_1.json", 3),
        ("**/row_1.json", 5),
        ("s0/**", 9),
        ("{s0/deep,s1}/row_1.json", 2),
        ("odd \\[x\\]/*", 1),
        ("s0/row_1.json", 1),
        ("s0/row_5.json", 0),
        ("s0/row_6.json", 0),
        ("s0/row_8.json", 0),
        ("s0/note.txt/*", -1),
        ("s*/note.txt/*", 0),
        ("not/there/*.json", 0),
        ("s9/**/x", 0),
    ] {
        let text = format!("{}/{pattern}", tree.path().display());
        let counted = Reader::default().count(&Pattern::parse(&text).expect("a pattern"));
        match u32::try_from(count) {
            Ok(count) => assert_eq!(counted, Ok(count), "{pattern}"),
            Err(_) => {
                let gap = counted.expect_err("a file where a folder should be");
                assert!(gap.source.ends_with("note.txt"), "{gap}");
            }
        }
    }
    let gap = Pattern::parse("/runs/[").err().expect("no pattern");
    assert_eq!(gap.source, "/runs/[");
}

#[test]
fn shards_that_share_a_folder_are_told_apart() {
    let folder = folder();
    for name in ["s1_row_1", "s1_row_2", "s10_row_1", "s2_row_1", "t_row_1"] {
        put(&folder.path().join("runs").join(name), "");
    }
    let at = |pattern: &str| RowsIn::Glob(format!("{}/{pattern}", folder.path().display()));
    let shards = [
        shard("s1", at("runs/s1_row_*"), None),
        shard("s0", at("other/row_*"), None),
        shard("s2", at("runs/s2_row_*"), None),
        shard("s3", at("runs/[s"), None),
        shard("s10", at("runs/s10_row_*"), Some(CostIn::GpuHour(Money(1)))),
    ];
    let shards: Vec<&Shard> = shards.iter().collect();
    let rows: Vec<_> = Files::default()
        .measure(&shards, 0)
        .into_iter()
        .map(|m| m.ok().map(|m| (m.rows, m.spent)))
        .collect();
    assert_eq!(rows, [Some((2, None)), Some((0, None)), Some((1, None)), None, Some((1, None))]);
}

#[test]
fn no_folder_is_behind_the_same_one_in_every_turn() {
    let glob = |folder: &str| RowsIn::Glob(format!("/{folder}/*"));
    let in_file = RowsIn::Jsonl { path: "/b/rows.jsonl".into(), key: None };
    let shards = [
        shard("s0", glob("c"), None),
        shard("s1", glob("a"), None),
        shard("s2", in_file, None),
        shard("s3", glob("a"), None),
        shard("s4", glob("d"), None),
    ];
    let shards: Vec<&Shard> = shards.iter().collect();
    let order = |turn| in_turn(&shards, turn).iter().map(|one| one.place).collect::<Vec<_>>();
    assert_eq!(order(0), [1, 3, 2, 0, 4]);
    assert_eq!(order(2), [2, 0, 4, 1, 3]);
    assert_eq!(order(8), order(0));
    assert_eq!(order(3), [3, 1, 4, 0, 2], "the other way round, folders still as one");
    assert_eq!(order(u64::MAX).len(), 5);
    assert!(in_turn(&[], 7).is_empty());
    // Behind a folder that does not answer nothing is read: but each other in half of the turns.
    let place = |turn, shard| order(turn).iter().position(|at| *at == shard);
    for healthy in [0, 1, 3, 4] {
        let read = (0..8).filter(|turn| place(*turn, healthy) < place(*turn, 2)).count();
        assert_eq!(read, 4, "s{healthy}");
    }
}

#[test]
fn a_cycle_in_which_nothing_changed_keeps_no_new_cache() {
    let folder = folder();
    let (rows, money) = (folder.path().join("rows.jsonl"), folder.path().join("money.jsonl"));
    let in_rows =
        |key: Option<&str>| RowsIn::Jsonl { path: rows.clone(), key: key.map(str::to_owned) };
    let cost =
        |path: &Path| Some(CostIn::Jsonl { path: path.to_owned(), field: "cost_usd".to_owned() });
    let shards = [
        shard("one-file", in_rows(Some("row_id")), cost(&rows)),
        shard("two-files", in_rows(None), cost(&money)),
        shard("no-cost", in_rows(Some("row_id")), None),
        shard("none-yet", RowsIn::Glob("/not/there/*".to_owned()), cost(&folder.path().join("no"))),
    ];
    let shards: Vec<&Shard> = shards.iter().collect();
    append(&rows, "{\"row_id\": 1, \"cost_usd\": 0.5}\n{\"row_id\": 1, \"cost_usd\": 0.5}\ntorn\n");
    append(&money, "{\"cost_usd\": 2}\n{\"cost_usd\": null}\n");
    let expected = [
        Measured { rows: 1, spent: Some(dollars(1.0)), bad_lines: 1, claims: None },
        Measured { rows: 2, spent: Some(dollars(2.0)), bad_lines: 2, claims: None },
        Measured { rows: 1, spent: None, bad_lines: 1, claims: None },
        Measured { rows: 0, spent: Some(Money::ZERO), bad_lines: 0, claims: None },
    ]
    .map(Ok);
    let mut files = Files::new(Some(b"no cache at all"));
    assert_eq!(files.measure(&shards, 0), expected);
    let kept = files.cache_if_changed().expect("all of it is new");
    let mut again = Files::new(Some(&kept));
    assert_eq!(again.measure(&shards, 0), expected);
    assert_eq!(again.cache_if_changed(), None);
    append(&money, "{\"cost_usd\": 1}\n");
    assert_eq!(again.measure(&shards, 0)[1].as_ref().map(|m| m.spent), Ok(Some(dollars(3.0))));
    assert!(again.cache_if_changed().is_some());
}

#[test]
fn one_unreadable_file_is_the_gap_of_its_shard_alone() {
    let folder = folder();
    let pipe = folder.path().join("pipe");
    fifo(&pipe);
    let shards = [
        shard("s0", RowsIn::Jsonl { path: pipe.clone(), key: None }, None),
        shard("s1", RowsIn::Glob(format!("{}/p*", folder.path().display())), None),
    ];
    let measured = Files::default().measure(&[&shards[0], &shards[1]], 1);
    assert_eq!(
        measured[0].as_ref().map_err(|gap| gap.source.clone()),
        Err(pipe.display().to_string())
    );
    assert_eq!(measured[1].as_ref().map(|m| m.rows), Ok(0));
}

#[test]
fn the_last_lines_of_a_log_are_shown_from_its_end() {
    let folder = folder();
    let mut shard = shard("s0", RowsIn::Glob("/x".to_owned()), None);
    shard.log_dir = folder.path().to_owned();
    let mut files = Files::default();
    let mut tail = |job, lines| files.log_tail(&shard, JobId(job), lines);
    assert_eq!(tail(1, 3), Ok(Vec::new()));
    let noise = "x".repeat(100) + "\n";
    put(
        &folder.path().join("2.out"),
        noise.repeat(2000) + "one\n\ntwo \u{1b}[31mred\u{1b}[0m\n 1%\r99%\n \n",
    );
    assert_eq!(tail(2, 3).expect("reads"), ["one", "two red", "99%"]);
    assert_eq!(tail(2, 100_000).expect("reads").len(), (64 << 10) / noise.len() + 3);
    put(&folder.path().join("3.out"), b"caf\xe9 \xff\nno newline");
    assert_eq!(tail(3, 9).expect("reads"), ["caf\u{fffd} \u{fffd}", "no newline"]);
    put(&folder.path().join("4.out"), "y".repeat(1 << 20));
    assert_eq!(tail(4, 9).expect("reads"), ["y".repeat(500)]);
    fifo(&folder.path().join("5.out"));
    let kind = |read: Seen<Vec<String>>| read.map_err(|gap| gap.kind);
    assert_eq!(kind(tail(5, 9)), Err(GapKind::Unreadable));
    // As on a file server in trouble: what fails now may be read later.
    symlink("6.out", folder.path().join("6.out")).expect("a link to itself");
    assert_eq!(kind(tail(6, 9)), Err(GapKind::Failed));
    let text = log_since(&folder.path().join("2.out"), 1 << 20).expect("reads");
    assert_eq!(text.lines().count(), 2005);
}
