//! Which shards' jobs may stand in for each other's, as numbers.

use std::collections::HashMap;

use crate::model::policy::{Kin, Launch, Shard, SubmitMode};
use crate::model::state::ShardRecord;
use crate::planning::pilots::group;

/// Numbers for what shards ask of Slurm.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    may: HashMap<String, u32>,
    set: HashMap<String, u32>,
}

impl Kinds {
    /// `None`: `pilot = "any"` could not stand in shards.toml for it.
    pub fn may(&mut self, shard: &Shard) -> Option<u32> {
        let may = matches!(shard.launch, Launch::Command(_)) && shard.submit == SubmitMode::Queued;
        let any = Shard { kin: Kin::Any, ..shard.clone() };
        may.then(|| number(&mut self.may, group(&any, None)))
    }

    /// `None`: its jobs are no pilots.
    pub fn set(&mut self, shard: &Shard, record: &ShardRecord) -> Option<u32> {
        shard.pilot.then(|| number(&mut self.set, group(shard, record.min_tier)))
    }
}

fn number(known: &mut HashMap<String, u32>, group: String) -> u32 {
    let next = known.len() as u32;
    *known.entry(group).or_insert(next)
}
