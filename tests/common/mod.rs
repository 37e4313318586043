//! The oracle-plan campaign (find x4, restore x8) in the middle of a day, made by hand.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::path::PathBuf;

use babysit::cli::figures::figures;
use babysit::model::cluster::{EndWord, JobState};
use babysit::model::id::{JobId, ShardId, Token};
use babysit::model::policy::*;
use babysit::model::reason::Reason;
use babysit::model::request::Request;
use babysit::model::state::*;
use babysit::model::units::{Money, Secs, Tflops, Time};
use babysit::output::paint::Paint;
use babysit::output::table::Look;
use babysit::output::view::{self, Status};

pub const NOW: Time = Time(1_762_095_600); // 2025-11-02T15:00:00Z

pub fn dollars(amount: f64) -> Money {
    Money::from_dollars(amount).expect("an amount")
}

fn shard(family: &str, index: u32, rows: u32, row_time: Secs, cap: f64) -> Shard {
    let ledger = PathBuf::from(format!("/lab/runs/{family}/s{index}.jsonl"));
    Shard {
        index,
        lab: "BCG".into(),
        launch: Launch::Command(format!("python run.py --task {family} --shard s{index}")),
        workdir: std::path::Path::new("/lab").into(),
        cpus: Some(8),
        mem: Some("64G".into()),
        rows,
        row_time,
        done: RowsIn::Glob(format!("/lab/runs/{family}/s{index}/row_*.json")),
        cost: Some(CostIn::Jsonl { path: ledger, field: "cost_usd".into() }),
        cap: Some(dollars(cap)),
        log_dir: format!("/lab/logs/{family}/s{index}").into(),
        ..Shard::plain(ShardId::new(family, &format!("s{index}")))
    }
}

pub fn policy() -> Policy {
    let mut shards: Vec<Shard> =
        (0..4).map(|i| shard("find", i, 44, Secs::minutes(15), 25.0)).collect();
    shards.extend((0..8).map(|i| {
        let rows = if i == 4 { 47 } else { 64 };
        shard("restore", i, rows, Secs::minutes(25), 40.0)
    }));
    let lane = |qos: &str| LaneSpec { qos: Some(qos.into()), partition: None, account: None };
    Policy {
        project: "oracle-plan".into(),
        shards: shards.into(),
        tiers: vec![Tier {
            name: "rtx4090".into(),
            gres: vec!["rtx4090".into()],
            rank: 2,
            tflops: Tflops::from_f64(82.6).expect("positive"),
            partition: None,
            max_gpus: None,
        }],
        lanes: Some(Lanes { own: lane("own"), extra: lane("extra"), own_gpus: Some(8), park: 2 }),
        backfill: None,
        rules: Rules::default(),
        slurm: SlurmSettings::default(),
        logs: "/lab/logs".into(),
        notify: None,
    }
}

/// A submission that asks for one GPU.
pub fn request(log_dir: &std::path::Path) -> Request {
    Request {
        token: Token::new("oracle-plan", "abc123", &ShardId::new("find", "s0"), 1, "0badcafe"),
        qos: None,
        partition: None,
        account: None,
        gres: "gpu:1".into(),
        node: None,
        exclude: Vec::new(),
        nice: 0,
        cpus: None,
        mem: None,
        time: None,
        workdir: "/".into(),
        log_dir: log_dir.to_owned(),
        env: [].into(),
        args: Vec::new(),
        launch: Launch::Command("true".into()),
        pilot: None,
    }
}

pub fn fresh(policy: &Policy) -> State {
    let mut state = State::new(&policy.project, "abc123");
    state.align(policy, NOW);
    state
}

pub fn attempt(id: &ShardId, number: u32, lane: Lane) -> Attempt {
    Attempt {
        number,
        token: Token::new("oracle-plan", "abc123", id, number, "0badcafe"),
        lane: Some(lane),
        gpus: 1,
        pin: None,
        rows_before: 0,
        asked_at: NOW - Secs::hours(5),
        uid: 1000,
        exclude: Vec::new(),
        pilot: false,
    }
}

pub fn live(id: &ShardId, job: u64, lane: Lane, state: JobState) -> Live {
    let runs = state == JobState::Running;
    Live {
        submitted: Some(NOW - Secs::hours(5)),
        qos: lane.word().into(),
        nodes: if runs { vec!["gpu07".into()] } else { Vec::new() },
        started: runs.then_some(NOW - Secs::hours(4)),
        reason: if runs { "None".into() } else { "QOSGrpGRES".into() },
        state,
        ..Live::new(attempt(id, 2, lane), JobId(job))
    }
}

