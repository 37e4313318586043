//! What a first shards.toml should say of a cluster: tiers, partition, and which QOS look like the two
//! lanes of policy.md section 1. Guesses for a person to correct; no cycle uses them.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::survey::{Qos, Survey};

use super::known_gpus::tflops;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Draft {
    /// Known models, the weakest first.
    pub tiers: Vec<(Model, f64)>,
    pub unknown: Vec<Model>,
    /// GPUs whose GRES names no model.
    pub untyped: u32,
    /// To be named, since jobs that name none go where no GPUs are.
    pub partition: Option<String>,
    /// Partitions with GPUs.
    pub partitions: Vec<String>,
    /// Own and extra; the first pair is the likeliest.
    pub lanes: Vec<(Qos, Qos)>,
    /// What the user may use, as far as it was learned.
    pub usable: Vec<Qos>,
}

/// One GPU model of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Model {
    /// As Slurm spells it.
    pub name: String,
    pub gpus: u32,
    pub nodes: u32,
    /// Where jobs for it must go, if not where all others go.
    pub partition: Option<String>,
}

pub fn draft(survey: &Survey) -> Draft {
    let mut draft = Draft::default();
    hardware(survey, &mut draft);
    draft.usable = usable(survey);
    draft.lanes = lanes(&draft.usable);
    draft
}

#[derive(Default)]
struct Found {
    model: Model,
    /// GPUs by partition.
    partitions: BTreeMap<String, u32>,
}

fn hardware(survey: &Survey, draft: &mut Draft) {
    let Ok(nodes) = &survey.nodes else { return };
    // Letter case does not tell models apart.
    let mut models: BTreeMap<String, Found> = BTreeMap::new();
    let mut by_partition: BTreeMap<String, u32> = BTreeMap::new();
    for node in nodes {
        for gpus in node.gpus.iter().flatten().filter(|gpus| gpus.capacity > 0) {
            for partition in &node.partitions {
                *by_partition.entry(partition.clone()).or_default() += gpus.capacity;
            }
            let Some(name) = &gpus.model else {
                draft.untyped += gpus.capacity;
                continue;
            };
            let found = models.entry(name.to_ascii_lowercase()).or_default();
            found.model.name.clone_from(name);
            found.model.gpus += gpus.capacity;
            found.model.nodes += 1;
            for partition in &node.partitions {
                *found.partitions.entry(partition.clone()).or_default() += gpus.capacity;
            }
        }
    }
    let default = survey.default_partition.as_ref();
    // The default one if it has any GPUs, else the one with most.
    let usual = default.filter(|name| by_partition.contains_key(*name)).cloned();
    let usual = usual.or_else(|| most(&by_partition));
    draft.partition = usual.clone().filter(|name| Some(name) != default);
    draft.partitions = by_partition.into_keys().collect();
    for Found { mut model, partitions } in models.into_values() {
        let reached = usual.as_ref().is_some_and(|usual| partitions.contains_key(usual));
        model.partition = if reached { None } else { most(&partitions) };
        match tflops(&model.name) {
            Some(tflops) => draft.tiers.push((model, tflops)),
            None => draft.unknown.push(model),
        }
    }
    // The models came by name, and this keeps that order among equals.
    draft.tiers.sort_by(|(_, a), (_, b)| a.total_cmp(b));
}

/// The first of those with the highest number.
fn most(counts: &BTreeMap<String, u32>) -> Option<String> {
    let top = counts.values().max()?;
    counts.iter().find(|(_, count)| *count == top).map(|(name, _)| name.clone())
}

/// An association without a list of its own takes any that it is not barred from.
fn usable(survey: &Survey) -> Vec<Qos> {
    let Ok(all) = &survey.qos else { return Vec::new() };
    let listed: BTreeSet<&String> = survey.allowed.iter().flatten().collect();
    let may = |qos: &&Qos| listed.is_empty() || listed.contains(&qos.name);
    all.iter().filter(may).cloned().collect()
}

