//! A scancel that fails, or that a crash swallows: what was to end is asked to end again, by the rule
//! that wanted it and by every other that wants it from then on.

use babysit::model::policy::{CostIn, Policy, Shard};
use babysit::model::reason::Reason;
use babysit::model::state::{Slot, Stop};
use babysit::model::units::Secs;
use babysit::planning::event::What;
use babysit::sim::{Command, Fault, Table, Trouble};

use crate::harness::{Story, dollars, plain, shard};
use crate::prose::{MIN_3080TI, nodes, wants};

fn scancel_fails(story: &mut Story) {
    story.faulty = true;
    story.world.cluster.faults.next(Command::Scancel, Fault::Error);
}

/// Ticks, a minute apart, until scancel failed once; returns the job that goes on.
fn until_it_failed(story: &mut Story, id: &str) -> babysit::model::id::JobId {
    scancel_fails(story);
    for _ in 0..400 {
        story.after(Secs::minutes(1));
        if story.told(|what| matches!(what, What::StopFailed { .. })) == 1 {
            return story.job(id);
        }
    }
    panic!("nothing was asked to end");
}

fn stop(story: &Story, id: &str) -> Option<Stop> {
    story.record(id).live().and_then(|live| live.stop)
}

/// One shard whose first job stalls after two rows and is to be started again.
fn stalling() -> Story {
    let mut cluster = nodes(&[("P", "rtx4090", 2)]);
    let table = Table::new(4, Secs::minutes(15)).times(1, Trouble::StallsAfter(2));
    cluster.work.add("a/s0", table);
    let cost = Some(CostIn::GpuHour(dollars(1.0)));
    let spec = Shard { restart_stalled: true, cost, ..shard("a/s0", 4) };
    let mut story = Story::new(Policy { shards: vec![spec].into(), ..plain() }, cluster);
    story.tick();
    story
}

/// A pinned job whose node went down, so that it waits there for ever.
fn stranding() -> Story {
    let cluster = nodes(&[("P", "rtx4090", 2), ("Q", "rtx3080ti", 2)]);
    let mut story = Story::on(cluster, vec![wants("a/s0", "BCG", 2, MIN_3080TI)]);
    story.tick();
    story.world.cluster.node_down("P").expect("a node");
    story
}

#[test]
fn a_stalled_job_whose_scancel_failed_is_asked_again() {
    let mut story = stalling();
    let first = until_it_failed(&mut story, "a/s0");
    assert_eq!(stop(&story, "a/s0"), Some(Stop::Stalled));
    for _ in 0..3 {
        story.after(Secs::minutes(1));
    }
    assert_ne!(story.job("a/s0"), first);
    assert_eq!(story.record("a/s0").failures, 0);
    assert_eq!(
        story.told(|what| matches!(what, What::Stalled { .. })),
        1,
        "told once all the same"
    );
}

#[test]
fn a_stranded_job_whose_scancel_failed_is_asked_again() {
    let mut story = stranding();
    let first = until_it_failed(&mut story, "a/s0");
    assert_eq!(stop(&story, "a/s0"), Some(Stop::Stranded));
    for _ in 0..3 {
        story.after(Secs::minutes(1));
    }
    assert_ne!(story.job("a/s0"), first);
    assert_eq!(story.node_of("a/s0"), "Q");
}

#[test]
fn a_cancel_gets_through_to_a_job_that_another_rule_wanted_to_end() {
    for mut story in [stalling(), stranding()] {
        until_it_failed(&mut story, "a/s0");
        let first = stop(&story, "a/s0");
        story.cancel("a/s0");
        let before = story.world.cluster.calls.scancel;
        story.after(Secs::minutes(1));
        assert_eq!(story.world.cluster.calls.scancel, before + 1, "once, though two rules want it");
        story.after(Secs::minutes(1));
        let record = story.record("a/s0");
        assert_eq!((&record.slot, record.attempts), (&Slot::Free, 1), "{first:?}");
    }
}

/// The stall is over when the cap is reached: that one has to end, too.
#[test]
fn a_cap_gets_through_to_a_job_that_another_rule_wanted_to_end() {
    let mut story = stalling();
    until_it_failed(&mut story, "a/s0");
    story.world.policy.shards[0].restart_stalled = false;
    story.world.policy.shards[0].cap = Some(dollars(0.01));
    story.after(Secs::minutes(1));
    assert!(story.record("a/s0").over_cap.is_some());
    story.after(Secs::minutes(1));
    assert_eq!((&story.record("a/s0").slot, story.submissions("a/s0")), (&Slot::Free, 1));
}

/// Raised before any scancel got through: the job was not to end after all. What becomes of it
/// counts as it does for any other.
#[test]
fn a_cap_raised_in_time_lets_the_job_go_on() {
    let mut cluster = nodes(&[("P", "rtx4090", 2)]);
    let table = Table::new(9, Secs::minutes(15)).times(1, Trouble::FailsAfter(3));
    cluster.work.add("a/s0", table.row_cost(dollars(1.0)));
    let spec = Shard { cap: Some(dollars(1.0)), ..shard("a/s0", 9) };
    let mut story = Story::new(Policy { shards: vec![spec].into(), ..plain() }, cluster);
    story.tick();
    let job = until_it_failed(&mut story, "a/s0");
    assert_eq!(*story.why("a/s0"), Reason::Stopping { job });
    story.world.policy.shards[0].cap = Some(dollars(50.0));
    story.after(Secs::minutes(1));
    story.after(Secs::minutes(1));
    assert_eq!((story.job("a/s0"), stop(&story, "a/s0")), (job, None));
    assert!(matches!(story.why("a/s0"), Reason::Running { .. }), "{:?}", story.why("a/s0"));
    // Its own end is judged, and not taken for one that was asked for.
    story.after(Secs::minutes(45));
    for _ in 0..4 {
        story.after(Secs::minutes(1));
    }
    assert!(story.record("a/s0").last_end.as_ref().is_some_and(|end| end.stop.is_none()));
}