/// Twelve shards, about as many situations.
pub fn afternoon() -> (Policy, State) {
    let policy = policy();
    let mut state = fresh(&policy);
    let rows = [44, 30, 44, 12, 8, 0, 10, 36, 0, 58, 12, 5];
    for (i, record) in state.shards.iter_mut().enumerate() {
        record.attempts = 1;
        record.progress.rows = rows[i];
        let each = if i < 4 { 0.080 } else { 0.27 };
        record.progress.spent = Some(dollars(f64::from(rows[i]) * each));
        if rows[i] > 0 && i < 9 {
            let minutes = if i < 4 { 9 } else { 26 };
            record.pace = Pace { rows: rows[i], time: Secs::minutes(minutes * i64::from(rows[i])) };
        }
    }
    let run = |record: &mut ShardRecord, job, lane| {
        record.slot = Slot::Live(Box::new(live(&record.id, job, lane, JobState::Running)));
        record.why = Reason::Running { node: "gpu07".into() };
    };
    let pend = |record: &mut ShardRecord, job, lane, parked, rank| {
        record.slot = Slot::Live(Box::new(live(&record.id, job, lane, JobState::Pending)));
        let slurm = if lane == Lane::Own { "QOSGrpGRES" } else { "Priority" };
        record.why =
            Reason::PendingInSlurm { lane: Some(lane), parked, rank, of: 4, slurm: slurm.into() };
    };
    let s = &mut state.shards;
    for i in [0, 2] {
        s[i].finished = Some(Finished { at: NOW - Secs::hours(2), rows: 44 });
    }
    run(&mut s[1], 152_012, Lane::Own);
    run(&mut s[3], 152_054, Lane::Extra);
    s[3].preemptions = 2;
    s[3].attempts = 3;
    run(&mut s[4], 152_013, Lane::Own);
    pend(&mut s[5], 152_021, Lane::Own, true, 1);
    pend(&mut s[6], 152_022, Lane::Own, true, 2);
    s[7].progress.spent = Some(dollars(25.2));
    run(&mut s[7], 152_019, Lane::Own);
    pend(&mut s[8], 152_024, Lane::Extra, false, 3);
    s[9].progress.spent = Some(dollars(40.1));
    s[9].over_cap = Some(OverCap { spent: dollars(40.1), cap: dollars(40.0), at: NOW });
    let log = vec!["Traceback (most recent call last):".into(), "KeyError: 'plan'".into()];
    s[10].failures = 3;
    s[10].attempts = 4;
    s[10].gate = Gate::Held { why: HeldWhy::Failures { count: 3, log }, at: NOW };
    s[10].last_end = Some(Box::new(End {
        attempt: 4,
        job: JobId(152_031),
        how: EndHow::Word(EndWord::Failed),
        started: Some(NOW - Secs::hours(1)),
        ended: NOW - Secs::minutes(50),
        seen_at: NOW - Secs::minutes(50),
        rows_before: 12,
        gpus: 1,
        exit: "1:0".into(),
        nodes: vec!["gpu03".into()],
        tier: None,
        mark: None,
        stop: None,
        cancelled_by: None,
    }));
    s[11].failures = 1;
    s[11].gate = Gate::Backoff { until: NOW + Secs(95) };
    state.learned.gpus_at_hand = 4;
    state.last_tick = Some(TickRecord {
        at: NOW - Secs(40),
        outcome: TickOutcome::Ok,
        skipped_in_a_row: 0,
        last_ok: Some(NOW - Secs(40)),
    });
    (policy, state)
}

/// Every shard of it, now.
pub fn status(policy: &Policy, state: &State) -> Status {
    view::status(policy, state, &figures(policy, state), NOW, |_, _| true)
}

/// Now, in black and white.
pub fn look(width: Option<usize>) -> Look {
    Look { width, paint: Paint::OFF, now: NOW }
}

/// No line is wider.
#[track_caller]
pub fn within<'a>(width: usize, lines: impl IntoIterator<Item = &'a str>) {
    for line in lines {
        assert!(line.chars().count() <= width, "wider than {width}: {line}");
    }
}
