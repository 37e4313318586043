//! The part of `babysit check` that looks for finished rows: a pattern that matches nothing in a folder
//! with files in it is mostly a slip of the hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::model::policy::RowsIn;
use crate::output::check::{Finding, Weight};
use crate::output::format::{count, one_line};
use crate::progress::sources;

use super::context::Campaign;

/// Entries of one folder that are looked at.
const MOST: usize = 1000;

pub fn rows(campaign: &Campaign) -> Vec<Finding> {
    let loaded = &campaign.loaded;
    // One finding a key, however many shards it hits.
    let mut found: BTreeMap<(Option<usize>, String), (String, usize)> = BTreeMap::new();
    for shard in &loaded.policy.shards {
        let RowsIn::Glob(pattern) = &shard.done else { continue };
        let folder = Path::new(pattern).parent().unwrap_or(Path::new("/"));
        let files = files(folder);
        let Some(first) = files.first() else { continue };
        // Patterns of this kind are below `folder`; a ledger elsewhere is no row.
        // What cannot be read is no pattern that matches nothing.
        let Ok(rows) = sources(shard) else { continue };
        if rows.files.iter().any(|(file, _)| file.parent() == Some(folder) && files.contains(file))
        {
            continue;
        }
        let (key, line) = loaded.shard_key(&shard.id, "done");
        let name = first.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = format!(
            "{key}: no file matches {}, though {} there, such as {}; correct the pattern if they are rows",
            one_line(pattern),
            match files.len() {
                1 => "1 file is".to_owned(),
                n => format!("{} are", count(n as u64, "file")),
            },
            one_line(&name)
        );
        found.entry((line, key)).or_insert((text, 0)).1 += 1;
    }
    let path = loaded.path.display();
    let finding = |((line, _), (text, shards)): ((Option<usize>, String), (String, usize))| {
        let line = line.map_or(String::new(), |line| format!(":{line}"));
        let more = match shards.saturating_sub(1) as u64 {
            0 => String::new(),
            n => format!(" (and {})", count(n, "more shard")),
        };
        Finding::new(Weight::Warning, format!("{path}{line}: {text}{more}"))
    };
    found.into_iter().map(finding).collect()
}

/// Plain files, sorted; none where the folder has wildcards in its own name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let visible = |path: &PathBuf| {
        path.is_file()
            && !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
    };
    let mut files: Vec<PathBuf> =
        entries.flatten().take(MOST).map(|entry| entry.path()).filter(visible).collect();
    files.sort();
    files
}
