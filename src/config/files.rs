//! What `check` asks of the user's files. Loading does not: a glob, a folder or a script may come
//! into being later, and a tick must not fail for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::document::line_in;
use super::fault::{Fault, in_order};
use super::{Loaded, key_of};
use crate::model::policy::{CostIn, Launch, RowsIn};

/// Faults keep shards from running; warnings are what need not be there yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileFaults {
    pub faults: Vec<Fault>,
    pub warnings: Vec<Fault>,
}

/// One per key and text, however many shards it hits.
#[derive(Default)]
struct Found(BTreeMap<(String, &'static str), (PathBuf, usize, &'static str)>);

impl Found {
    fn add(&mut self, key: String, text: &'static str, path: &Path, hint: &'static str) {
        self.0.entry((key, text)).or_insert_with(|| (path.to_owned(), 0, hint)).1 += 1;
    }

    fn faults(self, loaded: &Loaded) -> Vec<Fault> {
        let fault =
            |((key, text), (path, hits, hint)): ((String, &str), (PathBuf, usize, &str))| {
                let more = match hits {
                    0 | 1 => String::new(),
                    hits => format!(
                        " (and {} more shard{})",
                        hits - 1,
                        if hits == 2 { "" } else { "s" }
                    ),
                };
                Fault {
                    line: line_in(&loaded.lines, &key),
                    text: format!("{} {text}{more}", path.display()),
                    key,
                    hint: Some(hint.to_owned()),
                }
            };
        let mut faults: Vec<Fault> = self.0.into_iter().map(fault).collect();
        in_order(&mut faults);
        faults
    }
}

/// Looks at scripts, working folders, the log folder and where rows and money are to appear.
pub fn file_faults(loaded: &Loaded) -> FileFaults {
    let mut faults = Found::default();
    let mut warnings = Found::default();
    let policy = &loaded.policy;
    logs(&policy.logs, &mut faults);
    // Most shards share most paths; each is looked at once.
    let mut is_dir = Looked::default();
    let mut is_file = Looked::default();
    for shard in &policy.shards {
        let key = |name: &str| key_of(&loaded.lines, &shard.id, name);
        if let Launch::Script(script) = &shard.launch
            && !is_file.at(script, Path::is_file)
        {
            let hint = "correct the path; it is relative to the folder of shards.toml";
            faults.add(key("script"), "is no file", script, hint);
        }
        if !is_dir.at(&shard.workdir, Path::is_dir) {
            faults.add(key("workdir"), "is no folder", &shard.workdir, "make it, or correct it");
        }
        let done = match &shard.done {
            RowsIn::Glob(pattern) => literal_folder(pattern),
            RowsIn::Jsonl { path, .. } => path.clone(),
        };
        let hint = "fine before the first row; else correct the pattern";
        absent_parent(&done, key("done"), &mut is_dir, &mut warnings, hint);
        if let Some(CostIn::Jsonl { path, .. }) = &shard.cost {
            let hint = "fine before the first row; else correct the path";
            absent_parent(path, key("cost"), &mut is_dir, &mut warnings, hint);
        }
    }
    FileFaults { faults: faults.faults(loaded), warnings: warnings.faults(loaded) }
}

/// The folder itself may be the shard's own and come with its first row; the one above it tells a
/// slip in the path from a shard that has not started.
fn absent_parent(
    path: &Path,
    key: String,
    is_dir: &mut Looked,
    warnings: &mut Found,
    hint: &'static str,
) {
    if let Some(parent) = path.parent()
        && !is_dir.at(parent, Path::is_dir)
    {
        warnings.add(key, "is not there yet", parent, hint);
    }
}

#[derive(Default)]
struct Looked(BTreeMap<PathBuf, bool>);

impl Looked {
    fn at(&mut self, path: &Path, look: impl Fn(&Path) -> bool) -> bool {
        if let Some(seen) = self.0.get(path) {
            return *seen;
        }
        let seen = look(path);
        self.0.insert(path.to_owned(), seen);
        seen
    }
}

/// The log folder has to be there or to be made: the nearest folder that exists must let us.
fn logs(logs: &Path, faults: &mut Found) {
    let Some(existing) = logs.ancestors().find(|p| p.symlink_metadata().is_ok()) else { return };
    let key = || "logs".to_owned();
    if !existing.is_dir() {
        let hint = "move it away, or give `logs` another folder";
        faults.add(key(), "is in the way of the log folder: it is no folder", existing, hint);
    } else if rustix::fs::access(existing, rustix::fs::Access::WRITE_OK).is_err() {
        let hint = "give `logs` a folder that you may write, on a file system all nodes see";
        faults.add(key(), "cannot be written, so no job could log there", existing, hint);
    }
}

/// The part of a pattern before its first wildcard, up to a `/`.
fn literal_folder(pattern: &str) -> PathBuf {
    let plain: Vec<&str> =
        pattern.split('/').take_while(|p| !p.contains(['*', '?', '[', '{', '\\'])).collect();
    let whole = plain.len() == pattern.split('/').count();
    let kept = if whole { plain.len().saturating_sub(1) } else { plain.len() };
    PathBuf::from(plain.get(..kept).unwrap_or_default().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_before_the_first_wildcard() {
        let check = |pattern: &str, expected: &str| {
            assert_eq!(literal_folder(pattern), PathBuf::from(expected), "{pattern}");
        };
        check("/a/b/row_*.json", "/a/b");
        check("/a/*/x/row.json", "/a");
        check("/a/b/row.json", "/a/b");
    }
}
