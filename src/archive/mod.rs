//! ADAPTER: copies of a campaign's files in one folder, each verified, so that a stop at any moment
//! loses nothing but the copy in hand.
//!
//! Results and ledgers are only read. Nothing outside of the archive's own folder is written, and
//! nothing here knows what a shard is.

mod copy;
mod folder;
mod manifest;
mod place;

use std::io;
use std::path::{Path, PathBuf};

pub use folder::Folders;
pub use manifest::Entry;
pub use place::{Given, Place, once};

use copy::{Copied, verify};
use manifest::Manifest;

/// Files that are copied before the disk is made to hold them and the manifest says so. Each for
/// itself would take a disk's turn; more would be done again after a power cut.
const BATCH: usize = 256;

/// What is to be in the archive, and under which name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub source: PathBuf,
    /// Below the archive's folder.
    pub to: String,
}

/// What could not be archived, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub path: PathBuf,
    pub why: String,
}

/// What came of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    pub files: usize,
    pub bytes: u64,
    /// Copied by this run; the others were there, verified.
    pub copied: usize,
    /// Changed while they were copied, and were therefore copied again.
    pub again: Vec<PathBuf>,
    pub left_out: Vec<LeftOut>,
}

/// The archive cannot go on: no room, no right, not an archive.
#[derive(Debug)]
pub struct Failed {
    pub path: PathBuf,
    pub what: String,
    pub source: Option<io::Error>,
}

impl Failed {
    fn io<'a>(what: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> Failed + 'a {
        move |source| Failed { path: path.to_owned(), what: what.to_owned(), source: Some(source) }
    }

    fn other(path: &Path, what: &str) -> Failed {
        Failed { path: path.to_owned(), what: what.to_owned(), source: None }
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)?;
        self.source.as_ref().map_or(Ok(()), |source| write!(f, ": {source}"))
    }
}

/// Which of `wanted` the archive does not have yet, with their sizes. Nothing is written.
pub fn lacking(
    folder: &Path,
    project: &str,
    wanted: &[Wanted],
) -> Result<Vec<(usize, u64)>, Failed> {
    let known = Manifest::read(folder, project)?;
    let size = |wanted: &Wanted| {
        let meta = wanted.source.metadata().ok()?;
        let kept = known.get(&wanted.to).is_some_and(|entry| entry.is_of(&meta));
        (!kept).then_some(meta.len())
    };
    Ok(wanted.iter().enumerate().filter_map(|(i, wanted)| Some((i, size(wanted)?))).collect())
}

/// Copies what the archive in `folder` lacks. With `last`, what earlier runs copied is read back and
/// compared once more, since nobody will afterwards.
pub fn run(folder: &Path, project: &str, wanted: &[Wanted], last: bool) -> Result<Report, Failed> {
    let mut manifest = Manifest::open(folder, project)?;
    let mut report = Report::default();
    let mut batch: Vec<Entry> = Vec::new();
    for Wanted { source, to } in wanted {
        let dest = folder.join(to);
        let before = match source.metadata() {
            Ok(meta) => meta,
            Err(error) => {
                report.left_out.push(LeftOut { path: source.clone(), why: error.to_string() });
                continue;
            }
        };
        let known = manifest.get(to).filter(|entry| entry.is_of(&before)).cloned();
        if let Some(entry) = known.filter(|entry| entry.size_on_disk(&dest) == Some(entry.size)) {
            if !last || verify(&dest, &entry.sha256)? {
                report.files += 1;
                report.bytes += entry.size;
                continue;
            }
            report.again.push(source.clone());
        }
        match copy::copy(source, to, &dest)? {
            Copied::Yes { entry, tries } => {
                report.files += 1;
                report.copied += 1;
                report.bytes += entry.size;
                if tries > 1 {
                    report.again.push(source.clone());
                }
                batch.push(entry);
            }
            Copied::No(why) => report.left_out.push(LeftOut { path: source.clone(), why }),
        }
        if batch.len() >= BATCH {
            manifest.add(std::mem::take(&mut batch))?;
        }
    }
    manifest.add(batch)?;
    manifest.write_sums()?;
    Ok(report)
}
