//! Ids that are somebody else's by now, and an accounting that is away or late: no row that is not proven to
//! be our job's ends it.

use std::collections::BTreeSet;

use babysit::model::cluster::{EndWord, JobState};
use babysit::model::id::JobId;
use babysit::model::observation::{Cluster as Shown, PastJob};
use babysit::model::reason::Reason;
use babysit::model::state::{EndHow, Slot, State};
use babysit::model::units::{Secs, Time};
use babysit::planning::event::What;
use babysit::planning::plan::Action;
use babysit::sim::Accounting;

use crate::harness::Story;
use crate::odd_states::{DAY, cycle, in_lanes, untouched};
use crate::rules;

/// How the last job of the only shard ended, as far as that is known.
fn end_of(state: &State) -> Option<EndHow> {
    match &state.shards[0].slot {
        Slot::Settling(end) => Some(end.how),
        _ => state.shards[0].last_end.as_ref().map(|end| end.how),
    }
}

/// The row of a job that ended so.
fn row(story: &Story, job: JobId, name: &str, uid: u32, end: Option<EndWord>) -> PastJob {
    let now = story.world.now();
    PastJob {
        id: job,
        uid,
        name: name.to_owned(),
        comment: String::new(),
        qos: "own".to_owned(),
        end,
        submitted: Some(now - Secs::minutes(40)),
        started: Some(now - Secs::minutes(39)),
        ended: end.map(|_| now - Secs::minutes(5)),
        nodes: vec!["P".to_owned()],
        exit: "1:0".to_owned(),
        cancelled_by: None,
    }
}

/// A story whose job ran for a while; then Slurm gave its id to somebody else's job, which squeue shows.
fn id_reused(name: &str, uid: impl Fn(u32) -> u32) -> (Story, JobId, Shown) {
    let mut story = in_lanes();
    story.tick();
    story.after(Secs::minutes(40));
    let job = story.job("q/s0");
    let mut shown = rules::look(&mut story.world.cluster);
    let now = story.world.now();
    let theirs = shown.jobs.iter_mut().find(|seen| seen.id == job).expect("in the queue");
    theirs.uid = uid(theirs.uid);
    theirs.name = name.to_owned();
    theirs.comment.clear();
    (theirs.submitted, theirs.started) = (Some(now - Secs(20)), Some(now - Secs(10)));
    (story, job, shown)
}

#[test]
fn an_id_that_is_another_job_s_by_now_is_never_taken_for_ours() {
    let ours = "oracle-plan.q.s0.a1";
    // Another user's; another job of this user's; of this very name, from a state that was lost.
    for (name, other) in [("llm-serve", 1), ("llm-serve", 0), (ours, 0)] {
        let (story, job, shown) = id_reused(name, |uid| uid + other);
        let me = shown.me;
        // The accounting has both, ours and the one that runs now.
        let end = row(&story, job, ours, me, Some(EndWord::Failed));
        let mut running = row(&story, job, name, me + other, None);
        running.submitted = Some(story.world.now() - Secs(20));
        running.started = Some(story.world.now() - Secs(10));
        let rows = vec![running, end];
        let (state, plan) = cycle(&story, shown.clone(), Some(rows), story.world.now());
        if name == ours {
            // By the accounting alone it is ours that still runs: nothing is decided over that.
            assert_eq!(state.shards[0].live().map(|live| live.job), Some(job));
            assert_eq!(plan.actions, []);
        } else {
            // Ours is over by its own row, and goes on where it was. Theirs is left alone.
            assert_eq!(end_of(&state), Some(EndHow::Word(EndWord::Failed)), "{name} {other}");
            let again = |action: &Action| matches!(action, Action::Submit(_));
            assert!(plan.actions.iter().all(again), "{name} {other}: {plan:#?}");
        }

        // The accounting knows only theirs: neither is ours over, nor is theirs ours.
        let theirs = row(&story, job, name, me + 1, Some(EndWord::Completed));
        let (state, plan) = cycle(&story, shown.clone(), Some(vec![theirs]), story.world.now());
        let live = state.shards[0].live().expect("not over");
        assert!(live.absent.is_some(), "{name} {other}: not theirs");
        assert_eq!(plan.actions, [], "{name} {other}");
    }
}

