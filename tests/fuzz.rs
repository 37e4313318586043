//! Whatever bytes come: every parser, for as long as it is told to. No panic, no hang, and no more
//! memory than eight times the input.
//!
//! `BABYSIT_FUZZ_SECONDS`: so long for each (scripts/fuzz); else a fixed number of cases.
//! `BABYSIT_FUZZ_SEED`: the first case; a failure names its own, and that one number makes it again.
#![allow(clippy::disallowed_methods, reason = "a test makes files and reads its own settings")]

use std::alloc::System;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use babysit::model::cluster::QueueJob;
use babysit::model::policy::{CostIn, RowsIn, Shard};
use babysit::model::units::Time;
use babysit::progress::{Files, Progress};
use babysit::sim::Rng;
use babysit::slurm::{PastAsk, gres, hostlist, sacct, sinfo, squeue, state, time};
use babysit::store::Store;
use peakmem_alloc::{INSTRUMENTED_SYSTEM, PeakMemAlloc, PeakMemAllocTrait};

mod common;

#[global_allocator]
static MEMORY: &PeakMemAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The memory of the whole process is looked at: one parser at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Cases where no time is given: a second or so.
const CASES: u64 = 200;
/// Memory for each byte of input.
const FACTOR: usize = 8;
/// And for the sentence that says what is wrong with even the shortest of them.
const SENTENCE: usize = 4 << 10;
/// Reading a file: a buffer of fixed size.
const BUFFER: usize = 160 << 10;
/// A row of Slurm's tables is some hundred bytes by its separators alone, a bare cell is not.
const SEPARATOR: &str = "\u{1f}0badcafe";

/// What stands in real outputs and files, whole or in pieces.
const PIECES: &[&str] = &[
    "\n",
    "|",
    "\t",
    " ",
    ",",
    ":",
    "=",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\\",
    "-",
    "+",
    "*",
    "#",
    "~",
    "%",
    "0",
    "1",
    "-1",
    "7",
    "64",
    "99999",
    "4294967296",
    "18446744073709551616",
    "1e999",
    "NaN",
    "null",
    "true",
    "gpu",
    "gpu:",
    "gres/gpu:",
    "gres:gpu:rtx4090:2",
    "gpu:rtx4090:4(S:0-1)",
    "gpu:rtx5090:2(IDX:0,2-3)",
    "gpu:1g.10gb:7",
    "shard:8",
    "no_consume",
    "(null)",
    "N/A",
    "Unknown",
    "UNLIMITED",
    "NOT_SET",
    "365-00:00:00",
    "1-02:03",
    "30:00",
    "2026-11-29T12:25:09",
    "1795955109",
    "123_4",
    "123_[2-9%3]",
    "RUNNING",
    "PENDING",
    "CANCELLED by 1000",
    "CANCELLED+",
    "NODE_FAIL",
    "idle*",
    "mixed-",
    "MIXED+DRAIN",
    "inval",
    "a[1-3,07-09]",
    "b1",
    "r[1-2]n[01-02]",
    "a[1-99999]",
    "babysit:0123456789ab:find/s0:a1:0123456789abcdef",
    "oracle-plan.find.s0.a1",
    "\u{1b}[2J",
    "\0",
    "\u{1f}",
    "\u{1f}0badcafe",
    "é",
    "\u{fffd}",
    "{\"row_id\": 7, \"cost_usd\": 0.08}\n",
    "{\"row_id\": \"a\\u0000\", \"cost_usd\": NaN}\n",
    "[families.find]\n",
    "shards = 4\n",
    "[[",
    "'''",
    "\"\"\"",
    "rows = 44\n",
    "done = { glob = \"runs/{shard}/*\" }\n",
    "\"version\": 1",
    "\"shards\": [",
];

/// One input, all of it from its number.
fn input(rng: &mut Rng, models: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = match rng.below(5) {
        0 => noise(rng, 400),
        1 => pieces(rng, 200),
        // Far more than fits a buffer, so that a factor counts and not a constant.
        2 => pieces(rng, 12).repeat(1 + rng.below(400) as usize),
        _ => pick(rng, models).cloned().unwrap_or_default(),
    };
    for _ in 0..rng.below(6) {
        slip(rng, &mut bytes, models);
    }
    bytes
}

fn pick<'a, T>(rng: &mut Rng, of: &'a [T]) -> Option<&'a T> {
    of.get(rng.below(of.len() as u64) as usize)
}

fn noise(rng: &mut Rng, most: u64) -> Vec<u8> {
    (0..rng.below(most)).map(|_| rng.word() as u8).collect()
}

fn pieces(rng: &mut Rng, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..rng.below(most) {
        match rng.below(8) {
            0 => bytes.extend(noise(rng, 4)),
            _ => bytes.extend(pick(rng, PIECES).unwrap_or(&"").bytes()),
        }
    }
    bytes
}

