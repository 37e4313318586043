//! Opening and replacing files so that neither a crash nor somebody else's symlink can hurt.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::error::StoreError;

/// New files: for the user and the group, as far as the umask allows.
const MODE: u32 = 0o660;

/// Of pages: read by all, as far as the umask allows.
const PAGE_MODE: u32 = 0o664;

/// On NFS a file that was replaced while it was being opened or read shows as a stale handle; the
/// next try meets its successor.
const STALE_TRIES: u32 = 5;

/// `state.json` + `.bak` -> `state.json.bak`, in the same folder.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// With its parents; for user and group at most, whatever the umask: whoever may write in a folder
/// may replace its files.
pub fn make_folder(folder: &Path) -> Result<(), StoreError> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o775).create(folder);
    made.map_err(StoreError::io("make the folder", folder))
}

/// Flags for every open: no symlink is followed, no FIFO is waited for.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    options.custom_flags(flags.bits() as i32).mode(MODE);
    options
}

/// What tells one writing of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    pub(super) fn of(meta: &Metadata) -> Stamp {
        Stamp {
            device: meta.dev(),
            inode: meta.ino(),
            length: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        }
    }
}

/// The stamp of what is at `path` itself; `None` where there is nothing.
pub(super) fn stamp(path: &Path) -> Result<Option<Stamp>, StoreError> {
    match path.symlink_metadata() {
        Ok(meta) => {
            must_be_a_file(path, &meta)?;
            Ok(Some(Stamp::of(&meta)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("look at it", path)(error)),
    }
}

pub(super) fn must_be_a_file(path: &Path, meta: &Metadata) -> Result<(), StoreError> {
    let kind = meta.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let what = if kind.is_symlink() {
        match path.read_link() {
            Ok(target) => format!("it is a symlink to {}", target.display()),
            Err(_) => "it is a symlink".to_owned(),
        }
    } else if kind.is_dir() {
        "it is a folder".to_owned()
    } else {
        "it is no regular file".to_owned()
    };
    Err(StoreError::NotAFile { path: path.to_owned(), what })
}

/// The whole file; `None` where there is none.
pub(super) fn read(path: &Path) -> Result<Option<(Vec<u8>, Stamp)>, StoreError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match read_once(path) {
            Err(StoreError::Io { source, .. })
                if tries < STALE_TRIES && Errno::from_io_error(&source) == Some(Errno::STALE) => {}
            other => return other,
        }
    }
}

fn read_once(path: &Path) -> Result<Option<(Vec<u8>, Stamp)>, StoreError> {
    // Looked at first, so that a symlink is named as one and a device is never opened.
    if stamp(path)?.is_none() {
        return Ok(None);
    }
    let mut file = match options().read(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io("open it", path)(error)),
    };
    let meta = file.metadata().map_err(StoreError::io("look at it", path))?;
    must_be_a_file(path, &meta)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(StoreError::io("read it", path))?;
    Ok(Some((bytes, Stamp::of(&meta))))
}

