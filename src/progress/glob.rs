//! Finding and counting files by a pattern: only the folders it can lie in are read, and their entries'
//! names and kinds are all that is asked for.
//!
//! What is found: regular files, and symlinks to them.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use globset::GlobMatcher;

use super::open::{failed, gap};
use super::pattern::{Part, Pattern, Rest};
use crate::model::observation::{GapKind, Seen};

/// How far down `**` goes.
const MAX_DEPTH: usize = 32;

/// Entries that one pattern may look at: beyond that it is a pattern gone wrong, and the cycle
/// would hold its lock too long.
const MAX_ENTRIES: usize = 2_000_000;

/// Is told folder and name of a file.
pub(super) type Hit<'a> = &'a mut dyn FnMut(&Path, &OsStr);

/// What `**` looks for.
struct Below<'a> {
    root: &'a Path,
    matcher: &'a GlobMatcher,
    hidden: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
    Link,
    Other,
}

/// Reads folders for patterns, and keeps the last one: the patterns of shards that share a folder
/// come one after the other, and it is read once.
#[derive(Default)]
pub(super) struct Reader {
    folder: PathBuf,
    /// Sorted by name.
    entries: Vec<(OsString, Kind)>,
    kept: bool,
    looked: usize,
}

impl Reader {
    /// Number of files that match; a folder that is not there holds none.
    pub(super) fn count(&mut self, pattern: &Pattern) -> Seen<u32> {
        let mut count: u32 = 0;
        self.each(pattern, &mut |_, _| count = count.saturating_add(1))?;
        Ok(count)
    }

    /// Tells folder and name of each file that matches.
    pub(super) fn each(&mut self, pattern: &Pattern, hit: Hit<'_>) -> Seen<()> {
        self.looked = 0;
        // A file where the folder should be is a mistake in shards.toml, not "no rows yet".
        match pattern.folder.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(&pattern.folder, &error)),
            Ok(_) => {}
        }
        match &pattern.rest {
            Rest::Names(parts) => self.names(&pattern.folder, parts, true, hit),
            Rest::Below { matcher, hidden } => {
                let below = Below { root: &pattern.folder, matcher, hidden: *hidden };
                self.below(&below, PathBuf::new(), MAX_DEPTH, hit)
            }
        }
    }

    fn names(&mut self, folder: &Path, parts: &[Part], first: bool, hit: Hit<'_>) -> Seen<()> {
        let Some((part, deeper)) = parts.split_first() else { return Ok(()) };
        if let Part::Literal(name) = part {
            let path = folder.join(name);
            match deeper {
                [] if is_file(&path)? => hit(folder, name),
                [] => {}
                _ => self.names(&path, deeper, false, hit)?,
            }
            return Ok(());
        }
        self.list(folder, first)?;
        let prefix = part.prefix();
        let from = self.entries.partition_point(|(name, _)| name.as_bytes() < prefix);
        let mut inside = Vec::new();
        for (name, kind) in self.entries.iter().skip(from) {
            if !name.as_bytes().starts_with(prefix) {
                break;
            }
            if !part.matches(name.as_bytes()) {
                continue;
            }
            match (deeper, kind) {
                ([], Kind::File) => hit(folder, name),
                ([], Kind::Link) => {
                    if is_file(&folder.join(name))? {
                        hit(folder, name);
                    }
                }
                ([], Kind::Folder | Kind::Other) | (_, Kind::File | Kind::Other) => {}
                (_, Kind::Folder | Kind::Link) => inside.push(folder.join(name)),
            }
        }
        inside.iter().try_for_each(|folder| self.names(folder, deeper, false, hit))
    }

    /// Symlinks to folders are not followed here: they may lead back up.
    fn below(
        &mut self,
        below: &Below<'_>,
        relative: PathBuf,
        depth: usize,
        hit: Hit<'_>,
    ) -> Seen<()> {
        let Below { root, matcher, hidden } = below;
        let folder = root.join(&relative);
        self.list(&folder, relative.as_os_str().is_empty())?;
        let mut inside = Vec::new();
        for (name, kind) in &self.entries {
            if name.as_bytes().starts_with(b".") && !hidden {
                continue;
            }
            let path = relative.join(name);
            let matches = match kind {
                Kind::File => matcher.is_match(&path),
                Kind::Link => matcher.is_match(&path) && is_file(&root.join(&path))?,
                Kind::Folder => {
                    inside.push(path);
                    false
                }
                Kind::Other => false,
            };
            if matches {
                hit(&folder, name);
            }
        }
        for path in inside {
            if depth == 0 {
                let detail = format!("`**` goes down more than {MAX_DEPTH} folders");
                return Err(gap(GapKind::Unreadable, root, detail));
            }
            self.below(below, path, depth - 1, hit)?;
        }
        Ok(())
    }

    /// Makes `entries` those of `folder`.
    fn list(&mut self, folder: &Path, first: bool) -> Seen<()> {
        if self.kept && self.folder == folder {
            return Ok(());
        }
        self.kept = false;
        self.entries.clear();
        let read = match std::fs::read_dir(folder) {
            Ok(read) => read,
            // Gone, or a file where deeper names would want a folder: nothing matches there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory && !first => return Ok(()),
            Err(error) => return Err(failed(folder, &error)),
        };
        for entry in read {
            let entry = entry.map_err(|error| failed(folder, &error))?;
            self.looked += 1;
            if self.looked > MAX_ENTRIES {
                let detail = format!("the pattern leads to more than {MAX_ENTRIES} entries");
                return Err(gap(GapKind::Unreadable, folder, detail));
            }
            // From the folder itself, without a look at the file, on all but a few file systems.
            let kind = match entry.file_type() {
                Ok(kind) if kind.is_file() => Kind::File,
                Ok(kind) if kind.is_dir() => Kind::Folder,
                Ok(kind) if kind.is_symlink() => Kind::Link,
                Ok(_) => Kind::Other,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(&entry.path(), &error)),
            };
            self.entries.push((entry.file_name(), kind));
        }
        self.entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self.folder = folder.to_owned();
        self.kept = true;
        Ok(())
    }
}

fn is_file(path: &Path) -> Seen<bool> {
    match path.metadata() {
        Ok(meta) => Ok(meta.is_file()),
        // A dangling symlink, or a file in the way.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(false)
        }
        Err(error) => Err(failed(path, &error)),
    }
}
