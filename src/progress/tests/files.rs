//! Many shards in one cycle: shared folders, the order, the cache, logs.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::super::{Files, Progress, in_turn, log_since};
use super::{append, dollars, fifo, folder, put, shard};
use crate::model::id::JobId;
use crate::model::observation::{GapKind, Measured, Seen};
use crate::model::policy::{CostIn, RowsIn, Shard};
use crate::model::units::Money;

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
