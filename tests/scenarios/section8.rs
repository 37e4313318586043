//! S1-S15 of policy.md section 8, each under its number.

use babysit::model::cluster::EndWord;
use babysit::model::reason::Reason;
use babysit::model::state::{ChargeKind, Gate};
use babysit::model::units::{Secs, Tflops};
use babysit::planning::event::What;
use babysit::sim::{Cluster, Table, Trouble};

use crate::harness::{Story, T0};
use crate::prose::{MIN_3080TI, MIN_4090, llm, nodes, policy, wants};

const P: (&str, &str, u32) = ("P", "rtx4090", 2);

/// Rank 1 is A of BCG, which wants 2 of a 4090; P (4090x2) has one idle.
fn a_collects_on_p() -> Story {
    let mut story = Story::on(nodes(&[P]), vec![wants("a/s0", "BCG", 2, MIN_4090)]);
    story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    assert_eq!(story.reserved("a/s0"), "P 1/2");
    story
}

#[test]
fn s1_rank_1_wants_2_and_a_fit_placement_has_2_idle() {
    let mut story = Story::on(nodes(&[P]), vec![wants("a/s0", "BCG", 2, MIN_4090)]);
    story.tick();
    story.world.advance(Secs(2));
    assert!(story.runs("a/s0"), "it starts at once");
    assert_eq!(story.node_of("a/s0"), "P");
    assert_eq!(story.reserved("a/s0"), "");
}

#[test]
fn s2_rank_1_wants_2_and_p_has_1_idle() {
    let shards = vec![wants("a/s0", "BCG", 2, MIN_4090), wants("b/s0", "KDG", 1, MIN_4090)];
    let mut story = Story::on(nodes(&[P]), shards);
    story.has_used("KDG", 1);
    story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    assert_eq!(story.reserved("a/s0"), "P 1/2");
    // P has 0 idle for everyone after.
    let b = Reason::QueueWait { rank: 2, ahead: Some("a/s0".into()), idle_but_reserved: 1 };
    assert_eq!(*story.why("b/s0"), b);
    let a = Reason::Collecting { node: "P".into(), tier: "rtx4090".into(), have: 1, need: 2 };
    assert_eq!(*story.why("a/s0"), a);
}

#[test]
fn s3_one_more_idle_on_p_is_absorbed_and_it_starts_there() {
    let mut policy = policy(vec![wants("a/s0", "BCG", 2, MIN_4090)]);
    policy.backfill = Some(llm());
    let mut story = Story::new(policy, nodes(&[P]));
    let bob = story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    assert_eq!(story.reserved("a/s0"), "P 1/2");
    // Backfill goes on using the reserved GPU until the start (R1).
    let serve = story.backfill_takes("P", "gpu:1");
    story.after(Secs(60));
    assert_eq!(story.reserved("a/s0"), "P 1/2");

    story.ends(bob);
    story.after(Secs(60));
    story.world.advance(Secs(2));
    assert!(story.runs("a/s0"), "complete, starts there");
    assert_eq!((story.node_of("a/s0").as_str(), story.reserved("a/s0").as_str()), ("P", ""));
    let stopped = story.world.cluster.job(serve).and_then(|job| job.end());
    assert_eq!(stopped, Some(EndWord::Cancelled), "backfill told to stop");
}

#[test]
fn s4_holding_half_of_p_when_q_has_2_idle() {
    let shards = vec![wants("a/s0", "BCG", 2, MIN_4090), wants("b/s0", "KDG", 1, MIN_4090)];
    let mut story = Story::on(nodes(&[P, ("Q", "rtx4090", 2)]), shards);
    story.has_used("KDG", 1);
    story.stranger_takes("P", 1, "rtx4090");
    let on_q = story.stranger_takes("Q", 2, "rtx4090");
    story.tick();
    assert_eq!(story.reserved("a/s0"), "P 1/2");
    assert_eq!(story.node_of("b/s0"), "");

    story.ends(on_q);
    story.after(Secs(60));
    assert_eq!((story.node_of("a/s0").as_str(), story.reserved("a/s0").as_str()), ("Q", ""));
    assert_eq!(story.node_of("b/s0"), "P", "P's GPU is free for the next rank in this cycle");
}

