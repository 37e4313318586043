//! Shards that somebody takes out of shards.toml while they run: followed to their end, charged
//! once to the lab that they had, and never submitted again.

use babysit::model::policy::{Policy, Shard};
use babysit::model::state::{ChargeKind, ShardRecord, Slot};
use babysit::model::units::Secs;
use babysit::sim::{Accounting, Cluster};

use crate::harness::{Story, T0, placed, plain, shard, tiers};

/// `find/s1` of KDG, beside one that stays.
fn two() -> Policy {
    let gone = Shard { lab: "KDG".into(), gpus: 2, ..shard("find/s1", 4) };
    Policy { shards: vec![shard("find/s0", 400), gone].into(), tiers: tiers(), ..plain() }
}

fn cluster() -> Cluster<babysit::sim::Rows> {
    Cluster::at(T0).node("a", &[("rtx4090", 4)])
}

fn orphan(story: &Story) -> &ShardRecord {
    story.world.state.orphans.first().expect("an orphan")
}

/// GPU-seconds that Slurm ran jobs of this shard.
fn ran(story: &Story, shard: &str) -> u64 {
    let part = format!(":{shard}:");
    let jobs = story.world.cluster.history();
    let of_shard = jobs.iter().filter(|job| job.comment.contains(&part));
    let stays = of_shard.flat_map(|job| job.stays.iter().map(|stay| (job.gpus(), stay)));
    let run = |(gpus, stay): (u32, &babysit::sim::Stay)| {
        Some(u64::from(gpus) * (stay.ended.0 - stay.started?.0) as u64)
    };
    stays.filter_map(run).sum()
}

fn charged(record: &ShardRecord) -> u64 {
    let runs = record.charges.iter().filter(|charge| charge.kind == ChargeKind::Run);
    runs.map(|charge| charge.gpu_seconds.0).sum()
}

/// Two ticks: its job runs.
fn running() -> Story {
    let mut story = Story::new(two(), cluster());
    story.tick();
    story.after(Secs(60));
    assert!(story.record("find/s1").live().is_some_and(|live| live.started.is_some()));
    story
}

#[test]
fn its_run_is_charged_once_to_the_lab_it_had() {
    let mut story = running();
    let taken_out = story.world.policy.shards.pop().expect("two");
    for _ in 0..100 {
        story.after(Secs(60));
    }
    let record = orphan(&story);
    assert_eq!(record.slot, Slot::Free);
    assert!(record.last_end.is_some() && ran(&story, "find/s1") > 0);
    assert_eq!(charged(record), ran(&story, "find/s1"));
    assert_eq!(record.charges[0].lab, "KDG");
    assert_eq!(story.submissions("find/s1"), 1);
    let usage = story.world.state.labs["KDG"].usage;
    assert_eq!(usage, record.charges[0].gpu_seconds.weighted(record.charges[0].weight));

    // Put back, it has its past, and no second bill for it.
    story.world.policy.shards.push(taken_out);
    story.after(Secs(60));
    assert_eq!(story.world.state.labs["KDG"].usage, usage);
    assert_eq!(charged(story.record("find/s1")), ran(&story, "find/s1"));
}

#[test]
fn one_that_left_the_queue_is_settled_by_accounting() {
    let mut story = running();
    story.world.policy.shards.pop();
    story.world.cluster.site.accounting = Accounting::Down;
    // It ends, and leaves the queue, while accounting cannot be asked.
    for hours in [5, 1, 1] {
        story.after(Secs::hours(hours));
    }
    assert!(orphan(&story).live().is_some() && charged(orphan(&story)) == 0, "nothing is guessed");
    story.world.cluster.site.accounting = Accounting::On;
    story.after(Secs(60));
    assert_eq!(charged(orphan(&story)), ran(&story, "find/s1"));
    assert_eq!(orphan(&story).slot, Slot::Free);
}

#[test]
fn gpus_that_were_kept_for_it_are_charged_and_free_again() {
    let wants = placed("big/s0", "KDG", 4, 1);
    let policy =
        Policy { shards: vec![shard("find/s0", 400), wants].into(), tiers: tiers(), ..plain() };
    let mut story = Story::new(policy, cluster());
    let blocks = babysit::sim::Stranger::new("bob", "normal", "gpu:rtx4090:1").on("a");
    story.world.cluster.add_job(blocks.lasting(Secs(86_400))).expect("it fits");
    story.world.advance(Secs(30));
    story.tick();
    story.after(Secs(60));
    let record = story.record("big/s0");
    assert!(record.reservation.is_some(), "{record:?}");
    story.after(Secs(120));
    story.world.policy.shards.pop();
    story.after(Secs(60));
    let record = orphan(&story);
    assert_eq!((record.reservation.as_ref(), record.owed.len()), (None, 0));
    let [charge] = record.charges.as_slice() else { panic!("{:?}", record.charges) };
    assert_eq!((charge.kind, charge.lab.as_str()), (ChargeKind::Released, "KDG"));
    // From its beginning to the tick that learned of it.
    assert_eq!(charge.length, Secs(charge.at.0 - charge.from.0));
}

/// Its submission was given up, and its job comes to light after all.
#[test]
fn a_job_that_shows_up_late_is_adopted_and_charged() {
    let mut story = running();
    story.world.policy.shards.pop();
    story.after(Secs(60));
    let job = orphan(&story).live().expect("it goes on").job;
    story.world.state.orphans[0].slot = Slot::Free;
    story.after(Secs(60));
    assert_eq!(orphan(&story).live().map(|live| live.job), Some(job));
    for _ in 0..100 {
        story.after(Secs(60));
    }
    assert_eq!(orphan(&story).slot, Slot::Free);
    assert!(ran(&story, "find/s1") > 0);
    assert_eq!(charged(orphan(&story)), ran(&story, "find/s1"));
}
