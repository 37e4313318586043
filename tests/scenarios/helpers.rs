//! Split shards: idle GPUs take rows from a long shard, each row is done once, and helpers are in
//! nobody's way.

use babysit::model::policy::{CostIn, Lane, LaneMode, Policy, Shard};
use babysit::model::reason::Reason;
use babysit::model::split::Split;
use babysit::model::state::{Gate, HeldWhy, Stop};
use babysit::model::units::Secs;
use babysit::planning::event::What;
use babysit::planning::plan::Action;
use babysit::sim::{Cluster, Rows};

use crate::bills;
use crate::harness::{Story, T0, dollars, lanes, plain, shard};

fn split(id: &str, rows: u32, workers: u32) -> Shard {
    Shard { split: Some(Split { workers, claims: "/claims".into() }), ..shard(id, rows) }
}

fn cluster(gpus: u32) -> Cluster<Rows> {
    Cluster::at(T0).node("n1", &[("rtx4090", gpus)])
}

fn story(gpus: u32, shards: Vec<Shard>) -> Story {
    Story::new(Policy { shards: shards.into(), ..plain() }, cluster(gpus))
}

const TEN: Secs = Secs::minutes(10);

/// Ticks until all is done; every row once, every run charged.
fn to_the_end(story: &mut Story) {
    for _ in 0..600 {
        story.after(TEN);
        let over = |r: &babysit::model::state::ShardRecord| {
            (r.finished.is_some() || r.over_cap.is_some()) && r.live().is_none()
        };
        if story.world.state.shards.iter().all(over) {
            return all_once(story);
        }
    }
    panic!(
        "it never ends: {:#?}",
        story.world.state.shards.iter().map(|r| &r.why).collect::<Vec<_>>()
    );
}

fn all_once(story: &Story) {
    let rows = &story.world.cluster.work;
    for (key, index) in rows.keys() {
        assert_eq!(rows.redone(index), 0, "{key}: rows done twice");
    }
    bills::all_is_charged(&story.world);
}

fn hours(story: &Story) -> f64 {
    story.world.now().since(T0).as_f64() / 3600.0
}

#[test]
fn idle_gpus_take_rows_of_the_only_shard() {
    let mut story = story(4, vec![split("find/s0", 40, 4)]);
    story.tick();
    assert!(story.record("find/s0~2").live().is_none(), "its own job comes first");
    story.after(TEN);
    for helper in ["find/s0~2", "find/s0~3", "find/s0~4"] {
        assert!(story.record(helper).live().is_some(), "{helper}");
    }
    to_the_end(&mut story);
    assert_eq!(story.record("find/s0").progress.rows, 40);
    // Ten hours alone.
    assert!(hours(&story) < 3.2, "{}", hours(&story));
    let pace = story.record("find/s0").pace.seconds_per_row().expect("measured");
    assert!((800.0..1000.0).contains(&pace), "a row takes 900 s, whoever does it: {pace}");
}

#[test]
fn a_shard_that_is_not_split_gets_none_and_a_short_rest_calls_none() {
    let mut story = story(4, vec![shard("find/s0", 40), split("find/s1", 3, 4)]);
    for _ in 0..3 {
        story.after(TEN);
    }
    assert_eq!(story.world.cluster.history().len(), 2, "two shards, two jobs");
}

#[test]
fn a_helper_gives_way_to_a_shard_that_waits() {
    let mut story = story(1, vec![split("find/s0", 40, 4), shard("find/s1", 2)]);
    let hold = Gate::Held { why: HeldWhy::Person { by: "anna".into() }, at: T0 };
    story.tick();
    story.world.state.shards[1].gate = hold;
    // s1's job was submitted by the first tick and pends: nobody helps meanwhile.
    story.after(TEN);
    assert!(story.record("find/s0~2").live().is_none());
    story.world.cluster.admin_cancels(story.job("find/s1")).expect("a job");
    story.after(TEN);
    story.after(TEN);
    assert!(story.record("find/s0~2").live().is_some(), "one GPU, and nobody waits: it pends");
    story.world.state.shards[1].gate = Gate::Open;
    let report = story.after(TEN);
    let calls_back = |action: &Action| matches!(action, Action::Cancel { why: Stop::Unwanted, .. });
    assert!(report.plan.actions.iter().any(calls_back), "{:#?}", report.plan.actions);
    story.after(TEN);
    assert!(story.record("find/s0~2").live().is_none());
    assert!(story.record("find/s1").live().is_some());
    assert_eq!(story.record("find/s0~2").failures, 0, "it was not its fault");
    to_the_end(&mut story);
}

