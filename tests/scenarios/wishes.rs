//! What a person decided about a shard stands, whatever then becomes of the job it has.

use babysit::model::cluster::EndWord;
use babysit::model::policy::Shard;
use babysit::model::state::{Gate, HeldWhy, Slot};
use babysit::model::units::Secs;
use babysit::planning::event::What;
use babysit::sim::{Cluster, Rows, Table, Trouble};

use crate::harness::{Story, shard};
use crate::prose::{MIN_4090, nodes, wants};

fn table() -> Table {
    Table::new(4, Secs::minutes(15))
}

/// One shard whose program meets this trouble on every run, and its job, which runs.
fn running(spec: Shard, table: Table) -> Story {
    let mut cluster: Cluster<Rows> = nodes(&[("P", "rtx5090", 2)]);
    cluster.work.add("q/s0", table);
    let mut story = Story::on(cluster, vec![spec]);
    story.tick();
    assert!(story.record("q/s0").live().is_some(), "{:?}", story.why("q/s0"));
    story
}

fn on_hold(story: &Story) -> bool {
    matches!(&story.record("q/s0").gate, Gate::Held { why: HeldWhy::Person { .. }, .. })
}

#[test]
fn a_hold_outlives_the_failure_of_the_job_that_ran_then() {
    for trouble in [Trouble::DiesAtOnce, Trouble::LeavesAfter(0), Trouble::HostMemory(0)] {
        let mut story = running(shard("q/s0", 4), table().always(trouble.clone()));
        story.hold("q/s0");
        for _ in 0..60 {
            story.after(Secs::minutes(2));
        }
        let record = story.record("q/s0");
        assert!(on_hold(&story), "{trouble:?}: {:?}", record.gate);
        assert_eq!((record.attempts, record.failures), (1, 1), "{trouble:?}");
        assert_eq!(story.told(|what| matches!(what, What::BackedOff { .. })), 0, "{trouble:?}");

        story.release("q/s0");
        story.after(Secs::minutes(2));
        assert_eq!(
            story.record("q/s0").attempts,
            2,
            "{trouble:?}: once it is released, it goes on"
        );
    }
}

#[test]
fn a_hold_outlives_a_job_that_somebody_else_cancelled() {
    let mut story = running(shard("q/s0", 4), table());
    story.after(Secs::minutes(1));
    story.hold("q/s0");
    let job = story.job("q/s0");
    story.world.cluster.admin_cancels(job).expect("a job");
    for _ in 0..3 {
        story.after(Secs::minutes(2));
    }
    assert!(on_hold(&story), "{:?}", story.record("q/s0").gate);
    assert_eq!(story.told(|what| matches!(what, What::Held { .. })), 0, "it was held already");
}

#[test]
fn a_hold_outlives_a_gpu_without_memory_and_the_tier_still_goes_up() {
    let small = || Trouble::GpuMemory(vec!["rtx4090".to_owned()]);
    let mut cluster = nodes(&[("P", "rtx4090", 2)]);
    cluster.work.add("q/s0", table().always(small()));
    let mut story = Story::on(cluster, vec![wants("q/s0", "BCG", 1, MIN_4090)]);
    story.tick();
    story.hold("q/s0");
    for _ in 0..5 {
        story.after(Secs::minutes(2));
    }
    assert!(on_hold(&story), "{:?}", story.record("q/s0").gate);
    assert_eq!(story.told(|what| matches!(what, What::MinTierRaised { .. })), 1);

    // And where there is no higher one.
    let mut story = running(shard("q/s0", 4), table().always(Trouble::GpuMemory(Vec::new())));
    story.hold("q/s0");
    for _ in 0..5 {
        story.after(Secs::minutes(2));
    }
    assert!(on_hold(&story), "{:?}", story.record("q/s0").gate);
}

/// Its job is over and its files are still awaited: nothing is left that could be ended.
#[test]
fn cancelled_while_its_end_is_judged_it_is_never_submitted_again() {
    let mut story = running(shard("q/s0", 4), table());
    story.after(Secs::minutes(1));
    let job = story.job("q/s0");
    story.world.cluster.finish(job, EndWord::Failed, "1:0").expect("it runs");
    story.after(Secs(10));
    assert!(matches!(story.record("q/s0").slot, Slot::Settling(_)));
    story.cancel("q/s0");
    for _ in 0..30 {
        story.after(Secs::minutes(2));
    }
    let record = story.record("q/s0");
    assert!(matches!(record.gate, Gate::Cancelled { .. }), "{:?}", record.gate);
    assert_eq!(record.attempts, 1);
}
