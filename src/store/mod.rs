//! ADAPTER: what is remembered between cycles, on disk: lock, atomic replace, disk form, journal.
//!
//! Only a locked store can save: the lock is a type. A file that cannot be understood is never
//! replaced. Nothing here knows what a state means.

mod clock;
mod error;
mod file;
mod follow;
mod journal;
mod lock;
mod locked;
mod pilots;
mod plain;
pub mod recording;
mod row_claims;
mod trial;
mod v1;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::clock::Clock;
pub use self::error::StoreError;
pub use self::file::make_folder;
use self::file::{Stamp, beside};
pub use self::follow::Lines;
pub use self::locked::Locked;
pub use self::pilots::{Claimed, Pilots};
pub use self::plain::{create, replace, replace_keeping};
pub use self::row_claims::{Marked, Taker, free_all_rows, free_row, mark_row, take_row};
pub use self::trial::Trial;
use self::v1::Unreadable;
use crate::model::state::State;

/// A state file and the files beside it: `<state>.lock`, `<state>.bak`, `<state>.clock`,
/// `<state>.progress`, `<state>.recording`, `<state>.pilots` and `journal.jsonl`.
#[derive(Debug, Clone)]
pub struct Store {
    path: PathBuf,
    project: Option<String>,
}

/// A state as it stands on disk.
struct Read {
    state: State,
    /// Of its file.
    stamp: Stamp,
    /// How far its clock has moved since.
    clock: Option<Clock>,
}

impl Store {
    pub fn at(path: PathBuf) -> Store {
        Store { path, project: None }
    }

