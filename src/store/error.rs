//! What can be wrong with the state file, each with its path and the way out.
//!
//! An enum because commands branch on it: a busy lock is exit code 75, the rest is 1.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub enum StoreError {
    /// Another babysit is at work on this state; `holder` says which, as far as it told.
    Busy {
        lock: PathBuf,
        holder: String,
    },
    /// The file system cannot lock. Nothing is done without a lock.
    LockingUnsupported {
        lock: PathBuf,
        source: io::Error,
    },
    /// Empty, cut off, or nothing that this build wrote.
    Damaged {
        path: PathBuf,
        what: String,
        backup: Option<PathBuf>,
    },
    /// Written by a newer babysit.
    NewerVersion {
        path: PathBuf,
        /// Version and minor number.
        found: (u64, u64),
        known: (u64, u64),
    },
    WrongProject {
        path: PathBuf,
        found: String,
        expected: String,
    },
    /// There is no state file, but `evidence` says that there was one.
    Vanished {
        path: PathBuf,
        evidence: PathBuf,
        backup: bool,
    },
    /// Somebody else wrote the file since it was read, or this state is not the file's successor.
    Stolen {
        path: PathBuf,
        what: String,
    },
    /// A symlink, a folder, a FIFO: nothing that may be replaced.
    NotAFile {
        path: PathBuf,
        what: String,
    },
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl StoreError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.to_owned();
        move |source| StoreError::Io { doing, path, source }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Busy { lock, holder } => {
                write!(
                    f,
                    "another babysit is at work on this state: {holder} (lock {})",
                    lock.display()
                )
            }
            StoreError::LockingUnsupported { lock, source } => write!(
                f,
                "{}: this file system cannot lock files ({source}), so nothing was done; put the \
                 state on one that can, with --state PATH, $BABYSIT_STATE or `state` in shards.toml",
                lock.display()
            ),
            StoreError::Damaged { path, what, backup } => {
                write!(f, "{}: not a readable state: {what}; nothing was changed", path.display())?;
                match backup {
                    Some(backup) => write!(
                        f,
                        "; the last good one is {}: look at it, then `babysit reconcile` takes it \
                         over",
                        backup.display()
                    ),
                    None => f.write_str("; put a good copy in its place (there is no .bak)"),
                }
            }
            StoreError::NewerVersion { path, found, known } => write!(
                f,
                "{}: written by a newer babysit (state version {}.{}, this build knows {}.{}); \
                 nothing was changed; use that babysit",
                path.display(),
                found.0,
                found.1,
                known.0,
                known.1
            ),
            StoreError::WrongProject { path, found, expected } => write!(
                f,
                "{}: this is the state of project {found:?}, shards.toml is of {expected:?}; \
                 nothing was changed; give each project a state of its own, with --state PATH or \
                 `state` in shards.toml",
                path.display()
            ),
            StoreError::Vanished { path, evidence, backup } => {
                write!(
                    f,
                    "{}: the state is gone, but {} says that there was one; starting anew could \
                     submit jobs twice, so nothing was done",
                    path.display(),
                    evidence.display()
                )?;
                f.write_str(if *backup {
                    "; `babysit reconcile` takes the .bak over"
                } else {
                    "; put the state back, or move that file away to begin anew"
                })
            }
            StoreError::Stolen { path, what } => write!(
                f,
                "{}: {what}; it was not overwritten; the next cycle reads it anew, and if this \
                 comes again, two babysits do not see each other's lock: `babysit doctor`",
                path.display()
            ),
            StoreError::NotAFile { path, what } => write!(
                f,
                "{}: {what}; it is neither read nor replaced; name the real file with --state PATH",
                path.display()
            ),
            StoreError::Io { doing, path, source } => {
                write!(f, "{}: cannot {doing}: {source}", path.display())?;
                match source.kind() {
                    io::ErrorKind::PermissionDenied => {
                        f.write_str("; the state's folder and files must be yours to write")
                    }
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                        f.write_str("; make room there")
                    }
                    io::ErrorKind::ReadOnlyFilesystem => {
                        f.write_str("; name another place with --state PATH")
                    }
                    _ => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::LockingUnsupported { source, .. } | StoreError::Io { source, .. } => {
                Some(source)
            }
            StoreError::Busy { .. }
            | StoreError::Damaged { .. }
            | StoreError::NewerVersion { .. }
            | StoreError::WrongProject { .. }
            | StoreError::Vanished { .. }
            | StoreError::Stolen { .. }
            | StoreError::NotAFile { .. } => None,
        }
    }
}
