//! Reservations on a cluster shared with others (policy.md section 6): what our own pending jobs
//! are kept off, and what others take.

use babysit::model::id::JobId;
use babysit::model::policy::{Policy, Shard};
use babysit::model::reason::Reason;
use babysit::model::state::KeptOff;
use babysit::model::units::Secs;
use babysit::planning::event::What;
use babysit::sim::{Command, Fault};

use crate::harness::{Story, lanes, shard, tiers};
use crate::prose::{MIN_4090, nodes, wants};

/// Own has one GPU, which bob's job on S holds; so our queued shard q waits parked in own, though
/// P has an idle GPU. A wants both GPUs of P; a stranger holds one.
struct Shared {
    story: Story,
    bob: JobId,
    stranger: JobId,
}

fn shared(args: &[&str]) -> Shared {
    let cluster = nodes(&[("P", "rtx4090", 2), ("S", "rtx3080ti", 1), ("Z", "rtx4090", 1)])
        .qos("extra", 10, None, &[])
        .qos("own", 100, Some(1), &[]);
    let q = Shard {
        min_tier: Some(MIN_4090),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        ..shard("q/s0", 4)
    };
    let shards = vec![wants("a/s0", "BCG", 2, MIN_4090), q];
    let policy = Policy { tiers: tiers(), shards: shards.into(), ..lanes(1, 1) };
    let mut story = Story::new(policy, cluster);
    story.hold("a/s0");
    let bob = story.someone_takes("bob", "own", "S", "gpu:1");
    let stranger = story.stranger_takes("P", 1, "rtx4090");
    story.stranger_takes("Z", 1, "rtx4090");
    story.tick();
    story.after(Secs(60));
    assert_eq!(story.pending_in("own"), ["q/s0"], "parked");
    assert_eq!(story.excluded("q/s0"), own_excludes(args));
    story.release("a/s0");
    Shared { story, bob, stranger }
}

fn own_excludes(args: &[&str]) -> Vec<String> {
    if args.is_empty() { Vec::new() } else { vec!["Z".to_owned()] }
}

#[test]
fn our_own_pending_job_is_kept_off_while_the_reservation_stands() {
    let Shared { mut story, bob, stranger } = shared(&[]);
    story.tick();
    assert_eq!(story.reserved("a/s0"), "P 1/2");
    assert_eq!(story.excluded("q/s0"), ["P"]);

    // An own GPU gets free: Slurm would start q on the reserved GPU of P.
    story.ends(bob);
    story.after(Secs(60));
    assert!(!story.runs("q/s0"));
    assert_eq!(story.reserved("a/s0"), "P 1/2");

    // Complete: A is submitted, and q stays off until A runs.
    story.ends(stranger);
    story.tick();
    assert_eq!(story.node_of("a/s0"), "P");
    assert_eq!(story.excluded("q/s0"), ["P"], "Slurm must not give A's GPUs to q");
    story.after(Secs(60));
    assert!(story.runs("a/s0"));
    assert!(story.excluded("q/s0").is_empty(), "let back");
    assert_eq!(story.told(|what| matches!(what, What::KeptOff { .. })), 2);
}

#[test]
fn a_users_own_exclude_is_kept() {
    for args in [vec!["--exclude=Z"], vec!["--exclude", "Z"]] {
        let Shared { mut story, .. } = shared(&args);
        story.tick();
        assert_eq!(story.excluded("q/s0"), ["P", "Z"]);
        story.cancel("a/s0");
        story.after(Secs(60));
        assert_eq!(story.excluded("q/s0"), ["Z"], "{args:?}");
    }
}

#[test]
fn a_lost_or_denied_exclusion_is_asked_for_again() {
    for fault in [Fault::Error, Fault::LostReply, Fault::FalseAlarm, Fault::Hang, Fault::Silent] {
        let Shared { mut story, .. } = shared(&[]);
        story.world.cluster.faults.next(Command::Scontrol, fault);
        story.faulty = true;
        story.tick();
        story.faulty = false;
        story.after(Secs(60));
        assert_eq!(story.excluded("q/s0"), ["P"], "{fault:?}");
        let asked = story.world.cluster.calls.scontrol;
        story.after(Secs(60));
        assert_eq!(story.world.cluster.calls.scontrol, asked, "{fault:?}: told once it holds");

        story.world.cluster.faults.next(Command::Scontrol, fault);
        story.cancel("a/s0");
        story.faulty = true;
        story.tick();
        story.faulty = false;
        story.after(Secs(60));
        assert!(story.excluded("q/s0").is_empty(), "{fault:?}: let back");
    }
}

