//! The clock of a state as one line of JSON, as the file beside the state has it.

use serde::Deserialize;

use super::super::clock::Clock;
use super::form::{Blank, Form, disk_struct};
use crate::model::state::{OthersInOwn, TickRecord};
use crate::model::units::{Secs, Time};

disk_struct!(DiskClock for Clock {
    instance: String,
    generation: u64,
    since: Time,
    last_tick: TickRecord;
    tick_every: Option<Secs>,
    others_in_own: Option<OthersInOwn>
});

pub(in crate::store) fn line(clock: &Clock) -> Vec<u8> {
    let mut line = Vec::new();
    clock.spell(&mut line);
    line
}

/// `None`: it is no clock of this build.
pub(in crate::store) fn read(line: &[u8]) -> Option<Clock> {
    let disk: DiskClock<'_> = serde_json::from_slice(line).ok()?;
    Some(Form::from_disk(disk))
}