    /// Refuses the state of any other project.
    pub fn of_project(self, project: &str) -> Store {
        Store { project: Some(project.to_owned()), ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that `write_cache` kept; `None` where there are none to be had. What is in them is
    /// for their writer to judge.
    pub fn read_cache(&self) -> Option<Vec<u8>> {
        // Unreadable is as good as none: it is made anew from the user's files.
        file::read(&self.cache_path()).ok().flatten().map(|(bytes, _)| bytes)
    }

    fn cache_path(&self) -> PathBuf {
        beside(&self.path, ".progress")
    }

    pub fn journal_path(&self) -> PathBuf {
        journal::path_for(&self.path)
    }

    /// Where what cycles were given to decide on is kept.
    pub fn recording_path(&self) -> PathBuf {
        beside(&self.path, ".recording")
    }

    /// Where pilots find what they may take, and leave what they took.
    pub fn pilots(&self) -> Pilots {
        Pilots::at(beside(&self.path, ".pilots"))
    }

    /// The time of the last tick and what else it changed, where that is all that it changed.
    pub fn clock_path(&self) -> PathBuf {
        beside(&self.path, ".clock")
    }

    /// The last good state before the present one.
    pub fn backup_path(&self) -> PathBuf {
        beside(&self.path, ".bak")
    }

    /// Name and path of what is worth keeping of it when all is over: the state, the journals and the
    /// recording, as far as they are there.
    pub fn records(&self) -> io::Result<Vec<(String, PathBuf)>> {
        let journal = self.journal_path();
        let name_of =
            |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let journals = name_of(&journal).unwrap_or_default();
        let mut found = Vec::new();
        if self.path.is_file() {
            found.push(("state.json".to_owned(), self.path.clone()));
        }
        let clock = self.clock_path();
        if clock.is_file() {
            found.push(("state.json.clock".to_owned(), clock));
        }
        match std::fs::read_dir(file::folder_of(&self.path)) {
            Ok(entries) => {
                for entry in entries {
                    let path = entry?.path();
                    // With the old ones, `journal.jsonl.1` and so on.
                    let name = name_of(&path).filter(|name| name.starts_with(&journals));
                    found.extend(name.filter(|_| path.is_file()).map(|name| (name, path)));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let segments = recording::files(&self.recording_path())?;
        let named = segments
            .into_iter()
            .filter_map(|path| Some((format!("state.json.recording/{}", name_of(&path)?), path)));
        found.extend(named);
        Ok(found)
    }

    /// The state without a lock, for those who only look. `None`: there is none and never was.
    pub fn read(&self) -> Result<Option<State>, StoreError> {
        Ok(self.look()?.map(|read| read.state))
    }

    /// The bytes that a save would write, for whoever compares or measures.
    ///
    /// # Errors
    /// None that a state could cause; serialization has the type.
    pub fn spell(state: &State) -> io::Result<Vec<u8>> {
        v1::encode(state, state.generation)
    }

    /// Tries out, on files of its own, whether the file system does what a tick needs.
    pub fn trial(&self) -> Result<Trial, StoreError> {
        trial::trial(&self.path)
    }

    /// The lines of the journal, from the oldest on.
    pub fn journal(&self) -> Lines {
        Lines::of(self.journal_path())
    }

    /// The newest lines of the journal, oldest first, from at most `bytes` of its end.
    pub fn journal_tail(&self, bytes: u64) -> io::Result<Vec<serde_json::Value>> {
        journal::tail(&self.journal_path(), bytes)
    }

    /// Takes the lock, or leaves with `Busy` after about `wait`; zero does not wait at all. Makes
    /// the folder where there is none.
    pub fn lock(&self, wait: Duration) -> Result<Locked, StoreError> {
        if self.path.file_name().is_none() {
            let what = "the path of a state must end in a file name".to_owned();
            return Err(StoreError::NotAFile { path: self.path.clone(), what });
        }
        let folder = file::folder_of(&self.path);
        file::make_folder(folder)?;
        let lock = lock::take(&beside(&self.path, ".lock"), wait)?;
        Ok(Locked::of(self.clone(), lock))
    }

    fn look(&self) -> Result<Option<Read>, StoreError> {
        let mut found = file::read(&self.path)?;
        if found.is_none() {
            let Some(evidence) = self.evidence()? else { return Ok(None) };
            // Looked at again: the very first save may have come between the two looks.
            found = file::read(&self.path)?;
            if found.is_none() {
                return Err(StoreError::Vanished {
                    path: self.path.clone(),
                    backup: evidence == self.backup_path(),
                    evidence,
                });
            }
        }
        match found {
            Some((bytes, stamp)) => {
                let mut state = self.decode(&self.path, &bytes)?;
                // Unreadable is as good as none: a cycle that did not take place.
                let clock = file::read(&self.clock_path()).ok().flatten();
                let clock = clock.and_then(|(line, _)| v1::clock::read(&line));
                let clock = clock.filter(|clock| clock.set(&mut state));
                Ok(Some(Read { state, stamp, clock }))
            }
            None => Ok(None),
        }
    }

    fn decode(&self, path: &Path, bytes: &[u8]) -> Result<State, StoreError> {
        let path = path.to_owned();
        let state = match v1::decode(bytes) {
            Ok(state) => state,
            Err(Unreadable::Newer(version, minor)) => {
                let known = (v1::VERSION, v1::MINOR);
                return Err(StoreError::NewerVersion { path, found: (version, minor), known });
            }
            Err(Unreadable::Damaged(what)) => {
                let backup = Some(self.backup_path()).filter(|b| *b != path && b.is_file());
                return Err(StoreError::Damaged { path, what, backup });
            }
        };
        match &self.project {
            Some(expected) if *expected != state.project => Err(StoreError::WrongProject {
                path,
                found: state.project,
                expected: expected.clone(),
            }),
            _ => Ok(state),
        }
    }

    /// What says that there was a state here, where there is none.
    fn evidence(&self) -> Result<Option<PathBuf>, StoreError> {
        let backup = self.backup_path();
        if file::stamp(&backup)?.is_some() {
            return Ok(Some(backup));
        }
        let journal = self.journal_path();
        let mentions = journal::mentions(&journal, self.project.as_deref())
            .map_err(StoreError::io("read it", &journal))?;
        Ok(mentions.then_some(journal))
    }
}

/// Writes a page for people, replaced as a whole; it is no part of the state, so no lock is needed.
///
/// # Errors
/// A folder or anything else that is no regular file is in its place; or it cannot be written.
pub fn publish(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    file::publish(path, bytes)
}

/// Held by one babysit at a time, on what is no state; dropping it lets the next one in.
#[derive(Debug)]
pub struct Turn {
    _lock: lock::Held,
}

/// Waits for its turn about `wait` at most. Makes the folder of the lock where there is none.
///
/// # Errors
/// `Busy`: it is still another one's. Any other: nothing can be locked there.
pub fn turn(lock: &Path, wait: Duration) -> Result<Turn, StoreError> {
    file::make_folder(file::folder_of(lock))?;
    Ok(Turn { _lock: lock::take(lock, wait)? })
}
