//! Scheduling and preemption (facts, section 6).

use super::super::{PreemptMode, Stranger};
use super::*;
use crate::model::request::{Asked, Change};
use crate::model::units::Secs;

fn add(cluster: &mut Cluster, qos: &str, gres: &str) -> JobId {
    cluster.add_job_of("bob", qos, gres, None).expect("fits")
}

fn move_to(cluster: &mut Cluster, id: JobId, qos: &str) -> Asked {
    let change = Change::Lane { qos: Some(qos.to_owned()), partition: None, account: None };
    cluster.door("bob").update(&[id], &change)
}

#[test]
fn a_job_starts_a_scheduler_delay_after_its_submission() {
    let mut cluster = lab();
    let id = add(&mut cluster, "own", "gpu:1");
    assert_eq!(state(&mut cluster, id), "PENDING None");
    cluster.advance(1);
    assert_eq!(state(&mut cluster, id), "RUNNING a1");
    assert_eq!(line(&mut cluster, id).started, Some(Time(T0.0 + 1)));
}

#[test]
fn without_delay_it_runs_when_the_command_returns() {
    let mut cluster = lab().site(|site| site.sched_delay = Secs(0));
    let id = add(&mut cluster, "own", "gpu:1");
    assert_eq!(state(&mut cluster, id), "RUNNING a1");
}

#[test]
fn own_past_its_limit_waits_for_the_lane_and_blocks_nobody() {
    let mut cluster = lab();
    let big = add(&mut cluster, "own", "gpu:rtx4090:3");
    let second = add(&mut cluster, "own", "gpu:rtx4090:2");
    let third = add(&mut cluster, "own", "gpu:rtx3080ti:1");
    cluster.advance(5);
    let seen = states(&mut cluster, &[big, second, third]);
    assert_eq!(seen, ["RUNNING a1", "PENDING QOSGrpGRES", "RUNNING c1"]);
}

#[test]
fn a_freed_own_gpu_goes_to_the_pending_own_job_not_to_extra() {
    let mut cluster = pair();
    let held = [add(&mut cluster, "own", "gpu:1"), add(&mut cluster, "own", "gpu:1")];
    cluster.advance(5);
    let extra = add(&mut cluster, "extra", "gpu:1");
    let own = add(&mut cluster, "own", "gpu:1");
    cluster.advance(5);
    assert_eq!(states(&mut cluster, &[extra, own]), ["PENDING Resources", "PENDING QOSGrpGRES"]);
    cluster.admin_cancels(held[0]).expect("runs");
    cluster.advance(1);
    assert_eq!(states(&mut cluster, &[extra, own]), ["PENDING Resources", "RUNNING p"]);
}

#[test]
fn the_first_that_lacks_room_says_resources_the_others_priority() {
    let mut cluster = pair();
    let jobs: Vec<JobId> = (0..4).map(|_| add(&mut cluster, "extra", "gpu:1")).collect();
    cluster.advance(5);
    assert_eq!(
        states(&mut cluster, &jobs),
        ["RUNNING p", "RUNNING p", "PENDING Resources", "PENDING Priority"]
    );
}

#[test]
fn of_equal_priority_the_oldest_starts_and_nice_turns_it_round() {
    let first_of = |nice: i64| {
        let mut cluster = pair();
        add(&mut cluster, "own", "gpu:2");
        cluster.advance(1);
        let old = add(&mut cluster, "own", "gpu:2");
        let young = add(&mut cluster, "own", "gpu:2");
        assert_eq!(cluster.door("bob").update(&[old], &Change::Nice(nice)), Asked::Done);
        let blocker = cluster.history()[0].id;
        cluster.admin_cancels(blocker).expect("runs");
        cluster.advance(1);
        states(&mut cluster, &[old, young])
    };
    assert_eq!(first_of(0), ["RUNNING p", "PENDING QOSGrpGRES"]);
    assert_eq!(first_of(5), ["PENDING QOSGrpGRES", "RUNNING p"]);
}

