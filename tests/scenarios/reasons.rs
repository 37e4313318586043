//! Every shard that is not running has exactly one reason: one story for each kind.

use babysit::model::cluster::{EndWord, JobState};
use babysit::model::policy::{Policy, Shard};
use babysit::model::reason::Reason;
use babysit::model::units::Secs;
use babysit::planning::reason::{Place, of_slot};
use babysit::sim::{Accounting, Command, Fault, Table, Trouble};

use crate::harness::{Story, dollars, lanes, shard, tiers};
use crate::prose::{MIN_4090, nodes, policy, wants};

/// One queued shard on a node of two 4090.
fn one(table: Table) -> Story {
    let mut cluster = nodes(&[("P", "rtx4090", 2)]);
    cluster.work.add("q/s0", table);
    Story::new(policy(vec![shard("q/s0", 4)]), cluster)
}

fn table() -> Table {
    Table::new(4, Secs(900)).start_cost(Secs(10))
}

#[test]
fn submitted_pending_running_done() {
    let mut story = one(table());
    story.tick();
    assert_eq!(*story.why("q/s0"), Reason::Submitted);
    story.after(Secs(60));
    assert_eq!(*story.why("q/s0"), Reason::Running { node: "P".to_owned() });
    story.after(Secs(4000));
    assert_eq!(*story.why("q/s0"), Reason::Done);

    let mut story = one(table());
    story.stranger_takes("P", 2, "rtx4090");
    story.tick();
    story.after(Secs(60));
    let Reason::PendingInSlurm { parked: false, slurm, .. } = story.why("q/s0") else {
        panic!("{:?}", story.why("q/s0"))
    };
    assert_eq!(slurm, "Resources");
}

#[test]
fn parked_in_own() {
    let mut cluster = nodes(&[("P", "rtx4090", 2)]).qos("extra", 10, None, &[]);
    cluster = cluster.qos("own", 100, Some(1), &[]);
    let shards = vec![shard("q/s0", 4)];
    let mut story =
        Story::new(Policy { tiers: tiers(), shards: shards.into(), ..lanes(1, 1) }, cluster);
    story.someone_takes("bob", "own", "P", "gpu:1");
    story.tick();
    story.after(Secs(60));
    let why = story.why("q/s0");
    assert!(matches!(why, Reason::PendingInSlurm { parked: true, rank: 1, of: 1, .. }), "{why:?}");
}

#[test]
fn what_a_person_decided() {
    let mut story = one(table());
    story.hold("q/s0");
    story.tick();
    assert_eq!(*story.why("q/s0"), Reason::HeldByPerson { by: "alice".to_owned() });
    story.cancel("q/s0");
    story.tick();
    assert_eq!(*story.why("q/s0"), Reason::Cancelled { by: "alice".to_owned() });

    // Cancelled while it runs, and scancel fails.
    let mut story = one(table());
    story.tick();
    story.after(Secs(60));
    story.cancel("q/s0");
    story.world.cluster.faults.next(Command::Scancel, Fault::Error);
    story.faulty = true;
    story.tick();
    let job = story.job("q/s0");
    assert_eq!(*story.why("q/s0"), Reason::Stopping { job });

    // Somebody else cancels its job.
    let mut story = one(table());
    story.tick();
    story.after(Secs(60));
    let job = story.job("q/s0");
    story.world.cluster.admin_cancels(job).expect("a job");
    story.after(Secs(60));
    assert!(matches!(story.why("q/s0"), Reason::JobCancelled { job: j, .. } if *j == job));

    // Held in Slurm.
    let mut story = one(table());
    story.stranger_takes("P", 2, "rtx4090");
    story.tick();
    let job = story.job("q/s0");
    story.world.cluster.hold(job).expect("a job");
    story.after(Secs(60));
    assert_eq!(*story.why("q/s0"), Reason::StuckInSlurm { slurm: "JobHeldUser".to_owned() });
}

#[test]
fn what_its_ends_led_to() {
    let mut story = one(table().always(Trouble::DiesAtOnce));
    story.tick();
    story.after(Secs(60));
    let end = story.world.now();
    assert_eq!(*story.why("q/s0"), Reason::Settling { until: end + Secs(120) });
    story.after(Secs(120));
    let until = story.world.now() + Secs(60);
    assert_eq!(*story.why("q/s0"), Reason::Backoff { until, failures: 1 });
    for _ in 0..20 {
        story.after(Secs(120));
    }
    let last = "RuntimeError: died at once".to_owned();
    assert_eq!(*story.why("q/s0"), Reason::TooManyFailures { count: 3, last });

    let mut story = one(table().row_cost(dollars(1.0)));
    story.world.policy.shards[0].cap = Some(dollars(2.0));
    story.tick();
    story.after(Secs(2000));
    story.after(Secs(60));
    let (spent, cap) = (dollars(2.0), dollars(2.0));
    assert_eq!(*story.why("q/s0"), Reason::OverCap { spent, cap });
}

