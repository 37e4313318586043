//! Jobs that claim their shards (docs/pilots.md), on the simulated cluster: cycles that are cut,
//! requeued runs, a state that is lost. Told from Slurm's history and the claims alone.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use babysit::engine::{reconcile, tick};
use babysit::model::cluster::EndWord;
use babysit::model::id::JobId;
use babysit::model::policy::{Kin, Policy, Shard};
use babysit::model::state::{Gate, ShardRecord, Slot, State};
use babysit::model::units::Secs;
use babysit::sim::{Cluster, Faults, Rng, Table};
use babysit::study::World;

use crate::cutting::{Trouble, cycle};
use crate::harness::{T0, plain, shard};

pub fn pilot(id: &str, rows: u32) -> Shard {
    Shard { pilot: true, kin: Kin::Any, ..shard(id, rows) }
}

pub fn of_pilots(mut policy: Policy, shards: Vec<Shard>) -> Policy {
    policy.shards = shards.into();
    policy.slurm.babysit = Some("/bin/babysit".into());
    policy.slurm.pilots = Some("/state.json.pilots".into());
    policy
}

pub fn world(policy: Policy, cluster: Cluster, seed: u64) -> World {
    let mut cluster = cluster;
    for shard in &policy.shards {
        let table = Table::new(shard.rows, shard.row_time).start_cost(Secs(20));
        let table = if shard.split.is_some() { table.shared() } else { table };
        cluster.work.add(&shard.id.to_string(), table);
    }
    World::new(policy, cluster, "alice", seed)
}

/// Two GPUs, and `shards` of two families that ask the same of Slurm.
fn pair(shards: usize) -> World {
    let families = ["find", "restore"];
    let named = (0..shards).map(|n| pilot(&format!("{}/s{n}", families[n % 2]), 3 + n as u32));
    let cluster = Cluster::at(T0).node("n1", &[("rtx4090", 2)]).user("alice", 1001);
    world(of_pilots(plain(), named.collect()), cluster, 1)
}

pub fn after(world: &mut World, length: Secs) {
    world.advance(length);
    world.tick();
}

/// `s4 by 2`: the jobs that shards belong to by the state, where they have claimed them.
pub fn claimed(world: &World) -> Vec<String> {
    let claimed = world.state.shards.iter().filter_map(|record| {
        let live = record.live().filter(|live| !live.is_unclaimed())?;
        Some(format!("{} by {}", record.id.shard, live.job))
    });
    claimed.collect()
}

/// Every row once, no two runs on one shard, and each second of every run charged once.
fn adds_up(world: &World) {
    let rows = &world.cluster.work;
    assert_eq!(rows.doubled(), 0, "two runs on one shard at a time");
    for shard in world.policy.shards.iter().take(world.policy.named()) {
        let index = rows.index_of_shard(&shard.id).expect("a table");
        assert_eq!(rows.redone(index), 0, "{}: rows done twice", shard.id);
        assert_eq!(rows.rows_at(index, world.now()), shard.rows, "{}", shard.id);
    }
    let ran = world.cluster.gpu_seconds(|job| *job.user == *"alice").0;
    let records = world.state.shards.iter().chain(&world.state.orphans);
    let charged: u64 = records.flat_map(|r| &r.charges).map(|charge| charge.gpu_seconds.0).sum();
    assert_eq!(charged, ran, "charged, and run");
}

/// A person lets go on what was held for its failures, or cancelled.
pub fn let_go_on(world: &mut World) {
    for record in &mut world.state.shards {
        record.gate = Gate::Open;
        record.failures = 0;
    }
}

pub fn finish(world: &mut World) {
    for _ in 0..200 {
        after(world, Secs(300));
        let_go_on(world);
        let over = |r: &ShardRecord| r.finished.is_some() && r.slot == Slot::Free;
        if world.state.shards.iter().all(over) {
            // Those that came too late to do anything are charged when they are seen to have ended.
            for _ in 0..3 {
                after(world, Secs(300));
            }
            return adds_up(world);
        }
    }
    panic!("never done: {:?}", world.state.shards.iter().map(|r| &r.why).collect::<Vec<_>>());
}

#[test]
fn pilots_of_several_families_take_the_longest_shard_of_all() {
    let mut world = pair(5);
    world.tick();
    after(&mut world, Secs(60));
    // Two GPUs; the longest are s4 and s3, of different families.
    let taken: Vec<String> = claimed(&world).iter().map(|text| text[..2].to_owned()).collect();
    assert_eq!(taken, ["s3", "s4"]);
    finish(&mut world);
    let jobs: BTreeSet<_> = world.cluster.work.claims_made().map(|claim| claim.job).collect();
    assert_eq!(jobs.len(), 2, "neither gave its GPU back while a shard waited");
}

/// What a tick has booked and not saved, the next one books: from the same claims, to the same state.
#[test]
fn a_tick_that_is_killed_before_it_saves_loses_nothing_and_charges_nothing_twice() {
    let mut world = pair(5);
    world.tick();
    world.advance(Secs(60));
    for hour in 0..6 {
        let before = world.state.clone();
        world.tick();
        let first = claimed(&world);
        world.state = before;
        world.tick();
        assert_eq!(claimed(&world), first, "hour {hour}");
        world.advance(Secs(3600));
    }
    finish(&mut world);
}