#[test]
fn a_pending_job_moves_lane_with_its_id_and_submit_time_and_starts_at_once() {
    let mut cluster = lab();
    add(&mut cluster, "own", "gpu:4");
    let id = add(&mut cluster, "own", "gpu:1");
    cluster.advance(60);
    let before = line(&mut cluster, id);
    assert_eq!(move_to(&mut cluster, id, "extra"), Asked::Done);
    assert_eq!(line(&mut cluster, id).submitted, before.submitted);
    assert!(line(&mut cluster, id).priority < before.priority);
    cluster.advance(1);
    assert_eq!(state(&mut cluster, id), "RUNNING b1");
    assert_eq!(&*line(&mut cluster, id).qos, "extra");
}

#[test]
fn own_preempts_the_youngest_extra_job_and_only_as_many_as_needed() {
    let mut cluster = pair();
    let old = add(&mut cluster, "extra", "gpu:1");
    cluster.advance(10);
    let young = add(&mut cluster, "extra", "gpu:1");
    cluster.advance(10);
    let own = add(&mut cluster, "own", "gpu:1");
    cluster.advance(1);
    let seen = states(&mut cluster, &[old, young, own]);
    assert_eq!(seen, ["RUNNING p", "PENDING BeginTime", "RUNNING p"]);
}

#[test]
fn a_young_job_whose_end_would_not_help_is_left_alone() {
    let mut cluster = Cluster::at(T0)
        .node("b1", &[("rtx4090", 1), ("rtx5090", 1)])
        .qos("extra", 10, None, &[])
        .qos("own", 100, None, &["extra"]);
    let wanted = add(&mut cluster, "extra", "gpu:rtx4090:1");
    cluster.advance(10);
    let other = add(&mut cluster, "extra", "gpu:rtx5090:1");
    cluster.advance(10);
    add(&mut cluster, "own", "gpu:rtx4090:1");
    cluster.advance(1);
    assert_eq!(states(&mut cluster, &[wanted, other]), ["PENDING BeginTime", "RUNNING b1"]);
}

#[test]
fn own_at_its_limit_preempts_nobody() {
    let mut cluster = lab();
    add(&mut cluster, "own", "gpu:4");
    let extras: Vec<JobId> = (0..6).map(|_| add(&mut cluster, "extra", "gpu:1")).collect();
    cluster.advance(5);
    let own = add(&mut cluster, "own", "gpu:1");
    cluster.advance(5);
    assert_eq!(state(&mut cluster, own), "PENDING QOSGrpGRES");
    assert!(states(&mut cluster, &extras).iter().all(|s| s.starts_with("RUNNING")));
}

#[test]
fn a_requeued_victim_keeps_its_id_and_comes_back_after_two_minutes() {
    let mut cluster = pair();
    let victim =
        cluster.add_job(Stranger::new("bob", "extra", "gpu:2").lasting(Secs(1000))).expect("fits");
    cluster.advance(100);
    let own = cluster.add_job_of("bob", "own", "gpu:1", Some(Secs(10))).expect("fits");
    cluster.advance(1);
    let seen = line(&mut cluster, victim);
    assert_eq!((seen.restarts, seen.submitted), (1, Some(Time(T0.0 + 101))));
    cluster.advance(100);
    assert_eq!(states(&mut cluster, &[victim, own]), ["PENDING BeginTime", "COMPLETED"]);
    cluster.advance(21);
    assert_eq!(state(&mut cluster, victim), "RUNNING p");
    let stay = &cluster.job(victim).expect("there").stays[0];
    assert_eq!((stay.end.word(), stay.exit.as_ref()), ("PREEMPTED", "0:0"));
    // The whole of its time again, from its second start at 222 on.
    cluster.advance(1000);
    assert_eq!(cluster.job(victim).and_then(|job| job.ended()), Some(Time(T0.0 + 1222)));
}

