//! The archive's list of what it holds: `manifest.jsonl`, a line for each verified copy. It is read to
//! go on after a stop, and locked while an archive is made.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs2::FileExt;
use serde::{Deserialize, Serialize};

use super::Failed;
use super::folder::options;

pub(super) const NAME: &str = "manifest.jsonl";
/// The same for `sha256sum -c`.
const SUMS: &str = "SHA256SUMS";
const SCHEMA: &str = "babysit/archive/v1";

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    schema: String,
    project: String,
}

/// One file of the archive, and the source as it was when it was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Below the archive's folder.
    pub path: String,
    pub size: u64,
    /// Hexadecimal.
    pub sha256: String,
    pub source: PathBuf,
    /// Of the source: seconds and nanoseconds.
    pub modified: (i64, i64),
}

impl Entry {
    /// The source has not changed since.
    pub(super) fn is_of(&self, source: &Metadata) -> bool {
        self.size == source.len() && self.modified == (source.mtime(), source.mtime_nsec())
    }

    pub(super) fn size_on_disk(&self, dest: &Path) -> Option<u64> {
        dest.symlink_metadata().ok().filter(Metadata::is_file).map(|meta| meta.len())
    }
}

pub(super) struct Manifest {
    folder: PathBuf,
    file: File,
    entries: BTreeMap<String, Entry>,
}

type Entries = BTreeMap<String, Entry>;

impl Manifest {
    /// What an archive holds; nothing where there is none.
    pub(super) fn read(folder: &Path, project: &str) -> Result<Entries, Failed> {
        let path = folder.join(NAME);
        let mut text = String::new();
        match options().read(true).open(&path) {
            Ok(mut file) => file.read_to_string(&mut text).map_err(Failed::io("read it", &path))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(Failed::io("open it", &path)(error)),
        };
        entries(&text, &path, project)
    }

    /// Makes the folder where there is none.
    pub(super) fn open(folder: &Path, project: &str) -> Result<Manifest, Failed> {
        std::fs::create_dir_all(folder).map_err(Failed::io("make the folder", folder))?;
        let path = folder.join(NAME);
        let opened = options().read(true).append(true).create(true).open(&path);
        let mut file = opened.map_err(Failed::io("open it", &path))?;
        file.try_lock_exclusive().map_err(|error| {
            match error.raw_os_error() == fs2::lock_contended_error().raw_os_error() {
                true => Failed::other(&path, "another babysit is making this archive"),
                false => Failed::io("lock it", &path)(error),
            }
        })?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(Failed::io("read it", &path))?;
        let entries = entries(&text, &path, project)?;
        let mut manifest = Manifest { folder: folder.to_owned(), file, entries };
        if text.is_empty() {
            let head = Head { schema: SCHEMA.to_owned(), project: project.to_owned() };
            manifest.append(&[head])?;
        } else if !text.ends_with('\n') {
            // A line that a stop cut off must not swallow the next one.
            manifest.write(b"\n")?;
        }
        Ok(manifest)
    }

    pub(super) fn get(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// Notes these copies, once the disk holds them.
    pub(super) fn add(&mut self, batch: Vec<Entry>) -> Result<(), Failed> {
        if batch.is_empty() {
            return Ok(());
        }
        let synced = rustix::fs::syncfs(&self.file).map_err(Into::into);
        synced.map_err(Failed::io("sync the copies", &self.folder))?;
        self.append(&batch)?;
        self.entries.extend(batch.into_iter().map(|entry| (entry.path.clone(), entry)));
        Ok(())
    }

    fn append(&mut self, lines: &[impl Serialize]) -> Result<(), Failed> {
        let mut text = Vec::new();
        for line in lines {
            let written = serde_json::to_writer(&mut text, line);
            written.map_err(|error| Failed::io("spell a line", &self.folder)(error.into()))?;
            text.push(b'\n');
        }
        self.write(&text)
    }

    fn write(&mut self, text: &[u8]) -> Result<(), Failed> {
        let written = self.file.write_all(text).and_then(|()| self.file.sync_all());
        written.map_err(Failed::io("write it", &self.folder.join(NAME)))
    }

    pub(super) fn write_sums(&self) -> Result<(), Failed> {
        let path = self.folder.join(SUMS);
        let mut text = String::new();
        for entry in self.entries.values() {
            // As sha256sum writes names that would break a line.
            let odd = entry.path.contains(['\\', '\n']);
            let name = entry.path.replace('\\', "\\\\").replace('\n', "\\n");
            let mark = if odd { "\\" } else { "" };
            text.push_str(&format!("{mark}{}  {name}\n", entry.sha256));
        }
        let opened = options().write(true).create(true).truncate(true).open(&path);
        // Before the folder gets the name of a whole archive.
        let write = |mut file: File| file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        let written = opened.and_then(write);
        written.map_err(Failed::io("write it", &path))
    }
}

/// Later lines win; one that a stop cut off is no line.
fn entries(text: &str, path: &Path, project: &str) -> Result<Entries, Failed> {
    let mut lines = text.lines();
    let Some(head) = lines.next() else { return Ok(Entries::new()) };
    let head: Head = serde_json::from_str(head)
        .map_err(|_| Failed::other(path, "this is no archive of babysit's; name a new folder"))?;
    if head.schema != SCHEMA {
        return Err(Failed::other(
            path,
            "this is an archive of another babysit; name a new folder",
        ));
    }
    if head.project != project {
        let what = format!("this is an archive of project {}; name a new folder", head.project);
        return Err(Failed::other(path, &what));
    }
    let entries = lines.filter_map(|line| serde_json::from_str::<Entry>(line).ok());
    Ok(entries.map(|entry| (entry.path.clone(), entry)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_no_copy_and_the_last_word_counts() {
        let head = format!("{{\"schema\":\"{SCHEMA}\",\"project\":\"p\"}}\n");
        let line = |size: u64| {
            let entry = Entry {
                path: "a".into(),
                size,
                sha256: "00".into(),
                source: "/a".into(),
                modified: (1, 2),
            };
            serde_json::to_string(&entry).expect("JSON") + "\n"
        };
        let path = Path::new("manifest.jsonl");
        let read = |text: &str| entries(text, path, "p").map_err(|failed| failed.to_string());
        let text = head.clone() + &line(1) + &line(2) + "{\"path\":\"b\",\"si";
        let found = read(&text).expect("an archive");
        assert_eq!((found.len(), found["a"].size), (1, 2));
        assert_eq!(read(""), Ok(Entries::new()));
        assert!(read("shopping list\n").is_err_and(|text| text.contains("no archive")));
        assert!(read(&head.replace("\"p\"", "\"q\"")).is_err_and(|t| t.contains("project q")));
        assert!(read(&head.replace("v1", "v2")).is_err_and(|t| t.contains("another babysit")));
    }
}
