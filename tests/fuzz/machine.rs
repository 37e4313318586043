//! What makes the inputs, runs a parser on one after the other, and looks at its memory.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use babysit::sim::Rng;
use peakmem_alloc::PeakMemAllocTrait;

use crate::MEMORY;

/// The memory of the whole process is looked at: one parser at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Cases where no time is given: a second or so.
const CASES: u64 = 200;
/// Memory for each byte of input.
pub const FACTOR: usize = 8;
/// And for the sentence that says what is wrong with even the shortest of them.
pub const SENTENCE: usize = 4 << 10;
/// Reading a file: a buffer of fixed size.
pub const BUFFER: usize = 160 << 10;
/// A row of Slurm's tables is some hundred bytes by its separators alone, a bare cell is not.
pub const SEPARATOR: &str = "\u{1f}0badcafe";

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
pub fn alone() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(format!("BABYSIT_FUZZ_{name}")).ok()?;
    Some(text.parse().expect("a number"))
}

/// How a parser is tried.
pub struct Try<'a> {
    name: &'a str,
    models: &'a [Vec<u8>],
    /// And whatever the input.
    extra: usize,
}

impl<'a> Try<'a> {
    pub fn new(name: &'a str, models: &'a [Vec<u8>]) -> Try<'a> {
        Try { name, models, extra: SENTENCE }
    }

    /// Its input comes in a file.
    pub fn of_file(name: &'a str, models: &'a [Vec<u8>]) -> Try<'a> {
        Try { extra: SENTENCE + BUFFER, ..Try::new(name, models) }
    }
}

/// Runs a parser on input after input. It tells what the input costs by design, beside the factor.
pub fn fuzz(how: &Try<'_>, mut parse: impl FnMut(&[u8]) -> usize) {
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
pub fn fixtures(of: &str) -> Vec<Vec<u8>> {
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
pub fn tables(headers: &[&str], cells: &[&str], last: bool) -> Vec<Vec<u8>> {
    let line = |cells: &[&str]| cells.join(SEPARATOR) + if last { SEPARATOR } else { "" } + "\n";
    let head = line(headers);
    let row = line(cells);
    vec![
        head.clone().into(),
        format!("{head}{row}").into(),
        format!("{head}{}", row.repeat(60)).into(),
    ]
}
