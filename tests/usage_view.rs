//! `babysit usage`: the charges one by one, their sums, and how reservations fared.

mod common;

use babysit::cli::figures::figures;
use babysit::model::policy::{Policy, SubmitMode};
use babysit::model::reason::Reason;
use babysit::model::state::{
    Alike, Charge, ChargeKind, LabRecord, Owed, OwnLane, Pin, Reservation, State,
};
use babysit::model::units::{GpuSeconds, Secs, Tflops, Usage};
use babysit::output::paint::Paint;
use babysit::output::{evidence, usage, view};
use common::{NOW, fresh, policy};
use expect_test::expect;

const W: Tflops = Tflops(82_600);

fn charge(kind: ChargeKind, lab: &str, attempt: u32, gpus: u32, length: i64, raw: u64) -> Charge {
    Charge {
        kind,
        lab: lab.into(),
        attempt,
        from: NOW - Secs(length + 600),
        length: Secs(length),
        gpus,
        gpu_seconds: GpuSeconds(raw),
        tier: Some("rtx4090".into()),
        weight: W,
        at: NOW - Secs(i64::from(attempt) * 10),
    }
}

fn held(since: i64, raw: u64) -> Reservation {
    Reservation {
        pin: Pin { node: "P".into(), tier: "rtx4090".into() },
        gpus: 1,
        since: NOW - Secs(since),
        accrued_at: NOW,
        gpu_seconds: GpuSeconds(raw),
    }
}

/// find is KDG's, restore BCG's; the figures of S5 are among them.
fn two_labs() -> (Policy, State) {
    let mut policy = policy();
    for shard in &mut policy.shards {
        shard.lab = if shard.id.family == "find" { "KDG".into() } else { "BCG".into() };
    }
    let mut state = fresh(&policy);
    let s = &mut state.shards;
    s[0].charges = vec![charge(ChargeKind::Run, "KDG", 2, 1, 500, 500)];
    s[4].charges = vec![
        charge(ChargeKind::Run, "BCG", 1, 2, 900, 1800),
        charge(ChargeKind::Released, "BCG", 2, 1, 300, 300),
    ];
    // Collected 1, then 2: more than its last GPUs would give by themselves.
    s[5].charges = vec![charge(ChargeKind::Reserved, "BCG", 1, 2, 100, 150)];
    s[5].owed = vec![Owed { reservation: held(200, 200), started: true }];
    s[6].reservation = Some(held(60, 60));
    s[7].owed = vec![Owed { reservation: held(40, 40), started: false }];
    for record in &state.shards {
        for charge in &record.charges {
            let lab = state.labs.entry(charge.lab.clone()).or_default();
            lab.usage += charge.gpu_seconds.weighted(charge.weight);
        }
    }
    (policy, state)
}