/// What a torn output, a full disk or a hand leaves: bytes gone, twice, other, or from elsewhere.
fn slip(rng: &mut Rng, bytes: &mut Vec<u8>, models: &[Vec<u8>]) {
    let at = rng.below(bytes.len() as u64 + 1) as usize;
    let end = (at + rng.below(40) as usize).min(bytes.len());
    match rng.below(9) {
        6.. => cell(rng, bytes),
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..end)),
        2 => {
            let twice = bytes.get(at..end).unwrap_or_default().to_vec();
            drop(bytes.splice(at..at, twice));
        }
        3 => {
            let new = noise(rng, 8);
            drop(bytes.splice(at..end, new));
        }
        4 => {
            let new = pieces(rng, 4);
            drop(bytes.splice(at..at, new));
        }
        5 => {
            let other = pick(rng, models).cloned().unwrap_or_default();
            let from = rng.below(other.len() as u64 + 1) as usize;
            bytes.truncate(at);
            bytes.extend_from_slice(other.get(from..).unwrap_or_default());
        }
    }
}

/// One cell of a table, or one word of a list, is another one: the rest stays whole, so that what reads
/// cells is reached.
fn cell(rng: &mut Rng, bytes: &mut Vec<u8>) {
    // Half of them are cells of Slurm's tables, where there are any.
    let marks = [SEPARATOR, "|", ",", SEPARATOR, "\n", SEPARATOR, ":", " "];
    let mark = pick(rng, &marks).unwrap_or(&"\n").as_bytes();
    let from = rng.below(bytes.len() as u64 + 1) as usize;
    let rest = bytes.get(from..).unwrap_or_default();
    let Some(at) = rest.windows(mark.len()).position(|part| part == mark) else { return };
    let begin = from + at + mark.len();
    let rest = bytes.get(begin..).unwrap_or_default();
    let ends = |byte: &u8| b"\x1f|,:( \n".contains(byte);
    let end = begin + rest.iter().position(ends).unwrap_or(rest.len());
    let other = match rng.below(4) {
        0 => noise(rng, 8),
        1 => pieces(rng, 3),
        _ => pick(rng, PIECES).unwrap_or(&"").as_bytes().to_vec(),
    };
    drop(bytes.splice(begin..end, other));
}

/// To be held from before a test allocates anything.
fn alone() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(format!("BABYSIT_FUZZ_{name}")).ok()?;
    Some(text.parse().expect("a number"))
}

/// How a parser is tried.
struct Try<'a> {
    name: &'a str,
    models: &'a [Vec<u8>],
    /// And whatever the input.
    extra: usize,
}

impl<'a> Try<'a> {
    fn new(name: &'a str, models: &'a [Vec<u8>]) -> Try<'a> {
        Try { name, models, extra: SENTENCE }
    }

    /// Its input comes in a file.
    fn of_file(name: &'a str, models: &'a [Vec<u8>]) -> Try<'a> {
        Try { extra: SENTENCE + BUFFER, ..Try::new(name, models) }
    }
}

/// Runs a parser on input after input. It tells what the input costs by design, beside the factor.
fn fuzz(how: &Try<'_>, mut parse: impl FnMut(&[u8]) -> usize) {
    let Try { name, models, extra } = *how;
    let until = setting("SECONDS").map(|secs| Instant::now() + Duration::from_secs(secs));
    let first = setting("SEED").unwrap_or(0);
    let (mut seed, mut worst) = (first, 0.0_f64);
    loop {
        let mut rng = Rng::stream(seed, 7);
        let bytes = input(&mut rng, models);
        MEMORY.reset_peak_memory();
        let done = catch_unwind(AssertUnwindSafe(|| parse(&bytes)));
        let peak = MEMORY.get_peak_memory();
        let by_design = done.unwrap_or_else(|cause| {
            println!("{name}: case {seed} (BABYSIT_FUZZ_SEED={seed}): {}", shown(&bytes));
            resume_unwind(cause)
        });
        let allowed = FACTOR * bytes.len() + extra + by_design;
        assert!(
            peak <= allowed,
            "{name}: case {seed} (BABYSIT_FUZZ_SEED={seed}): {peak} bytes of memory for {} of input: {}",
            bytes.len(),
            shown(&bytes)
        );
        if bytes.len() > SENTENCE {
            worst = worst
                .max(peak.saturating_sub(extra - SENTENCE + by_design) as f64 / bytes.len() as f64);
        }
        seed += 1;
        let enough = match until {
            Some(until) => Instant::now() >= until,
            None => seed - first >= CASES,
        };
        if enough {
            break;
        }
    }
    println!("{name}: {} cases, at most {worst:.1} bytes of memory for one of input", seed - first);
}

fn shown(bytes: &[u8]) -> String {
    bytes.iter().take(3_000).flat_map(|byte| byte.escape_ascii()).map(char::from).collect()
}