#[test]
fn no_job_of_a_reused_id_is_cancelled_with_our_shard() {
    let (mut story, job, shown) = id_reused("llm-serve", |uid| uid);
    story.cancel("q/s0");
    story.record_mut("q/s0").why = Reason::NotLookedYet;
    let ended = row(&story, job, "oracle-plan.q.s0.a1", shown.me, Some(EndWord::Completed));
    let (state, plan) = cycle(&story, shown, Some(vec![ended]), story.world.now());
    assert!(state.shards[0].live().is_none());
    assert_eq!(plan.actions, []);
}

/// Names repeat where a state was lost and begun anew: rows from before are another life's.
#[test]
fn a_row_from_before_the_submission_is_no_end_of_it() {
    let mut story = in_lanes();
    story.tick();
    story.after(Secs::minutes(40));
    let job = story.job("q/s0");
    let mut shown = rules::look(&mut story.world.cluster);
    shown.jobs.retain(|seen| seen.id != job);
    let mut old = row(&story, job, "oracle-plan.q.s0.a1", shown.me, Some(EndWord::Completed));
    for at in [&mut old.submitted, &mut old.started, &mut old.ended] {
        *at = at.map(|at| at - Secs::hours(DAY));
    }
    let (state, _) = cycle(&story, shown, Some(vec![old]), story.world.now());
    assert!(state.shards[0].live().is_some_and(|live| live.absent.is_some()));
}

/// `scontrol requeue` of a job that allows it: accounting calls that run REQUEUED for ever, which is no
/// word for an end, and gives the time at which it was over.
#[test]
fn a_run_that_was_requeued_is_past_and_paid_for() {
    let mut story = in_lanes();
    story.tick();
    story.after(Secs::minutes(40));
    let (job, now) = (story.job("q/s0"), story.world.now());
    let shown = rules::look(&mut story.world.cluster);
    let last = row(&story, job, "oracle-plan.q.s0.a1", shown.me, Some(EndWord::Failed));
    let started = story.record("q/s0").live().and_then(|live| live.started);
    let requeued = PastJob {
        end: None,
        submitted: started.map(|at| at - Secs(1)),
        started,
        ended: last.submitted,
        ..last.clone()
    };
    let last = PastJob { started: Some(now - Secs::minutes(9)), ..last };
    let rows = Some(vec![last.clone(), requeued.clone()]);
    let runs = [&requeued, &last].map(|row| row.started.zip(row.ended).expect("both ran"));
    let paid: i64 = runs.map(|(from, until)| until.since(from).0).iter().sum();

    // Out of the queue, and in it for the minutes that Slurm shows what is over.
    let mut gone = shown.clone();
    gone.jobs.retain(|seen| seen.id != job);
    let mut there = shown;
    for seen in there.jobs.iter_mut().filter(|seen| seen.id == job) {
        seen.state = JobState::Over(EndWord::Failed);
        (seen.restarts, seen.submitted) = (1, last.submitted);
        (seen.started, seen.ends) = (last.started, last.ended);
    }
    for (shown, what) in [(gone, "gone"), (there, "over")] {
        let (state, _) = cycle(&story, shown, rows.clone(), now);
        assert_eq!(end_of(&state), Some(EndHow::Word(EndWord::Failed)), "{what}");
        assert_eq!(state.shards[0].ran.0, paid as u64, "{what}: each run, once");
    }
}

// ---- the accounting

#[test]
fn hours_out_of_the_queue_with_the_accounting_down_are_no_end() {
    for min_job_age in [0, 60] {
        let mut story = in_lanes();
        story.world.cluster.site.min_job_age = Secs(min_job_age);
        story.tick();
        story.after(Secs::minutes(40));
        let job = story.job("q/s0");
        story.world.cluster.site.accounting = Accounting::Down;
        story.world.cluster.finish(job, EndWord::Failed, "1:0").expect("it runs");
        story.world.advance(Secs(120));
        for _ in 0..90 {
            story.after(Secs::minutes(1));
            assert_eq!(story.job("q/s0"), job);
            assert!(matches!(story.why("q/s0"), Reason::EndUnknown { .. }));
        }
        untouched(&story, 1, "accounting down");
        let told = |what: &What| matches!(what, What::EndPutOff { .. });
        assert_eq!(story.told(told), 1, "told once");
        story.world.cluster.site.accounting = Accounting::On;
        for _ in 0..5 {
            story.after(Secs::minutes(1));
        }
        assert_eq!(story.submissions("q/s0"), 2);
        story.after(Secs::minutes(1));
        assert!(story.runs("q/s0"));
    }
}