#[test]
fn what_slurm_said_to_the_submission() {
    let mut story = one(table());
    story.world.policy.slurm.partition = Some("nosuch".to_owned());
    story.world.policy.shards[0].min_tier = None;
    // No node is reachable in a partition that is not there.
    story.world.tick();
    assert!(matches!(story.why("q/s0"), Reason::NoFit { .. }), "{:?}", story.why("q/s0"));

    let mut story = one(table());
    story.world.policy.shards[0].mem = Some("lots".to_owned());
    story.faulty = true;
    story.tick();
    let text = "Invalid --mem specification".to_owned();
    assert_eq!(*story.why("q/s0"), Reason::Refused { text });

    let mut story = one(table());
    story.faulty = true;
    let down = "Unable to contact slurm controller (connect failure)";
    story.world.cluster.faults.next_says(Command::Sbatch, Fault::Error, down);
    story.tick();
    assert!(matches!(story.why("q/s0"), Reason::SlurmBusy { .. }), "{:?}", story.why("q/s0"));

    let mut story = one(table());
    story.faulty = true;
    story.world.cluster.faults.next(Command::Sbatch, Fault::HangDone);
    story.tick();
    assert!(matches!(story.why("q/s0"), Reason::OutcomeUnknown { .. }), "{:?}", story.why("q/s0"));
}

#[test]
fn what_cannot_be_known() {
    let mut story = one(table());
    story.world.cluster.site.min_job_age = Secs(30);
    story.tick();
    story.after(Secs(60));
    let job = story.job("q/s0");
    story.world.cluster.finish(job, EndWord::Failed, "1:0").expect("it runs");
    story.world.cluster.site.accounting = Accounting::Down;
    story.after(Secs(60));
    assert!(matches!(story.why("q/s0"), Reason::EndUnknown { .. }), "{:?}", story.why("q/s0"));
}

#[test]
fn what_slurm_does_with_it_in_between() {
    let mut story = one(table());
    story.tick();
    let place = Place::default();
    let mut record = story.record("q/s0").clone();
    let babysit::model::state::Slot::Live(live) = &mut record.slot else { panic!("no job") };
    live.state = JobState::Alive("COMPLETING".to_owned());
    let spec = &story.world.policy.shards[0];
    let why = of_slot(&story.world.policy, spec, &record, place);
    assert_eq!(why, Reason::InSlurm { word: "COMPLETING".to_owned() });
}

#[test]
fn what_keeps_a_placed_shard_waiting() {
    let shards = || {
        let b = Shard { cpus: Some(200), ..wants("b/s0", "KDG", 1, MIN_4090) };
        vec![wants("a/s0", "BCG", 2, MIN_4090), b]
    };
    let mut story = Story::on(nodes(&[("P", "rtx4090", 2)]), shards());
    story.has_used("KDG", 1);
    let bob = story.stranger_takes("P", 2, "rtx4090");
    story.tick();
    let wait = |rank, ahead: Option<&str>| Reason::QueueWait {
        rank,
        ahead: ahead.map(Into::into),
        idle_but_reserved: 0,
    };
    assert_eq!(*story.why("a/s0"), wait(1, None));
    assert_eq!(*story.why("b/s0"), wait(2, Some("a/s0")));
    story.world.cluster.drain("P").expect("a node");
    story.after(Secs(60));
    assert_eq!(*story.why("a/s0"), Reason::FitNodesDown);
    story.world.cluster.node_up("P").expect("a node");
    story.ends(bob);
    story.hold("a/s0");
    story.after(Secs(60));
    assert_eq!(*story.why("b/s0"), Reason::NoCpusOrMemory);

    // The share of one cycle is used up.
    let mut story = Story::on(
        nodes(&[("P", "rtx4090", 3)]),
        vec![
            wants("a/s0", "BCG", 1, MIN_4090),
            wants("a/s1", "BCG", 1, MIN_4090),
            shard("q/s0", 4),
        ],
    );
    story.world.policy.rules.max_submits_per_tick = 1;
    story.faulty = true;
    story.tick();
    assert_eq!(*story.why("a/s1"), Reason::SubmitBudget { rank: 1 });
    assert!(matches!(story.why("q/s0"), Reason::SubmitBudget { .. }));
}
