//! What babysit is wary of: refused submissions, a controller that takes no more, nodes on which
//! jobs die, jobs that stall. Each on the simulated cluster, through the real tick.

use crate::harness::{Story, T0, lanes, plain, shard};
use crate::prose::{MIN_4090, nodes, policy, wants};
use babysit::model::caution::{Breaker, Death};
use babysit::model::cluster::EndWord;
use babysit::model::policy::{Policy, Shard, SubmitMode};
use babysit::model::reason::Reason;
use babysit::model::state::{Gate, Slot};
use babysit::model::units::Secs;
use babysit::planning::breaker;
use babysit::planning::event::What;
use babysit::sim::{Accounting, Cluster, Command, Fault, Rows, Table, Trouble};

fn family(name: &str, count: usize) -> Vec<Shard> {
    (0..count).map(|i| shard(&format!("{name}/s{i}"), 4)).collect()
}

fn story(shards: Vec<Shard>, cluster: Cluster<Rows>) -> Story {
    Story::new(Policy { shards: shards.into(), ..plain() }, cluster)
}

fn opened(story: &Story) -> usize {
    story.told(|what| matches!(what, What::BreakerOpened { .. }))
}

fn refuse(story: &mut Story, times: usize) {
    story.faulty = true;
    for _ in 0..times {
        let text = "Invalid qos specification";
        story.world.cluster.faults.next_says(Command::Sbatch, Fault::Error, text);
    }
}

// ---- refused submissions

#[test]
fn one_bad_shard_never_stops_the_others() {
    let mut story = story(family("find", 6), nodes(&[("P", "rtx4090", 8)]));
    refuse(&mut story, 1);
    story.tick();
    assert!(matches!(story.record("find/s0").gate, Gate::Refused { .. }));
    for i in 1..6 {
        assert!(story.record(&format!("find/s{i}")).live().is_some(), "find/s{i}");
    }
    assert_eq!(opened(&story), 0);
}

#[test]
fn after_three_refusals_in_a_row_the_family_waits_for_a_person_and_others_go_on() {
    let mut shards = family("find", 8);
    shards.extend(family("restore", 2));
    let mut story = story(shards, nodes(&[("P", "rtx4090", 16)]));
    refuse(&mut story, 3);
    story.tick();
    assert_eq!((opened(&story), story.world.cluster.calls.sbatch), (1, 5));
    for i in 3..8 {
        let why = story.why(&format!("find/s{i}"));
        assert!(matches!(why, Reason::BreakerOpen { refused: 3, .. }), "{why:?}");
    }
    assert!(story.record("restore/s1").live().is_some());
    for _ in 0..5 {
        story.after(Secs::minutes(1));
    }
    assert_eq!((opened(&story), story.world.cluster.calls.sbatch), (1, 5), "nothing more is tried");

    let closed = breaker::close(&mut story.world.state, ["find", "restore"]);
    assert_eq!(closed, ["find"]);
    assert_eq!(*story.why("find/s7"), Reason::NotLookedYet);
    story.after(Secs::minutes(1));
    assert!(story.record("find/s7").live().is_some());
    assert!(story.world.state.caution.breakers.is_empty(), "a success closes the account");
}

#[test]
fn refusals_with_a_success_between_them_are_not_in_a_row() {
    let shards = family("find", 5);
    let mut story = story(shards, nodes(&[("P", "rtx4090", 8)]));
    story.world.policy.rules.max_submits_per_tick = 1;
    for good in [false, false, true, false, false] {
        refuse(&mut story, usize::from(!good));
        story.after(Secs::minutes(1));
    }
    assert_eq!(opened(&story), 0);
    let find = story.world.state.caution.breakers.get("find");
    assert!(matches!(find, Some(Breaker { refused: 2, open_since: None, .. })), "{find:?}");
}

#[test]
fn placed_shards_of_a_refused_family_give_their_reservation_up() {
    let mut shards: Vec<Shard> =
        (0..4).map(|i| wants(&format!("big/s{i}"), "BCG", 2, MIN_4090)).collect();
    shards.push(wants("other/s0", "BCG", 2, MIN_4090));
    let mut story = Story::on(nodes(&[("P", "rtx4090", 10)]), shards);
    refuse(&mut story, 3);
    story.tick();
    assert!(matches!(story.why("big/s3"), Reason::BreakerOpen { .. }), "{:?}", story.why("big/s3"));
    story.after(Secs::minutes(1));
    assert!(story.runs("other/s0"));
    assert_eq!(story.world.cluster.calls.sbatch, 4);
}

