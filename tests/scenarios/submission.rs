//! How a shard reaches Slurm (policy.md section 6.1), out of memory, NO_FIT, own room, neighbours.

use babysit::engine::Outcome;
use babysit::model::policy::{Lane, Policy, Shard};
use babysit::model::reason::Reason;
use babysit::model::state::{Gate, HeldWhy, Slot};
use babysit::model::units::Secs;
use babysit::planning::event::What;
use babysit::planning::plan::Action;
use babysit::sim::{Cluster, Rows, Table, Trouble};
use babysit::study::World;

use crate::harness::{Story, T0, lanes, shard, tiers};
use crate::prose::{MIN_3080TI, MIN_4090, nodes, policy, wants};

/// gres and exclusions of the one submission of a queued shard.
fn asks(cluster: Cluster<Rows>, gpus: u32, min_tier: Option<u32>) -> String {
    let spec = Shard { gpus, min_tier, ..shard("q/s0", 4) };
    let mut story = Story::new(policy(vec![spec]), cluster);
    let report = story.tick();
    let asked = report.plan.actions.iter().map(|action| match action {
        Action::Submit(submit) => {
            assert_eq!(submit.request.node, None, "Slurm picks the node");
            format!("{} -{}", submit.request.gres, submit.request.exclude.join(","))
        }
        other => format!("{other:?}"),
    });
    asked.collect::<Vec<_>>().join("; ")
}

#[test]
fn what_a_queued_job_asks_of_slurm() {
    let all = || nodes(&[("a", "rtx3080ti", 2), ("b", "rtx4090", 2), ("c", "rtx5090", 2)]);
    assert_eq!(asks(all(), 1, None), "gpu:1 -", "any GPU");
    assert_eq!(asks(all(), 2, Some(1)), "gpu:2 -", "every model fits");
    assert_eq!(asks(all(), 2, Some(3)), "gpu:rtx5090:2 -", "one model fits");
    assert_eq!(asks(all(), 2, Some(2)), "gpu:2 -a", "several, not all");
    let mixed = || {
        let one = Cluster::at(T0).node("m", &[("rtx3080ti", 2), ("rtx4090", 4)]);
        one.node("c", &[("rtx5090", 2)])
    };
    assert_eq!(asks(mixed(), 2, Some(2)), "gpu:2 -m", "Slurm mixes models on a mixed node");
    assert_eq!(asks(mixed(), 4, Some(2)), "gpu:rtx4090:4 -", "else nothing large enough is left");
}

#[test]
fn a_placed_job_is_pinned_to_node_and_model() {
    let cluster = Cluster::at(T0).node("X", &[("rtx4090", 4), ("rtx5090", 4)]);
    let mut story = Story::on(cluster, vec![wants("a/s0", "BCG", 4, MIN_4090)]);
    let report = story.tick();
    let Some(Action::Submit(submit)) = report.plan.actions.first() else { panic!("{report:?}") };
    assert_eq!(submit.request.gres, "gpu:rtx5090:4");
    assert_eq!(submit.request.node.as_deref(), Some("X"));
}

fn lane_of_a(own: u32, bob: u32, parked: usize) -> Lane {
    let cluster = nodes(&[("P", "rtx4090", 4), ("S", "rtx3080ti", 8)]);
    let mut cluster = cluster.qos("extra", 10, None, &[]).qos("own", 100, Some(own), &[]);
    for _ in 0..bob {
        cluster.add_job_of("bob", "own", "gpu:rtx3080ti:1", None).expect("own has room");
    }
    cluster.advance(5);
    let mut shards = vec![wants("a/s0", "BCG", 2, MIN_4090)];
    // A queued shard that waits in own, for a model that is not free.
    shards.extend((0..parked).map(|i| Shard { gpus: 2, ..shard(&format!("q/s{i}"), 4) }));
    let mut story =
        Story::new(Policy { tiers: tiers(), shards: shards.into(), ..lanes(own, 2) }, cluster);
    story.tick();
    let live = story.record("a/s0").live().expect("started").clone();
    live.attempt.lane.expect("a lane")
}

#[test]
fn a_placed_job_goes_to_own_while_own_has_room_for_it() {
    assert_eq!(lane_of_a(8, 0, 0), Lane::Own);
    assert_eq!(lane_of_a(4, 2, 0), Lane::Own);
    assert_eq!(lane_of_a(4, 3, 0), Lane::Extra, "counting everybody's jobs in it");
    assert_eq!(lane_of_a(4, 2, 1), Lane::Extra, "and what goes there first");
    assert_eq!(lane_of_a(3, 2, 2), Lane::Extra, "and what is parked");
}

