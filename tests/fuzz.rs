//! Whatever bytes come: every parser, for as long as it is told to. No panic, no hang, and no more
//! memory than eight times the input.
//!
//! `BABYSIT_FUZZ_SECONDS`: so long for each (scripts/fuzz); else a fixed number of cases.
//! `BABYSIT_FUZZ_SEED`: the first case; a failure names its own, and that one number makes it again.
#![allow(clippy::disallowed_methods, reason = "a test makes files and reads its own settings")]

use std::alloc::System;
use std::path::{Path, PathBuf};
use std::time::Duration;

use babysit::model::cluster::QueueJob;
use babysit::model::policy::{CostIn, RowsIn, Shard};
use babysit::model::state::{State, TickOutcome, TickRecord};
use babysit::model::units::Time;
use babysit::progress::{Files, Progress};
use babysit::slurm::{PastAsk, gres, hostlist, sacct, sinfo, squeue, state as words, time};
use babysit::store::Store;
use peakmem_alloc::{INSTRUMENTED_SYSTEM, PeakMemAlloc};

mod common;
#[path = "fuzz/config.rs"]
mod config;
#[path = "fuzz/machine.rs"]
mod machine;

use config::{largest_number, reader};
use machine::{SEPARATOR, Try, alone, fixtures, fuzz, tables};

#[global_allocator]
static MEMORY: &PeakMemAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn fuzz_squeue() {
    let _alone = alone();
    let headers = squeue::COLUMNS.map(|(_, _, header)| header);
    let row = [
        "123",
        "1000",
        "anna",
        "RUNNING",
        "own",
        "gpu",
        "lab",
        "cpu=1,mem=100M,gres/gpu=1",
        "gres/gpu:rtx4090:1",
        "N/A",
        "1",
        "1",
        "1762095600",
        "1762095700",
        "1762182000",
        "1-00:00:00",
        "100",
        "0",
        "a[1-3]",
        "b1,b2",
        "0",
        "0",
        "None",
        "oracle-plan.find.s0.a1",
        "babysit:0123456789ab:find/s0:a1:0123456789abcdef",
    ];
    fuzz(&Try::new("squeue", &tables(&headers, &row, true)), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let jobs = squeue::parse(&text, SEPARATOR).unwrap_or_default();
        let nodes =
            |job: &QueueJob| names(&job.nodes) + names(job.excluded.as_deref().unwrap_or(&[]));
        lists(&text) + jobs.iter().map(nodes).sum::<usize>()
    });
}

/// A list of nodes is short for its names, which is what the limit of hostlist.rs is for. Twice, as a
/// list grows by doubling.
fn names(nodes: &[String]) -> usize {
    2 * nodes.iter().map(|name| size_of::<String>() + name.len()).sum::<usize>()
}

/// One that is given up on the way to its limits, if there is any in the text: names by number, and
/// their bytes; while it grows there are two of it.
fn lists(text: &str) -> usize {
    let any = text.contains(['[', ',']);
    if any { 3 * (hostlist::MOST_NAMES * size_of::<String>() + hostlist::MOST_BYTES) } else { 0 }
}

#[test]
fn fuzz_sinfo() {
    let _alone = alone();
    let headers = sinfo::COLUMNS.map(|(_, _, header)| header);
    let row = [
        "a1",
        "gpu*",
        "mixed",
        "gpu:rtx4090:4(S:0-1),gpu:rtx5090:2",
        "gpu:rtx4090:2(IDX:0-1)",
        "12/52/0/64",
        "64000",
        "1000",
    ];
    fuzz(&Try::new("sinfo", &tables(&headers, &row, true)), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        std::hint::black_box(sinfo::parse(&text, SEPARATOR)).ok();
        0
    });
}

#[test]
fn fuzz_sacct() {
    let _alone = alone();
    let headers = sacct::COLUMNS.map(|(_, header)| header);
    let row = [
        "123",
        "1000",
        "oracle-plan.find.s0.a1",
        "",
        "CANCELLED by 1000",
        "own",
        "1762095600",
        "1762095700",
        "1762182000",
        "a1",
        "0:0",
    ];
    let ask = PastAsk { names: vec!["oracle-plan.find.s0.a1".to_owned()], since: Time(0) };
    fuzz(&Try::new("sacct", &tables(&headers, &row, false)), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let rows = sacct::parse(&text, SEPARATOR, &ask).unwrap_or_default();
        lists(&text) + rows.iter().map(|row| names(&row.nodes)).sum::<usize>()
    });
}

#[test]
fn fuzz_gres() {
    let _alone = alone();
    let mut models = fixtures("gres");
    for text in [
        "gpu:rtx4090:4(S:0-1),gpu:rtx5090:2\ngpu:rtx4090:2(IDX:0,2-3)\n",
        "gres/gpu:rtx4090:1,gres/shard:8\ncpu=1,mem=100M,gres/gpu=2,gres/gpu:a=2\n",
    ] {
        models.push(text.as_bytes().to_vec());
    }
    fuzz(&Try::new("gres", &models), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        for line in text.split(['\n', '\t']) {
            std::hint::black_box((gres::of_node(line), gres::of_job(line), gres::of_tres(line)));
            std::hint::black_box(gres::is_slice(line));
        }
        0
    });
}