/// Own is limited in GPUs and may end the jobs of extra. The largest own goes first; beside it, the
/// extra that is least limited.
fn lanes(usable: &[Qos]) -> Vec<(Qos, Qos)> {
    let limit = |qos: &Qos| qos.gpus.or(qos.gpus_per_user);
    let mut pairs = Vec::new();
    for own in usable.iter().filter(|own| limit(own).is_some()) {
        let gives_way = |extra: &&Qos| own.preempts.contains(&extra.name) && extra.name != own.name;
        pairs.extend(usable.iter().filter(gives_way).map(|extra| (own.clone(), extra.clone())));
    }
    pairs.sort_by_key(|(own, extra)| {
        let room = std::cmp::Reverse(limit(extra).unwrap_or(u32::MAX));
        (std::cmp::Reverse(limit(own)), own.name.clone(), room, extra.name.clone())
    });
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cluster::{Node, NodeGpus};
    use crate::model::observation::{Gap, GapKind};

    fn node(partitions: &[&str], gpus: &[(&str, u32)]) -> Node {
        let one = |(model, capacity): &(&str, u32)| NodeGpus {
            model: Some((*model).to_owned()).filter(|model| !model.is_empty()),
            capacity: *capacity,
            used: 0,
        };
        Node {
            partitions: partitions.iter().map(|name| (*name).to_owned()).collect(),
            gpus: Some(gpus.iter().map(one).collect()),
            ..Node::default()
        }
    }

    fn survey(default: &str, nodes: Vec<Node>, qos: Vec<Qos>, allowed: &[&str]) -> Survey {
        Survey {
            nodes: Ok(nodes),
            default_partition: Some(default.to_owned()),
            qos: Ok(qos),
            allowed: Ok(allowed.iter().map(|name| (*name).to_owned()).collect()),
            accounts: Ok(Vec::new()),
        }
    }

    #[test]
    fn models_are_ranked_and_sent_where_they_are() {
        let nodes = vec![
            node(&["cpu"], &[]),
            node(&["gpu", "short"], &[("rtx4090", 4), ("xpu9", 1)]),
            node(&["gpu"], &[("RTX4090", 2), ("a100", 2)]),
            node(&["big"], &[("h100", 8), ("", 3)]),
        ];
        let draft = draft(&survey("cpu", nodes.clone(), Vec::new(), &[]));
        let tiers: Vec<_> = draft
            .tiers
            .iter()
            .map(|(m, tflops)| (m.name.as_str(), m.gpus, m.nodes, m.partition.as_deref(), *tflops))
            .collect();
        // big has most GPUs, so the others have to be named.
        assert_eq!(
            tiers,
            [
                ("RTX4090", 6, 2, Some("gpu"), 165.2),
                ("a100", 2, 1, Some("gpu"), 312.0),
                ("h100", 8, 1, None, 989.0)
            ]
        );
        assert_eq!((draft.unknown[0].name.as_str(), draft.untyped), ("xpu9", 3));
        assert_eq!(draft.partition.as_deref(), Some("big"));

        let draft = super::draft(&survey("gpu", nodes, Vec::new(), &[]));
        assert_eq!((draft.partition, draft.tiers[2].0.partition.as_deref()), (None, Some("big")));
    }

    #[test]
    fn lanes_are_a_limited_qos_and_one_that_gives_way_to_it() {
        let qos = |name: &str, gpus: Option<u32>, preempts: &[&str]| Qos {
            name: name.to_owned(),
            gpus,
            gpus_per_user: None,
            preempts: preempts.iter().map(|name| (*name).to_owned()).collect(),
        };
        let all = vec![
            qos("normal", None, &[]),
            qos("own", Some(4), &["low", "extra"]),
            qos("extra", None, &[]),
            qos("low", Some(1), &[]),
            qos("other-lab", Some(16), &["extra"]),
            qos("boss", None, &["extra"]),
        ];
        let check = |allowed: &[&str], expected: &[(&str, &str)]| {
            let draft = draft(&survey("gpu", Vec::new(), all.clone(), allowed));
            let names: Vec<_> =
                draft.lanes.iter().map(|(a, b)| (a.name.as_str(), b.name.as_str())).collect();
            assert_eq!(names, expected, "{allowed:?}");
        };
        check(&["normal", "own", "extra"], &[("own", "extra")]);
        check(&["own", "extra", "low"], &[("own", "extra"), ("own", "low")]);
        check(&["normal", "own"], &[]);
        check(&["boss", "extra"], &[]);
        check(&[], &[("other-lab", "extra"), ("own", "extra"), ("own", "low")]);
        let gap = Gap { kind: GapKind::Off, source: String::new(), detail: String::new() };
        let mut unasked = survey("gpu", Vec::new(), all, &[]);
        unasked.qos = Err(gap);
        assert_eq!(draft(&unasked), Draft::default());
    }
}