#[test]
fn a_victim_ends_for_good_with_no_requeue_or_in_a_qos_that_cancels() {
    let check = |mode: PreemptMode, stranger: Stranger, expected: &str| {
        let mut cluster = Cluster::at(T0)
            .node("p", &[("rtx4090", 2)])
            .qos("extra", 10, None, &[])
            .preempt_mode(mode)
            .qos("own", 100, None, &["extra"]);
        let victim = cluster.add_job(stranger).expect("fits");
        cluster.advance(10);
        add(&mut cluster, "own", "gpu:2");
        cluster.advance(1);
        assert_eq!(state(&mut cluster, victim), expected);
    };
    let job = || Stranger::new("bob", "extra", "gpu:1");
    check(PreemptMode::Requeue, job(), "PENDING BeginTime");
    check(PreemptMode::Requeue, job().no_requeue(), "PREEMPTED");
    check(PreemptMode::Cancel, job(), "PREEMPTED");
}

#[test]
fn backfill_lets_small_jobs_pass_a_large_one_and_strict_order_does_not() {
    let small_runs = |backfill: bool| {
        let mut cluster = lab().site(|site| site.backfill = backfill);
        add(&mut cluster, "extra", "gpu:rtx5090:1");
        cluster.advance(5);
        let large = add(&mut cluster, "extra", "gpu:rtx5090:2");
        let small = add(&mut cluster, "extra", "gpu:rtx5090:1");
        let elsewhere = add(&mut cluster, "extra", "gpu:rtx3080ti:1");
        cluster.advance(5);
        states(&mut cluster, &[large, small, elsewhere])
    };
    assert_eq!(small_runs(true), ["PENDING Resources", "RUNNING b1", "RUNNING c1"]);
    assert_eq!(small_runs(false), ["PENDING Resources", "PENDING Priority", "RUNNING c1"]);
}

#[test]
fn cpus_and_memory_keep_jobs_waiting_while_gpus_are_free() {
    let mut cluster = Cluster::at(T0).node_with("p", &[("rtx4090", 4)], 8, 1000);
    let job = |cpus, mem| Stranger { cpus, mem, ..Stranger::new("bob", "normal", "gpu:1") };
    let ids = [job(6, 0), job(3, 0), job(1, 900), job(1, 200)]
        .map(|stranger| cluster.add_job(stranger).expect("could fit"));
    cluster.advance(1);
    assert_eq!(
        states(&mut cluster, &ids),
        ["RUNNING p", "PENDING Resources", "RUNNING p", "PENDING Priority"]
    );
}

#[test]
fn a_time_limit_ends_the_job_as_timeout() {
    let mut cluster = pair();
    let limited = Request { time: Some("10".to_owned()), ..request("x", "own", "gpu:1") };
    cluster.work.add("x", super::super::Table::new(100, Secs(60)));
    let id = submit(&mut cluster, &limited);
    cluster.advance(600);
    assert_eq!(line(&mut cluster, id).ends, Some(Time(T0.0 + 601)));
    cluster.advance(1);
    assert_eq!(state(&mut cluster, id), "TIMEOUT");
    assert_eq!(cluster.work.rows_of("x", cluster.now()), Some(10));
}

#[test]
fn a_held_job_waits_with_priority_0_until_it_is_released() {
    let mut cluster = pair();
    let id = add(&mut cluster, "own", "gpu:1");
    cluster.hold(id).expect("there");
    cluster.advance(5);
    assert_eq!(state(&mut cluster, id), "PENDING JobHeldUser");
    assert_eq!(line(&mut cluster, id).priority, Some(0));
    cluster.hold_for(id, "JobHeldAdmin").expect("there");
    cluster.advance(5);
    assert_eq!(state(&mut cluster, id), "PENDING JobHeldAdmin");
    cluster.release(id).expect("there");
    cluster.advance(5);
    assert_eq!(state(&mut cluster, id), "RUNNING p");
}