#[test]
fn a_crash_between_save_and_scontrol_leaves_no_exclusion_behind() {
    // The state was saved with the intent to exclude, or to let back; Slurm was never asked.
    let Shared { mut story, .. } = shared(&[]);
    story.tick();
    assert_eq!(story.excluded("q/s0"), ["P"]);
    story.cancel("a/s0");
    story.record_mut("q/s0").kept_off = KeptOff { nodes: Vec::new(), told: false };
    story.after(Secs(60));
    assert!(story.excluded("q/s0").is_empty());

    story.record_mut("q/s0").kept_off = KeptOff { nodes: vec!["P".to_owned()], told: false };
    story.after(Secs(60));
    assert!(story.excluded("q/s0").is_empty());
    assert_eq!(story.record("q/s0").kept_off, KeptOff { nodes: Vec::new(), told: true });
}

#[test]
fn a_job_kept_off_all_it_could_use_is_let_back() {
    let (mut story, bob) = only_p(false);
    story.tick();
    assert_eq!(story.reserved("a/s0"), "P 1/3");
    assert_eq!(story.excluded("q/s0"), ["P"]);
    story.ends(bob);
    story.after(Secs(60));
    assert_eq!(story.reserved("a/s0"), "P 2/3");
    assert_eq!(*story.why("q/s0"), Reason::StuckInSlurm { slurm: "BadConstraints".to_owned() });
    story.cancel("a/s0");
    story.after(Secs(60));
    assert!(story.excluded("q/s0").is_empty());
    story.world.advance(Secs(10));
    assert!(story.runs("q/s0"));
}

#[test]
fn nothing_is_submitted_that_could_go_nowhere_while_the_reservation_stands() {
    let (mut story, _) = only_p(true);
    story.tick();
    assert_eq!(story.reserved("a/s0"), "P 1/3");
    story.release("q/s0");
    story.after(Secs(60));
    assert_eq!(story.submissions("q/s0"), 0, "Slurm would refuse it for good");
    let waits = Reason::QueueWait { rank: 0, ahead: Some("a/s0".into()), idle_but_reserved: 1 };
    assert_eq!(*story.why("q/s0"), waits);
    story.cancel("a/s0");
    story.after(Secs(60));
    assert_eq!(story.submissions("q/s0"), 1);
}

/// P is the only node; bob's job there fills own, a stranger holds another GPU.
fn only_p(hold_q: bool) -> (Story, JobId) {
    let cluster = nodes(&[("P", "rtx4090", 3)]).qos("extra", 10, None, &[]);
    let cluster = cluster.qos("own", 100, Some(1), &[]);
    let q = Shard { min_tier: Some(MIN_4090), ..shard("q/s0", 4) };
    let shards = vec![wants("a/s0", "BCG", 3, MIN_4090), q];
    let mut story =
        Story::new(Policy { tiers: tiers(), shards: shards.into(), ..lanes(1, 1) }, cluster);
    story.hold("a/s0");
    if hold_q {
        story.hold("q/s0");
    }
    let bob = story.someone_takes("bob", "own", "P", "gpu:1");
    story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    story.after(Secs(60));
    story.release("a/s0");
    (story, bob)
}

#[test]
fn a_reservation_shrinks_when_others_take_its_gpus() {
    let shards = vec![wants("a/s0", "BCG", 4, MIN_4090)];
    let mut story = Story::on(nodes(&[("P", "rtx4090", 4), ("Q", "rtx4090", 4)]), shards);
    story.stranger_takes("P", 2, "rtx4090");
    let on_q = story.stranger_takes("Q", 4, "rtx4090");
    story.tick();
    assert_eq!(story.reserved("a/s0"), "P 2/4");
    story.stranger_takes("P", 1, "rtx4090");
    story.after(Secs(60));
    assert_eq!(story.reserved("a/s0"), "P 1/4");
    let told = |what: &What| matches!(what, What::ReservationShrank { before: 2, now: 1 });
    assert_eq!(story.told(told), 1, "and says so");

    // The last one: a mark on nothing would only bind A to a full node.
    story.stranger_takes("P", 1, "rtx4090");
    story.ends(on_q);
    story.stranger_takes("Q", 3, "rtx4090");
    story.after(Secs(60));
    assert_eq!(story.told(|what| matches!(what, What::ReservationShrank { before: 1, now: 0 })), 1);
    assert_eq!(story.reserved("a/s0"), "Q 1/4", "anew, where a GPU is idle");
    let charged: u64 = story.record("a/s0").charges.iter().map(|c| c.gpu_seconds.0).sum();
    assert_eq!(charged, 2 * 62 + 64, "2 GPUs until the first was seen gone, then one");
}

#[test]
fn a_shard_that_fits_nowhere_does_not_keep_others_from_collecting() {
    let shards = vec![wants("a/s0", "BCG", 8, MIN_4090), wants("b/s0", "BCG", 2, MIN_4090)];
    let mut story = Story::on(nodes(&[("P", "rtx4090", 2)]), shards);
    story.stranger_takes("P", 1, "rtx4090");
    story.tick();
    assert!(matches!(story.why("a/s0"), Reason::NoFit { .. }));
    assert_eq!(story.reserved("b/s0"), "P 1/2");
}