#[test]
fn out_of_memory_on_the_top_tier_is_held() {
    let mut cluster = nodes(&[("P", "rtx4090", 2), ("Q", "rtx5090", 2)]);
    let table = Table::new(4, Secs(900)).start_cost(Secs(20));
    cluster.work.add("a/s0", table.always(Trouble::GpuMemory(Vec::new())));
    let mut story = Story::new(policy(vec![wants("a/s0", "BCG", 2, MIN_4090)]), cluster);
    story.stranger_takes("Q", 1, "rtx5090");
    story.tick();
    assert_eq!(story.node_of("a/s0"), "P");
    story.after(Secs(60));
    assert_eq!(story.record("a/s0").min_tier, Some(3));
    assert_eq!(story.reserved("a/s0"), "Q 1/2", "for the larger tier as for any other");
    let bob =
        story.world.cluster.history().iter().find(|job| *job.user == *"bob").map(|job| job.id);
    story.ends(bob.expect("bob's job"));
    story.after(Secs(60));
    story.after(Secs(60));
    assert!(matches!(story.record("a/s0").gate, Gate::Held { why: HeldWhy::TopTier, .. }));
    assert_eq!(*story.why("a/s0"), Reason::TopTierOutOfMemory);
    story.after(Secs(3600));
    assert_eq!(story.submissions("a/s0"), 2);
}

#[test]
fn no_end_is_judged_while_its_log_cannot_be_read() {
    let mut cluster = nodes(&[("P", "rtx4090", 2), ("Q", "rtx5090", 2)]);
    let table = Table::new(4, Secs(900)).start_cost(Secs(20));
    cluster.work.add("a/s0", table.always(Trouble::GpuMemory(vec!["rtx4090".to_owned()])));
    let mut story = Story::new(policy(vec![wants("a/s0", "BCG", 2, MIN_4090)]), cluster);
    story.stranger_takes("Q", 1, "rtx5090");
    story.tick();
    story.world.cluster.work.logs_away = true;
    for _ in 0..20 {
        story.after(Secs(60));
    }
    let record = story.record("a/s0");
    assert_eq!((record.failures, record.min_tier), (0, None));
    assert!(matches!(record.slot, Slot::Settling(_)));
    assert!(record.progress.gap.as_ref().is_some_and(|gap| gap.contains("does not answer")));
    story.world.cluster.work.logs_away = false;
    story.after(Secs(60));
    let record = story.record("a/s0");
    assert_eq!((record.failures, record.min_tier), (0, Some(3)));
}

#[test]
fn host_memory_is_no_reason_for_a_larger_gpu() {
    let mut cluster = nodes(&[("P", "rtx4090", 2), ("Q", "rtx5090", 2)]);
    let table = Table::new(4, Secs(900)).start_cost(Secs(20));
    cluster.work.add("a/s0", table.always(Trouble::HostMemory(0)));
    let mut story = Story::new(policy(vec![wants("a/s0", "BCG", 2, MIN_4090)]), cluster);
    for _ in 0..40 {
        story.after(Secs(120));
    }
    assert_eq!(story.record("a/s0").min_tier, None);
    assert_eq!(*story.why("a/s0"), Reason::HostOutOfMemory, "mem must be raised");
    assert_eq!(story.submissions("a/s0"), 3, "max_failures");
}

#[test]
fn a_job_that_was_not_seen_running_still_raises_the_tier_it_ran_on() {
    let mut cluster = nodes(&[("P", "rtx4090", 2), ("Q", "rtx5090", 2)]);
    let oom = Trouble::GpuMemory(vec!["rtx5090".to_owned(), "rtx4090".to_owned()]);
    cluster.work.add("a/s0", Table::new(4, Secs(900)).start_cost(Secs(5)).always(oom));
    let mut story = Story::new(policy(vec![wants("a/s0", "BCG", 2, MIN_3080TI)]), cluster);
    story.stranger_takes("Q", 1, "rtx5090");
    story.tick();
    story.after(Secs(60));
    assert_eq!(story.record("a/s0").min_tier, Some(3), "it ran on a 4090");
    assert_eq!(story.usage("BCG"), 10.0 * 82.6);
}