/// Outputs of real Slurm: what its commands printed on stdout and stderr.
fn fixtures(of: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut found = Vec::new();
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("fixtures") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().contains(of) {
                found.push(std::fs::read(path).expect("a fixture"));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no fixture of {of}");
    found
}

/// A whole table of one row of likely cells, then others.
fn tables(headers: &[&str], cells: &[&str], last: bool) -> Vec<Vec<u8>> {
    let line = |cells: &[&str]| cells.join(SEPARATOR) + if last { SEPARATOR } else { "" } + "\n";
    let head = line(headers);
    let row = line(cells);
    vec![
        head.clone().into(),
        format!("{head}{row}").into(),
        format!("{head}{}", row.repeat(60)).into(),
    ]
}

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
            std::hint::black_box((state::job(word), state::node(word), state::cancelled_by(word)));
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

/// Beside eight times a shards.toml: what its TOML reader takes of any file, ...
const READER: usize = 8 << 20;
/// ... and for each section of a family or shard.
const SECTION: usize = 4608;

fn reader(text: &[u8]) -> usize {
    let header = b"[families.";
    let sections = text.windows(header.len()).filter(|part| part == header).count();
    READER + sections * SECTION
}

/// The memory for a shards.toml stays below a constant beside eight times its size and what its shards
/// are, whatever it is made of and however large.
#[test]
fn config_memory_has_a_ceiling() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let path: PathBuf = folder.path().join("shards.toml");
    let named = |size: usize| {
        let shard = |i: usize| format!("[families.find.shard.s{i:05}]\nrows = 44\n");
        (0..size / 41).map(shard).collect::<String>()
    };
    // Each key below it with its own copy.
    let long = |size: usize| {
        let below: String = (0..size / 16).map(|i| format!("k{i:x}=1\n")).collect();
        format!("[{}]\n{below}", "k".repeat(size / 2))
    };
    // Each with a node of its own.
    let tables = |size: usize| (0..size / 12).map(|i| format!("[t{i:04x}]\nb=1\n")).collect();
    let nested = |size: usize| (0..size / 12).map(|i| format!("t{i:04x}.b.c=1\n")).collect();
    let inline = |size: usize| format!("a=[{}]", "{b=1},".repeat(size / 6));
    let shapes: [(&str, &dyn Fn(usize) -> String); 14] = [
        ("tables", &tables),
        ("nested", &nested),
        ("inline", &inline),
        ("long key", &long),
        ("brackets", &|size| "[".repeat(size)),
        ("equals", &|size| "=".repeat(size)),
        ("lines", &|size| "x\n".repeat(size / 2)),
        ("list", &|size| format!("a = [{}]", "1,".repeat(size / 2))),
        ("keys", &|size| (0..size / 8).map(|i| format!("k{i:04x}=1\n")).collect()),
        ("deep", &|size| "a.".repeat(size / 2) + "a = 1"),
        ("text", &|size| format!("a = \"{}\"", "x y ".repeat(size / 4))),
        ("shards", &named),
        ("odd keys", &|size| "|a".repeat(size / 2)),
        ("escapes", &|size| format!("a = \"{}\"", "\\q".repeat(size / 2))),
    ];
    for (name, shape) in shapes {
        for size in [16 << 10, 48 << 10, 60 << 10, 80 << 10, 128 << 10, 512 << 10, 4 << 20] {
            let text = shape(size);
            std::fs::write(&path, &text).expect("written");
            MEMORY.reset_peak_memory();
            let faults = babysit::config::load(&path).expect_err("no campaign").faults.len();
            let peak = MEMORY.get_peak_memory();
            let allowed = FACTOR * text.len() + reader(text.as_bytes()) + SENTENCE + BUFFER;
            println!("{name}: {peak} bytes of memory for {} of file", text.len());
            assert!(peak <= allowed, "{name}: {peak}, not {allowed}, for {} of file", text.len());
            assert!((1..=1001).contains(&faults), "{name}: {faults} faults told");
        }
    }
}

/// Ten thousand shards, each with a section of its own.
#[test]
fn a_campaign_of_ten_thousand_sections_is_read_in_bounded_memory() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let path: PathBuf = folder.path().join("shards.toml");
    let mut text =
        "project = \"p\"\n[families.find]\ncommand = \"true\"\nrows = 4\nshards = 10000\n\
                    done = { glob = \"runs/{shard}/*\" }\n"
            .to_owned();
    for i in 0..10_000 {
        text += &format!(
            "[families.find.shard.s{i}]\nrows = {}\nlab = \"BCG\"\ncpus = 2\nmem = \"4G\"\n",
            5 + i % 90
        );
    }
    std::fs::write(&path, &text).expect("written");
    MEMORY.reset_peak_memory();
    let loaded = babysit::config::load(&path).expect("a campaign");
    let peak = MEMORY.get_peak_memory();
    println!("{peak} bytes of memory for {} of file", text.len());
    assert_eq!(loaded.policy.shards.len(), 10_000);
    let allowed = FACTOR * text.len() + reader(text.as_bytes()) + SENTENCE + BUFFER;
    assert!(peak <= allowed, "{peak}, not {allowed}");
}

/// That a count of shards could be.
fn largest_number(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes).replace('_', "");
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
    numbers.filter(|number| *number <= 100_000).max().unwrap_or(0)
}