#[test]
fn every_charge_is_listed_and_their_sum_is_the_usage() {
    let (policy, state) = two_labs();
    let view = usage::view(&policy, &state, None, NOW);
    let sums: Vec<(&str, f64, f64, bool)> =
        view.labs.iter().map(|l| (l.name.as_str(), l.usage, l.charged, l.sum_is_usage)).collect();
    assert_eq!(sums, [("KDG", 41_300.0, 41_300.0, true), ("BCG", 185_850.0, 185_850.0, true)]);
    let listed: f64 = view.charges.iter().map(|charge| charge.amount).sum();
    assert_eq!(listed, 41_300.0 + 185_850.0);
    assert!(view.charges.iter().any(|c| c.kind == "released" && c.amount == 24_780.0));
    expect![[r#"
        RANK LAB USAGE (TFLOP-s) SHARE RESERVATIONS FAILED OPEN MEAN LENGTH THEIR COST
           1 KDG           41300   18%            0      0    0           -         0%
           2 BCG          185850   82%            5      2    1          2m        20%

        LAB SHARD      TRY WHAT     GPU SECONDS GPU-S TIER    TFLOPS AMOUNT FROM
        KDG find/s0      2 run        1     500   500 rtx4090   82.6  41300 2025-11-02T14:41:40Z
        BCG restore/s0   2 released   1     300   300 rtx4090   82.6  24780 2025-11-02T14:45:00Z
        BCG restore/s0   1 run        2     900  1800 rtx4090   82.6 148680 2025-11-02T14:35:00Z
        BCG restore/s1   1 reserved   2     100   150 rtx4090   82.6  12390 2025-11-02T14:48:20Z

        KDG: 1 charge, 41300 TFLOP-s in all: its usage
        BCG: 3 charges, 185850 TFLOP-s in all: its usage
    "#]]
    .assert_eq(&usage::text(&view, None, Paint::OFF));
}

#[test]
fn reservations_begun_failed_open_and_how_long() {
    let (policy, state) = two_labs();
    let view = usage::view(&policy, &state, Some("BCG"), NOW);
    let [lab] = view.labs.as_slice() else { panic!("one lab was asked for") };
    let held = &lab.reservations;
    // Charged: one that led to a start, one that did not. Owed: one each. Standing: one.
    assert_eq!((held.begun, held.started, held.failed, held.open), (5, 2, 2, 1));
    assert_eq!(held.mean_seconds, Some((300.0 + 100.0 + 200.0 + 40.0) / 4.0));
    assert_eq!(held.cost, 450.0 * 82.6);
    assert_eq!(held.cost_share, 450.0 / 2250.0);
    assert!(view.charges.iter().all(|charge| charge.lab == "BCG"));
}

#[test]
fn a_sum_that_is_not_the_usage_is_told() {
    let (policy, mut state) = two_labs();
    state.labs.insert("BCG".into(), LabRecord { usage: Usage(1), floor: Usage(0) });
    let view = usage::view(&policy, &state, None, NOW);
    assert!(view.labs.iter().any(|lab| lab.name == "BCG" && !lab.sum_is_usage));
    assert!(usage::text(&view, None, Paint::OFF).contains("but its usage is 0.001"));
}

#[test]
fn charges_of_shards_that_shards_toml_no_longer_names_still_count() {
    let (mut policy, mut state) = two_labs();
    policy.shards.retain(|shard| shard.id.family == "find");
    state.align(&policy, NOW);
    let view = usage::view(&policy, &state, None, NOW);
    assert!(view.labs.iter().any(|lab| lab.name == "BCG" && lab.sum_is_usage && lab.charges == 3));
}

#[test]
fn the_rank_of_a_lab_counts_its_floor_and_its_share_does_not() {
    let (policy, mut state) = two_labs();
    state.labs.entry("KDG".into()).or_default().floor = Usage(900_000_000);
    let status = common::status(&policy, &state);
    let labs: Vec<(&str, u32)> = status.labs.iter().map(|l| (l.name.as_str(), l.rank)).collect();
    assert_eq!(labs, [("BCG", 1), ("KDG", 2)]);
    assert_eq!(status.labs[1].share, 41_300.0 / 227_150.0);
}

#[test]
fn why_tells_turn_placements_reservation_and_own_lane() {
    let (mut policy, mut state) = two_labs();
    policy.shards[6].submit = SubmitMode::Placed;
    policy.shards[6].gpus = 2;
    let alike = |idle, reserved, up, nodes: &[&str], more| Alike {
        tier: "rtx4090".into(),
        capacity: 2,
        idle,
        reserved,
        held_by_backfill: 0,
        up,
        reachable: true,
        nodes: nodes.iter().map(|n| (*n).to_owned()).collect(),
        more,
    };
    state.learned.placements = vec![
        alike(1, 1, true, &["P"], 0),
        alike(0, 0, true, &["q1", "q2"], 7),
        alike(0, 0, false, &["r"], 0),
        // Too small for two GPUs: no evidence for this shard.
        Alike { capacity: 1, ..alike(1, 0, true, &["tiny"], 0) },
    ];
    let running = OwnLane { running_ours: 4, running_others: 4, ..OwnLane::default() };
    state.learned.own_lane = Some(OwnLane { size: Some(8), ..running });
    state.shards[6].why =
        Reason::Collecting { node: "P".into(), tier: "rtx4090".into(), have: 1, need: 2 };
    let status = view::status(&policy, &state, &figures(&policy, &state), NOW, |i, _| i == 6);
    let (shard, record) = (&policy.shards[6], &state.shards[6]);
    let found = evidence::evidence(&policy, &state, shard, record, &status.shards[0], NOW);
    expect![[r#"
        restore/s2: First in line: collects rtx4090 GPUs on P, 1 of 2 so far.

          state       reserving; no job in Slurm, queued just now
          rank        1st in babysit's queue
          labs        BCG is 2nd of 2, least usage first: KDG 41300, BCG 185850 TFLOP-s
          reserved    1 GPU of rtx4090 on P, begun 1m ago; 60 GPU-seconds so far, charged when it ends
          fits on     rtx4090: 1 of 2 idle, 1 of them reserved, on P
                      rtx4090: 0 of 2 idle, on q1, q2 and 7 more
                      rtx4090: 2, down or drained, on r
          own lane    8 GPUs: 4 used by this project, 4 by others
          work left   64 of 64 rows, about 1d 2h at 25m a row (as configured, none measured yet)
          cost        $0 spent, cap $40
          tries       0 attempts, no failure since the last new row, 0 preemptions
    "#]].assert_eq(&evidence::text("restore/s2", &status.shards[0].why, &found));
}
