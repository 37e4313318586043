//! The one queue of placed shards (policy.md section 5): lab usage ascending, then time queued,
//! then id; made anew in every cycle.

use std::collections::BTreeMap;

use crate::model::policy::Policy;
use crate::model::state::{LabRecord, State};
use crate::model::units::Usage;

use super::by_id;
use super::measure::is_done;
use super::quick::QuickMap;

/// The placed shards that wait for a start (`waiting`, in any order), rank 1 first.
pub fn queue(policy: &Policy, state: &State, waiting: &[usize]) -> Vec<usize> {
    let standings: QuickMap<&str, Usage> =
        state.labs.iter().map(|(name, lab)| (name.as_str(), lab.usage + lab.floor)).collect();
    let key = |&i: &usize| {
        let lab = standings.get(policy.shards[i].lab.as_str());
        (lab.copied().unwrap_or_default(), state.shards[i].queued_since)
    };
    let mut waiting = waiting.to_vec();
    by_id::sort(&mut waiting, key, |&i| &policy.shards[i].id);
    waiting
}

/// What a lab is ordered by: its charges, and the floor it was given when it joined late.
pub fn standing(state: &State, lab: &str) -> Usage {
    state.labs.get(lab).map_or(Usage::default(), |lab| lab.usage + lab.floor)
}

/// Gives every lab of the policy a record. With `newcomer = "floor"` one that joins a running
/// campaign starts at the lowest standing of the labs that still have work.
pub fn welcome(policy: &Policy, state: &mut State) {
    // Labs are few, and shards of one stand together: each is looked up a few times.
    let mut unknown: Vec<String> = Vec::new();
    let mut last = None;
    for lab in policy.shards.iter().map(|shard| shard.lab.as_str()) {
        let again = last.replace(lab) == Some(lab);
        if !again && !state.labs.contains_key(lab) && !unknown.iter().any(|known| known == lab) {
            unknown.push(lab.to_owned());
        }
    }
    if unknown.is_empty() {
        return;
    }
    let mut active: BTreeMap<&str, Usage> = BTreeMap::new();
    for (shard, record) in policy.shards.iter().zip(&state.shards) {
        if !is_done(shard, record) && state.labs.contains_key(&shard.lab) {
            active.insert(&shard.lab, standing(state, &shard.lab));
        }
    }
    let lowest = active.values().min().copied().unwrap_or_default();
    let floor = if policy.rules.newcomer_floor { lowest } else { Usage::default() };
    for lab in unknown {
        state.labs.entry(lab).or_insert(LabRecord { usage: Usage::default(), floor });
    }
}