// ---- overload

#[test]
fn a_controller_that_takes_no_more_is_left_alone_twice_as_long_each_time() {
    let mut story = story(family("find", 3), nodes(&[("P", "rtx4090", 8)]));
    story.faulty = true;
    let mut tries = Vec::new();
    for minute in 0..40 {
        let text = "Unable to contact slurm controller (connect failure)";
        story.world.cluster.faults.next_says(Command::Sbatch, Fault::Error, text);
        let before = story.world.cluster.calls.sbatch;
        story.after(Secs::minutes(1));
        let asked = story.world.cluster.calls.sbatch - before;
        assert!(asked <= 1, "it stops at the first overload");
        if asked == 1 {
            tries.push(minute);
        } else {
            assert!(matches!(story.why("find/s0"), Reason::SlurmBusy { .. }));
        }
        story.world.cluster.faults = babysit::sim::Faults::none();
    }
    assert_eq!(tries, [0, 1, 2, 4, 8, 16, 31], "30 s, 1, 2, 4, 8, then at most 15 min");
    while story.record("find/s2").live().is_none() {
        story.after(Secs::minutes(1));
    }
    assert_eq!(story.world.state.caution.overload, None);
    assert_eq!(opened(&story), 0, "that is no family's fault");
}

/// A controller that did not answer one will not answer the next; each try would leave one more job
/// whose fate must be found out.
#[test]
fn after_an_unknown_outcome_nothing_more_is_submitted_in_that_cycle() {
    let mut story = story(family("find", 4), nodes(&[("P", "rtx4090", 8)]));
    story.faulty = true;
    story.world.cluster.faults.next(Command::Sbatch, Fault::LostReply);
    story.tick();
    assert_eq!(story.world.cluster.calls.sbatch, 1);
    assert!(matches!(story.record("find/s0").slot, Slot::Submitting(_)));
    story.after(Secs::minutes(1));
    assert_eq!(story.world.cluster.calls.sbatch, 4);
}

/// A limit is of one lane: that one is left alone for the rest of the cycle, the other is not.
#[test]
fn a_limit_holds_back_its_own_lane_alone() {
    let shards = (0..6).map(|i| shard(&format!("find/s{i}"), 4)).collect();
    let cluster = nodes(&[("P", "rtx4090", 8)]).qos("extra", 10, None, &[]);
    let cluster = cluster.qos("own", 100, Some(3), &["extra"]);
    let mut story = Story::new(Policy { shards, ..lanes(3, 0) }, cluster);
    // As a user may have it: one job in own, more in extra. What is refused waits; nobody is blamed.
    story.world.cluster.site.max_submit = Some(1);
    story.faulty = true;
    story.tick();
    let calls = story.world.cluster.calls.sbatch;
    let refused = calls - story.world.cluster.history().len() as u64;
    assert_eq!(refused, 2, "one in each lane, and then no more of it: {calls} asked");
    assert_eq!(opened(&story), 0);
    for record in &story.world.state.shards {
        assert_eq!((&record.gate, record.failures), (&Gate::Open, 0), "{}", record.id);
    }
}

// ---- bad nodes

/// Shards that die at once on node `bad`, wherever else they would work.
fn dying_on(bad: &str, shards: Vec<Shard>, mut cluster: Cluster<Rows>) -> Story {
    for shard in &shards {
        let table = Table::new(shard.rows, Secs::minutes(15));
        let table = table.always(Trouble::DiesOn(vec![bad.to_owned()]));
        cluster.work.add(&shard.id.to_string(), table);
    }
    Story::new(policy(shards), cluster)
}

fn until(story: &mut Story, minutes: usize, holds: impl Fn(&Story) -> bool) {
    if story.world.state.last_tick.is_none() {
        story.tick();
    }
    for _ in 0..minutes {
        if holds(story) {
            return;
        }
        story.after(Secs::minutes(1));
    }
    assert!(holds(story), "not within {minutes} minutes");
}

