//! A family whose jobs claim their shards beside one whose rows several jobs share, in one shards.toml
//! (docs/pilots.md, docs/split.md): neither touches the other's work, and both share the GPUs.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use babysit::engine::tick;
use babysit::model::policy::{LaneMode, Policy, Shard};
use babysit::model::split::Split;
use babysit::model::state::ShardRecord;
use babysit::model::units::Secs;
use babysit::sim::{Cluster, Faults, Rng};
use babysit::study::World;

use crate::cutting::{Trouble, cycle};
use crate::harness::{T0, lanes, plain, shard};
use crate::pilots::{after, finish, let_go_on, mishap, of_pilots, pilot, world};

fn split(id: &str, rows: u32, workers: u32) -> Shard {
    Shard { split: Some(Split { workers, claims: "/claims".into() }), ..shard(id, rows) }
}

/// Three pilot shards, two that are split, and one of neither kind.
fn shards() -> Vec<Shard> {
    vec![
        pilot("find/s0", 9),
        pilot("find/s1", 5),
        pilot("find/s2", 7),
        split("restore/s0", 24, 3),
        split("restore/s1", 12, 3),
        shard("tidy/s0", 6),
    ]
}

fn mixed(policy: Policy, cluster: Cluster, seed: u64) -> World {
    world(of_pilots(policy, shards()), cluster.user("alice", 1001), seed)
}

/// Four GPUs, no lanes.
fn plainly(seed: u64) -> World {
    mixed(plain(), Cluster::at(T0).node("n1", &[("rtx4090", 4)]), seed)
}

/// Three GPUs of own, one of extra, and each job waits in both.
fn in_both_lanes(seed: u64) -> World {
    let mut policy = lanes(3, 1);
    policy.rules.lanes.mode = LaneMode::Both;
    let cluster = Cluster::at(T0).node("n1", &[("rtx4090", 4)]).qos("extra", 10, None, &[]);
    mixed(policy, cluster.qos("own", 100, Some(3), &["extra"]), seed)
}

fn runs(record: &ShardRecord) -> bool {
    record.live().is_some_and(|live| live.started.is_some())
}

/// Claims are of pilot shards alone and by jobs of their own, and a shard that is no pilot's never has
/// two jobs but by helpers.
fn apart(world: &World) {
    let pilots: BTreeSet<_> =
        world.policy.shards.iter().filter(|s| s.pilot).map(|s| s.id.clone()).collect();
    for claim in world.cluster.work.claims_made() {
        assert!(pilots.contains(&claim.shard), "{claim:?}");
        assert!(claim.token.contains(":find/"), "{claim:?}");
    }
    for record in world.state.shards.iter().filter(|record| !pilots.contains(&record.id)) {
        assert!(record.live().is_none_or(|live| !live.attempt.pilot), "{}", record.id);
    }
    for record in world.state.shards.iter().filter(|record| record.id.is_helper()) {
        assert_eq!(record.id.family, "restore", "{}", record.id);
    }
}

#[test]
fn pilots_and_helpers_share_a_cluster_and_each_row_is_done_once() {
    for mut world in [plainly(1), in_both_lanes(1)] {
        let mut helped = false;
        world.tick();
        for _ in 0..60 {
            after(&mut world, Secs(600));
            apart(&world);
            helped |= world.state.shards.iter().any(|r| r.id.is_helper() && runs(r));
        }
        assert!(helped, "no helper ever ran");
        let claims: Vec<_> = world.cluster.work.claims_made().map(|c| (c.job, c.run)).collect();
        let jobs: BTreeSet<_> = claims.iter().collect();
        assert!(jobs.len() < claims.len(), "no pilot went on to another shard");
        finish(&mut world);
    }
}

/// Without lanes a helper is asked for only while no shard waits that nobody works on; one that waits
/// for a pilot is such a shard too. Here the shortest pilot shard is the only one that waits.
#[test]
fn a_helper_takes_no_gpu_that_a_pilot_s_shard_waits_for() {
    let mut some = shards();
    some.truncate(5);
    let cluster = Cluster::at(T0).node("n1", &[("rtx4090", 4)]).user("alice", 1001);
    let mut world = world(of_pilots(plain(), some), cluster, 1);
    world.tick();
    for _ in 0..60 {
        let (waited, before) = (somebody_waits(&world), helpers_asked_for(&world));
        after(&mut world, Secs(600));
        let asked = helpers_asked_for(&world) > before;
        assert!(!(asked && waited && somebody_waits(&world)), "a helper came first");
    }
    assert!(helpers_asked_for(&world) > 0);
    finish(&mut world);
}

/// A shard that no job is at, whether a tick has booked its claim or not.
fn somebody_waits(world: &World) -> bool {
    let claimed = |record: &ShardRecord| {
        let last = world.cluster.work.claims_of(&record.id, 0).last();
        last.and_then(|claim| world.cluster.job(claim.job)).is_some_and(|job| job.is_running())
    };
    let named = world.state.shards.iter().filter(|record| !record.id.is_helper());
    named.filter(|r| r.finished.is_none()).any(|record| !runs(record) && !claimed(record))
}

fn helpers_asked_for(world: &World) -> usize {
    world.cluster.history().iter().filter(|job| job.name.contains('~')).count()
}

/// Cycles cut before and after any save and any effect, jobs that die, nodes that go.
#[test]
fn pilots_and_helpers_outlast_cycles_that_are_cut_and_jobs_that_die() {
    let (mut cut, mut claims, mut helpers) = (0, 0, 0);
    for seed in 0..24 {
        let mut rng = Rng::stream(seed, 300);
        let mut world = if rng.chance(0.5) { plainly(seed) } else { in_both_lanes(seed) };
        let faults = if rng.chance(0.5) { 0.15 } else { 0.0 };
        world.cluster.faults = Faults::seeded(seed).all(faults);
        for step in 0..70 {
            world.advance(Secs([5, 60, 300, 900][rng.below(4) as usize]));
            let running: Vec<_> =
                world.cluster.history().iter().filter(|j| j.is_running()).collect();
            let one =
                running.get(rng.below(running.len().max(1) as u64) as usize).map(|job| job.id);
            mishap(&mut world, rng.below(12), one);
            let steps = rng.chance(0.5).then(|| 1 + rng.below(9) as i64);
            let trouble = Trouble { seed: seed << 20 | step, steps, ..Trouble::default() };
            let mut disk = world.state.clone();
            cut += u32::from(cycle(&mut world, &mut disk, &trouble, tick).is_none());
            assert_eq!(world.cluster.work.doubled(), 0, "seed {seed} step {step}");
            apart(&world);
            let_go_on(&mut world);
        }
        world.cluster.faults = Faults::none();
        world.cluster.node_up("n1").expect("a node");
        claims += world.cluster.work.claims_made().count();
        helpers += helpers_asked_for(&world);
        if let Err(cause) = catch_unwind(AssertUnwindSafe(|| finish(&mut world))) {
            println!("seed {seed}");
            resume_unwind(cause);
        }
    }
    assert!(
        cut > 200 && claims > 100 && helpers > 50,
        "{cut} cut, {claims} claims, {helpers} helpers"
    );
}
