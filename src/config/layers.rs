//! Which of the two tables, a shard's or its family's, decides a key.

use super::document::Field;
use super::family::Settings;
use crate::model::policy::SubmitMode;

/// A family's settings under those of one shard.
#[derive(Clone, Copy)]
pub(super) struct Layers<'a> {
    pub family: &'a Settings,
    pub shard: Option<&'a Settings>,
}

impl<'a> Layers<'a> {
    /// The layer that decides a key: the shard's own where it has it.
    pub fn deciding<T: 'a>(self, field: impl Fn(&'a Settings) -> &'a Field<T>) -> &'a Settings {
        self.shard.filter(|s| !field(s).is_absent()).unwrap_or(self.family)
    }

    pub fn field<T>(self, field: impl Fn(&'a Settings) -> &'a Field<T>) -> &'a Field<T> {
        field(self.deciding(&field))
    }

    pub fn get<T>(self, field: impl Fn(&'a Settings) -> &'a Field<T>) -> Option<&'a T> {
        self.field(field).get()
    }

    /// Lists add up: the family's, then the shard's own.
    pub fn both(self, field: impl Fn(&'a Settings) -> &'a Field<Vec<String>>) -> Vec<String> {
        let layers = std::iter::once(self.family).chain(self.shard);
        layers.filter_map(|s| field(s).get()).flatten().cloned().collect()
    }

    /// Who picks the node: Slurm, unless there are several GPUs or it says otherwise.
    pub fn submit(self) -> SubmitMode {
        let gpus = *self.get(|s| &s.gpus).unwrap_or(&1);
        let usual = if gpus >= 2 { SubmitMode::Placed } else { SubmitMode::Queued };
        *self.get(|s| &s.submit).unwrap_or(&usual)
    }

    /// Its own way of starting, whichever it is, replaces the family's.
    pub fn launching(self) -> &'a Settings {
        let own = |s: &&Settings| !s.command.is_absent() || !s.script.is_absent();
        self.shard.filter(own).unwrap_or(self.family)
    }
}