/// Slurm starts it anew under the same id: its claims are over with the run that made them.
#[test]
fn a_requeued_pilot_claims_anew_and_each_run_is_charged_once() {
    let mut world = pair(2);
    world.policy.shards.iter_mut().for_each(|shard| shard.args = vec!["--requeue".to_owned()]);
    world.tick();
    after(&mut world, Secs(60));
    let first = claimed(&world);
    assert_eq!(first.len(), 2, "{first:?}");
    let blink = |world: &mut World| {
        world.cluster.node_down("n1").expect("a node");
        world.cluster.node_up("n1").expect("a node");
    };
    // Seen by a tick while it waits for its next start.
    blink(&mut world);
    after(&mut world, Secs(60));
    assert_eq!(claimed(&world), Vec::<String>::new(), "dead with its run");
    after(&mut world, Secs(400));
    // Its start is seen, and the run before is paid for; then the claim is booked.
    after(&mut world, Secs(10));
    assert_eq!(claimed(&world), first, "the same shard, by a claim of the new run");
    // Started anew before a tick has seen that it was put back: what it had is not offered, so it ends,
    // which is nobody's failure, and the shard is submitted again.
    blink(&mut world);
    after(&mut world, Secs(600));
    after(&mut world, Secs(60));
    let last = |id: &str| world.cluster.history().iter().rev().find(|job| job.name.contains(id));
    assert_eq!(last("find.s0").map(|job| job.restarts), Some(0), "another job");
    assert!(world.state.shards.iter().all(|record| record.failures == 0));
    let restarts: Vec<u32> = world.cluster.history().iter().map(|job| job.restarts).collect();
    assert_eq!(restarts, [2, 2, 0, 0], "started anew under their ids");
    finish(&mut world);
}

/// A person keeps a pending pilot from starting, and its shard is taken by another job meanwhile.
#[test]
fn a_pilot_that_a_person_holds_keeps_no_shard_from_anybody() {
    let mut world = pair(4);
    world.tick();
    let pending: Vec<_> = world.state.shards.iter().filter_map(|r| Some(r.live()?.job)).collect();
    world.advance(Secs(60));
    for job in pending {
        if world.cluster.job(job).is_some_and(|job| job.is_pending()) {
            world.cluster.hold(job).expect("a job");
        }
    }
    world.tick();
    finish(&mut world);
    let held = world.cluster.history().iter().filter(|job| !job.is_over());
    assert_eq!(held.count(), 0, "left over, and called back");
}

/// The instance whose state was lost is taken up: its claims count, and nothing is done twice.
#[test]
fn the_pilots_of_a_lost_state_are_taken_up_with_their_claims() {
    let mut world = pair(5);
    world.tick();
    after(&mut world, Secs(60));
    let (before, lost) = (claimed(&world), world.state.instance.clone());
    let runs_already = world.cluster.gpu_seconds(|job| *job.user == *"alice");
    world.state = State::new(&world.policy.project, "anew");
    let mut disk = world.state.clone();
    let taken = cycle(&mut world, &mut disk, &Trouble::default(), |hands, state| {
        reconcile(hands, state, Some(&lost)).taken_up
    });
    assert_eq!(taken.expect("not cut"), Some(lost));
    after(&mut world, Secs(60));
    assert_eq!(claimed(&world), before);
    assert!(runs_already.0 > 0);
    finish(&mut world);
}

/// By a throw of twelve: a job that runs dies, an admin cancels it, its node goes or comes back.
pub fn mishap(world: &mut World, throw: u64, running: Option<JobId>) {
    match (throw, running) {
        (0, Some(job)) => world.cluster.finish(job, EndWord::Failed, "1:0").expect("a job"),
        (1, Some(job)) => world.cluster.admin_cancels(job).expect("a job"),
        (2, _) => world.cluster.node_down("n1").expect("a node"),
        (3..=6, _) => world.cluster.node_up("n1").expect("a node"),
        _ => {}
    }
}

/// Cycles cut before and after any save and any effect, jobs that die, nodes that go: forty campaigns.
#[test]
fn pilots_outlast_cycles_that_are_cut_and_jobs_that_die() {
    let (mut cut, mut claims) = (0, 0);
    for seed in 0..40 {
        let mut rng = Rng::stream(seed, 200);
        let mut world = pair(4 + rng.below(4) as usize);
        let faults = if rng.chance(0.5) { 0.15 } else { 0.0 };
        world.cluster.faults = Faults::seeded(seed).all(faults);
        if rng.chance(0.5) {
            let requeue = |shard: &mut Shard| shard.args = vec!["--requeue".to_owned()];
            world.policy.shards.iter_mut().for_each(requeue);
        }
        for step in 0..80 {
            world.advance(Secs([5, 60, 300, 900][rng.below(4) as usize]));
            let mine = world.cluster.history().iter().filter(|job| job.is_running());
            let running: Vec<_> = mine.map(|job| job.id).collect();
            mishap(&mut world, rng.below(12), running.first().copied());
            let steps = rng.chance(0.5).then(|| 1 + rng.below(9) as i64);
            let trouble = Trouble { seed: seed << 20 | step, steps, ..Trouble::default() };
            let mut disk = world.state.clone();
            let report = cycle(&mut world, &mut disk, &trouble, tick);
            cut += u32::from(report.is_none());
            assert_eq!(world.cluster.work.doubled(), 0, "seed {seed} step {step}");
            let_go_on(&mut world);
        }
        world.cluster.faults = Faults::none();
        world.cluster.node_up("n1").expect("a node");
        claims += world.cluster.work.claims_made().count();
        let whole = catch_unwind(AssertUnwindSafe(|| finish(&mut world)));
        if let Err(cause) = whole {
            println!("seed {seed}");
            resume_unwind(cause);
        }
    }
    assert!(cut > 500 && claims > 400, "{cut} cut, {claims} claims");
}
