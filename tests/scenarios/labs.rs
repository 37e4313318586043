//! A random cluster, and labs with shards that it could run.

use babysit::model::policy::{Policy, ReservationCharge, Shard};
use babysit::model::units::Secs;
use babysit::sim::{Cluster, PreemptMode, Rng, Rows, Table, Trouble};

use crate::harness::{T0, lanes, placed, plain, shard, tiers};
use crate::prose::llm;

const MODELS: [&str; 3] = ["rtx3080ti", "rtx4090", "rtx5090"];

/// Name, and GPUs by model.
pub type Node = (String, Vec<(&'static str, u32)>);

pub struct Lab {
    pub nodes: Vec<Node>,
    pub policy: Policy,
    pub cluster: Cluster<Rows>,
}

impl Lab {
    pub fn by_chance(rng: &mut Rng) -> Lab {
        let mut nodes = Vec::new();
        for n in 0..1 + rng.below(4) {
            let first = rng.below(3) as usize;
            let mut models = vec![(MODELS[first], 1 + rng.below(4) as u32)];
            if rng.chance(0.25) {
                models.push((MODELS[(first + 1) % 3], 1 + rng.below(4) as u32));
            }
            nodes.push((format!("n{n}"), models));
        }
        let mut cluster = Cluster::at(T0);
        for (name, models) in &nodes {
            let cpus = if rng.chance(0.3) { 8 } else { 64 };
            cluster = cluster.node_with(name, models, cpus, 1 << 20);
        }
        let own = 2 + rng.below(5) as u32;
        let preempts: &[&str] = if rng.chance(0.5) { &["extra"] } else { &[] };
        cluster = cluster
            .qos("llm", 0, None, &[])
            .qos("extra", 10, None, &[])
            .preempt_mode(if rng.chance(0.3) { PreemptMode::Cancel } else { PreemptMode::Requeue })
            .qos("own", 100, Some(own), preempts)
            .site(|site| {
                site.accounting_lag = Secs(rng.below(100) as i64);
                site.min_job_age = Secs(60 + rng.below(240) as i64);
                site.stores_comments = rng.chance(0.5);
            });
        let mut policy = match rng.chance(0.6) {
            true => lanes(own, rng.below(3) as usize),
            false => plain(),
        };
        policy.tiers = tiers();
        policy.rules.newcomer_floor = rng.chance(0.3);
        if rng.chance(0.3) {
            policy.rules.reservation_charge = ReservationCharge::JobEnd;
        }
        policy.rules.max_submits_per_tick = if rng.chance(0.2) { 2 } else { 50 };
        if rng.chance(0.4) {
            policy.backfill = Some(llm());
        }
        for i in 0..3 + rng.below(13) {
            let shard = random_shard(rng, i as usize, &nodes);
            let mut table = Table::new(shard.rows, shard.row_time).start_cost(Secs(20));
            for _ in 0..rng.below(3) {
                let trouble = match rng.below(6) {
                    0 => Trouble::DiesAtOnce,
                    1 => Trouble::FailsAfter(1),
                    2 => Trouble::LeavesAfter(1),
                    3 => Trouble::HostMemory(0),
                    _ => Trouble::GpuMemory(vec![MODELS[rng.below(2) as usize].to_owned()]),
                };
                table = table.times(1 + rng.below(3) as u32, trouble);
            }
            cluster.work.add(&shard.id.to_string(), table);
            policy.shards.push(shard);
        }
        Lab { nodes, policy, cluster }
    }
}

fn random_shard(rng: &mut Rng, i: usize, nodes: &[Node]) -> Shard {
    let lab = ["BCG", "KDG", "XYZ"][rng.below(3) as usize];
    // Something that fits somewhere, so that the shard can be finished in the end.
    let (_, models) = &nodes[rng.below(nodes.len() as u64) as usize];
    let (model, count) = models[rng.below(models.len() as u64) as usize];
    let best = 1 + MODELS.iter().position(|m| *m == model).expect("a model") as u32;
    let gpus = 1 + rng.below(u64::from(count)) as u32;
    let min = rng.below(u64::from(best) + 1) as u32;
    let mut spec = if rng.chance(0.65) {
        placed(&format!("f{}/s{i}", i % 3), lab, gpus, min.max(1))
    } else {
        let base = shard(&format!("f{}/s{i}", i % 3), 1);
        Shard { lab: lab.into(), gpus, min_tier: (min > 0).then_some(min), ..base }
    };
    spec.rows = 1 + rng.below(8) as u32;
    spec.row_time = Secs(60 + rng.below(1500) as i64);
    if rng.chance(0.3) {
        spec.cpus = Some(2);
    }
    if rng.chance(0.2) {
        spec.args = vec!["--requeue".to_owned()];
    }
    spec
}
