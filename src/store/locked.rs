//! What only the holder of a state's lock may do: load it to change it, save, tell the journal.

use std::io::{self, Write};

use super::clock::{Clock, Still};
use super::file::{self, Stamp, beside};
use super::recording::{self, Before, Given};
use super::{Store, StoreError, journal, lock, v1};
use crate::model::state::State;
use crate::model::units::Time;

/// The store while its lock is held; dropping it gives the lock back.
#[derive(Debug)]
pub struct Locked {
    store: Store,
    known: Option<Known>,
    lock: lock::Held,
}

/// What is on disk, as this holder of the lock last saw or wrote it.
#[derive(Debug)]
struct Known {
    stamp: Option<Stamp>,
    instance: Option<String>,
    project: Option<String>,
    /// Generation when this holder first looked: what is saved descends from it.
    base: u64,
    generation: u64,
    /// What of it is not worth a save.
    still: Option<Still>,
    /// How far the clock has moved since the save.
    clock: Option<Clock>,
}

impl Locked {
    pub(super) fn of(store: Store, lock: lock::Held) -> Locked {
        Locked { store, known: None, lock }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The name of this host, as the lock tells it.
    pub fn host(&self) -> &str {
        &self.lock.host
    }

    /// An error: another babysit has the lock as well, or wrote the state since it was read here.
    /// Cheap enough to be asked before each effect.
    pub fn still_ours(&self) -> Result<(), StoreError> {
        self.lock.check(&beside(&self.store.path, ".lock"))?;
        let Some(known) = &self.known else { return Ok(()) };
        if file::stamp(&self.store.path)? != known.stamp {
            return Err(StoreError::Stolen {
                path: self.store.path.clone(),
                what: "somebody else wrote it since it was read".to_owned(),
            });
        }
        Ok(())
    }

    /// The state; `None`: there is none and never was.
    pub fn load(&mut self) -> Result<Option<State>, StoreError> {
        let found = self.store.look()?;
        let state = found.as_ref().map(|read| &read.state);
        let generation = state.map_or(0, |s| s.generation);
        self.known = Some(Known {
            stamp: found.as_ref().map(|read| read.stamp),
            instance: state.map(|s| s.instance.clone()),
            project: state.map(|s| s.project.clone()),
            base: generation,
            generation,
            still: found.as_ref().and_then(|read| Still::of(&read.state, read.clock.as_ref())),
            clock: found.as_ref().and_then(|read| read.clock.clone()),
        });
        Ok(found.map(|read| read.state))
    }

    /// Replaces the file, and returns the generation it was given: that of `state`, or one more
    /// than the file's where the caller did not count. On disk it always grows. Where only the clock
    /// has moved since it was loaded, the file stays, and its generation is returned.
    ///
    /// Refuses where the file cannot be understood, is not the one that was loaded, or where
    /// `state` is older than it.
    pub fn save(&mut self, state: &State) -> Result<u64, StoreError> {
        if self.known.is_none() {
            self.load()?;
        }
        let path = &self.store.path;
        let Some(known) = &mut self.known else {
            let what = "it could not be looked at first".to_owned();
            return Err(StoreError::Stolen { path: path.clone(), what });
        };
        let stolen = |what: String| StoreError::Stolen { path: path.clone(), what };
        for project in [&self.store.project, &known.project].into_iter().flatten() {
            if *project != state.project {
                return Err(StoreError::WrongProject {
                    path: path.clone(),
                    found: state.project.clone(),
                    expected: project.clone(),
                });
            }
        }
        if let Some(instance) = known.instance.as_ref().filter(|i| **i != state.instance) {
            return Err(stolen(format!("it is of instance {instance}, not {}", state.instance)));
        }
        if state.generation < known.base {
            return Err(stolen(format!(
                "it is newer (generation {}) than what was to be saved ({})",
                known.base, state.generation
            )));
        }
        if file::stamp(path)? != known.stamp {
            return Err(stolen("somebody else wrote it since it was read".to_owned()));
        }
        let clock_path = self.store.clock_path();
        if let Some(clock) = known.still.and_then(|still| still.clock(known.generation, state)) {
            file::replace_cache(&clock_path, &v1::clock::line(&clock))?;
            return Ok(known.generation);
        }
        let generation = state.generation.max(known.generation.saturating_add(1));
        let replaced = file::replace(path, &self.store.backup_path(), |file| {
            v1::encode_to(state, generation, &mut |piece| file.write_all(piece))
        });
        // Also after an error: the rename may have taken place before it.
        known.stamp = file::stamp(path)?;
        (known.still, known.clock) = (None, None);
        replaced?;
        // One that stays belongs to no state any more, and is not looked at.
        file::remove(&clock_path).ok();
        known.generation = generation;
        known.instance = Some(state.instance.clone());
        known.project = Some(state.project.clone());
        Ok(generation)
    }

    /// The next save may be of another instance. For `reconcile` alone, which found the jobs of a state
    /// that was lost.
    pub fn another_instance(&mut self) {
        if let Some(known) = &mut self.known {
            known.instance = None;
        }
    }

    /// Puts the last good state in the place of one that is damaged or gone, which stays beside
    /// it as `<state>.damaged`. A state that can be read is never given up for an older one.
    pub fn take_over_backup(&mut self) -> Result<State, StoreError> {
        match self.store.look() {
            Err(StoreError::Damaged { .. } | StoreError::Vanished { .. }) => {}
            Err(other) => return Err(other),
            Ok(_) => {
                let what = "there is nothing to repair: it is readable, or never was".to_owned();
                return Err(StoreError::Stolen { path: self.store.path.clone(), what });
            }
        }
        let backup = self.store.backup_path();
        let Some((bytes, _)) = file::read(&backup)? else {
            return Err(StoreError::io("find a backup", &backup)(io::ErrorKind::NotFound.into()));
        };
        let state = self.store.decode(&backup, &bytes)?;
        file::restore(&self.store.path, &beside(&self.store.path, ".damaged"), &bytes)?;
        self.load()?;
        Ok(state)
    }

    /// Appends to the journal, one line each. A failure is worth telling, not worth failing for.
    pub fn journal(&mut self, lines: &[serde_json::Value]) -> io::Result<()> {
        let known = self.known.as_ref().and_then(|known| known.project.as_deref());
        let project = self.store.project.as_deref().or(known);
        journal::append(&self.store.journal_path(), project, lines)
    }

    /// The state as it was loaded, for `record` to read should it be needed: nothing is read here.
    /// Where there was no file, `fresh` is what a cycle begins with.
    ///
    /// # Errors
    /// The file cannot be opened, or is not the one that was loaded.
    pub fn before(&self, fresh: &State) -> io::Result<Before> {
        let known = self.known.as_ref();
        let Some((known, stamp)) = known.and_then(|known| Some((known, known.stamp?))) else {
            return Ok(Before::of(fresh.clone()));
        };
        let file = file::options().read(true).open(&self.store.path)?;
        if Stamp::of(&file.metadata()?) != stamp {
            return Err(io::Error::other("somebody else wrote it since it was read"));
        }
        Ok(Before::file(file, known.clock.as_ref().map(v1::clock::line)))
    }

    /// When a cycle was recorded last.
    pub fn recorded_at(&self) -> Option<Time> {
        recording::last(&self.store.recording_path())
    }

    /// Keeps a cycle. A failure is worth telling, not worth failing for.
    pub fn record(&mut self, given: &Given<'_>) -> io::Result<()> {
        recording::append(&self.store.recording_path(), given)
    }

    /// Never half written, but perhaps lost in a crash.
    pub fn write_cache(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        file::replace_cache(&self.store.cache_path(), bytes)
    }
}
