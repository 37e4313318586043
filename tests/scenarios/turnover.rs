//! Lanes beyond the field's rule (`[policy] lanes`): K by own's turnover, one job in both lanes, a
//! share of own.

use babysit::model::policy::{LaneMode, Lanes, OwnShare, Policy, Shard};
use babysit::model::units::Secs;
use babysit::sim::{Cluster, Command, Fault, Rows, Table};

use crate::harness::{Story, T0, lanes, shard};

/// One node of so many GPUs for both lanes; own preempts extra.
fn cluster(gpus: u32, own: u32) -> Cluster<Rows> {
    Cluster::at(T0).node("n1", &[("rtx4090", gpus)]).qos("extra", 10, None, &[]).qos(
        "own",
        100,
        Some(own),
        &["extra"],
    )
}

fn with(mode: LaneMode, own: u32, park: usize, shards: Vec<Shard>) -> Policy {
    let mut policy = Policy { shards: shards.into(), ..lanes(own, park) };
    policy.rules.lanes.mode = mode;
    policy
}

fn three() -> Vec<Shard> {
    vec![shard("find/long", 40), shard("find/middle", 30), shard("find/short", 20)]
}

fn ids(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("find/{name}")).collect()
}

/// Two GPUs of own, both another session's; one extra GPU is taken as well.
fn full(mode: LaneMode, shards: Vec<Shard>) -> Story {
    let mut cluster = cluster(3, 2);
    cluster.add_job_of("bob", "own", "gpu:2", None).expect("fits own");
    cluster.add_job_of("bob", "normal", "gpu:1", Some(Secs::hours(3))).expect("fits");
    cluster.advance(10);
    Story::new(with(mode, 2, 2, shards), cluster)
}

#[test]
fn a_fixed_k_parks_two_and_an_adaptive_one_only_what_own_will_take() {
    let mut fixed = full(LaneMode::Fixed, three());
    fixed.tick();
    fixed.after(Secs::minutes(10));
    assert_eq!(fixed.pending_in("own"), ids(&["long", "middle"]));
    let mut adaptive = full(LaneMode::Adaptive, three());
    adaptive.tick();
    adaptive.after(Secs::minutes(10));
    assert_eq!(adaptive.pending_in("own"), ids(&["long"]), "nothing of own is about to end");
    assert_eq!(adaptive.pending_in("extra"), ids(&["middle", "short"]));
}

#[test]
fn k_grows_before_shards_of_ours_end_in_own() {
    // Two of ours run in own and have every GPU; their two rows are thought to take long.
    let mut shards = vec![shard("find/a", 2), shard("find/b", 2)];
    shards.iter_mut().for_each(|shard| shard.row_time = Secs::hours(30));
    shards.extend(three());
    let mut cluster = cluster(2, 2);
    for id in ["find/a", "find/b"] {
        cluster.work.add(id, Table::new(2, Secs::minutes(30)));
    }
    let mut story = Story::new(with(LaneMode::Adaptive, 2, 0, shards), cluster);
    story.tick();
    // Half a minute late, so that a tick sees a row soon after it is there.
    story.after(Secs(630));
    assert_eq!(story.running_in("own"), ids(&["a", "b"]));
    assert_eq!(story.pending_in("own"), ids(&["long"]));
    // The first rows took half an hour: the second ones end within two ticks.
    for _ in 0..4 {
        story.after(Secs::minutes(10));
    }
    assert_eq!(story.pending_in("own").len(), 2, "two GPUs of own will be free");
}

#[test]
fn the_last_one_waits_where_starts_were_more_frequent() {
    let mut story = full(LaneMode::Adaptive, vec![shard("find/long", 40)]);
    story.tick();
    story.after(Secs::minutes(10));
    assert_eq!(story.pending_in("own"), ids(&["long"]), "no start was ever seen");
    story.world.state.learned.extra_starts = 3;
    story.after(Secs::minutes(10));
    assert_eq!(story.pending_in("extra"), ids(&["long"]));
}

#[test]
fn what_waits_in_both_lanes_takes_the_first_gpu_of_either() {
    let mut cluster = cluster(4, 2);
    let held = cluster.add_job_of("bob", "own", "gpu:2", None).expect("fits own");
    let other = cluster.add_job_of("bob", "normal", "gpu:2", None).expect("fits");
    cluster.advance(10);
    let mut story = Story::new(with(LaneMode::Both, 2, 0, three()), cluster);
    story.tick();
    story.after(Secs::minutes(10));
    assert_eq!(story.pending_in("own,extra"), ids(&["long", "middle", "short"]));
    assert!(story.world.state.learned.takes_both.as_ref().is_some_and(|answer| answer.yes));
    story.ends(other);
    story.world.advance(Secs(30));
    assert_eq!(story.running_in("extra"), ids(&["long", "middle"]), "longest first, no tick");
    story.ends(held);
    story.world.advance(Secs(30));
    assert_eq!(story.running_in("own"), ids(&["short"]));
    story.tick();
    assert!(story.pending_in("own,extra").is_empty());
    let sbatch = story.world.cluster.calls.sbatch;
    assert_eq!(sbatch, 4, "three submissions, and one dry one for good");
}