fn out(story: &Story) -> Vec<&str> {
    let nodes = story.world.state.caution.nodes.iter();
    nodes.filter(|(_, m)| m.out_until.is_some()).map(|(node, _)| node.as_str()).collect()
}

#[test]
fn quick_deaths_are_charged_to_the_node_and_it_is_kept_out() {
    for mode in [SubmitMode::Queued, SubmitMode::Placed] {
        let mut shards = family("find", 4);
        for shard in &mut shards {
            shard.submit = mode;
        }
        // The bad one is the first that anybody is sent to.
        let cluster = nodes(&[("bad", "rtx5090", 2), ("good", "rtx4090", 4)]);
        let mut story = dying_on("bad", shards, cluster);
        until(&mut story, 20, |story| !out(story).is_empty());
        assert_eq!(out(&story), ["bad"], "{mode:?}");
        until(&mut story, 30, |story| (0..4).all(|i| story.runs(&format!("find/s{i}"))));
        for record in &story.world.state.shards {
            assert_eq!((record.failures, &record.gate), (0, &Gate::Open), "{mode:?} {}", record.id);
        }
        until(&mut story, 120, |story| {
            story.world.state.shards.iter().all(|record| record.finished.is_some())
        });
        until(&mut story, 120, |story| out(story).is_empty());
    }
}

#[test]
fn a_pending_job_is_kept_off_a_bad_node_and_let_back() {
    let cluster = nodes(&[("bad", "rtx4090", 1), ("good", "rtx4090", 1)]);
    let mut story = Story::on(cluster, family("find", 4));
    story.tick();
    let now = story.world.now();
    let policy = story.world.policy.clone();
    let deaths = [0, 1].map(|i| Death {
        shard: policy.shards[i].id.clone(),
        attempt: 1,
        at: now,
        sure: true,
    });
    let marks = story.world.state.caution.nodes.entry("bad".to_owned()).or_default();
    marks.deaths.extend(deaths);
    story.after(Secs::minutes(1));
    assert_eq!(out(&story), ["bad"]);
    assert_eq!(story.excluded("find/s3"), ["bad"]);
    story.after(Secs::hours(1));
    story.after(Secs(1));
    assert_eq!(out(&story), [""; 0]);
    assert!(story.record("find/s3").kept_off.nodes.is_empty());
}

#[test]
fn the_only_node_with_the_model_that_is_asked_for_is_not_kept_out() {
    // What is large enough stands on mixed nodes, so one model is asked for by name; the other
    // node has good GPUs as well, but not of that model.
    let mixed = Cluster::at(T0)
        .node("n0", &[("rtx5090", 4), ("rtx3080ti", 3)])
        .node("n1", &[("rtx3080ti", 2), ("rtx4090", 2)]);
    let spec = Shard { gpus: 2, min_tier: Some(MIN_4090), ..shard("find/s0", 4) };
    let mut story = Story::on(mixed, vec![spec]);
    let id = story.world.policy.shards[0].id.clone();
    let death = Death { shard: id, attempt: 1, at: story.world.now(), sure: false };
    story.world.state.caution.nodes.entry("n0".to_owned()).or_default().deaths.push(death);
    story.tick();
    assert!(story.record("find/s0").live().is_some(), "{:?}", story.why("find/s0"));
}

#[test]
fn never_more_than_half_of_the_nodes_are_kept_out() {
    let all = [("a", "rtx4090", 2), ("b", "rtx4090", 2), ("c", "rtx4090", 2)];
    let mut story = Story::on(nodes(&all), family("find", 1));
    story.tick();
    let now = story.world.now();
    for (node, ..) in all {
        for attempt in 0..3 {
            let death = Death {
                shard: story.world.policy.shards[0].id.clone(),
                attempt,
                at: now,
                sure: true,
            };
            let marks = story.world.state.caution.nodes.entry(node.to_owned()).or_default();
            marks.deaths.push(death);
        }
    }
    story.after(Secs::minutes(1));
    assert_eq!(out(&story), ["a"]);
}

