//! The GPUs that labs share in a placement campaign.

use std::collections::BTreeMap;

use crate::model::policy::{Policy, Tier};
use crate::model::state::State;
use crate::model::units::Tflops;
use crate::sim::{Cluster, Rows, Table};

/// Nodes by tier; no job can have more GPUs than a node of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    pub tiers: Vec<Tier>,
    nodes: Vec<Nodes>,
}

/// So many nodes with so many GPUs of one model.
#[derive(Debug, Clone, PartialEq)]
struct Nodes {
    model: String,
    gpus: u32,
    count: u32,
}

/// The tiers of the reference, weakest first: name and TFLOPS, nodes and GPUs of each node.
const FIELD: [(&str, f64, u32, u32); 3] =
    [("rtx3080ti", 34.1, 4, 2), ("rtx4090", 82.6, 4, 4), ("rtx5090", 104.8, 2, 8)];
/// The tier on which a job runs as long as it says.
const REFERENCE: f64 = 82.6;

impl Site {
    /// The cluster that the reference figures were made on.
    pub fn field() -> Site {
        let tiers = FIELD.into_iter().zip(1..);
        let nodes = FIELD.into_iter();
        Site {
            tiers: tiers.map(|((name, tflops, ..), rank)| tier(name, rank, tflops)).collect(),
            nodes: nodes
                .map(|(name, _, count, gpus)| Nodes { model: name.to_owned(), gpus, count })
                .collect(),
        }
    }

    /// The placements that the last tick saw, whoever had their GPUs then; `None`: none has seen any.
    pub fn of(policy: &Policy, state: &State) -> Option<Site> {
        let seen = state.learned.placements.iter().filter(|alike| alike.up && alike.reachable);
        // Placements of several nodes may be apart by what is idle there, which is all the same here.
        let mut nodes: BTreeMap<(&str, u32), u32> = BTreeMap::new();
        for alike in seen.filter(|alike| alike.capacity > 0) {
            let count = (alike.nodes.len() as u32).saturating_add(alike.more);
            *nodes.entry((&alike.tier, alike.capacity)).or_default() += count;
        }
        let tiers: Vec<Tier> =
            policy.tiers.iter().map(|tier| Tier { partition: None, ..tier.clone() }).collect();
        // A model that no tier names is shown by a tick; nothing is placed on it.
        let model = |name: &str| tiers.iter().find(|tier| tier.name == name)?.gres.first().cloned();
        let nodes: Vec<Nodes> = nodes
            .into_iter()
            .filter_map(|((name, gpus), count)| Some(Nodes { model: model(name)?, gpus, count }))
            .collect();
        (!nodes.is_empty()).then_some(Site { tiers, nodes })
    }

    /// All GPUs of it.
    pub fn gpus(&self) -> u32 {
        self.nodes.iter().map(|nodes| nodes.gpus.saturating_mul(nodes.count)).sum()
    }

    pub(super) fn build(&self, mut cluster: Cluster<Rows>) -> Cluster<Rows> {
        for nodes in &self.nodes {
            for n in 0..nodes.count {
                let name = format!("{}-{}-{n}", nodes.model, nodes.gpus);
                cluster = cluster.node(&name, &[(&nodes.model, nodes.gpus)]);
            }
        }
        cluster
    }

    /// The same work takes longer on a slower tier.
    pub(super) fn by_tier(&self, table: Table) -> Table {
        self.tiers.iter().fold(table, |table, tier| {
            table.slower_on(&tier.name, REFERENCE / tier.tflops.as_f64())
        })
    }
}

fn tier(name: &str, rank: u32, tflops: f64) -> Tier {
    Tier {
        name: name.to_owned(),
        gres: vec![name.to_owned()],
        rank,
        tflops: Tflops::from_f64(tflops).unwrap_or_default(),
        partition: None,
        max_gpus: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::state::Alike;

    fn seen(tier: &str, capacity: u32, nodes: u32, up: bool) -> Alike {
        let nodes = (0..nodes).map(|n| format!("n{n}")).collect();
        Alike { tier: tier.to_owned(), capacity, nodes, up, reachable: true, ..Alike::default() }
    }

    #[test]
    fn the_reference_has_forty_gpus() {
        assert_eq!(Site::field().gpus(), crate::study::lab_mix::CAPACITY);
    }

    #[test]
    fn a_site_is_what_the_last_tick_saw_less_what_nobody_can_use() {
        let policy = Policy { tiers: Site::field().tiers, ..crate::study::placing::empty() };
        let mut state = State::new("p", "00112233aabb");
        assert_eq!(Site::of(&policy, &state), None);
        state.learned.placements = vec![
            seen("rtx4090", 4, 2, true),
            Alike { more: 3, ..seen("rtx4090", 4, 1, true) },
            seen("rtx5090", 8, 1, false),
            seen("xpu", 8, 1, true),
        ];
        let site = Site::of(&policy, &state).expect("two kinds of placements are up");
        assert_eq!(site.gpus(), 24);
    }
}
