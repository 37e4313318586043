//! How planning and the state file grow: ratios of medians, measured side by side in one run.
//!
//! `cargo bench --bench scale`. Figures that the issues ask for:
//! plan / state read at 10 000 shards on 1 000 nodes (<= 0.25), the growth exponent, and a durable
//! save against a careless one (<= 2). `--quick` leaves the largest campaign out.
//!
//! What follows from shards.toml alone (`Shards`: the order of ids, the labs) is there before a plan is
//! measured, as it is in a tick, which works it out while it waits for squeue.

use std::time::{Duration, Instant};

use babysit::model::cluster::{JobState, Node, NodeGpus, QueueJob, Usable};
use babysit::model::id::{JobId, ShardId, Token};
use babysit::model::observation::{Cluster, Observation};
use babysit::model::policy::{
    LaneSpec, Lanes, Policy, RowsIn, Rules, Shard, SlurmSettings, SubmitMode, Tier,
};
use babysit::model::state::{Attempt, Live, Slot, State};
use babysit::model::units::{Secs, Tflops, Time};
use babysit::planning::{check, plan};
use babysit::store::Store;

const NOW: Time = Time(1_793_718_000);

fn tier(name: &str, rank: u32, tflops: f64) -> Tier {
    Tier {
        name: name.to_owned(),
        gres: vec![name.to_owned()],
        rank,
        tflops: Tflops::from_f64(tflops).expect("a weight"),
        partition: None,
        max_gpus: None,
    }
}

fn shard(i: usize, mode: SubmitMode) -> Shard {
    let id = ShardId::new(&format!("family{}", i % 10), &format!("s{}", i / 10));
    Shard {
        index: (i / 10) as u32,
        lab: format!("lab{}", i % 5).into(),
        gpus: if mode == SubmitMode::Placed { 1 << (i % 4) } else { 1 },
        cpus: Some(8),
        min_tier: (mode == SubmitMode::Placed).then_some(1 + (i % 3) as u32),
        submit: mode,
        rows: 40 + (i % 25) as u32,
        row_time: Secs::minutes(15),
        done: RowsIn::Glob(format!("/runs/{id}/*.json")),
        ..Shard::plain(id)
    }
}

