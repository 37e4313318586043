//! Usage against the runs that Slurm really made: recounted here from the cluster's history.

use std::collections::BTreeMap;

use babysit::model::policy::{Policy, SubmitMode};
use babysit::model::state::{ChargeKind, ShardRecord, State};
use babysit::sim::{Cluster, Rows};
use babysit::study::World;

use crate::rules::look;

/// Usage is the sum of the charges, by lab.
pub fn money(policy: &Policy, state: &State) {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for record in state.shards.iter().chain(&state.orphans) {
        for charge in &record.charges {
            *sums.entry(&charge.lab).or_default() += charge.gpu_seconds.0 * charge.weight.0;
            let tier = policy.tiers.iter().find(|t| Some(&t.name) == charge.tier.as_ref());
            if charge.attempt > 0 && !policy.tiers.is_empty() {
                assert_eq!(tier.map(|t| t.tflops), Some(charge.weight), "{}", record.id);
            }
        }
    }
    for (lab, has) in &state.labs {
        let sum = sums.get(lab.as_str()).copied().unwrap_or(0);
        assert_eq!(sum, has.usage.0, "{lab}: usage is not the sum of its charges");
    }
}

/// (attempt, start, end, GPUs, model) of every run of a shard that is over, as Slurm had it.
fn past_runs(cluster: &Cluster<Rows>, state: &State, record: &ShardRecord) -> Vec<RealRun> {
    let prefix = format!("babysit:{}:{}:a", state.instance, record.id);
    let mut found = Vec::new();
    for job in cluster.history() {
        let number = job.comment.strip_prefix(&prefix).and_then(|rest| rest.split(':').next());
        let Some(number) = number else { continue };
        let number = number.parse().expect("a number");
        for stay in &job.stays {
            let Some(started) = stay.started else { continue };
            let models: Vec<_> = stay.gpus.iter().filter(|g| g.count > 0).collect();
            found.push(RealRun {
                attempt: number,
                started: started.0,
                gpu_seconds: u64::from(job.gpus()) * (stay.ended.0 - started.0) as u64,
                node: stay.node.clone(),
                model: match models.as_slice() {
                    [one] => one.model.clone(),
                    _ => None,
                },
            });
        }
    }
    found.sort();
    found
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RealRun {
    attempt: u32,
    started: i64,
    gpu_seconds: u64,
    model: Option<String>,
    node: Option<String>,
}

/// Every charge of a run is one real run, whole, at the model it had; no run is charged twice.
pub fn runs(policy: &Policy, state: &State, cluster: &mut Cluster<Rows>) {
    let mixed: Vec<Option<String>> = look(cluster)
        .nodes
        .into_iter()
        .filter(|node| node.gpus.as_ref().is_some_and(|models| models.len() > 1))
        .map(|node| Some(node.name))
        .collect();
    for (shard, record) in policy.shards.iter().zip(&state.shards) {
        let real = past_runs(cluster, state, record);
        let mut seen = Vec::new();
        for charge in record.charges.iter().filter(|c| c.kind == ChargeKind::Run && c.attempt > 0) {
            let run =
                real.iter().find(|r| (r.attempt, r.started) == (charge.attempt, charge.from.0));
            let run = run.unwrap_or_else(|| {
                panic!("{}: charged for a run that was not: {charge:?}, {real:?}", record.id)
            });
            assert_eq!(run.gpu_seconds, charge.gpu_seconds.0, "{}: {charge:?} {run:?}", record.id);
            let rank = |name: &Option<String>| {
                policy.tiers.iter().find(|tier| Some(&tier.name) == name.as_ref()).map(|t| t.rank)
            };
            // Slurm does not show which model an untyped job got on a mixed node.
            let shown = shard.submit == SubmitMode::Placed || !mixed.contains(&run.node);
            if shown && run.model.is_some() && !policy.tiers.is_empty() {
                assert_eq!(run.model, charge.tier, "{}: {charge:?} {run:?}", record.id);
            } else if run.model.is_some() {
                assert!(rank(&charge.tier) <= rank(&run.model), "{charge:?} {run:?}");
            }
            assert!(!seen.contains(&run), "{}: charged twice: {charge:?}", record.id);
            seen.push(run);
        }
    }
}

/// Once all is quiet: every run is charged, and nothing is owed.
pub fn all_is_charged(world: &World) {
    for record in &world.state.shards {
        let real = past_runs(&world.cluster, &world.state, record);
        let charged: u64 = record
            .charges
            .iter()
            .filter(|charge| charge.kind == ChargeKind::Run && charge.attempt > 0)
            .map(|charge| charge.gpu_seconds.0)
            .sum();
        let ran: u64 = real.iter().map(|run| run.gpu_seconds).sum();
        assert_eq!(charged, ran, "{}: {real:?} {:#?}", record.id, record.charges);
        assert!(record.owed.is_empty(), "{}: {:?}", record.id, record.owed);
    }
}
