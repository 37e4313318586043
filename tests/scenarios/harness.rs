//! Scenarios in memory: the real tick on the simulated cluster, told in the words of policy.md.
//!
//! After each tick the harness checks what must hold always: the invariants, that planning again
//! changes nothing, and that no shard has two live jobs.

use babysit::engine::{Outcome, Report};
use babysit::model::id::{JobId, ShardId};
use babysit::model::policy::{
    CostIn, LaneSpec, Lanes, Policy, RowsIn, Rules, Shard, SlurmSettings, SubmitMode, Tier,
};
use babysit::model::state::ShardRecord;
use babysit::model::units::{Money, Secs, Tflops, Time};
use babysit::planning::plan::Action;
use babysit::sim::{Cluster, Rows, Table};
use babysit::study::World;

use crate::rules;

/// 2026-11-03 15:00 UTC; any moment would do.
pub const T0: Time = Time(1_793_718_000);

pub fn dollars(amount: f64) -> Money {
    Money::from_dollars(amount).expect("an amount of money")
}

/// A policy with two lanes (own with `own` GPUs, K = `park`), no tiers, no shards yet.
pub fn lanes(own: u32, park: usize) -> Policy {
    let lane = |qos: &str| LaneSpec { qos: Some(qos.to_owned()), ..LaneSpec::default() };
    let lanes = Lanes { own: lane("own"), extra: lane("extra"), own_gpus: Some(own), park };
    Policy { lanes: Some(lanes), ..plain() }
}

pub fn plain() -> Policy {
    Policy {
        project: "oracle-plan".to_owned(),
        shards: Default::default(),
        tiers: Vec::new(),
        lanes: None,
        backfill: None,
        rules: Rules::default(),
        slurm: SlurmSettings::default(),
        logs: "/logs".into(),
        notify: None,
    }
}

/// The tiers of policy.md section 8.
pub fn tiers() -> Vec<Tier> {
    let tier = |name: &str, rank, tflops| Tier {
        name: name.to_owned(),
        gres: vec![name.to_owned()],
        rank,
        tflops: Tflops::from_f64(tflops).expect("a weight"),
        partition: None,
        max_gpus: None,
    };
    vec![tier("rtx3080ti", 1, 34.1), tier("rtx4090", 2, 82.6), tier("rtx5090", 3, 104.8)]
}

/// A one-GPU shard of 15-minute rows with a cost ledger, queued.
pub fn shard(id: &str, rows: u32) -> Shard {
    let id = ShardId::parse(id).expect("family/shard");
    Shard {
        lab: "BCG".into(),
        workdir: std::path::Path::new("/work").into(),
        rows,
        row_time: Secs::minutes(15),
        done: RowsIn::Glob(format!("/runs/{id}/row_*.json")),
        cost: Some(CostIn::Jsonl { path: format!("/runs/{id}.jsonl").into(), field: "usd".into() }),
        ..Shard::plain(id)
    }
}

/// A multi-GPU shard that waits in babysit's queue.
pub fn placed(id: &str, lab: &str, gpus: u32, min_tier: u32) -> Shard {
    Shard {
        lab: lab.into(),
        gpus,
        min_tier: Some(min_tier),
        submit: SubmitMode::Placed,
        ..shard(id, 4)
    }
}

pub struct Story {
    pub world: World,
    /// The plan-again check is off while commands fail on purpose.
    pub faulty: bool,
}

impl Story {
    /// Every shard gets a table of rows unless the cluster has one for it already.
    pub fn new(policy: Policy, mut cluster: Cluster<Rows>) -> Story {
        for shard in &policy.shards {
            let key = shard.id.to_string();
            if cluster.work.index_of(&key).is_none() {
                cluster.work.add(&key, Table::new(shard.rows, shard.row_time));
            }
            if shard.split.is_some() {
                cluster.work.share(&key);
            }
        }
        Story { world: World::new(policy, cluster, "alice", 1), faulty: false }
    }

    pub fn tick(&mut self) -> Report {
        let before = rules::look(&mut self.world.cluster);
        let report = self.world.tick();
        if report.outcome == Outcome::Ok {
            self.check(&before, &report);
        }
        report
    }

    /// Time passes, then a tick.
    pub fn after(&mut self, length: Secs) -> Report {
        self.world.advance(length);
        self.tick()
    }

    fn check(&mut self, before: &rules::Seen, report: &Report) {
        rules::always(&mut self.world);
        rules::after_tick(&self.world, before, report);
        for record in &self.world.state.shards {
            let charged: u64 = record.charges.iter().map(|charge| charge.gpu_seconds.0).sum();
            assert!(charged >= record.ran.0, "{}: a run without a charge", record.id);
        }
        // A job that was stopped has freed its GPUs: something new to decide about.
        let stops = |action: &Action| matches!(action, Action::Cancel { .. });
        if !self.faulty && !report.plan.actions.iter().any(stops) {
            let again = self.world.plan_again();
            assert!(again.actions.is_empty(), "planning again is not idle: {:#?}", again.actions);
        }
    }

    pub fn record(&self, id: &str) -> &ShardRecord {
        let found = self.world.state.shards.iter().find(|record| record.id.to_string() == id);
        found.unwrap_or_else(|| panic!("no shard {id}"))
    }

    pub fn job(&self, id: &str) -> JobId {
        self.record(id).live().unwrap_or_else(|| panic!("{id} has no live job")).job
    }

    /// The QOS that Slurm shows for a shard's live job.
    pub fn qos(&self, id: &str) -> String {
        self.record(id).live().map_or(String::new(), |live| live.qos.clone())
    }

    /// Ids of the shards whose job is pending in a lane, as Slurm has it now.
    pub fn pending_in(&mut self, qos: &str) -> Vec<String> {
        self.seen(|job| *job.qos == *qos && job.state == babysit::model::cluster::JobState::Pending)
    }

    pub fn running_in(&mut self, qos: &str) -> Vec<String> {
        self.seen(|job| *job.qos == *qos && job.state == babysit::model::cluster::JobState::Running)
    }

    fn seen(&mut self, which: impl Fn(&babysit::model::cluster::QueueJob) -> bool) -> Vec<String> {
        use babysit::slurm::{Scope, Slurm};
        let jobs = self.world.cluster.door("alice").jobs(Scope::Mine).expect("a healthy squeue");
        let mut ids: Vec<String> = jobs
            .iter()
            .filter(|job| which(job))
            .filter_map(|job| job.comment.split(':').nth(2).map(str::to_owned))
            .collect();
        ids.sort();
        ids
    }

    /// Jobs that were ever submitted for a shard.
    pub fn submissions(&self, id: &str) -> usize {
        let (family, shard) = id.split_once('/').expect("family/shard");
        let prefix = format!("oracle-plan.{family}.{shard}.a");
        self.world.cluster.history().iter().filter(|job| job.name.starts_with(&prefix)).count()
    }
}
