//! Recordings: what each cycle was given to decide on, and what it planned, kept so that it can be
//! planned again. Losing one loses no state, so nothing is synced, and a failure fails no cycle.
//!
//! A recording is a folder of segments, each a file of its own: one gzip member a cycle (`zcat`
//! shows them), of which the first holds everything and each later one what differs from the one
//! before it, line by line. A segment can be read without the others.

mod patch;
mod read;
mod segments;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;

use crate::model::observation::Observation;
use crate::model::policy::Policy;
use crate::model::state::State;
use crate::model::units::Time;

pub use self::read::{Damage, Reading, read};
pub(super) use self::segments::{append, files, last};

/// Of the form of recordings; a later one is told, and not read.
const FORM: u64 = 1;

/// What is recorded of a cycle.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    pub policy: &'a Policy,
    pub before: &'a Before,
    pub seen: &'a Observation,
    pub now: Time,
    pub seed: u64,
    /// The plan as text, to compare with.
    pub plan: &'a str,
}

/// The state that a cycle began with.
pub struct Before(Held);

pub(super) enum Held {
    /// Still open: a save puts another file in its place and leaves this one as it was, so that a
    /// cycle of which nothing is recorded costs nothing. With its clock, where that has moved.
    File(File, Option<Vec<u8>>),
    State(Box<State>),
}

impl Before {
    pub fn of(state: State) -> Before {
        Before(Held::State(Box::new(state)))
    }

    pub(super) fn held(&self) -> &Held {
        let Before(held) = self;
        held
    }

    pub(super) fn file(file: File, clock: Option<Vec<u8>>) -> Before {
        Before(Held::File(file, clock))
    }
}

/// A recorded cycle, read back.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    pub policy: Policy,
    pub state: State,
    pub seen: Observation,
    pub now: Time,
    pub seed: u64,
    pub plan: String,
    /// The babysit that recorded it.
    pub version: String,
    /// `FILE, cycle N of it`
    pub place: String,
}

/// An error of what was read, not of reading it.
pub(super) fn bad(what: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}
