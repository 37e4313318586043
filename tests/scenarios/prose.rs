//! Words for multi-GPU stories, so that a scenario reads like its line in policy.md section 8.

use babysit::model::cluster::EndWord;
use babysit::model::id::JobId;
use babysit::model::policy::{Backfill, Policy, Shard};
use babysit::model::reason::Reason;
use babysit::model::state::{Charge, ChargeKind, Gate, HeldWhy, ShardRecord};
use babysit::model::units::{GpuSeconds, Secs, Tflops};
use babysit::planning::event::What;
use babysit::sim::{Cluster, Rows, Stranger};

use crate::harness::{Story, T0, placed, plain, tiers};

/// Ranks of the tiers of section 8.
pub const MIN_3080TI: u32 = 1;
pub const MIN_4090: u32 = 2;

/// A cluster of these nodes, each `("P", "rtx4090", 2)`; QOS normal, and llm for backfill.
pub fn nodes(list: &[(&str, &str, u32)]) -> Cluster<Rows> {
    let mut cluster = Cluster::at(T0);
    for (name, model, gpus) in list {
        cluster = cluster.node(name, &[(model, *gpus)]);
    }
    cluster.qos("llm", 0, None, &[])
}

/// No lanes, the three tiers, these shards.
pub fn policy(shards: Vec<Shard>) -> Policy {
    Policy { tiers: tiers(), shards: shards.into(), ..plain() }
}

pub fn llm() -> Backfill {
    Backfill { qos: Some("llm".to_owned()), name: None, partition: None, user: None, stop: None }
}

/// `lab` wants so many GPUs of this tier or better.
pub fn wants(id: &str, lab: &str, gpus: u32, min_tier: u32) -> Shard {
    placed(id, lab, gpus, min_tier)
}

impl Story {
    pub fn on(cluster: Cluster<Rows>, shards: Vec<Shard>) -> Story {
        Story::new(policy(shards), cluster)
    }

    /// Somebody else takes GPUs of a node, until he ends.
    pub fn stranger_takes(&mut self, node: &str, gpus: u32, model: &str) -> JobId {
        self.someone_takes("bob", "normal", node, &format!("gpu:{model}:{gpus}"))
    }

    /// Backfill of our own user's: scancel may stop it.
    pub fn backfill_takes(&mut self, node: &str, gres: &str) -> JobId {
        self.someone_takes("alice", "llm", node, gres)
    }

    pub fn someone_takes(&mut self, user: &str, qos: &str, node: &str, gres: &str) -> JobId {
        let job = Stranger::new(user, qos, gres).on(node).named("llm-serve").no_requeue();
        let id = self.world.cluster.add_job(job).expect("a job that could run");
        self.world.advance(Secs(2));
        assert!(self.world.cluster.job(id).is_some_and(|job| job.is_running()), "{gres} on {node}");
        id
    }

    pub fn ends(&mut self, job: JobId) {
        self.world.cluster.finish(job, EndWord::Completed, "0:0").expect("it runs");
    }

    pub fn record_mut(&mut self, id: &str) -> &mut ShardRecord {
        let found = self.world.state.shards.iter_mut().find(|r| r.id.to_string() == id);
        found.unwrap_or_else(|| panic!("no shard {id}; tick first"))
    }

    /// A lab's usage at the beginning, with the charge that belongs to it.
    pub fn has_used(&mut self, lab: &str, tflop_seconds: u64) {
        let now = self.world.now();
        let policy = self.world.policy.clone();
        self.world.state.align(&policy, now);
        let i = policy.shards.iter().position(|s| &*s.lab == lab).expect("a shard of that lab");
        self.world.state.shards[i].charges.push(Charge {
            kind: ChargeKind::Run,
            lab: lab.to_owned(),
            attempt: 0,
            from: now,
            length: Secs(tflop_seconds as i64),
            gpus: 1,
            gpu_seconds: GpuSeconds(tflop_seconds),
            tier: None,
            weight: Tflops(1000),
            at: now,
        });
        let has = self.world.state.labs.entry(lab.to_owned()).or_default();
        has.usage += GpuSeconds(tflop_seconds).weighted(Tflops(1000));
    }