#[test]
fn fuzz_hostlist() {
    let _alone = alone();
    let models = ["a1", "a[1-3,07-09],b1", "r[1-2]n[01-02]", "c[8-11]-ib", "a[1-9]b[1-9]c[1-9]"];
    let models: Vec<Vec<u8>> = models.iter().map(|text| text.as_bytes().to_vec()).collect();
    fuzz(&Try::new("hostlist", &models), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        for line in text.lines() {
            let found = hostlist::expand(line);
            assert!(found.is_none_or(|names| names.len() <= hostlist::MOST_NAMES));
        }
        lists(&text)
    });
}

#[test]
fn fuzz_time() {
    let _alone = alone();
    fuzz(&Try::new("time", &fixtures("sacct")), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        for word in text.split(['|', ' ', '\n']) {
            std::hint::black_box((time::moment(word), time::length(word))).0.ok();
            std::hint::black_box((words::job(word), words::node(word), words::cancelled_by(word)));
        }
        0
    });
}

#[test]
fn fuzz_jsonl() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s0.jsonl");
    let mut policy = common::policy();
    let shard: &mut Shard = policy.shards.first_mut().expect("a shard");
    shard.done = RowsIn::Jsonl { path: path.clone(), key: Some("row_id".to_owned()) };
    shard.cost = Some(CostIn::Jsonl { path: path.clone(), field: "cost_usd".to_owned() });
    let shard = shard.clone();
    let row = "{\"row_id\": 1, \"cost_usd\": 0.08, \"more\": {\"a\": [1, 2, {}]}}\n";
    let keys: String = (0..2_000).map(|n| format!("{{\"row_id\":{n}}}\n")).collect();
    let models = [row.repeat(3).into_bytes(), keys.into_bytes()];
    fuzz(&Try::of_file("jsonl", &models), |bytes| {
        std::fs::write(&path, bytes).expect("written");
        let mut files = Files::default();
        let measured = files.measure(&[&shard], 0).remove(0).expect("a regular file");
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        assert!(measured.rows as usize <= lines && measured.bad_lines as usize <= lines);
        let cache = files.cache_if_changed().unwrap_or_default();
        // What was kept is read as it was written; and as somebody may have left it.
        std::hint::black_box(Files::new(Some(&cache)));
        std::hint::black_box(Files::new(Some(bytes)));
        0
    });
}

#[test]
fn fuzz_state() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.json");
    let store = Store::at(path.clone());
    let models = [fixtures("state/v1.json"), fixtures("readme/state.json")].concat();
    fuzz(&Try::of_file("state", &models), |bytes| {
        std::fs::write(&path, bytes).expect("written");
        std::hint::black_box(store.read()).ok();
        0
    });
}

/// Whatever is in the file beside it, a state that can be read is read.
#[test]
fn fuzz_clock() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::at(folder.path().join("state.json"));
    let state = State {
        last_tick: Some(TickRecord {
            at: Time(1_790_000_000),
            outcome: TickOutcome::Ok,
            skipped_in_a_row: 0,
            last_ok: None,
        }),
        ..State::new("p", "1f3a9c")
    };
    store.lock(Duration::ZERO).expect("free").save(&state).expect("saved");
    let clock = r#"{"instance":"1f3a9c","generation":1,"since":"2026-09-21T14:13:20Z","last_tick":{"at":"2026-09-21T14:23:20Z","outcome":"ok"},"tick_every":600,"others_in_own":{"gpu_seconds":0,"over":600,"until":"2026-09-21T14:23:20Z"}}"#;
    fuzz(&Try::of_file("clock", &[clock.into()]), |bytes| {
        std::fs::write(store.clock_path(), bytes).expect("written");
        let read = store.read().expect("readable").expect("there");
        assert_eq!((read.project, read.instance), (state.project.clone(), state.instance.clone()));
        0
    });
}

#[test]
fn fuzz_config() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let path: PathBuf = folder.path().join("shards.toml");
    let mut models = fixtures(".toml");
    for example in ["examples/multi-gpu-lab.toml", "shards.toml"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(example);
        models.push(std::fs::read(file).expect("an example"));
    }
    fuzz(&Try::of_file("config", &models), |bytes| {
        std::fs::write(&path, bytes).expect("written");
        let shards = match babysit::config::load(&path) {
            Ok(loaded) => {
                assert!(!loaded.policy.shards.is_empty());
                loaded.policy.shards.len()
            }
            Err(faults) => {
                assert!(!faults.faults.is_empty());
                0
            }
        };
        // `shards = 1000` is few bytes and many shards, by a limit of their own; also where another
        // line is wrong.
        shards.max(largest_number(bytes)) * (16 << 10) + reader(bytes)
    });
}
