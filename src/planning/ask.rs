//! What a "queued" job asks of Slurm, which cannot be told "this model or better"
//! (policy.md section 6.1).

use crate::model::cluster::Node;
use crate::model::observation::Cluster;
use crate::model::policy::{Policy, Shard};

use super::no_fit::reachable;

/// GRES and the nodes that must be kept out because they hold an unfit model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub gres: String,
    pub exclude: Vec<String>,
}

/// Every model of the partition fits: `gpu:<n>`. One model fits: `gpu:<model>:<n>`. Several but
/// not all: `gpu:<n>` without the nodes that hold an unfit one, since Slurm mixes models on a
/// mixed node; where that leaves no node large enough, the fit model there is most of.
pub fn ask(policy: &Policy, shard: &Shard, min_tier: Option<u32>, cluster: &Cluster) -> Ask {
    let gpus = shard.gpus;
    let untyped = Ask { gres: format!("gpu:{gpus}"), exclude: Vec::new() };
    let Some(min) = min_tier.or(shard.min_tier) else { return untyped };
    let fits = |model: Option<&str>| {
        model.and_then(|m| policy.tier_of(m)).is_some_and(|tier| tier.rank >= min)
    };
    let reachable = |node: &&Node| reachable(policy, node);
    let mut fit: Vec<&str> = Vec::new();
    let mut unfit_nodes: Vec<String> = Vec::new();
    for node in cluster.nodes.iter().filter(reachable) {
        let models = node.gpus.as_deref().unwrap_or(&[]);
        for model in models.iter().filter_map(|g| g.model.as_deref()) {
            if fits(Some(model)) && !fit.contains(&model) {
                fit.push(model);
            }
        }
        if models.iter().any(|g| !fits(g.model.as_deref())) {
            unfit_nodes.push(node.name.clone());
        }
    }
    unfit_nodes.sort();
    match fit.as_slice() {
        _ if unfit_nodes.is_empty() => untyped,
        [only] => Ask { gres: format!("gpu:{only}:{gpus}"), exclude: Vec::new() },
        // Nothing fits now: asking for the lowest fit tier makes Slurm say so, or wait for it.
        [] => {
            match policy.tiers.iter().find(|tier| tier.rank >= min).and_then(|t| t.gres.first()) {
                Some(model) => Ask { gres: format!("gpu:{model}:{gpus}"), exclude: Vec::new() },
                None => untyped,
            }
        }
        _ => {
            let mut left = cluster.nodes.iter().filter(reachable);
            let big_enough = |node: &&Node| {
                let models = node.gpus.as_deref().unwrap_or(&[]);
                models.iter().map(|g| g.capacity).sum::<u32>() >= gpus
            };
            if left.any(|node| !unfit_nodes.contains(&node.name) && big_enough(&node)) {
                return Ask { gres: untyped.gres, exclude: unfit_nodes };
            }
            // All that is large enough stands on mixed nodes: one model is asked for by name.
            let there = cluster.nodes.iter().filter(reachable);
            let groups = there.flat_map(|node| node.gpus.iter().flatten());
            let mut room: Vec<(&str, u32)> = fit.iter().map(|model| (*model, 0)).collect();
            for group in groups.filter(|group| group.capacity >= gpus) {
                let known = room.iter_mut().find(|(m, _)| group.model.as_deref() == Some(*m));
                if let Some((_, sum)) = known {
                    *sum += group.capacity;
                }
            }
            room.sort_by_key(|(model, sum)| (std::cmp::Reverse(*sum), *model));
            match room.first() {
                Some((model, sum)) if *sum > 0 => {
                    Ask { gres: format!("gpu:{model}:{gpus}"), exclude: Vec::new() }
                }
                _ => Ask { gres: untyped.gres, exclude: unfit_nodes },
            }
        }
    }
}
