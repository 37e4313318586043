//! Reading a recording back, as far as it is good: what is damaged is told with its place, and the
//! next segment goes on.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::super::v1::cycle::{self, Document};
use super::segments::segments;
use super::{Recorded, bad, patch};

/// Largest file that is read: no segment comes near it.
const MOST: u64 = 512 << 20;

/// What cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub path: PathBuf,
    /// Byte at which the cycle begins.
    pub at: u64,
    /// Place of the cycle in the file, from 1.
    pub cycle: usize,
    pub what: String,
    /// The rest of the file is lost with it, since it builds on this.
    pub ends_file: bool,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { path, at, cycle, what, ends_file } = self;
        let rest = if *ends_file { "; the rest of the file cannot be read" } else { "" };
        write!(f, "{}: cycle {cycle} of it (byte {at}): {what}{rest}", path.display())
    }
}

/// The cycles of a recording, oldest first.
pub struct Reading {
    files: VecDeque<PathBuf>,
    open: Option<Open>,
}

struct Open {
    path: PathBuf,
    bytes: Vec<u8>,
    at: usize,
    cycle: usize,
    base: Vec<Rc<[u8]>>,
}

/// A recording's folder, or one segment of it.
///
/// # Errors
/// There is no recording.
pub fn read(path: &Path) -> io::Result<Reading> {
    let meta = path.metadata()?;
    let files: VecDeque<PathBuf> = if meta.is_dir() {
        segments(path)?.into_iter().map(|(_, path, _)| path).collect()
    } else {
        VecDeque::from([path.to_owned()])
    };
    if files.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no recording is in it"));
    }
    Ok(Reading { files, open: None })
}

impl Open {
    fn new(path: PathBuf) -> Result<Open, Damage> {
        let open = |path: &Path| {
            let mut bytes = Vec::new();
            let file = super::super::file::options().read(true).open(path)?;
            if !file.metadata()?.is_file() {
                return Err(bad("it is no regular file"));
            }
            file.take(MOST).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        match open(&path) {
            Ok(bytes) => Ok(Open { path, bytes, at: 0, cycle: 0, base: Vec::new() }),
            Err(error) => {
                let what = error.to_string();
                Err(Damage { path, at: 0, cycle: 1, what, ends_file: true })
            }
        }
    }

    /// `None`: that was all.
    fn next(&mut self) -> Option<Result<Recorded, Damage>> {
        let mut rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let (at, before) = (self.at, rest.len());
        self.cycle += 1;
        let damage = |what: io::Error, ends_file, open: &Open| {
            let what = match what.kind() {
                io::ErrorKind::UnexpectedEof => "it is cut off".to_owned(),
                _ => what.to_string(),
            };
            Damage { path: open.path.clone(), at: at as u64, cycle: open.cycle, what, ends_file }
        };
        let head = match patch::read(&mut rest, &mut self.base) {
            Ok(head) => head,
            Err(error) => {
                let damage = damage(error, true, self);
                self.at = self.bytes.len();
                return Some(Err(damage));
            }
        };
        self.at += before - rest.len();
        Some(match cycle::read(&self.base) {
            Ok(Document { policy, state, seen, plan }) => Ok(Recorded {
                policy,
                state,
                seen,
                now: head.at.0,
                seed: head.seed,
                plan,
                version: head.babysit,
                place: format!("{}, cycle {} of it", self.path.display(), self.cycle),
            }),
            Err(error) => {
                let written = format!("{error} (written by babysit {})", head.babysit);
                Err(damage(bad(written), false, self))
            }
        })
    }
}

impl Iterator for Reading {
    type Item = Result<Recorded, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(next) = self.open.as_mut().and_then(Open::next) {
                return Some(next);
            }
            self.open = None;
            match Open::new(self.files.pop_front()?) {
                Ok(open) => self.open = Some(open),
                Err(damage) => return Some(Err(damage)),
            }
        }
    }
}