#[test]
fn a_program_that_dies_everywhere_is_the_shards_own_fault() {
    let mut cluster = nodes(&[("a", "rtx4090", 2), ("b", "rtx4090", 2), ("c", "rtx4090", 2)]);
    cluster.work.add("find/s0", Table::new(4, Secs::minutes(15)).always(Trouble::DiesAtOnce));
    cluster.work.add("find/s1", Table::new(4, Secs::minutes(15)).always(Trouble::DiesAtOnce));
    let mut story = Story::on(cluster, family("find", 2));
    until(&mut story, 60, |story| {
        story.world.state.shards.iter().all(|r| matches!(r.gate, Gate::Held { .. }))
    });
    assert_eq!(out(&story), [""; 0], "what they said about nodes is taken back");
    for record in &story.world.state.shards {
        assert_eq!((record.failures, record.attempts), (3, 4), "{}: one on the node", record.id);
    }
}

#[test]
fn on_the_only_node_a_quick_death_is_a_failure() {
    let mut cluster = nodes(&[("a", "rtx4090", 2)]);
    cluster.work.add("find/s0", Table::new(4, Secs::minutes(15)).always(Trouble::DiesAtOnce));
    let mut story = Story::on(cluster, family("find", 1));
    until(&mut story, 60, |story| matches!(story.record("find/s0").gate, Gate::Held { .. }));
    assert_eq!((story.record("find/s0").attempts, out(&story)), (3, vec![]));
}

#[test]
fn node_fail_is_never_the_shards_fault() {
    let cluster = nodes(&[("a", "rtx4090", 1), ("b", "rtx4090", 1)]);
    let mut story = Story::on(cluster, family("find", 1));
    story.tick();
    story.after(Secs::minutes(2));
    for _ in 0..2 {
        until(&mut story, 10, |story| story.runs("find/s0"));
        let job = story.job("find/s0");
        let node = story.node_of("find/s0");
        assert_eq!(node, "a", "the first by name");
        story.world.cluster.finish(job, EndWord::NodeFail, "0:0").expect("it runs");
        // Someone else's GPU, so that Slurm would send it to the same node again.
        story.world.state.caution.nodes.entry("a".into()).or_default();
        story.tick();
        let marks = &story.world.state.caution.nodes["a"];
        if marks.deaths.len() >= 2 {
            break;
        }
        assert_eq!(story.record("find/s0").failures, 0);
        return_there(&mut story);
    }
    assert_eq!((story.record("find/s0").failures, out(&story)), (0, vec!["a"]));
}

/// Forgets that this shard died there, as another shard would never have known.
fn return_there(story: &mut Story) {
    until(story, 5, |story| story.runs("find/s0"));
    let job = story.job("find/s0");
    assert_eq!(story.node_of("find/s0"), "b", "it goes elsewhere at once");
    let marks = story.world.state.caution.nodes.get_mut("a").expect("a death");
    marks.deaths[0].shard.shard = "s9".into();
    story.world.cluster.finish(job, EndWord::Preempted, "0:0").expect("it runs");
    story.tick();
}

// ---- stalls

fn stalling(restart: bool) -> Story {
    let mut cluster = nodes(&[("P", "rtx4090", 2)]);
    let table = Table::new(4, Secs::minutes(15)).times(1, Trouble::StallsAfter(2));
    cluster.work.add("find/s0", table);
    let mut shards = family("find", 1);
    shards[0].restart_stalled = restart;
    Story::new(Policy { shards: shards.into(), ..plain() }, cluster)
}

fn stalls(story: &Story) -> usize {
    story.told(|what| matches!(what, What::Stalled { .. }))
}

#[test]
fn a_stall_is_told_once_and_the_job_goes_on() {
    let mut story = stalling(false);
    until(&mut story, 30 + 150 + 12, |story| stalls(story) == 1);
    let minutes = story.world.now().since(T0).0 / 60;
    assert!((30 + 150..30 + 162).contains(&minutes), "ten times its row time: {minutes}");
    for _ in 0..30 {
        story.after(Secs::minutes(1));
    }
    assert_eq!((stalls(&story), story.submissions("find/s0")), (1, 1));
    assert!(matches!(story.why("find/s0"), Reason::Stalled { .. }));
    assert!(story.runs("find/s0"));
}

#[test]
fn a_stalled_job_is_started_again_where_that_is_wanted() {
    let mut story = stalling(true);
    // Its end and its new start come one tick after the other.
    story.faulty = true;
    until(&mut story, 300, |story| story.record("find/s0").finished.is_some());
    let record = story.record("find/s0");
    assert_eq!((stalls(&story), record.failures, record.attempts), (1, 0, 2));
    assert_eq!(record.gate, Gate::Open, "babysit's own scancel is nobody's cancelling");
}

