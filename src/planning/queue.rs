//! The one queue of placed shards (policy.md section 5): lab usage ascending, then time queued,
//! then id; made anew in every cycle.

use std::collections::BTreeMap;

use crate::model::policy::Policy;
use crate::model::state::{LabRecord, State};
use crate::model::units::Usage;

use super::measure::is_done;
use super::rank;

/// The placed shards that wait for a start (`waiting`, in any order), rank 1 first.
pub fn queue(policy: &Policy, state: &State, waiting: &[usize]) -> Vec<usize> {
    let shards = &policy.shards;
    let standings: Vec<Usage> = shards.labs().iter().map(|lab| standing(state, lab)).collect();
    let (lab_of, by_id) = (shards.lab_of(), shards.by_id());
    let mut waiting = waiting.to_vec();
    waiting.sort_by_cached_key(|&i| {
        rank::key(standings[lab_of[i] as usize].0, state.shards[i].queued_since, by_id[i])
    });
    waiting
}

/// What a lab is ordered by: its charges, and the floor it was given when it joined late.
pub fn standing(state: &State, lab: &str) -> Usage {
    state.labs.get(lab).map_or(Usage::default(), |lab| lab.usage + lab.floor)
}

/// Gives every lab of the policy a record. With `newcomer = "floor"` one that joins a running
/// campaign starts at the lowest standing of the labs that still have work.
pub fn welcome(policy: &Policy, state: &mut State) {
    let unknown = policy.shards.labs().iter().filter(|lab| !state.labs.contains_key(&***lab));
    let unknown: Vec<String> = unknown.map(|lab| lab.to_string()).collect();
    if unknown.is_empty() {
        return;
    }
    let mut active: BTreeMap<&str, Usage> = BTreeMap::new();
    for (shard, record) in policy.shards.iter().zip(&state.shards) {
        if !is_done(shard, record) && state.labs.contains_key(&*shard.lab) {
            active.insert(&shard.lab, standing(state, &shard.lab));
        }
    }
    let lowest = active.values().min().copied().unwrap_or_default();
    let floor = if policy.rules.newcomer_floor { lowest } else { Usage::default() };
    for lab in unknown {
        state.labs.entry(lab).or_insert(LabRecord { usage: Usage::default(), floor });
    }
}