#[test]
fn no_fit_is_looked_at_again_when_capacities_change() {
    for spec in [
        wants("a/s0", "BCG", 4, MIN_4090),
        Shard { gpus: 4, min_tier: Some(MIN_4090), ..shard("a/s0", 4) },
    ] {
        let shards = vec![spec, wants("b/s0", "BCG", 1, MIN_4090)];
        let mut cluster = nodes(&[("P", "rtx4090", 4)]);
        cluster.set_gpus("P", "rtx4090", 2).expect("a model");
        let mut story = Story::new(policy(shards), cluster);
        story.tick();
        assert!(matches!(story.why("a/s0"), Reason::NoFit { .. }), "{:?}", story.why("a/s0"));
        assert_eq!(story.record("b/s0").attempts, 1, "the others go on");
        story.after(Secs(60));
        assert_eq!(story.told(|what| matches!(what, What::NoFit { .. })), 1);
        assert_eq!(story.submissions("a/s0"), 0);
        story.world.cluster.set_gpus("P", "rtx4090", 5).expect("a model");
        story.after(Secs(60));
        story.after(Secs(60));
        assert!(story.runs("a/s0"), "{:?}", story.why("a/s0"));
    }
}

#[test]
fn max_gpus_of_a_tier_bounds_what_fits() {
    for spec in [
        wants("a/s0", "BCG", 4, MIN_4090),
        Shard { gpus: 4, min_tier: Some(MIN_4090), ..shard("a/s0", 4) },
    ] {
        let mut policy = policy(vec![spec]);
        policy.tiers[1].max_gpus = Some(2);
        let mut story = Story::new(policy, nodes(&[("P", "rtx4090", 4)]));
        story.world.tick();
        assert!(matches!(story.why("a/s0"), Reason::NoFit { .. }), "{:?}", story.why("a/s0"));
    }
}

#[test]
fn two_babysitters_count_each_other_as_strangers() {
    for (user, project) in [("alice", "other-plan"), ("carol", "oracle-plan")] {
        let cluster = || {
            let cluster = nodes(&[("P", "rtx4090", 4)]).qos("extra", 10, None, &[]);
            cluster.qos("own", 100, Some(2), &["extra"])
        };
        let campaign = |project: &str| {
            let shards =
                vec![wants("a/s0", "BCG", 2, MIN_4090), shard("q/s0", 8), shard("q/s1", 4)];
            Policy {
                project: project.to_owned(),
                tiers: tiers(),
                shards: shards.into(),
                ..lanes(2, 1)
            }
        };
        let mut ours = Story::new(campaign("oracle-plan"), cluster());
        // Rows are told by family/shard only, so the other one's shards have names of their own.
        let mut other = campaign(project);
        for spec in &mut other.shards {
            spec.id.family = format!("x{}", spec.id.family).into();
            ours.world.cluster.work.add(&spec.id.to_string(), Table::new(spec.rows, Secs(900)));
        }
        let mut theirs = World::new(other, Cluster::at(T0), user, 77);
        for _ in 0..60 {
            ours.after(Secs(200));
            std::mem::swap(&mut ours.world.cluster, &mut theirs.cluster);
            let report = theirs.tick();
            assert_eq!(report.outcome, Outcome::Ok);
            std::mem::swap(&mut ours.world.cluster, &mut theirs.cluster);
        }
        for record in ours.world.state.shards.iter().chain(&theirs.state.shards) {
            assert!(record.finished.is_some(), "{user} {project}: {} {:?}", record.id, record.why);
            assert!(!matches!(record.gate, Gate::Held { .. }), "{}", record.id);
        }
        let all = ours.world.journal.iter().chain(&theirs.journal);
        let wrong = all.filter(|event| {
            matches!(
                event.what,
                What::Twin { .. }
                    | What::Adopted { .. }
                    | What::StopFailed { .. }
                    | What::MoveRefused { .. }
            )
        });
        assert_eq!(wrong.count(), 0, "{user} {project}");
    }
}

#[test]
fn a_pinned_job_that_cannot_start_where_it_was_sent_is_taken_back_and_placed_anew() {
    let cluster = nodes(&[("P", "rtx4090", 2), ("Q", "rtx3080ti", 2)]);
    let mut story = Story::on(cluster, vec![wants("a/s0", "BCG", 2, MIN_3080TI)]);
    story.tick();
    assert_eq!(story.node_of("a/s0"), "P");
    let first = story.job("a/s0");
    let queued_since = story.record("a/s0").queued_since;
    // The node goes down in the second before Slurm would have started it.
    story.world.cluster.node_down("P").expect("a node");
    story.after(Secs::minutes(4));
    assert_eq!(story.job("a/s0"), first, "Slurm may still start it");
    story.after(Secs::minutes(2));
    story.tick();
    assert!(story.told(|what| matches!(what, What::Ended { .. })) == 1);
    assert_ne!(story.job("a/s0"), first);
    assert_eq!(story.node_of("a/s0"), "Q");
    assert_eq!(story.record("a/s0").queued_since, queued_since, "its place is kept");
    assert_eq!((story.record("a/s0").failures, story.submissions("a/s0")), (0, 2));
}
