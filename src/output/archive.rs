//! `babysit archive`: what is in the folder now, and what is lacking.

use serde_json::{Value, json};

use super::format::{count, one_line};

pub const SCHEMA: &str = "babysit/archive/v1";

/// What came of it, or would.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    pub folder: String,
    pub dry_run: bool,
    /// Everything that there will ever be is in it.
    pub whole: bool,
    pub shards: usize,
    pub shards_done: usize,
    /// Ids and rows of those that are not, `find/s0 (40/44)`.
    pub open: Vec<String>,
    pub files: usize,
    pub bytes: u64,
    pub copied: usize,
    /// Changed while they were copied, or no longer as they were copied: done again.
    pub again: Vec<String>,
    /// Path and reason.
    pub left_out: Vec<(String, String)>,
}

/// So many names are listed; the others are counted.
const SHOWN: usize = 10;

pub fn text(view: &View) -> String {
    let View {
        folder,
        dry_run,
        whole,
        shards,
        shards_done,
        open,
        files,
        bytes,
        copied,
        again,
        left_out,
    } = view;
    let files_of = |n: usize| count(n as u64, "file");
    let mut out = if *dry_run {
        format!("{folder}: {} would be copied, {} are there\n", files_of(*copied), files - copied)
    } else {
        format!(
            "{folder}: {}, {}; {copied} copied now, all verified\n",
            files_of(*files),
            size(*bytes)
        )
    };
    out.push_str(&format!("shards  {shards_done} of {shards} are done\n"));
    list(&mut out, "not done yet", open.iter().map(|id| one_line(id)).collect());
    list(
        &mut out,
        "changed meanwhile and copied again",
        again.iter().map(|p| one_line(p)).collect(),
    );
    let left: Vec<String> = left_out
        .iter()
        .map(|(path, why)| format!("{}: {}", one_line(path), one_line(why)))
        .collect();
    list(&mut out, "not in the archive", left);
    if !whole && !dry_run {
        out.push_str("next: the same command again, which copies only what is lacking\n");
    }
    out
}

fn list(out: &mut String, title: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    out.push_str(&format!("{title}:\n"));
    for line in lines.iter().take(SHOWN) {
        out.push_str(&format!("  {line}\n"));
    }
    if lines.len() > SHOWN {
        out.push_str(&format!("  and {} more\n", lines.len() - SHOWN));
    }
}

/// `312 B`, `4.0 KiB`, `1.2 GiB`.
fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut amount = bytes as f64;
    let mut unit = "B";
    for next in units {
        if amount < 1024.0 {
            break;
        }
        (amount, unit) = (amount / 1024.0, next);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{amount:.1} {unit}") }
}

pub fn json(view: &View) -> Value {
    let View {
        folder,
        dry_run,
        whole,
        shards,
        shards_done,
        open,
        files,
        bytes,
        copied,
        again,
        left_out,
    } = view;
    let left = |(path, why): &(String, String)| json!({ "path": path, "why": why });
    json!({
        "schema": SCHEMA,
        "folder": folder,
        "dry_run": dry_run,
        "whole": whole,
        "shards": { "done": shards_done, "total": shards, "open": open },
        "files": files,
        "bytes": bytes,
        "copied": copied,
        "again": again,
        "left_out": left_out.iter().map(left).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_for_people() {
        for (bytes, shown) in
            [(0, "0 B"), (1023, "1023 B"), (4096, "4.0 KiB"), (1_288_490_189, "1.2 GiB")]
        {
            assert_eq!(size(bytes), shown);
        }
    }
}
