//! Usage is charged late, and exactly once (policy.md section 7).

use babysit::model::cluster::EndWord;
use babysit::model::policy::{CostIn, Policy, ReservationCharge, Shard};
use babysit::model::state::ChargeKind;
use babysit::model::units::{Secs, Time};
use babysit::planning::census::Census;
use babysit::planning::reservation;
use babysit::sim::{Cluster, Table};

use crate::harness::{Story, T0, dollars, lanes, shard, tiers};
use crate::prose::{MIN_4090, nodes, policy, wants};

const P: (&str, &str, u32) = ("P", "rtx4090", 2);

fn kinds(story: &Story, id: &str) -> Vec<(ChargeKind, u64)> {
    story.record(id).charges.iter().map(|c| (c.kind, c.gpu_seconds.0)).collect()
}

#[test]
fn a_reservation_that_led_to_a_start_is_charged_with_the_run() {
    let mut story = Story::on(nodes(&[P]), vec![wants("a/s0", "BCG", 2, MIN_4090)]);
    let bob = story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    story.after(Secs(300));
    story.ends(bob);
    story.after(Secs(100));
    assert_eq!(story.usage("BCG"), 0.0, "charged late");
    story.after(Secs(60));
    assert!(story.runs("a/s0"));
    assert_eq!(story.usage("BCG"), 0.0);
    story.after(Secs(4000));
    // 400 s of one reserved GPU, 4 rows of 15 min on two: from Slurm's own times.
    let charged = [(ChargeKind::Run, 7200), (ChargeKind::Reserved, 400)];
    assert_eq!(kinds(&story, "a/s0"), charged);
    assert_eq!(story.usage("BCG"), 7600.0 * 82.6);
}

#[test]
fn reservation_charge_job_end_waits_for_the_end_of_the_job() {
    let mut policy = policy(vec![wants("a/s0", "BCG", 2, MIN_4090)]);
    policy.rules.reservation_charge = ReservationCharge::JobEnd;
    let mut story = Story::new(policy, nodes(&[P]));
    let bob = story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    story.world.advance(Secs(300));
    story.world.cluster.node_down("P").expect("a node");
    story.tick();
    assert_eq!(story.reserved("a/s0"), "");
    assert_eq!(story.usage("BCG"), 0.0, "not at the release");
    story.world.cluster.node_up("P").expect("a node");
    assert!(story.world.cluster.job(bob).is_some_and(|job| job.is_over()));
    story.after(Secs(60));
    story.after(Secs(10));
    assert!(story.runs("a/s0"));
    story.after(Secs(4000));
    assert_eq!(kinds(&story, "a/s0"), [(ChargeKind::Run, 7200), (ChargeKind::Released, 300)]);
}

#[test]
fn job_end_without_any_job_to_come_is_charged_at_the_cancel() {
    let mut policy = policy(vec![wants("a/s0", "BCG", 2, MIN_4090)]);
    policy.rules.reservation_charge = ReservationCharge::JobEnd;
    let mut story = Story::new(policy, nodes(&[P]));
    story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    story.world.advance(Secs(300));
    story.cancel("a/s0");
    story.tick();
    assert_eq!(story.usage("BCG"), 24_780.0);
    story.after(Secs(60));
    assert_eq!(kinds(&story, "a/s0"), [(ChargeKind::Released, 300)]);
}

#[test]
fn a_clock_that_jumps_bills_no_second_twice() {
    let mut story = Story::on(nodes(&[P]), vec![wants("a/s0", "BCG", 2, MIN_4090)]);
    story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    let since = story.record("a/s0").reservation.clone().expect("one").since;
    let at = |seconds: i64| Time(since.0 + seconds);
    let billed = |story: &Story| {
        story.record("a/s0").reservation.as_ref().map(|held| held.gpu_seconds.0).expect("one")
    };
    for (now, sum) in
        [(100, 100), (40, 100), (90, 100), (100, 100), (150, 150), (0, 150), (160, 160)]
    {
        let census = Census::new(&story.world.policy, &story.world.state);
        reservation::accrue(&mut story.world.state, &census, at(now));
        assert_eq!(billed(&story), sum, "at {now}");
    }
}