#[test]
fn s5_the_lab_order_changes_because_another_job_of_the_lab_ends() {
    // Another BCG job runs on a smaller card: 1 x 400 s x 20 TFLOP/s = 8 000.
    let shards = vec![
        wants("other/s0", "BCG", 1, MIN_3080TI),
        wants("a/s0", "BCG", 2, MIN_4090),
        wants("k/s0", "KDG", 2, MIN_4090),
    ];
    let mut policy = policy(shards);
    policy.tiers[0].tflops = Tflops::from_f64(20.0).expect("a weight");
    policy.shards[0].rows = 1;
    let mut cluster = nodes(&[P, ("small", "rtx3080ti", 1)]);
    cluster.work.add("other/s0", Table::new(1, Secs(400)));
    let mut story = Story::new(policy, cluster);
    story.has_used("BCG", 24_000);
    story.has_used("KDG", 28_000);
    story.hold("a/s0");
    story.hold("k/s0");
    let bob = story.stranger_takes("P", 1, "rtx4090");
    let carol = story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    story.after(Secs(101));
    assert!(story.runs("other/s0"));
    story.ends(carol);

    // T+0: BCG 24k leads KDG 28k.
    story.release("a/s0");
    story.release("k/s0");
    story.tick();
    assert_eq!(story.reserved("a/s0"), "P 1/2");
    assert_eq!(story.usage("BCG"), 24_000.0, "charged late");

    // T+5 min: the other job ends, 32k > 28k.
    story.after(Secs(300));
    assert!(!story.runs_in_slurm("other/s0"), "it has just ended");
    assert_eq!(story.reserved("a/s0"), "", "R3");
    let released: Vec<_> = story.record("a/s0").charges.iter().collect();
    assert_eq!(released.len(), 1);
    assert_eq!((released[0].gpus, released[0].gpu_seconds.0), (1, 300));
    assert_eq!(released[0].kind, ChargeKind::Released);
    assert_eq!(released[0].gpu_seconds.weighted(released[0].weight).0, 24_780_000);
    assert_eq!(story.usage("BCG"), 56_780.0);
    assert_eq!(story.usage("KDG"), 28_000.0);
    assert_eq!(story.reserved("k/s0"), "P 1/2", "KDG is rank 1 and begins its own");
    let a = Reason::QueueWait { rank: 2, ahead: Some("k/s0".into()), idle_but_reserved: 1 };
    assert_eq!(*story.why("a/s0"), a, "A is queued again");

    // KDG runs and becomes the dearer one; when BCG leads again, A begins anew, from zero.
    story.ends(bob);
    story.after(Secs(60));
    assert_eq!(story.node_of("k/s0"), "P");
    for _ in 0..6 {
        story.after(Secs::minutes(10));
    }
    story.world.advance(Secs::minutes(2));
    assert!(!story.runs_in_slurm("k/s0"));
    story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    assert!(story.usage("KDG") > 56_780.0);
    assert_eq!(story.reserved("a/s0"), "P 1/2");
    let anew = story.record("a/s0").reservation.clone().expect("a reservation");
    assert_eq!((anew.since, anew.gpu_seconds.0), (story.world.now(), 0));
}

#[test]
fn s6_one_idle_on_each_of_two_nodes_is_no_start() {
    let two = [("node1", "rtx4090", 2), ("node2", "rtx4090", 2)];
    let mut story = Story::on(nodes(&two), vec![wants("a/s0", "BCG", 2, MIN_4090)]);
    story.stranger_takes("node1", 1, "rtx4090");
    story.stranger_takes("node2", 1, "rtx4090");
    for _ in 0..3 {
        story.after(Secs(60));
        assert_eq!(story.reserved("a/s0"), "node1 1/2", "on one of them");
        assert_eq!(story.submissions("a/s0"), 0, "no split over nodes");
    }
}

