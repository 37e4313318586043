//! What a cycle saw of the placements, small enough to be remembered: `why` asks Slurm nothing, and
//! the state does not hold a line per node. Nothing is decided by it.

use std::cmp::Reverse;

use crate::model::cluster::{Node, NodeGpus, Usable};
use crate::model::observation::Cluster;
use crate::model::policy::{Policy, Shard};
use crate::model::state::Alike;

use super::bad_nodes::is_usable;
use super::placement::{self, Placement, reachable};

/// Nodes that are kept by name; of the others only the number.
const NAMED: usize = 4;

/// What is shown of one placement.
struct View<'a> {
    node: &'a str,
    tier: &'a str,
    rank: u32,
    capacity: u32,
    idle: u32,
    reserved: u32,
    held_by_backfill: u32,
    up: bool,
    reachable: bool,
}

/// The placements, those that differ in nothing but their node taken together; best first: usable,
/// then tier, then idle GPUs.
pub fn alike(policy: &Policy, placements: &[Placement]) -> Vec<Alike> {
    let views = placements.iter().map(|p| View {
        node: &p.pin.node,
        tier: &p.pin.tier,
        rank: p.rank,
        capacity: p.capacity,
        idle: p.idle,
        reserved: p.reserved,
        held_by_backfill: p.held_by_backfill,
        up: p.up,
        reachable: reachable(policy, p),
    });
    together(views, Vec::new())
}

/// `old`: what an earlier cycle saw; its memory is used again.
fn together<'a>(views: impl Iterator<Item = View<'a>>, old: Vec<Alike>) -> Vec<Alike> {
    // By key, with the nodes that are named so far. They are few, however many nodes there are.
    let mut groups: Vec<(Key, usize, Alike)> = Vec::with_capacity(old.len());
    let mut old = old.into_iter();
    for p in views {
        let key = (
            Reverse((p.up, p.rank, p.idle, p.capacity)),
            (p.reserved, p.held_by_backfill, p.reachable),
        );
        let at = groups.binary_search_by(|(known, ..)| known.cmp(&key)).unwrap_or_else(|at| {
            let Alike { mut tier, nodes, .. } = old.next().unwrap_or_default();
            p.tier.clone_into(&mut tier);
            let group = Alike {
                tier,
                capacity: p.capacity,
                idle: p.idle,
                reserved: p.reserved,
                held_by_backfill: p.held_by_backfill,
                up: p.up,
                reachable: p.reachable,
                nodes,
                more: 0,
            };
            groups.insert(at, (key, 0, group));
            at
        });
        let Some((_, named, group)) = groups.get_mut(at) else { continue };
        if *named == NAMED {
            group.more += 1;
            continue;
        }
        match group.nodes.get_mut(*named) {
            Some(name) => p.node.clone_into(name),
            None => group.nodes.push(p.node.to_owned()),
        }
        *named += 1;
    }
    let done = |(_, named, mut group): (Key, usize, Alike)| {
        group.nodes.truncate(named);
        group
    };
    groups.into_iter().map(done).collect()
}

/// All that placements of one group have in common, the best first.
type Key = (Reverse<(bool, u32, u32, u32)>, (u32, u32, bool));

/// What a cycle saw that placed nothing: shards that wait in Slurm's queue wait for GPUs, too. `old`:
/// what an earlier cycle saw, which is not needed any more.
pub fn seen<'a>(policy: &Policy, cluster: &'a Cluster, old: Vec<Alike>) -> Vec<Alike> {
    if !policy.tiers.is_empty() {
        return alike(policy, &placement::all(policy, cluster));
    }
    // By model where shards.toml ranks none; only to be shown, so no placement is made of it.
    let of_node = |node: &'a Node| {
        let partition = policy.slurm.partition.as_ref();
        let reachable = partition.is_none_or(|p| node.partitions.contains(p));
        let view = move |NodeGpus { model, capacity, used }: &'a NodeGpus| View {
            node: &node.name,
            tier: model.as_deref().unwrap_or("GPU"),
            rank: 0,
            capacity: *capacity,
            idle: if node.usable == Usable::Yes { capacity.saturating_sub(*used) } else { 0 },
            reserved: 0,
            held_by_backfill: 0,
            up: is_usable(node),
            reachable,
        };
        node.gpus.iter().flatten().map(view)
    };
    together(cluster.nodes.iter().flat_map(of_node), old)
}

