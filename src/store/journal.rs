//! The journal: one JSON line per decision. Losing it loses no state, so nothing is synced.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::file::{beside, options, share};

/// A journal of this size begins anew: 16 MiB is some months of a busy project.
const FULL: u64 = 16 << 20;

/// Old ones kept, `.1` the youngest.
pub(super) const KEPT: u32 = 3;

/// How much of the end is looked at for what is in it.
const TAIL: u64 = 64 << 10;

/// `journal.jsonl` in the folder of the state, as the contract has it. States that share a folder
/// share it; every line says whose it is.
pub(super) fn path_for(state: &Path) -> PathBuf {
    state.with_file_name("journal.jsonl")
}

/// Appends `lines` in one write, so that two projects' lines never mix.
pub(super) fn append(path: &Path, project: Option<&str>, lines: &[Value]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    rotate(path, FULL)?;
    let mut file = options().read(true).append(true).create(true).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other(format!("{} is no regular file", path.display())));
    }
    let mut text = Vec::new();
    if meta.len() == 0 {
        share(&file, path)?;
    } else {
        // A line that a crash cut off must not swallow the next one.
        let mut last = [0];
        file.read_exact_at(&mut last, meta.len() - 1)?;
        if last != *b"\n" {
            text.push(b'\n');
        }
    }
    for line in lines {
        serde_json::to_writer(&mut text, &stamped(line, project))?;
        text.push(b'\n');
    }
    file.write_all(&text)
}

fn stamped(line: &Value, project: Option<&str>) -> Value {
    let mut line = line.clone();
    if let (Value::Object(fields), Some(project)) = (&mut line, project) {
        fields.entry("project").or_insert_with(|| project.into());
    }
    line
}

#[allow(clippy::disallowed_methods, reason = "store is where files are renamed")]
pub(super) fn rotate(path: &Path, full: u64) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_file() && meta.len() >= full => {}
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => return Ok(()),
    }
    let numbered = |n| numbered(path, n);
    for n in (1..KEPT).rev() {
        match std::fs::rename(numbered(n), numbered(n + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::rename(path, numbered(1))
}

fn numbered(path: &Path, n: u32) -> PathBuf {
    beside(path, &format!(".{n}"))
}

/// The last lines, oldest first, from at most `bytes` of the end; what is no JSON is left out.
pub(super) fn tail(path: &Path, bytes: u64) -> io::Result<Vec<Value>> {
    let mut file: File = match options().read(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other(format!("{} is no regular file", path.display())));
    }
    file.seek(SeekFrom::Start(meta.len().saturating_sub(bytes)))?;
    let mut text = Vec::new();
    file.take(bytes).read_to_end(&mut text)?;
    Ok(text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

/// Does it hold decisions of `project` (of any, where that is not known)?
pub(super) fn mentions(path: &Path, project: Option<&str>) -> io::Result<bool> {
    let lines = tail(path, TAIL)?;
    Ok(lines.iter().any(|line| project.is_none_or(|p| line["project"] == p)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_torn_line_does_not_swallow_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal.jsonl");
        append(&path, Some("p"), &[json!({"did": 1}), json!({"did": 2, "project": "q"})])
            .expect("appends");
        let mut file = options().append(true).open(&path).expect("opens");
        file.write_all(b"{\"did\": 3, \"cut").expect("writes");
        append(&path, Some("p"), &[json!({"did": 4})]).expect("appends");
        assert_eq!(
            tail(&path, 1 << 20).expect("reads"),
            [
                json!({"did": 1, "project": "p"}),
                json!({"did": 2, "project": "q"}),
                json!({"did": 4, "project": "p"}),
            ]
        );
        for (project, there) in [(Some("p"), true), (Some("r"), false), (None, true)] {
            assert_eq!(mentions(&path, project).expect("reads"), there, "{project:?}");
        }
    }

    #[test]
    fn a_full_journal_begins_anew_and_three_old_ones_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal.jsonl");
        for n in 0..6 {
            append(&path, None, &[json!(n)]).expect("appends");
            rotate(&path, 1).expect("rotates");
        }
        let held = |name: &str| std::fs::read_to_string(folder.path().join(name)).ok();
        assert_eq!(held("journal.jsonl"), None);
        assert_eq!(held("journal.jsonl.1").as_deref(), Some("5\n"));
        assert_eq!(held("journal.jsonl.3").as_deref(), Some("3\n"));
        assert_eq!(held("journal.jsonl.4"), None);
    }
}
