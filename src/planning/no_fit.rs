//! NO_FIT_PLACEMENT (policy.md section 5): a shard that no placement of the cluster could ever hold
//! is refused at once, with what was asked and the largest there is. Nothing of it is remembered:
//! each cycle looks again, so it ends by itself when capacities change.

use std::collections::BTreeMap;

use crate::model::cluster::Node;
use crate::model::observation::Cluster;
use crate::model::policy::{Policy, Shard};
use crate::model::reason::Reason;
use crate::model::state::State;

/// The largest group of GPUs of one model, by minimum tier; nodes that are down count.
#[derive(Debug, Default)]
pub struct Largest {
    by_min: BTreeMap<Option<u32>, Option<Group>>,
    /// A node whose GPUs cannot be read may hold anything.
    unknown: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    capacity: u32,
    model: String,
    node: String,
}

impl Largest {
    pub fn new(cluster: &Cluster) -> Largest {
        let unknown = cluster.nodes.is_empty() || cluster.nodes.iter().any(|n| n.gpus.is_none());
        Largest { by_min: BTreeMap::new(), unknown }
    }

    /// Why this queued shard fits nowhere; `None` where it does.
    pub fn refuses(
        &mut self,
        policy: &Policy,
        state: &State,
        cluster: &Cluster,
        shard: usize,
    ) -> Option<Reason> {
        let spec = &policy.shards[shard];
        let min = state.shards[shard].min_tier.or(spec.min_tier);
        let group =
            self.by_min.entry(min).or_insert_with(|| largest(policy, cluster, min)).as_ref();
        let fits = group.is_some_and(|group| group.capacity >= spec.gpus);
        if fits || self.unknown {
            return None;
        }
        let largest =
            group.map(|group| (group.capacity, group.model.as_str(), group.node.as_str()));
        Some(reason(policy, spec, min, largest))
    }
}

fn largest(policy: &Policy, cluster: &Cluster, min: Option<u32>) -> Option<Group> {
    let tier = |model: Option<&str>| model.and_then(|m| policy.tier_of(m));
    let good =
        |model: Option<&str>| min.is_none_or(|min| tier(model).is_some_and(|t| t.rank >= min));
    let groups = cluster.nodes.iter().filter(|node| reachable(policy, node)).flat_map(|node| {
        node.gpus.iter().flatten().filter(|gpus| good(gpus.model.as_deref())).map(|gpus| Group {
            // No shard may ask for more of a tier than its max_gpus.
            capacity: match tier(gpus.model.as_deref()).and_then(|tier| tier.max_gpus) {
                Some(most) => gpus.capacity.min(most),
                None => gpus.capacity,
            },
            model: gpus.model.clone().unwrap_or_else(|| "GPU".to_owned()),
            node: node.name.clone(),
        })
    });
    groups.filter(|group| group.capacity > 0).max_by_key(|group| group.capacity)
}

/// Can a "queued" job get to this node at all?
pub fn reachable(policy: &Policy, node: &Node) -> bool {
    // A lane with a partition of its own goes before the common one: then any node may be meant.
    let by_lane = policy
        .lanes
        .as_ref()
        .is_some_and(|lanes| lanes.own.partition.is_some() || lanes.extra.partition.is_some());
    let partition = policy.slurm.partition.as_ref().filter(|_| !by_lane);
    partition.is_none_or(|p| node.partitions.contains(p))
}

/// The sentence's parts: asked, and the largest (GPUs, model, node) there is.
pub fn reason(
    policy: &Policy,
    shard: &Shard,
    min_tier: Option<u32>,
    largest: Option<(u32, &str, &str)>,
) -> Reason {
    let tier = min_tier.and_then(|rank| policy.tier_by_rank(rank));
    let gpus = if shard.gpus == 1 { "1 GPU".to_owned() } else { format!("{} GPUs", shard.gpus) };
    let asked = match tier {
        Some(tier) => format!("{gpus} of {} or better on one node", tier.name),
        None if shard.gpus == 1 => format!("{gpus} of any model"),
        None => format!("{gpus} of one model on one node"),
    };
    let largest = match largest {
        Some((gpus, model, node)) => format!("{gpus}x {model} on {node}"),
        None => match &policy.slurm.partition {
            Some(partition) => format!("no node with such a model in partition {partition}"),
            None => "no node with such a model".to_owned(),
        },
    };
    Reason::NoFit { asked, largest }
}