/// Half of the shards pend in Slurm; the others are placed ones in babysit's own queue.
fn campaign(shards: usize, nodes: usize) -> (Policy, State, Observation) {
    let lane = |qos: &str| LaneSpec { qos: Some(qos.to_owned()), ..LaneSpec::default() };
    let mode = |i: usize| if i.is_multiple_of(2) { SubmitMode::Queued } else { SubmitMode::Placed };
    let policy = Policy {
        project: "scale".to_owned(),
        shards: (0..shards).map(|i| shard(i, mode(i))).collect(),
        tiers: vec![
            tier("rtx3080ti", 1, 34.1),
            tier("rtx4090", 2, 82.6),
            tier("rtx5090", 3, 104.8),
        ],
        lanes: Some(Lanes { own: lane("own"), extra: lane("extra"), own_gpus: Some(8), park: 2 }),
        backfill: None,
        rules: Rules::default(),
        slurm: SlurmSettings::default(),
        logs: "/logs".into(),
        notify: None,
    };
    let mut state = State::new("scale", "bench1");
    state.align(&policy, NOW);
    let mut jobs = Vec::new();
    for (i, record) in state.shards.iter_mut().enumerate() {
        record.progress.measured_at = Some(NOW);
        record.progress.rows = (i % 7) as u32;
        if mode(i) == SubmitMode::Placed {
            continue;
        }
        record.attempts = 1;
        // As every submission leaves it: Slurm was told the nodes to keep off, which are none.
        record.kept_off.told = true;
        let token = Token::new("scale", "bench1", &record.id, 1, "0badcafe");
        let job = QueueJob {
            id: JobId(1000 + i as u64),
            uid: 1001,
            user: "alice".into(),
            state: JobState::Pending,
            qos: "extra".into(),
            partition: "gpu".into(),
            gpus: Some(1),
            submitted: Some(NOW),
            priority: Some(100),
            reason: "Priority".into(),
            name: token.name.clone(),
            comment: token.comment.clone(),
            ..QueueJob::default()
        };
        let attempt = Attempt {
            number: 1,
            token,
            lane: None,
            gpus: 1,
            pin: None,
            rows_before: 0,
            asked_at: NOW - Secs::hours(1),
            uid: 1001,
            exclude: Vec::new(),
            pilot: false,
        };
        record.slot = Slot::Live(Box::new(Live::new(attempt, job.id)));
        jobs.push(job);
    }
    let node = |i: usize| {
        let (model, capacity) = [("rtx3080ti", 2), ("rtx4090", 4), ("rtx5090", 8)][i % 3];
        // Every node is full, so that the whole queue waits.
        let gpus = NodeGpus { model: Some(model.to_owned()), capacity, used: capacity };
        Node {
            name: format!("n{i:05}"),
            partitions: vec!["gpu".to_owned()],
            usable: Usable::Yes,
            state: "mixed".to_owned(),
            gpus: Some(vec![gpus]),
            cpus_idle: Some(64),
            mem_idle: None,
        }
    };
    let cluster = Cluster { jobs, nodes: (0..nodes).map(node).collect(), me: 1001 };
    let progress = vec![None; shards];
    let seen = Observation {
        cluster,
        accounting: None,
        progress,
        logs: Vec::new(),
        own_gpus: None,
        takes_both: None,
        claims: None,
    };
    (policy, state, seen)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Median of several runs. What `make` prepares is not measured, nor is throwing the result away.
fn time<T, U>(runs: usize, mut make: impl FnMut() -> T, mut go: impl FnMut(T) -> U) -> Duration {
    let one = |_| {
        let input = make();
        let start = Instant::now();
        let result = std::hint::black_box(go(input));
        let took = start.elapsed();
        drop(result);
        took
    };
    median((0..runs).map(one).collect())
}

struct Row {
    shards: usize,
    nodes: usize,
    read: Duration,
    plan: Duration,
    save: Duration,
    /// The same bytes made and written without any care.
    plain: Duration,
}

#[allow(clippy::disallowed_methods, reason = "the careless write that a save is held against")]
fn measure(shards: usize, nodes: usize, runs: usize) -> Row {
    let (policy, state, seen) = campaign(shards, nodes);
    // A first cycle brings the records up to what is seen; the second is the idle one.
    let mut settled = state.clone();
    plan(&policy, &mut settled, &seen, NOW, 1);
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::at(folder.path().join("state.json")).of_project("scale");
    let mut locked = store.lock(Duration::ZERO).expect("nobody else");
    locked.load().expect("nothing there yet");
    let save = time(runs, || settled.clone(), |state| locked.save(&state).expect("saved"));
    let careless = folder.path().join("careless.json");
    let plain = time(
        runs,
        || (),
        |()| {
            let bytes = Store::spell(&settled).expect("spelled");
            std::fs::write(&careless, bytes).expect("written");
        },
    );
    let read = time(runs, || (), |()| store.read().expect("reads"));
    let plan = time(
        runs,
        || settled.clone(),
        |mut state| {
            let plan = plan(&policy, &mut state, &seen, NOW, 2);
            // Lane changes that this cluster, which never carries them out, is asked for again.
            assert!(plan.actions.len() <= 2, "not idle: {:?}", plan.actions.first());
            assert!(check::violations(&policy, &state, &plan).is_empty());
            (state, plan)
        },
    );
    Row { shards, nodes, read, plan, save, plain }
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let mut rows = vec![measure(1_000, 100, 41), measure(10_000, 1_000, 21)];
    if !quick {
        rows.push(measure(100_000, 10_000, 5));
    }
    println!("shards   nodes    read      plan      save      plan/read  exponent");
    let mut before: Option<&Row> = None;
    for row in &rows {
        let ms = |time: Duration| format!("{:8.2} ms", time.as_secs_f64() * 1e3);
        let grown = before.map_or("-".to_owned(), |b| {
            format!("{:.2}", (row.plan.as_secs_f64() / b.plan.as_secs_f64()).log10())
        });
        println!(
            "{:<8} {:<6} {} {} {}   {:<9.2} {grown}",
            row.shards,
            row.nodes,
            ms(row.read),
            ms(row.plan),
            ms(row.save),
            row.plan.as_secs_f64() / row.read.as_secs_f64(),
        );
        before = Some(row);
    }
    // For the table of scripts/bench.
    let figure = |what: &str, value: f64, bound: &str| {
        println!("figure: | {what} | {value:.2} | <= {bound} |");
    };
    for row in rows.iter().filter(|row| row.shards == 10_000) {
        let ratio = row.plan.as_secs_f64() / row.read.as_secs_f64();
        figure("planning / reading the state, 10000 shards on 1000 nodes", ratio, "0.25");
        let ratio = row.save.as_secs_f64() / row.plain.as_secs_f64();
        figure("saving the state durably / writing it plainly, 10000 shards", ratio, "2");
    }
    for pair in rows.windows(2) {
        let [small, large] = pair else { continue };
        let what = format!(
            "growth exponent of planning, {} shards on {} nodes to {} on {}",
            small.shards, small.nodes, large.shards, large.nodes
        );
        let grown = large.plan.as_secs_f64() / small.plan.as_secs_f64();
        figure(&what, grown.log10(), "1.2");
    }
}
