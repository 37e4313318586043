//! What `check` asks: which shards fit no placement, by the very rules of a cycle (policy.md
//! section 5), and which GPU models no tier names.

use std::collections::BTreeSet;

use crate::model::observation::Cluster;
use crate::model::policy::{Policy, SubmitMode};
use crate::model::reason::Reason;
use crate::model::state::State;

use super::no_fit::{self, Largest};
use super::placement::{self, Placement};

/// NO_FIT_PLACEMENT by shard index; `None` where some placement can hold the shard.
pub fn unfit(policy: &Policy, state: &State, cluster: &Cluster) -> Vec<Option<Reason>> {
    let mut largest = Largest::new(cluster);
    let placements = placement::all(policy, cluster);
    let of = |i: usize| match policy.shards[i].submit {
        SubmitMode::Queued => largest.refuses(policy, state, cluster, i),
        SubmitMode::Placed => placed(policy, state, &placements, i),
    };
    (0..policy.shards.len()).map(of).collect()
}

fn placed(policy: &Policy, state: &State, all: &[Placement], i: usize) -> Option<Reason> {
    let (shard, raised) = (&policy.shards[i], state.shards[i].min_tier);
    if all.iter().any(|at| placement::fits(policy, shard, raised, at)) {
        return None;
    }
    let min = raised.or(shard.min_tier);
    let good = all.iter().filter(|p| min.is_none_or(|min| p.rank >= min));
    let largest = good.max_by_key(|p| (p.capacity, p.rank));
    let largest = largest.map(|p| (p.capacity, p.pin.tier.as_str(), p.pin.node.as_str()));
    Some(no_fit::reason(policy, shard, min, largest))
}

/// Models that the cluster has and `[tiers]` does not name.
pub fn unknown_models(policy: &Policy, cluster: &Cluster) -> BTreeSet<String> {
    let gpus = cluster.nodes.iter().flat_map(|node| node.gpus.iter().flatten());
    let models = gpus.filter_map(|gpus| gpus.model.clone());
    models.filter(|model| policy.tier_of(model).is_none()).collect()
}