#[test]
fn s7_a_mixed_node_is_two_placements() {
    let cluster = Cluster::at(T0).node("X", &[("rtx4090", 4), ("rtx5090", 4)]);
    let shards = vec![
        wants("four/s0", "BCG", 4, MIN_4090),
        wants("four/s1", "BCG", 4, MIN_4090),
        wants("eight/s0", "BCG", 8, MIN_4090),
    ];
    let mut story = Story::on(cluster, shards);
    story.tick();
    story.after(Secs(10));
    let tier = |id: &str| {
        let live = story.record(id).live().expect("a job");
        live.attempt.pin.as_ref().map(|pin| pin.tier.clone()).unwrap_or_default()
    };
    assert_eq!([tier("four/s0"), tier("four/s1")], ["rtx5090", "rtx4090"], "it fits both");
    assert!(story.runs("four/s0") && story.runs("four/s1"));
    let Reason::NoFit { asked, largest } = story.why("eight/s0") else {
        panic!("{:?}", story.why("eight/s0"))
    };
    assert_eq!(asked, "8 GPUs of rtx4090 or better on one node");
    assert_eq!(largest, "4x rtx5090 on X");
    assert_eq!(story.submissions("eight/s0"), 0);
}

#[test]
fn s8_rank_2_may_not_reserve() {
    let shards = vec![wants("a/s0", "BCG", 2, MIN_4090), wants("b/s0", "KDG", 2, MIN_4090)];
    let mut story = Story::on(nodes(&[P, ("Q", "rtx4090", 2)]), shards);
    story.has_used("KDG", 1);
    let on_p = story.stranger_takes("P", 1, "rtx4090");
    story.stranger_takes("Q", 1, "rtx4090");
    for _ in 0..3 {
        story.after(Secs(60));
        assert_eq!(story.reserved("a/s0"), "P 1/2");
        assert_eq!(story.reserved("b/s0"), "", "R2, though Q has one idle");
    }
    story.ends(on_p);
    story.after(Secs(60));
    assert_eq!(story.node_of("a/s0"), "P");
    story.after(Secs(60));
    assert_eq!(story.reserved("b/s0"), "Q 1/2", "A has started: it is rank 1 now");
}

#[test]
fn s9_rank_2_starts_where_rank_1_does_not_fit() {
    let shards = vec![wants("a/s0", "BCG", 2, MIN_4090), wants("b/s0", "KDG", 1, MIN_3080TI)];
    let mut story = Story::on(nodes(&[P, ("Q", "rtx3080ti", 2)]), shards);
    story.has_used("KDG", 1);
    story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    story.world.advance(Secs(2));
    assert_eq!(story.reserved("a/s0"), "P 1/2");
    assert_eq!(story.node_of("b/s0"), "Q");
    assert_eq!(story.idle("Q"), 1);
}

#[test]
fn s10_out_of_memory_raises_the_minimum_tier() {
    let shards = vec![wants("a/s0", "BCG", 2, MIN_3080TI)];
    let mut cluster = nodes(&[P, ("Q", "rtx3080ti", 2)]);
    let oom = Trouble::GpuMemory(vec!["rtx3080ti".to_owned()]);
    cluster.work.add("a/s0", Table::new(4, Secs::minutes(15)).start_cost(Secs(30)).always(oom));
    let mut story = Story::new(policy(shards), cluster);
    story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    assert_eq!(story.node_of("a/s0"), "Q");
    story.after(Secs(10));
    assert!(story.runs("a/s0"));
    story.after(Secs(60));
    assert_eq!(story.record("a/s0").min_tier, Some(MIN_4090));
    assert_eq!(story.record("a/s0").failures, 0, "not a failure of the shard");
    assert_eq!(
        story.told(|what| matches!(what, What::MinTierRaised { tier } if tier == "rtx4090")),
        1
    );
    story.after(Secs(60));
    assert_eq!(story.reserved("a/s0"), "P 1/2");
    assert_eq!(story.idle("Q"), 2);
}