#[test]
fn a_slurm_without_lists_of_qos_is_asked_once_a_day_and_gets_the_adaptive_rule() {
    let mut story = full(LaneMode::Both, three());
    story.world.cluster.site.lists_of_qos = false;
    story.tick();
    story.after(Secs::minutes(10));
    assert_eq!(story.pending_in("own"), ids(&["long"]));
    assert_eq!(story.pending_in("extra"), ids(&["middle", "short"]));
    assert_eq!(story.world.cluster.calls.sbatch, 4);
    // The site upgrades; a day later all three wait in both.
    story.world.cluster.site.lists_of_qos = true;
    story.after(Secs::minutes(10));
    assert_eq!(story.pending_in("own,extra").len(), 0);
    story.world.state.learned.takes_both.as_mut().expect("an answer").at = T0 - Secs::hours(24);
    story.after(Secs::minutes(10));
    assert_eq!(story.pending_in("own,extra"), ids(&["long", "middle", "short"]));
}

#[test]
fn no_answer_is_asked_for_again_and_so_are_other_lanes() {
    let mut story = full(LaneMode::Both, three());
    story.faulty = true;
    let text = "Unable to contact slurm controller (connect failure)";
    story.world.cluster.faults.next_says(Command::Sbatch, Fault::Error, text);
    story.tick();
    assert_eq!(story.world.state.learned.takes_both, None);
    story.faulty = false;
    story.after(Secs::minutes(1));
    assert_eq!(story.pending_in("own,normal").len() + story.pending_in("own,extra").len(), 3);
    let asked = |story: &Story| story.world.state.learned.takes_both.clone().expect("known").asked;
    assert_eq!(asked(&story), "own,extra");
    // What one pair of lanes was told is no word on another.
    story.world.policy.lanes.as_mut().expect("lanes").extra.qos = Some("normal".to_owned());
    story.after(Secs::minutes(1));
    assert_eq!(asked(&story), "own,normal");
}

#[test]
fn jobs_in_both_lanes_go_back_to_one_when_the_setting_does() {
    let mut story = full(LaneMode::Both, three());
    story.tick();
    story.after(Secs::minutes(10));
    assert_eq!(story.pending_in("own,extra").len(), 3);
    story.world.policy.rules.lanes.mode = LaneMode::Fixed;
    story.after(Secs::minutes(10));
    assert_eq!(story.pending_in("own"), ids(&["long", "middle"]));
    assert_eq!(story.pending_in("extra"), ids(&["short"]));
}

#[test]
fn lanes_that_differ_in_their_partition_cannot_hold_one_job() {
    let mut policy = with(LaneMode::Both, 2, 0, three());
    let Lanes { own, extra, .. } = policy.lanes.as_mut().expect("lanes");
    own.partition = Some("main".to_owned());
    extra.partition = Some("gpu".to_owned());
    assert!(!policy.lanes.as_ref().expect("lanes").differ_by_qos_alone());
}

#[test]
fn no_more_of_own_is_taken_or_waited_for_than_our_share() {
    for mode in [LaneMode::Fixed, LaneMode::Adaptive, LaneMode::Both] {
        // Four GPUs of own, all free; two more beside them are taken. We may hold two of own.
        let mut cluster = cluster(6, 4);
        cluster.add_job_of("bob", "normal", "gpu:4", None).expect("fits");
        cluster.advance(10);
        let shards = (0..5).map(|n| shard(&format!("find/s{n}"), 40 + n)).collect();
        let mut policy = with(mode, 4, 2, shards);
        policy.rules.lanes.own_share = OwnShare::Gpus(2);
        let mut story = Story::new(policy, cluster);
        story.tick();
        story.after(Secs::minutes(10));
        assert_eq!(story.running_in("own"), ids(&["s3", "s4"]), "{mode:?}");
        assert_eq!(story.pending_in("extra"), ids(&["s0", "s1", "s2"]), "{mode:?}");
    }
}

#[test]
fn a_shard_wider_than_our_share_stands_in_own_alone() {
    for mode in [LaneMode::Fixed, LaneMode::Adaptive, LaneMode::Both] {
        // Four GPUs of own, of which we may have two, and never more than one extra GPU.
        let cluster = Cluster::at(T0).node("n1", &[("rtx4090", 5)]);
        let cluster = cluster.qos("extra", 10, Some(1), &[]).qos("own", 100, Some(4), &[]);
        let wide = |id, rows| Shard { gpus: 4, ..shard(id, rows) };
        let mut shards = vec![wide("find/wide", 90), wide("find/wider", 80)];
        shards.extend((0..3).map(|n| shard(&format!("find/s{n}"), 10 + n)));
        let mut policy = with(mode, 4, 1, shards);
        policy.rules.lanes.own_share = OwnShare::Gpus(2);
        let mut story = Story::new(policy, cluster);
        for _ in 0..60 {
            story.after(Secs::minutes(10));
            let own = story.pending_in("own").len() + story.running_in("own").len();
            assert!(own <= 2, "{mode:?}: {own}");
        }
        for _ in 0..2000 {
            story.after(Secs::minutes(10));
        }
        let done = story.world.state.shards.iter().filter(|r| r.finished.is_some()).count();
        assert_eq!(done, 5, "{mode:?}: none waits for ever");
    }
}