/// Those that could hold the shard, by the rule of `placement::fits`.
pub fn fit<'a>(
    policy: &Policy,
    shard: &Shard,
    min_tier: Option<u32>,
    seen: &'a [Alike],
) -> Vec<&'a Alike> {
    let fits = |group: &&Alike| {
        let holds = group.reachable && group.capacity >= shard.gpus;
        if policy.tiers.is_empty() {
            return holds;
        }
        let tier = policy.tiers.iter().find(|tier| tier.name == group.tier);
        tier.is_some_and(|tier| {
            min_tier.or(shard.min_tier).is_none_or(|min| tier.rank >= min)
                && tier.max_gpus.is_none_or(|most| shard.gpus <= most)
                && holds
        })
    };
    seen.iter().filter(fits).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::id::ShardId;
    use crate::model::policy::{Rules, SlurmSettings, SubmitMode, Tier};
    use crate::model::state::Pin;
    use crate::model::units::Tflops;

    pub fn policy() -> Policy {
        let tier = |name: &str, rank| Tier {
            name: name.to_owned(),
            gres: vec![name.to_owned()],
            rank,
            tflops: Tflops(1000),
            partition: None,
            max_gpus: None,
        };
        let shard = Shard {
            gpus: 2,
            min_tier: Some(2),
            submit: SubmitMode::Placed,
            ..Shard::plain(ShardId::new("a", "s0"))
        };
        Policy {
            project: "p".to_owned(),
            shards: vec![shard].into(),
            tiers: vec![tier("small", 1), tier("large", 2)],
            lanes: None,
            backfill: None,
            rules: Rules::default(),
            slurm: SlurmSettings { partition: Some("gpu".to_owned()), ..SlurmSettings::default() },
            logs: "/w".into(),
            notify: None,
        }
    }

    fn placement(node: &str, tier: &str, rank: u32, capacity: u32, idle: u32) -> Placement {
        Placement {
            pin: Pin { node: node.to_owned(), tier: tier.to_owned() },
            model: tier.to_owned(),
            rank,
            capacity,
            idle,
            held_by_backfill: 0,
            reserved: 0,
            cpus_idle: None,
            mem_idle: None,
            partitions: vec!["gpu".to_owned()],
            up: true,
        }
    }

    #[test]
    fn a_thousand_nodes_are_a_few_lines_and_none_is_lost() {
        let mut all: Vec<Placement> =
            (0..1000).map(|i| placement(&format!("n{i:03}"), "large", 2, 4, i % 2)).collect();
        all.push(placement("x", "small", 1, 8, 8));
        all.push(Placement { partitions: Vec::new(), ..placement("y", "large", 2, 4, 4) });
        let policy = policy();
        let seen = alike(&policy, &all);
        assert_eq!(seen.len(), 4);
        let nodes: usize = seen.iter().map(|group| group.nodes.len() + group.more as usize).sum();
        assert_eq!(nodes, 1002);
        let fit = fit(&policy, &policy.shards[0], None, &seen);
        let shown: Vec<(u32, &str)> =
            fit.iter().map(|group| (group.idle, group.nodes[0].as_str())).collect();
        assert_eq!(shown, [(1, "n001"), (0, "n000")], "neither too small a model nor out of reach");
    }

    #[test]
    fn nothing_is_left_of_what_an_earlier_cycle_saw() {
        let nodes = |count: u32, of_models: u32| {
            let node = |i| Node {
                name: format!("n{i}"),
                usable: Usable::Yes,
                gpus: Some(vec![NodeGpus {
                    model: Some(format!("m{}", i % of_models)),
                    capacity: 2 + i % of_models,
                    used: 0,
                }]),
                ..Node::default()
            };
            Cluster { jobs: Vec::new(), nodes: (0..count).map(node).collect(), me: 1 }
        };
        let policy = Policy { tiers: Vec::new(), ..policy() };
        let mut old = Vec::new();
        for (count, of_models) in [(9, 2), (2, 2), (0, 1), (12, 5), (3, 1), (12, 5)] {
            let cluster = nodes(count, of_models);
            old = seen(&policy, &cluster, old);
            assert_eq!(old, seen(&policy, &cluster, Vec::new()), "{count} {of_models}");
        }
    }
}
