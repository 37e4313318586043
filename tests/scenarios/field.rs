//! F1-F8: the field cases of the babysitter (policy.md sections 2-4 and 8).

use babysit::engine::Outcome;
use babysit::model::cluster::EndWord;
use babysit::model::policy::{Lane, Policy, Shard};
use babysit::model::state::{CapSet, CapTarget, Gate};
use babysit::model::units::Secs;
use babysit::planning::event::What;
use babysit::sim::{Accounting, Cluster, Command, Fault, Rows, Table};

use crate::harness::{Story, T0, dollars, lanes, shard};

/// The field cluster: own has 8 GPUs, another session runs on `others` of them for good.
fn cluster(gpus: u32, others: u32) -> Cluster<Rows> {
    let mut cluster = Cluster::at(T0)
        .node("n1", &[("rtx4090", gpus)])
        .qos("extra", 10, None, &[])
        .qos("own", 100, Some(8), &["extra"]);
    for _ in 0..others {
        cluster.add_job_of("bob", "own", "gpu:1", None).expect("bob has room");
    }
    cluster.advance(10);
    cluster
}

fn campaign(park: usize, shards: Vec<Shard>) -> Policy {
    Policy { shards: shards.into(), ..lanes(8, park) }
}

fn ids(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

fn moved(story: &Story, to: Lane) -> usize {
    let is = |what: &What| matches!(what, What::Moved { to: lane, .. } if *lane == to);
    story.world.journal.iter().filter(|event| is(&event.what)).count()
}

fn oracle(find: u32, restore: u32) -> Vec<Shard> {
    let finds = (0..find).map(|i| shard(&format!("find/s{i}"), 44));
    finds.chain((0..restore).map(|i| shard(&format!("restore/s{i}"), 64))).collect()
}

#[test]
fn f1_first_cycle_of_v3_promotes_all_six_and_one_has_a_gpu_at_once() {
    // Own's size is not known, so all go to own and the next cycle promotes what still pends.
    let mut policy = campaign(0, oracle(4, 6));
    policy.lanes.as_mut().expect("lanes").own_gpus = None;
    let mut cluster = cluster(9, 4);
    cluster.site.accounting = Accounting::Down;
    let mut story = Story::new(policy, cluster);
    story.tick();
    story.world.advance(Secs(30));
    assert_eq!(story.running_in("own").len(), 4, "own is 8/8 full: 4 ours, 4 of another session");
    assert_eq!(story.pending_in("own").len(), 6);

    story.tick();
    assert_eq!(moved(&story, Lane::Extra), 6);
    assert_eq!(story.world.cluster.calls.scontrol, 1, "six jobs, one command");
    story.world.advance(Secs(10));
    assert_eq!(story.running_in("extra").len(), 1, "the ninth GPU is used at once");
}

#[test]
fn f2_two_stay_parked_so_that_own_turnover_is_ours() {
    let mut story = Story::new(campaign(2, oracle(3, 8)), cluster(8, 4));
    story.tick();
    story.after(Secs(60));
    assert_eq!(story.running_in("own").len(), 4);
    assert_eq!(story.pending_in("own").len(), 2, "K = 2");
    assert_eq!(story.pending_in("extra").len(), 5);

    // Another session's job ends: the freed own GPU goes to a parked job, without any tick.
    let bobs =
        story.world.cluster.history().iter().find(|job| *job.user == *"bob").map(|job| job.id);
    story.world.cluster.finish(bobs.expect("bob's job"), EndWord::Completed, "0:0").expect("ends");
    story.world.advance(Secs(10));
    assert_eq!(story.running_in("own").len(), 5);
    story.after(Secs(60));
    assert_eq!(story.pending_in("own").len(), 2, "the next longest took the place");
}

#[test]
fn f3_the_longest_are_parked_not_the_first_submitted() {
    // restore_s1 (64 rows, 27 h) and restore_s4 (47 rows, 20 h) belong in own; the 6 h shard not.
    let hours = |id: &str, rows: u32, minutes: i64| Shard {
        row_time: Secs::minutes(minutes),
        ..shard(id, rows)
    };
    let shards = vec![
        hours("find/s0", 24, 15),
        hours("restore/s0", 30, 25),
        hours("restore/s1", 64, 25),
        hours("restore/s4", 47, 25),
    ];
    let mut story = Story::new(campaign(2, shards), cluster(8, 8));
    story.tick();
    story.world.advance(Secs(60));
    assert_eq!(story.pending_in("own"), ids("restore/s1 restore/s4"));
    assert_eq!(story.pending_in("extra"), ids("find/s0 restore/s0"));
}

#[test]
fn f3_a_pending_extra_job_that_belongs_in_the_top_k_moves_back() {
    let mut story = Story::new(campaign(1, oracle(1, 1)), cluster(8, 8));
    story.tick();
    assert_eq!(story.pending_in("own"), ids("restore/s0"));
    assert_eq!(story.pending_in("extra"), ids("find/s0"));

    // Another family's rows turn out far longer: it overtakes.
    let pace = babysit::model::state::Pace { rows: 1, time: Secs::hours(2) };
    story.world.state.shards[0].pace = pace;
    story.after(Secs(60));
    assert_eq!(story.pending_in("own"), ids("find/s0"));
    assert_eq!(story.pending_in("extra"), ids("restore/s0"));
}

#[test]
fn f3_among_the_parked_the_longest_starts_first_though_slurm_prefers_the_oldest() {
    let mut story = Story::new(campaign(2, oracle(2, 0)), cluster(8, 8));
    story.tick();
    let (older, younger) = ("find/s0", "find/s1");
    let pace = |hours| babysit::model::state::Pace { rows: 1, time: Secs::hours(hours) };
    story.world.state.shards[0].pace = pace(1);
    story.world.state.shards[1].pace = pace(2);
    story.after(Secs(600));
    let bobs =
        story.world.cluster.history().iter().find(|job| *job.user == *"bob").map(|job| job.id);
    story.world.cluster.finish(bobs.expect("bob's job"), EndWord::Completed, "0:0").expect("ends");
    story.world.advance(Secs(10));
    assert_eq!(story.running_in("own"), ids(younger));
    assert_eq!(story.pending_in("own"), ids(older));
}

#[test]
fn f4_a_failed_probe_skips_the_cycle_and_submits_nothing_twice() {
    let mut story = Story::new(campaign(2, oracle(4, 8)), cluster(12, 4));
    story.tick();
    story.after(Secs(60));
    let before = story.world.state.clone();
    let jobs = story.world.cluster.history().len();
    for command in [Command::Squeue, Command::Sinfo] {
        for fault in [Fault::Error, Fault::Silent, Fault::Torn, Fault::Hang] {
            story.world.cluster.faults.next_says(command, fault, "Connection reset by peer");
            let report = story.tick();
            assert!(matches!(report.outcome, Outcome::Skipped(_)), "{command:?} {fault:?}");
            assert_eq!(story.world.state.shards, before.shards, "{command:?} {fault:?}");
        }
    }
    assert_eq!(story.world.cluster.history().len(), jobs, "nothing was submitted");
    let last = story.world.state.last_tick.clone().expect("a record of the cycle");
    assert_eq!(last.skipped_in_a_row, 8);
    story.tick();
    assert_eq!(story.world.cluster.history().len(), jobs);
}

#[test]
fn f4_a_job_that_left_the_queue_is_not_over_while_accounting_cannot_say() {
    let mut story = Story::new(campaign(0, oracle(1, 1)), cluster(12, 0));
    story.world.cluster.site.min_job_age = Secs(60);
    story.tick();
    story.world.advance(Secs(30));
    let gone = story.job("find/s0");
    story.tick();
    story.world.cluster.finish(gone, EndWord::Failed, "1:0").expect("it runs");
    story.world.cluster.site.accounting = Accounting::Down;
    for _ in 0..7 {
        story.after(Secs::minutes(10));
        assert_eq!(story.job("find/s0"), gone, "put off: nobody can say what became of it");
    }
    assert_eq!(story.submissions("find/s0"), 1);
    assert!(story.record("restore/s0").live().is_some(), "the other shard went on");

    story.world.cluster.site.accounting = Accounting::On;
    story.after(Secs::minutes(10));
    story.after(Secs::minutes(10));
    story.after(Secs::minutes(10));
    assert_eq!(story.submissions("find/s0"), 2);
}

#[test]
fn f5_denied_but_applied_is_believed_by_the_column() {
    let mut story = Story::new(campaign(0, oracle(1, 0)), cluster(8, 8));
    story.world.policy.lanes.as_mut().expect("lanes").park = 1;
    story.tick();
    assert_eq!(story.pending_in("own"), ids("find/s0"));
    story.world.policy.lanes.as_mut().expect("lanes").park = 0;
    story.world.cluster.faults.next_says(
        Command::Scontrol,
        Fault::FalseAlarm,
        "Access/permission denied for job 1",
    );
    let report = story.after(Secs(60));
    assert_eq!(story.pending_in("extra"), ids("find/s0"));
    let told = |what: &What| matches!(what, What::MovedDespiteError { .. });
    assert!(report.events.iter().any(|event| told(&event.what)), "{:?}", report.events);
    assert!(story.record("find/s0").move_refused.is_none());
}

#[test]
fn f5_denied_and_unchanged_is_told_once_and_not_hammered() {
    let mut story = Story::new(campaign(1, oracle(1, 0)), cluster(8, 8));
    story.tick();
    story.world.policy.lanes.as_mut().expect("lanes").park = 0;
    story.world.cluster.faults.next_says(
        Command::Scontrol,
        Fault::Error,
        "Access/permission denied for job 1",
    );
    story.after(Secs(60));
    for _ in 0..10 {
        story.after(Secs(60));
    }
    let told = |what: &What| matches!(what, What::MoveRefused { .. });
    let times = story.world.journal.iter().filter(|event| told(&event.what)).count();
    assert_eq!(times, 1);
    assert_eq!(story.world.cluster.calls.scontrol, 1);
    story.after(Secs::hours(1));
    assert_eq!(story.pending_in("extra"), ids("find/s0"), "tried again later");
}

/// rc 0 and not a word, and nothing was done.
#[test]
fn f5_silence_is_no_proof_of_a_move() {
    let mut story = Story::new(campaign(1, oracle(1, 0)), cluster(8, 8));
    story.tick();
    story.world.policy.lanes.as_mut().expect("lanes").park = 0;
    story.world.cluster.faults.next(Command::Scontrol, Fault::Silent);
    story.faulty = true;
    story.after(Secs(60));
    let moved = |what: &What| matches!(what, What::Moved { .. });
    let unanswered = |what: &What| matches!(what, What::MoveUnanswered { .. });
    let told = |which: &dyn Fn(&What) -> bool| {
        story.world.journal.iter().filter(|event| which(&event.what)).count()
    };
    assert_eq!((told(&moved), told(&unanswered)), (0, 1));
    story.after(Secs(60));
    assert_eq!(story.pending_in("extra"), ids("find/s0"));
}

#[test]
fn f5_a_broken_connection_is_no_denial_and_the_next_cycle_tries_again() {
    let mut story = Story::new(campaign(1, oracle(1, 0)), cluster(8, 8));
    story.tick();
    story.world.policy.lanes.as_mut().expect("lanes").park = 0;
    for said in ["Unexpected message received for job 1", "Socket timed out"] {
        story.world.cluster.faults.next_says(Command::Scontrol, Fault::Error, said);
        story.faulty = true;
        story.after(Secs(60));
        assert_eq!(story.pending_in("own"), ids("find/s0"), "{said}");
    }
    story.faulty = false;
    story.after(Secs(60));
    assert_eq!(story.pending_in("extra"), ids("find/s0"));
}

#[test]
fn f6_a_preempted_shard_comes_back_at_once_and_loses_one_row() {
    let mut cluster = cluster(5, 4);
    cluster.work.add("find/s2", Table::new(44, Secs::minutes(15)));
    let mut policy = campaign(0, vec![shard("find/s2", 44)]);
    policy.lanes.as_mut().expect("lanes").own_gpus = Some(4);
    let mut story = Story::new(policy, cluster);
    story.tick();
    story.after(Secs(30));
    assert_eq!(story.running_in("extra"), ids("find/s2"), "own is full, so it runs in extra");
    story.after(Secs::minutes(100));
    assert_eq!(story.record("find/s2").progress.rows, 6);

    // An own job of another session takes its GPU.
    let bob = story.world.cluster.add_job_of("bob", "own", "gpu:1", Some(Secs::minutes(30)));
    bob.expect("fits own");
    story.after(Secs::minutes(5));
    let record = story.record("find/s2");
    assert_eq!((record.preemptions, record.failures), (1, 0));
    assert_eq!(record.attempts, 2, "submitted again in the cycle that learned of it");
    story.after(Secs::hours(12));
    story.tick();
    assert_eq!(story.record("find/s2").progress.rows, 44);
    let index = story.world.cluster.work.index_of("find/s2").expect("a table");
    assert_eq!(story.world.cluster.work.redone(index), 0, "no finished row is done again");
    assert_eq!(story.world.cluster.work.lost(index), 1, "the row in flight");
}

#[test]
fn f7_caps_are_raised_by_a_person_and_by_nothing_else() {
    // find: 15 -> 25, restore: 24 -> 40; the ceiling is 4 x 25 + 8 x 40 = 420.
    let mut cluster = cluster(16, 0);
    let mut shards = oracle(4, 8);
    for shard in &mut shards {
        let find = shard.id.family == "find";
        shard.cap = Some(dollars(if find { 15.0 } else { 24.0 }));
        let cost = if shard.id.shard == "s0" { 0.5 } else { 0.05 };
        let table = Table::new(shard.rows, shard.row_time).row_cost(dollars(cost));
        cluster.work.add(&shard.id.to_string(), table);
    }
    let mut policy = campaign(2, shards);
    policy.lanes.as_mut().expect("lanes").own_gpus = Some(8);
    let mut story = Story::new(policy, cluster);
    story.tick();
    for _ in 0..180 {
        story.after(Secs::minutes(10));
    }
    let over = story.record("find/s0").clone();
    assert_eq!(over.over_cap.expect("over its cap").cap, dollars(15.0));
    assert!(over.live().is_none(), "what ran was stopped");
    assert_eq!(over.gate, Gate::Open);
    let submissions = story.submissions("find/s0");
    for _ in 0..20 {
        story.after(Secs::minutes(10));
    }
    assert_eq!(story.submissions("find/s0"), submissions, "no resubmission in a loop");

    let raise = |story: &mut Story, family: &str, amount: f64| {
        let set = CapSet { amount: dollars(amount), by: "alice".to_owned(), at: story.world.now() };
        story.world.state.caps.insert(CapTarget::Family(family.to_owned()), set);
    };
    raise(&mut story, "find", 25.0);
    raise(&mut story, "restore", 40.0);
    let ceiling: f64 = story
        .world
        .policy
        .shards
        .iter()
        .filter_map(|shard| story.world.state.cap_of(&shard.id, shard.cap))
        .map(|cap| cap.dollars())
        .sum();
    assert_eq!(ceiling, 420.0);
    story.tick();
    assert_eq!(story.submissions("find/s0"), submissions + 1, "the next cycle submits it");
    for _ in 0..200 {
        story.after(Secs::minutes(10));
    }
    for record in &story.world.state.shards {
        assert!(record.finished.is_some(), "{} is done", record.id);
    }
}

#[test]
fn f8_a_running_extra_job_is_not_moved() {
    let mut story = Story::new(campaign(2, oracle(0, 2)), cluster(12, 8));
    story.tick();
    story.world.advance(Secs(30));
    // Own was full; the parked ones wait there although GPUs are idle: that is what K says. One is
    // moved to extra by hand and starts.
    let restless = story.job("restore/s1");
    let change = babysit::model::request::Change::Lane {
        qos: Some("extra".to_owned()),
        partition: None,
        account: None,
    };
    use babysit::slurm::Slurm;
    story.world.cluster.door("alice").update(&[restless], &change);
    story.world.advance(Secs(30));
    assert_eq!(story.running_in("extra"), ids("restore/s1"));
    for _ in 0..5 {
        story.after(Secs::minutes(10));
        assert_eq!(story.running_in("extra"), ids("restore/s1"));
        assert_eq!(story.job("restore/s1"), restless);
    }
    assert_eq!(story.world.cluster.calls.scontrol, 1, "only the one made by hand");
}

#[test]
fn an_idle_cycle_asks_squeue_and_sinfo_once_and_nothing_else() {
    let mut story = Story::new(campaign(2, oracle(4, 8)), cluster(8, 4));
    story.tick();
    story.after(Secs(60));
    let before = story.world.cluster.calls;
    story.world.tick();
    let after = story.world.cluster.calls;
    assert_eq!(after.looks, before.looks + 1);
    assert_eq!(after.squeue, before.squeue + 1);
    assert_eq!(after.sinfo, before.sinfo + 1);
    let rest = |calls: &babysit::sim::Calls| {
        (calls.sacct, calls.sbatch, calls.scontrol, calls.scancel, calls.sacctmgr)
    };
    assert_eq!(rest(&after), rest(&before));
}
