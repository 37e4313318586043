//! What `check` asks: which shards fit no placement, by the very rules of a cycle (policy.md
//! section 5), which GPU models no tier names, and what the way a job asks for GPUs leaves out.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::observation::Cluster;
use crate::model::policy::{Policy, SubmitMode};
use crate::model::reason::Reason;
use crate::model::state::State;

use super::ask::{Ask, ask};
use super::no_fit::{self, Largest, reachable};
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

/// GPUs that are good enough for some "queued" shards, and that their jobs will never get, because
/// GRES cannot say "this model or better" (policy.md section 6.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Indices of the shards that ask in this way.
    pub shards: Vec<usize>,
    pub ask: Ask,
    /// By model.
    pub gpus: BTreeMap<String, u32>,
    pub nodes: BTreeSet<String>,
}

pub fn left_out(policy: &Policy, state: &State, cluster: &Cluster) -> Vec<LeftOut> {
    let mut found: BTreeMap<(u32, Option<u32>), LeftOut> = BTreeMap::new();
    for (i, shard) in policy.shards.iter().enumerate() {
        if shard.submit != SubmitMode::Queued {
            continue;
        }
        let min = state.shards[i].min_tier.or(shard.min_tier);
        let class = found.entry((shard.gpus, min)).or_insert_with(|| {
            let ask = ask(policy, shard, min, cluster);
            let (gpus, nodes) = beyond(policy, cluster, shard.gpus, min, &ask);
            LeftOut { shards: Vec::new(), ask, gpus, nodes }
        });
        class.shards.push(i);
    }
    found.into_values().filter(|class| !class.gpus.is_empty()).collect()
}

/// The fit GPUs that this request does not reach.
fn beyond(
    policy: &Policy,
    cluster: &Cluster,
    want: u32,
    min: Option<u32>,
    ask: &Ask,
) -> (BTreeMap<String, u32>, BTreeSet<String>) {
    let (mut by_model, mut nodes) = (BTreeMap::new(), BTreeSet::new());
    for node in cluster.nodes.iter().filter(|node| reachable(policy, node)) {
        for group in node.gpus.iter().flatten() {
            let Some(model) = group.model.as_deref() else { continue };
            let rank = policy.tier_of(model).map(|tier| tier.rank);
            let fits = min.is_none_or(|min| rank.is_some_and(|rank| rank >= min));
            let named = ask.gres.split(':').nth(1).filter(|_| ask.gres.matches(':').count() > 1);
            let reached = match named {
                Some(only) => only.eq_ignore_ascii_case(model),
                None => !ask.exclude.contains(&node.name),
            };
            if fits && !reached && group.capacity >= want {
                *by_model.entry(model.to_owned()).or_default() += group.capacity;
                nodes.insert(node.name.clone());
            }
        }
    }
    (by_model, nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cluster::{Node, NodeGpus};
    use crate::model::policy::{Policy, Tier};
    use crate::model::shards::Shards;
    use crate::model::units::Tflops;

    fn policy() -> Policy {
        let tier = |name: &str, rank| Tier {
            name: name.to_owned(),
            gres: vec![name.to_owned()],
            rank,
            tflops: Tflops(1000),
            partition: None,
            max_gpus: None,
        };
        Policy {
            project: "p".to_owned(),
            shards: Shards::default(),
            tiers: vec![tier("rtx3080ti", 1), tier("rtx4090", 2), tier("rtx5090", 3)],
            lanes: None,
            backfill: None,
            rules: Default::default(),
            slurm: Default::default(),
            logs: "/w".into(),
            notify: None,
        }
    }

    fn cluster(nodes: &[(&str, &[(&str, u32)])]) -> Cluster {
        let gpus = |(model, capacity): &(&str, u32)| NodeGpus {
            model: Some((*model).to_owned()),
            capacity: *capacity,
            used: 0,
        };
        let node = |(name, groups): &(&str, &[(&str, u32)])| Node {
            name: (*name).to_owned(),
            gpus: Some(groups.iter().map(gpus).collect()),
            ..Node::default()
        };
        Cluster { jobs: Vec::new(), nodes: nodes.iter().map(node).collect(), me: 1 }
    }

    #[test]
    fn models_in_another_letter_case_are_known() {
        let there = cluster(&[("a", &[("RTX4090", 4), ("H100", 2)])]);
        let unknown = unknown_models(&policy(), &there);
        assert_eq!(unknown.into_iter().collect::<Vec<_>>(), ["H100"]);
    }

    #[test]
    fn what_a_request_does_not_reach() {
        let there = cluster(&[
            ("a", &[("rtx4090", 4)]),
            ("b", &[("rtx5090", 4)]),
            ("mixed", &[("rtx3080ti", 2), ("rtx5090", 8)]),
        ]);
        let policy = policy();
        let check = |gres: &str, exclude: &[&str], want: u32, expected: &[(&str, u32)]| {
            let exclude = exclude.iter().map(|node| (*node).to_owned()).collect();
            let ask = Ask { gres: gres.to_owned(), exclude };
            let (gpus, _) = beyond(&policy, &there, want, Some(2), &ask);
            let gpus: Vec<(&str, u32)> = gpus.iter().map(|(m, n)| (m.as_str(), *n)).collect();
            assert_eq!(gpus, expected, "{gres}");
        };
        check("gpu:1", &["mixed"], 1, &[("rtx5090", 8)]);
        check("gpu:8", &["mixed"], 8, &[("rtx5090", 8)]);
        check("gpu:rtx5090:8", &[], 8, &[]);
        check("gpu:rtx5090:1", &[], 1, &[("rtx4090", 4)]);
        check("gpu:1", &[], 1, &[]);
    }
}