/// Replaces `path` as a whole by what `content` writes, keeping what it held as `backup`. After a crash
/// at any point there is a complete file under `path` or, where there was none before, nothing under
/// either name.
pub(super) fn replace(
    path: &Path,
    backup: &Path,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StoreError> {
    let fresh = fill_beside(path, content, Sync::Yes)?;
    let had_one = stamp(path)?.is_some();
    if had_one {
        keep(path, backup)?;
    }
    rename(&fresh, path)?;
    if !had_one {
        // The first one is its own backup: from now on a state that vanishes leaves a trace.
        keep(path, backup)?;
    }
    sync_folder(path)
}

/// Puts `bytes` at `path`, and what was there, if anything, at `aside`. The backup stays as it is.
pub(super) fn restore(path: &Path, aside: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let fresh = write_beside(path, bytes, Sync::Yes)?;
    if stamp(path)?.is_some() {
        keep(path, aside)?;
    }
    rename(&fresh, path)?;
    sync_folder(path)
}

/// Replaces `path` as a whole, for what may be lost in a crash but never be half there.
pub(super) fn replace_cache(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let fresh = write_beside(path, bytes, Sync::No)?;
    rename(&fresh, path)
}

/// The same for a page that others may read, whoever else writes it at the same time.
pub(super) fn publish(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    stamp(path)?;
    let fresh = beside(path, &format!(".{}.tmp", std::process::id()));
    remove(&fresh)?;
    let mut file = options()
        .write(true)
        .create_new(true)
        .mode(PAGE_MODE)
        .open(&fresh)
        .map_err(StoreError::io("create it", &fresh))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let placed = written.map_err(StoreError::io("write it", &fresh));
    let placed = placed.and_then(|()| rename(&fresh, path));
    if placed.is_err() {
        // What went wrong is told; half a page is of no use to anybody.
        remove(&fresh)?;
    }
    placed
}

#[derive(PartialEq, Eq)]
pub(super) enum Sync {
    Yes,
    No,
}

/// `<path>.tmp` with these bytes; one that a crash left is thrown away (the caller has the lock).
pub(super) fn write_beside(path: &Path, bytes: &[u8], sync: Sync) -> Result<PathBuf, StoreError> {
    fill_beside(path, |file| file.write_all(bytes), sync)
}

/// The same with what `content` writes.
fn fill_beside(
    path: &Path,
    content: impl FnOnce(&mut File) -> io::Result<()>,
    sync: Sync,
) -> Result<PathBuf, StoreError> {
    let fresh = beside(path, ".tmp");
    remove(&fresh)?;
    let mut file = options()
        .write(true)
        .create_new(true)
        .open(&fresh)
        .map_err(StoreError::io("create it", &fresh))?;
    share(&file, path).map_err(StoreError::io("set its mode", &fresh))?;
    content(&mut file).map_err(StoreError::io("write it", &fresh))?;
    if sync == Sync::Yes {
        file.sync_all().map_err(StoreError::io("sync it", &fresh))?;
    }
    Ok(fresh)
}

/// In a folder that its group may write, the group may write the file too, whatever the umask:
/// the members of a lab take turns on one state.
pub(super) fn share(file: &File, path: &Path) -> io::Result<()> {
    let folder = folder_of(path).metadata()?;
    if folder.mode() & 0o020 != 0 && file.metadata()?.gid() == folder.gid() {
        file.set_permissions(std::fs::Permissions::from_mode(MODE))?;
    }
    Ok(())
}

/// Makes `backup` another name of what is at `path`, which stays in place all the while.
fn keep(path: &Path, backup: &Path) -> Result<(), StoreError> {
    let fresh = beside(backup, ".tmp");
    remove(&fresh)?;
    if std::fs::hard_link(path, &fresh).is_err() {
        // No hard links here: a copy does as well.
        let held = read(path)?;
        let (bytes, _) = held.ok_or_else(|| StoreError::Stolen {
            path: path.to_owned(),
            what: "it vanished while it was being replaced".to_owned(),
        })?;
        write_beside(backup, &bytes, Sync::Yes)?;
    }
    rename(&fresh, backup)?;
    // A rename between two names of one file does nothing at all.
    remove(&fresh)
}

pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::io("remove what an earlier run left there", path)(error))
        }
        _ => Ok(()),
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the one place that renames")]
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    std::fs::rename(from, to).map_err(StoreError::io("put the new one in its place", to))
}

/// Makes the renames in the folder of `path` survive a power cut.
pub(super) fn sync_folder(path: &Path) -> Result<(), StoreError> {
    let folder = folder_of(path);
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    match synced {
        // Some network file systems sync folders by themselves and refuse to be asked.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => Ok(()),
        other => other.map_err(StoreError::io("sync the folder", folder)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beside_a_file_stay_in_its_folder() {
        assert_eq!(beside(Path::new("/a/state.json"), ".bak"), Path::new("/a/state.json.bak"));
        assert_eq!(beside(Path::new("s"), ".lock"), Path::new("s.lock"));
        assert_eq!(folder_of(Path::new("s")), Path::new("."));
    }
}