    /// TFLOP-seconds.
    pub fn usage(&self, lab: &str) -> f64 {
        self.world.state.labs.get(lab).map_or(0.0, |has| has.usage.0 as f64 / 1000.0)
    }

    /// Held by a person from before the first tick.
    pub fn hold(&mut self, id: &str) {
        let now = self.world.now();
        let policy = self.world.policy.clone();
        self.world.state.align(&policy, now);
        let why = HeldWhy::Person { by: "alice".to_owned() };
        self.record_mut(id).gate = Gate::Held { why, at: now };
    }

    /// Queued from now on.
    pub fn release(&mut self, id: &str) {
        let now = self.world.now();
        let record = self.record_mut(id);
        record.gate = Gate::Open;
        record.queued_since = now;
    }

    pub fn cancel(&mut self, id: &str) {
        let at = self.world.now();
        self.record_mut(id).gate = Gate::Cancelled { by: "alice".to_owned(), at };
    }

    /// `"P 1/2"`: node, GPUs reserved, GPUs needed; empty without a reservation.
    pub fn reserved(&self, id: &str) -> String {
        let need = self.spec(id).gpus;
        let held = self.record(id).reservation.as_ref();
        held.map_or(String::new(), |r| format!("{} {}/{need}", r.pin.node, r.gpus))
    }

    pub fn spec(&self, id: &str) -> &Shard {
        let found = self.world.policy.shards.iter().find(|shard| shard.id.to_string() == id);
        found.unwrap_or_else(|| panic!("no shard {id}"))
    }

    /// The node its job was pinned to or runs on; empty where there is no job.
    pub fn node_of(&self, id: &str) -> String {
        let live = self.record(id).live();
        let node = live.and_then(|live| {
            let pin = live.attempt.pin.as_ref().map(|pin| pin.node.clone());
            pin.or_else(|| live.nodes.first().cloned())
        });
        node.unwrap_or_default()
    }

    /// Runs in Slurm now.
    pub fn runs(&self, id: &str) -> bool {
        let live = self.record(id).live();
        live.and_then(|live| self.world.cluster.job(live.job)).is_some_and(|job| job.is_running())
    }

    pub fn why(&self, id: &str) -> &Reason {
        &self.record(id).why
    }

    pub fn told(&self, which: impl Fn(&What) -> bool) -> usize {
        self.world.journal.iter().filter(|event| which(&event.what)).count()
    }

    /// Nodes that Slurm keeps a shard's job off.
    pub fn excluded(&mut self, id: &str) -> Vec<String> {
        use babysit::slurm::{Scope, Slurm};
        let job = self.job(id);
        let jobs = self.world.cluster.door("alice").jobs(Scope::Mine).expect("a healthy squeue");
        let found = jobs.into_iter().find(|seen| seen.id == job).expect("in the queue");
        let mut nodes = found.excluded.unwrap_or_default();
        nodes.sort();
        nodes.dedup();
        nodes
    }
}

impl Story {
    /// Alive in Slurm, whatever babysit knows by now.
    pub fn runs_in_slurm(&self, id: &str) -> bool {
        let (family, shard) = id.split_once('/').expect("family/shard");
        let prefix = format!("{}.{family}.{shard}.a", self.world.policy.project);
        let mut ours = self.world.cluster.history().iter();
        ours.any(|job| job.name.starts_with(&prefix) && !job.is_over())
    }

    /// GPUs of a node that no job holds, as sinfo shows it.
    pub fn idle(&mut self, node: &str) -> u32 {
        use babysit::slurm::{Scope, Slurm};
        let seen = self.world.cluster.door("alice").look(Scope::Everybody).expect("healthy");
        let found = seen.nodes.iter().find(|n| n.name == node).expect("a node");
        found.gpus.iter().flatten().map(|gpus| gpus.capacity - gpus.used).sum()
    }
}