#[test]
fn a_job_that_outlives_its_rows_has_not_stalled_and_that_is_told_once() {
    let mut cluster = nodes(&[("P", "rtx4090", 2)]);
    cluster.work.add("find/s0", Table::new(4, Secs::minutes(15)).always(Trouble::StallsAfter(4)));
    let mut story = Story::new(Policy { shards: family("find", 1).into(), ..plain() }, cluster);
    let lingers = |story: &Story| story.told(|what| matches!(what, What::Lingers { .. }));
    until(&mut story, 70, |story| story.record("find/s0").finished.is_some());
    let why = story.why("find/s0");
    assert!(matches!(why, Reason::AllRows { since: None, .. }), "{why:?}");
    until(&mut story, 170, |story| lingers(story) == 1);
    for _ in 0..30 {
        story.after(Secs::minutes(1));
    }
    assert_eq!((stalls(&story), lingers(&story), story.submissions("find/s0")), (0, 1, 1));
    assert!(matches!(story.why("find/s0"), Reason::AllRows { since: Some(_), .. }));
}

#[test]
fn jobs_that_end_well_without_a_row_are_told_by_what_was_looked_for() {
    let mut cluster = nodes(&[("P", "rtx4090", 2)]);
    cluster.work.add("find/s0", Table::new(4, Secs::minutes(15)).always(Trouble::LeavesAfter(0)));
    let mut story = Story::new(Policy { shards: family("find", 1).into(), ..plain() }, cluster);
    until(&mut story, 60, |story| matches!(story.record("find/s0").gate, Gate::Held { .. }));
    story.after(Secs::minutes(1));
    let why = story.why("find/s0");
    assert!(matches!(why, Reason::NothingFinished { count: 3, .. }), "{why:?}");
}

#[test]
fn late_files_and_a_slow_first_row_are_no_stall() {
    let mut cluster = nodes(&[("P", "rtx4090", 2)]);
    let table = Table::new(4, Secs::minutes(15)).start_cost(Secs::minutes(100));
    cluster.work.add("find/s0", table.late(Secs::minutes(20)));
    let mut story = Story::new(Policy { shards: family("find", 1).into(), ..plain() }, cluster);
    until(&mut story, 400, |story| story.record("find/s0").finished.is_some());
    assert_eq!(stalls(&story), 0);
}

// ---- no accounting

#[test]
fn a_cluster_without_accounting_is_learned_once_and_the_campaign_ends() {
    let mut cluster = nodes(&[("P", "rtx4090", 2)]).site(|site| {
        site.accounting = Accounting::Off;
        site.min_job_age = Secs(20);
    });
    let table = Table::new(4, Secs::minutes(15)).times(1, Trouble::FailsAfter(2));
    cluster.work.add("find/s0", table);
    let mut shards = family("find", 5);
    shards.push(wants("big/s0", "BCG", 2, MIN_4090));
    let mut story = Story::on(cluster, shards);
    // Not `tick` of the story: without an accounting, the end of a job that is purged between two
    // ticks is known to a minute only, and bills are not to the second.
    for _ in 0..400 {
        story.world.advance(Secs::minutes(1));
        story.world.tick();
    }
    for record in &story.world.state.shards {
        assert!(record.finished.is_some(), "{}: {:?}", record.id, record.why);
        let billed: u64 = record.charges.iter().map(|charge| charge.gpu_seconds.0).sum();
        let prefix = format!("oracle-plan.{}.a", record.id.to_string().replace('/', "."));
        let ran = story.world.cluster.gpu_seconds(|job| job.name.starts_with(&prefix)).0;
        let slack = 60 * 2 * u64::from(record.attempts);
        assert!((ran..=ran + slack).contains(&billed), "{}: {billed} for {ran}", record.id);
    }
    assert!(story.world.state.learned.accounting_off);
    assert_eq!(story.world.cluster.calls.sacct, 1, "asked once");
    assert_eq!(story.world.cluster.overlaps(), []);
    assert_eq!(story.submissions("find/s0"), 2);
}
