//! Which placements a shard fits (policy.md sections 1 and 5): static, whatever is in use now.

use std::collections::BTreeSet;

use crate::model::cluster::Node;
use crate::model::policy::{Policy, Shard};

/// A shard that no placement can ever hold: NO_FIT_PLACEMENT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoFit {
    pub asked: String,
    pub largest: String,
}

/// `None`: some node can hold it, or a node's GPUs could not be read and may be able to.
pub fn no_fit(policy: &Policy, shard: &Shard, nodes: &[Node]) -> Option<NoFit> {
    let mut largest: Option<(u32, &str, &str)> = None;
    for node in nodes.iter().filter(|node| reachable(policy, node)) {
        let Some(gpus) = &node.gpus else { return None };
        for placement in gpus {
            let model = placement.model.as_deref();
            let tier = model.and_then(|model| policy.tier_of(model));
            if let Some(min) = shard.min_tier
                && tier.is_none_or(|tier| tier.rank < min)
            {
                continue;
            }
            let most = tier.and_then(|tier| tier.max_gpus).unwrap_or(u32::MAX);
            let capacity = placement.capacity.min(most);
            if capacity >= shard.gpus {
                return None;
            }
            if largest.is_none_or(|(most, ..)| capacity > most) {
                largest = Some((capacity, model.unwrap_or("GPU"), &node.name));
            }
        }
    }
    let tier = shard.min_tier.and_then(|rank| policy.tier_by_rank(rank));
    Some(NoFit {
        asked: match tier {
            Some(tier) => format!("{}x {} or better on one node", shard.gpus, tier.name),
            None => format!("{} GPUs of one model on one node", shard.gpus),
        },
        largest: match largest {
            Some((count, model, node)) => format!("{count}x {model} on {node}"),
            None => "no such GPU at all".to_owned(),
        },
    })
}

/// Models that the cluster has and `[tiers]` does not name.
pub fn unknown_models(policy: &Policy, nodes: &[Node]) -> BTreeSet<String> {
    nodes
        .iter()
        .flat_map(|node| node.gpus.iter().flatten())
        .filter_map(|gpus| gpus.model.clone())
        .filter(|model| policy.tier_of(model).is_none())
        .collect()
}

/// In a partition that some job of ours could be sent to; all are, where none is named.
fn reachable(policy: &Policy, node: &Node) -> bool {
    let lanes = policy.lanes.iter().flat_map(|lanes| [&lanes.own, &lanes.extra]);
    let named: Vec<&String> = lanes
        .filter_map(|lane| lane.partition.as_ref())
        .chain(&policy.slurm.partition)
        .chain(policy.tiers.iter().filter_map(|tier| tier.partition.as_ref()))
        .collect();
    named.is_empty() || node.partitions.iter().any(|p| named.contains(&p))
}