/// Own (2 GPUs) preempts extra; our shard runs in extra and may be requeued by Slurm.
fn requeued(id: &str) -> Story {
    let cluster = Cluster::at(T0).node("P", &[("rtx4090", 1)]).qos("extra", 10, None, &[]);
    let mut cluster = cluster.qos("own", 100, Some(1), &["extra"]);
    cluster.work.add(id, Table::new(4, Secs(600)));
    let spec = Shard { args: vec!["--requeue".to_owned()], ..shard(id, 4) };
    let mut policy = Policy { tiers: tiers(), shards: vec![spec].into(), ..lanes(1, 0) };
    // Own is always taken as far as babysit is told.
    policy.lanes.as_mut().expect("lanes").own_gpus = Some(0);
    Story::new(policy, cluster)
}

#[test]
fn a_requeued_job_is_charged_once_for_each_run() {
    for seen in [true, false] {
        let mut story = requeued("q/s0");
        story.tick();
        story.world.advance(Secs(5));
        assert!(story.runs("q/s0"));
        if seen {
            story.tick();
        }
        // Twice within one cycle somebody takes the GPU for a while.
        for _ in 0..2 {
            story.world.advance(Secs(400));
            let bob = story.world.cluster.add_job_of("bob", "own", "gpu:1", Some(Secs(30)));
            bob.expect("own has room");
            story.world.advance(Secs(200));
        }
        story.after(Secs(3000));
        story.after(Secs(300));
        let job = story.world.cluster.history().iter().find(|job| job.restarts > 0);
        let job = job.expect("it was requeued").clone();
        assert_eq!(job.restarts, 2, "{seen}");
        let runs: Vec<u64> =
            story.world.cluster.runs_of(&job).iter().map(|r| (r.1.0 - r.0.0) as u64).collect();
        let mut charged: Vec<u64> =
            kinds(&story, "q/s0").iter().map(|(_, gpu_seconds)| *gpu_seconds).collect();
        charged.sort_unstable();
        let mut expected = runs.clone();
        expected.sort_unstable();
        assert_eq!(charged, expected, "{seen}");
        assert_eq!(job.end(), Some(EndWord::Completed));
    }
}

#[test]
fn a_newcomer_starts_at_the_floor_where_that_is_asked_for() {
    for (floor, first) in [(false, "new/s0"), (true, "a/s0")] {
        let shards = vec![wants("a/s0", "BCG", 2, MIN_4090), wants("k/s0", "KDG", 2, MIN_4090)];
        let mut policy = policy(shards);
        policy.rules.newcomer_floor = floor;
        let mut story = Story::new(policy, nodes(&[P]));
        story.has_used("BCG", 5_000);
        story.has_used("KDG", 9_000);
        story.stranger_takes("P", 1, "rtx4090");
        story.tick();
        assert_eq!(story.reserved("a/s0"), "P 1/2");
        let newcomer = wants("new/s0", "NEW", 2, MIN_4090);
        story.world.cluster.work.add("new/s0", Table::new(4, Secs(900)));
        story.world.policy.shards.push(newcomer);
        story.after(Secs(60));
        assert_eq!(story.reserved(first), "P 1/2", "floor = {floor}");
        let given = story.world.state.labs["NEW"].floor.0;
        assert_eq!(given, if floor { 5_000_000 } else { 0 });
        assert_eq!(story.usage("NEW"), 0.0, "a floor is no charge");
    }
}

/// A price per GPU-hour is for the GPUs that the job has, whatever shards.toml says by now.
#[test]
fn a_job_costs_what_it_holds_though_more_gpus_are_asked_for_by_now() {
    let spec = Shard {
        cost: Some(CostIn::GpuHour(dollars(1.0))),
        cap: Some(dollars(3.0)),
        ..shard("a/s0", 8)
    };
    let mut story = Story::on(nodes(&[("P", "rtx4090", 4)]), vec![spec]);
    story.tick();
    story.world.policy.shards[0].gpus = 4;
    story.after(Secs::hours(1));
    let record = story.record("a/s0");
    let started = record.live().and_then(|live| live.started).expect("it runs");
    let ran = story.world.now().since(started).as_f64();
    let spent = record.progress.spent.expect("a price").dollars();
    assert!((spent - ran / 3600.0).abs() < 0.001, "{spent} dollars for {ran} s of one GPU");
    assert!(record.over_cap.is_none());
}