/// One own GPU, extra ones that are taken away.
fn two_lanes(extra: u32) -> Story {
    in_two_lanes(extra, vec![split("find/s0", 24, 4)])
}

fn in_two_lanes(extra: u32, shards: Vec<Shard>) -> Story {
    let mut policy = Policy { shards: shards.into(), ..lanes(1, 2) };
    policy.rules.lanes.mode = LaneMode::Both;
    let mut cluster = Cluster::at(T0)
        .node_in("own", "own", &[("rtx4090", 1)])
        .node_in("gpu", "x1", &[("rtx4090", extra)])
        .qos("extra", 10, None, &[])
        .on_nodes_of("gpu")
        .qos("own", 100, Some(1), &[])
        .on_nodes_of("own");
    cluster.site.lists_of_qos = true;
    Story::new(policy, cluster)
}

/// What is left of the long one in extra may have to wait there again, and no helper could catch up on it.
#[test]
fn a_helper_stands_behind_nobody_who_has_more_left_and_cannot_be_helped() {
    let mut story = in_two_lanes(1, vec![split("find/s0", 40, 4), shard("restore/s0", 30)]);
    let mut asked_at = None;
    for _ in 0..40 {
        story.after(TEN);
        let left = |id: &str, rows: u32| rows - story.record(id).progress.rows;
        let for_each = left("find/s0", 40) / 2;
        let there = story.record("find/s0~2").live().is_some();
        if there && asked_at.is_none() {
            assert!(for_each + 1 >= left("restore/s0", 30), "{for_each}");
            asked_at = Some(hours(&story));
        }
    }
    assert_eq!(story.record("restore/s0").live().and_then(|live| live.lane), Some(Lane::Extra));
    assert!(asked_at.is_some_and(|at| at > 2.0), "{asked_at:?}");
    to_the_end(&mut story);
}

#[test]
fn a_helper_stands_at_once_where_the_long_one_has_its_own_gpu() {
    let mut story = in_two_lanes(1, vec![split("find/s0", 24, 4), shard("restore/s0", 36)]);
    story.tick();
    story.after(TEN);
    assert_eq!(story.record("restore/s0").live().and_then(|live| live.lane), Some(Lane::Own));
    assert!(story.record("find/s0~2").live().is_some());
    to_the_end(&mut story);
}

#[test]
fn a_preempted_helper_loses_its_row_in_flight_and_no_other() {
    let mut story = two_lanes(2);
    story.tick();
    story.after(TEN);
    story.after(TEN);
    assert_eq!(story.running_in("extra").len(), 2, "two helpers, or one and the shard itself");
    story.world.cluster.node_down("x1").expect("a node");
    let report = story.after(TEN);
    let freed: u32 = report
        .events
        .iter()
        .map(|event| match event.what {
            What::RowsFreed { rows, all: false } => rows,
            _ => 0,
        })
        .sum();
    assert_eq!(freed, 2, "{:#?}", report.events);
    story.world.cluster.node_up("x1").expect("a node");
    to_the_end(&mut story);
    let index = story.world.cluster.work.index_of("find/s0").expect("a table");
    assert_eq!(story.world.cluster.work.lost(index), 2);
    assert_eq!(story.record("find/s0").failures, 0);
}

#[test]
fn nothing_is_given_back_while_slurm_cannot_say_that_a_job_is_over() {
    let mut story = story(2, vec![split("find/s0", 24, 2)]);
    story.tick();
    story.after(TEN);
    story.after(Secs::minutes(20));
    let job = story.job("find/s0~2");
    story.world.cluster.site.accounting = babysit::sim::Accounting::Down;
    story.world.cluster.site.min_job_age = Secs(0);
    story.world.cluster.admin_cancels(job).expect("a job");
    for _ in 0..6 {
        let report = story.after(TEN);
        let frees = |action: &Action| matches!(action, Action::FreeRows(_));
        assert!(!report.plan.actions.iter().any(frees), "{:#?}", report.plan.actions);
    }
    story.world.cluster.site.accounting = babysit::sim::Accounting::On;
    let report = story.after(TEN);
    assert!(report.events.iter().any(|e| e.what == What::RowsFreed { rows: 1, all: false }));
    to_the_end(&mut story);
}