#[test]
fn s11_cancelled_while_holding_one_gpu_for_five_minutes() {
    let mut story = a_collects_on_p();
    story.after(Secs(100));
    story.after(Secs(100));
    story.world.advance(Secs(100));
    story.cancel("a/s0");
    story.tick();
    assert_eq!(story.reserved("a/s0"), "", "R4");
    assert_eq!(story.usage("BCG"), 24_780.0);
    assert_eq!(*story.why("a/s0"), Reason::Cancelled { by: "alice".to_owned() });
    assert!(matches!(story.record("a/s0").gate, Gate::Cancelled { .. }));
    story.after(Secs(600));
    assert_eq!(story.usage("BCG"), 24_780.0, "once");
    assert_eq!(story.submissions("a/s0"), 0);
}

#[test]
fn s12_its_node_goes_down_while_reserved() {
    let shards = vec![wants("a/s0", "BCG", 2, MIN_4090)];
    let mut story = Story::on(nodes(&[P, ("Q", "rtx4090", 2)]), shards);
    story.stranger_takes("P", 1, "rtx4090");
    let on_q = story.stranger_takes("Q", 2, "rtx4090");
    story.tick();
    assert_eq!(story.reserved("a/s0"), "P 1/2");
    story.world.advance(Secs(300));
    story.world.cluster.node_down("P").expect("a node");
    story.tick();
    assert_eq!(story.reserved("a/s0"), "", "R5");
    assert_eq!(story.usage("BCG"), 24_780.0, "charged");
    assert!(matches!(story.why("a/s0"), Reason::QueueWait { rank: 1, .. }), "queued");
    story.ends(on_q);
    story.after(Secs(60));
    assert_eq!(story.node_of("a/s0"), "Q", "tries elsewhere in the next cycle");
}

#[test]
fn s13_wants_4_where_every_placement_has_2() {
    let shards = vec![wants("a/s0", "BCG", 4, MIN_3080TI), wants("b/s0", "BCG", 2, MIN_3080TI)];
    let mut story = Story::on(nodes(&[P, ("Q", "rtx3080ti", 2)]), shards);
    story.tick();
    story.after(Secs(60));
    let Reason::NoFit { asked, largest } = story.why("a/s0") else {
        panic!("{:?}", story.why("a/s0"))
    };
    assert_eq!(asked, "4 GPUs of rtx3080ti or better on one node");
    assert_eq!(largest, "2x rtx4090 on P");
    assert_eq!((story.submissions("a/s0"), story.reserved("a/s0").as_str()), (0, ""));
    assert!(story.runs("b/s0"), "the others go on");
    assert_eq!(story.told(|what| matches!(what, What::NoFit { .. })), 1, "told once");
}

#[test]
fn s14_backfill_holds_both_gpus_of_p() {
    let mut policy = policy(vec![wants("a/s0", "BCG", 2, MIN_4090)]);
    policy.backfill = Some(llm());
    let mut story = Story::new(policy, nodes(&[P]));
    let serve = [story.backfill_takes("P", "gpu:1"), story.backfill_takes("P", "gpu:1")];
    story.tick();
    story.world.advance(Secs(2));
    assert!(story.runs("a/s0"), "idle = 2: stop backfill, sbatch, running");
    for job in serve {
        let end = story.world.cluster.job(job).and_then(|job| job.end());
        assert_eq!(end, Some(EndWord::Cancelled));
    }
}

#[test]
fn s15_no_lab_keeps_the_cluster() {
    let mut shards: Vec<_> =
        (0..5).map(|i| wants(&format!("bcg/s{i}"), "BCG", 2, MIN_4090)).collect();
    shards.extend((0..3).map(|i| wants(&format!("kdg/s{i}"), "KDG", 2, MIN_4090)));
    let mut story = Story::on(nodes(&[P]), shards);
    story.has_used("KDG", 1_000);
    let mut served = Vec::new();
    for _ in 0..70 {
        story.after(Secs::minutes(10));
        let running = story.world.state.shards.iter().find(|record| record.live().is_some());
        if let Some(record) = running
            && served.last() != Some(&record.id.family)
        {
            served.push(record.id.family.clone());
        }
    }
    let done = story.world.state.shards.iter().filter(|r| r.finished.is_some()).count();
    assert_eq!(done, 8);
    assert_eq!(served, ["bcg", "kdg", "bcg", "kdg", "bcg", "kdg", "bcg"], "in turns");
}
