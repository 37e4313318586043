//! The memory that reading a shards.toml takes, whatever it is made of.

use std::path::PathBuf;

use peakmem_alloc::PeakMemAllocTrait;

use crate::MEMORY;
use crate::machine::{BUFFER, FACTOR, SENTENCE, alone};

/// Beside eight times a shards.toml: what its TOML reader takes of any file, ...
const READER: usize = 8 << 20;
/// ... and for each section of a family or shard.
const SECTION: usize = 4608;

pub fn reader(text: &[u8]) -> usize {
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
pub fn largest_number(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes).replace('_', "");
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
    numbers.filter(|number| *number <= 100_000).max().unwrap_or(0)
}