/// The same for a submission without an answer: its job may have begun, ended and left the queue.
#[test]
fn a_submission_is_not_given_up_while_the_accounting_is_down() {
    use babysit::sim::{Command, Fault};
    let mut story = in_lanes();
    story.world.cluster.site.min_job_age = Secs(1);
    story.faulty = true;
    story.world.cluster.faults.next(Command::Sbatch, Fault::LostReply);
    story.tick();
    let id = story.world.cluster.history()[0].id;
    story.world.cluster.site.accounting = Accounting::Down;
    story.world.advance(Secs(10));
    story.world.cluster.finish(id, EndWord::Failed, "1:0").expect("it runs");
    story.world.advance(Secs(30));
    for _ in 0..120 {
        story.after(Secs::minutes(1));
        assert!(matches!(story.record("q/s0").slot, Slot::Submitting(_)));
    }
    untouched(&story, 1, "sbatch without an answer");
    story.world.cluster.site.accounting = Accounting::On;
    for _ in 0..6 {
        story.after(Secs::minutes(1));
    }
    assert_eq!(story.submissions("q/s0"), 2, "it was found in the accounting, and had ended");
    let charged: u64 = story.record("q/s0").charges.iter().map(|c| c.gpu_seconds.0).sum();
    assert!(charged > 0, "and its run is charged");
}

/// The controller took its time: the job shows up when two healthy queues have already been without it.
#[test]
fn a_submission_that_comes_through_late_is_not_made_twice() {
    use babysit::sim::{Command, Fault};
    for late in [20, 100, 280] {
        let mut story = in_lanes();
        story.faulty = true;
        story.world.cluster.faults.next(Command::Sbatch, Fault::HangLate(Secs(late)));
        story.tick();
        for _ in 0..12 {
            story.after(Secs(30));
        }
        untouched(&story, 1, "a slow controller");
        assert!(story.runs("q/s0"), "after {late} s");
        assert_eq!(story.record("q/s0").attempts, 1);
    }
}

/// sacct without `-S` begins at midnight: what ended before would be unknown, and be submitted again as
/// if it had never been. Its question reaches back to before the submission, whatever the day.
#[test]
fn an_end_of_days_ago_is_asked_for_from_before_its_submission() {
    let mut story = in_lanes();
    story.world.cluster.site.min_job_age = Secs(60);
    story.tick();
    let asked_at = story.record("q/s0").live().expect("a job").attempt.asked_at;
    story.after(Secs::minutes(40));
    let job = story.job("q/s0");
    story.world.cluster.finish(job, EndWord::OutOfMemory, "0:125").expect("it runs");
    // Nobody ticked for three days.
    story.world.advance(Secs::hours(3 * DAY));
    let mut asked = Asked::default();
    ask_of(&mut story, &mut asked);
    assert!(asked.since.is_some_and(|since| since < asked_at), "{asked:?}");
    assert_eq!(asked.names, ["oracle-plan.q.s0.a1"].map(str::to_owned).into());
    story.tick();
    assert_eq!(end_of(&story.world.state), Some(EndHow::Word(EndWord::OutOfMemory)));
    let charged: u64 = story.record("q/s0").charges.iter().map(|c| c.gpu_seconds.0).sum();
    assert!((2380..2420).contains(&charged), "its run, not the three days: {charged}");
}

#[derive(Debug, Default)]
struct Asked {
    since: Option<Time>,
    names: BTreeSet<String>,
}

fn ask_of(story: &mut Story, asked: &mut Asked) {
    use babysit::planning::questions::questions;
    use babysit::planning::roster::Roster;
    let shown = rules::look(&mut story.world.cluster);
    let roster = Roster::new(&story.world.state, &shown.jobs, shown.me);
    let found =
        questions(&story.world.policy, &story.world.state, &roster, None, story.world.now());
    asked.since = found.since;
    asked.names = found.names.into_iter().collect();
}