#[test]
fn a_cap_stops_the_helpers_too_and_their_runs_are_in_the_price() {
    let spec = Shard {
        cost: Some(CostIn::GpuHour(dollars(1.0))),
        cap: Some(dollars(3.0)),
        ..split("find/s0", 100, 3)
    };
    let mut story = story(3, vec![spec]);
    to_the_end(&mut story);
    assert!(story.record("find/s0").over_cap.is_some());
    let spent = story.record("find/s0").progress.spent.expect("known").dollars();
    assert!((3.0..4.0).contains(&spent), "{spent}");
    let ran: u64 = story.world.state.shards.iter().map(|r| r.ran.0).sum();
    assert!((ran as f64 / 3600.0 - spent).abs() < 0.01, "{ran} s for {spent}");
    for _ in 0..3 {
        let report = story.after(TEN);
        assert!(report.plan.actions.is_empty(), "{:#?}", report.plan.actions);
    }
}

#[test]
fn a_shard_whose_last_rows_are_in_hand_is_not_submitted_for_them() {
    let mut story = story(2, vec![split("find/s0", 12, 2)]);
    while story.world.state.shards.iter().all(|record| record.finished.is_none()) {
        story.after(Secs::minutes(1));
        let record = story.record("find/s0");
        if record.live().is_none() && record.finished.is_none() {
            assert_eq!(record.why, Reason::RowsInHand { rows: 1 });
        }
    }
    to_the_end(&mut story);
    assert_eq!(story.submissions("find/s0"), 1);
    assert_eq!(story.submissions("find/s0~2"), 1);
}

#[test]
fn held_and_cancelled_shards_call_their_helpers_back() {
    let mut held = story(1, vec![split("find/s0", 40, 3)]);
    held.tick();
    held.after(TEN);
    assert!(held.record("find/s0~2").live().is_some());
    let why = HeldWhy::Person { by: "anna".into() };
    held.world.state.shards[0].gate = Gate::Held { why, at: T0 };
    held.after(TEN);
    held.after(TEN);
    assert!(held.record("find/s0~2").live().is_none());
    assert!(held.record("find/s0").live().is_some(), "what runs goes on");

    let mut gone = story(3, vec![split("find/s0", 40, 3)]);
    gone.tick();
    gone.after(TEN);
    gone.after(TEN);
    assert!(gone.record("find/s0~2").live().is_some_and(|live| live.started.is_some()));
    gone.world.state.shards[0].gate = Gate::Cancelled { by: "anna".into(), at: T0 };
    for _ in 0..3 {
        gone.after(TEN);
    }
    assert!(gone.world.state.shards.iter().all(|record| record.live().is_none()));
    bills::all_is_charged(&gone.world);
}

#[test]
fn a_helper_that_somebody_cancels_asks_nobody_and_rests() {
    let mut story = story(2, vec![split("find/s0", 40, 2)]);
    story.tick();
    story.after(TEN);
    story.after(TEN);
    let job = story.job("find/s0~2");
    story.world.cluster.admin_cancels(job).expect("a job");
    story.after(TEN);
    let helper = story.record("find/s0~2");
    assert!(matches!(helper.gate, Gate::Backoff { .. }), "{:?}", helper.gate);
    assert!(!matches!(story.record("find/s0").gate, Gate::Held { .. }));
    to_the_end(&mut story);
}

#[test]
fn the_longest_shard_is_helped_first() {
    let mut story = story(3, vec![split("find/s0", 30, 4), split("find/s1", 60, 4)]);
    story.tick();
    story.after(TEN);
    story.after(TEN);
    let runs = |id: &str| story.record(id).live().is_some_and(|live| live.started.is_some());
    assert!(runs("find/s1~2"), "60 rows for two are more than 30 for one");
    assert!(!runs("find/s0~2"));
    assert!(matches!(
        story.record("find/s0~4").why,
        Reason::NoHelpNeeded | Reason::PendingInSlurm { .. }
    ));
    to_the_end(&mut story);
}
