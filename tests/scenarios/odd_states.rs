//! What Slurm shows of a job that babysit neither began nor ended: holds, words between pending and
//! over, ids that come back, an accounting that is away or tells of others. One thing above all: none
//! of it ever leads to a second live job.

use std::collections::BTreeSet;

use babysit::model::cluster::{EndWord, JobState};
use babysit::model::id::JobId;
use babysit::model::observation::{Cluster as Shown, Gap, GapKind, Observation, PastJob};
use babysit::model::policy::{Policy, Shard};
use babysit::model::reason::Reason;
use babysit::model::state::{EndHow, Slot, State};
use babysit::model::units::{Secs, Time};
use babysit::planning::event::What;
use babysit::planning::plan as planned;
use babysit::planning::plan::{Action, Plan};
use babysit::sim::{Accounting, Stranger, Table};

use crate::harness::{Story, lanes, shard};
use crate::prose::nodes;
use crate::rules;

const DAY: i64 = 24;

/// One shard of long rows; own is full, so that moves are possible.
fn in_lanes() -> Story {
    let mut cluster = nodes(&[("P", "rtx4090", 4)]);
    cluster = cluster.qos("extra", 10, None, &[]).qos("own", 100, Some(2), &["extra"]);
    cluster.work.add("q/s0", Table::new(400, Secs::minutes(15)));
    Story::new(Policy { shards: vec![shard("q/s0", 400)].into(), ..lanes(2, 1) }, cluster)
}

/// Nothing was asked of Slurm since `jobs` submissions, whatever went by.
fn untouched(story: &Story, jobs: usize, what: &str) {
    let calls = story.world.cluster.calls;
    assert_eq!(story.submissions("q/s0"), jobs, "{what}: submitted again");
    assert_eq!(calls.scancel, 0, "{what}: cancelled");
}

// ---- held, suspended, on its way

#[test]
fn a_job_that_others_keep_from_starting_is_left_to_them() {
    for reason in ["JobHeldUser", "JobHeldAdmin", "DependencyNeverSatisfied", "BadConstraints"] {
        let mut story = in_lanes();
        for user in ["bob", "carl"] {
            let all = Stranger::new(user, "own", "gpu:1").on("P");
            story.world.cluster.add_job(all).expect("room");
            let all = Stranger::new(user, "extra", "gpu:1").on("P");
            story.world.cluster.add_job(all).expect("room");
        }
        story.world.advance(Secs(5));
        story.tick();
        let job = story.job("q/s0");
        story.world.cluster.hold_for(job, reason).expect("it pends");
        let moves = story.world.cluster.calls.scontrol;
        // Room in extra, and a K that would move it there and back: it stays what they made of it.
        let all: Vec<JobId> = story.world.cluster.history().iter().map(|job| job.id).collect();
        let (in_own, in_extra): (Vec<JobId>, Vec<JobId>) =
            all.into_iter().filter(|id| *id != job).partition(|id| id.0 % 2 == 1);
        in_extra.into_iter().for_each(|other| story.ends(other));
        for hour in 0..DAY {
            story.world.policy.lanes.as_mut().expect("lanes").park = (hour % 2) as usize;
            story.after(Secs::hours(1));
            assert_eq!(story.job("q/s0"), job, "{reason}");
            let stuck = Reason::StuckInSlurm { slurm: reason.to_owned() };
            assert_eq!(*story.why("q/s0"), stuck);
        }
        untouched(&story, 1, reason);
        assert_eq!(story.world.cluster.calls.scontrol, moves, "{reason}: moved");
        story.world.cluster.release(job).expect("a job");
        in_own.into_iter().for_each(|other| story.ends(other));
        story.after(Secs::minutes(1));
        story.after(Secs::minutes(1));
        assert!(story.runs("q/s0"), "{reason}");
        assert_eq!(story.job("q/s0"), job);
    }
}

/// Words that squeue has for a job that is neither pending, nor running, nor over.
const BETWEEN: [&str; 14] = [
    "CONFIGURING",
    "SUSPENDED",
    "STOPPED",
    "COMPLETING",
    "SIGNALING",
    "STAGE_OUT",
    "RESIZING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
    "EXPEDITING",
    "NEVER_HEARD_OF",
];

#[test]
fn a_word_between_running_and_over_is_no_end_however_long_it_stands_there() {
    for word in BETWEEN {
        let mut story = in_lanes();
        story.tick();
        story.after(Secs::minutes(1));
        assert!(story.runs("q/s0"));
        let job = story.job("q/s0");
        story.world.cluster.show_as(job, Some(word)).expect("a job");
        for _ in 0..DAY {
            story.after(Secs::hours(1));
            assert_eq!(story.job("q/s0"), job, "{word}");
            assert_eq!(*story.why("q/s0"), Reason::InSlurm { word: word.to_owned() });
        }
        untouched(&story, 1, word);
        story.world.cluster.show_as(job, None).expect("a job");
        story.after(Secs::minutes(1));
        assert!(matches!(story.why("q/s0"), Reason::Running { .. }), "{word}");
        assert_eq!(story.record("q/s0").failures, 0, "{word}");
    }
}

/// A node that hangs in its epilog shows a job as COMPLETING for hours after its program has ended; the
/// accounting has its end at once. It counts when the queue says so, and from when Slurm says.
#[test]
fn a_job_that_completes_for_hours_comes_back_once_and_pays_for_its_run_alone() {
    let mut story = in_lanes();
    story.world.cluster.site.min_job_age = Secs::hours(48);
    story.tick();
    story.after(Secs::minutes(50));
    let job = story.job("q/s0");
    story.world.cluster.show_as(job, Some("COMPLETING")).expect("a job");
    story.world.cluster.finish(job, EndWord::Failed, "1:0").expect("it runs");
    for _ in 0..DAY {
        story.after(Secs::hours(1));
        assert_eq!(story.job("q/s0"), job);
    }
    untouched(&story, 1, "COMPLETING");
    story.world.cluster.show_as(job, None).expect("a job");
    for _ in 0..5 {
        story.after(Secs::minutes(1));
    }
    assert_eq!(story.submissions("q/s0"), 2);
    let charges = &story.record("q/s0").charges;
    let charged: u64 = charges.iter().map(|charge| charge.gpu_seconds.0).sum();
    let ran = story.world.cluster.job(job).and_then(|job| job.stays.first().cloned());
    let ran = ran.and_then(|stay| Some(stay.ended.since(stay.started?).0.unsigned_abs()));
    assert_eq!(Some(charged), ran);
}

// ---- it comes back under its id

/// Where a site or a person has turned requeueing on, PREEMPTED (or a node's failure) is followed by the
/// same id again. Nothing is submitted beside it.
#[test]
fn a_job_that_slurm_itself_brings_back_is_waited_for() {
    for word in [EndWord::Preempted, EndWord::NodeFail] {
        let mut cluster = nodes(&[("P", "rtx4090", 1)]);
        cluster = cluster.qos("extra", 10, None, &[]).qos("own", 100, Some(1), &["extra"]);
        cluster.work.add("q/s0", Table::new(40, Secs::minutes(15)));
        let spec = Shard { args: vec!["--requeue".to_owned()], ..shard("q/s0", 40) };
        let mut story = Story::new(Policy { shards: vec![spec].into(), ..lanes(1, 0) }, cluster);
        // Own is taken elsewhere, so ours runs in extra.
        story.world.policy.lanes.as_mut().expect("lanes").own_gpus = Some(0);
        story.tick();
        story.after(Secs::minutes(40));
        let job = story.job("q/s0");
        match word {
            EndWord::Preempted => {
                let bob = story.world.cluster.add_job_of("bob", "own", "gpu:1", Some(Secs(600)));
                bob.expect("own has room");
            }
            _ => {
                story.world.cluster.node_down("P").expect("a node");
                story.world.cluster.node_up("P").expect("a node");
            }
        }
        for _ in 0..40 {
            story.after(Secs(30));
            assert_eq!(story.job("q/s0"), job, "{word:?}");
        }
        untouched(&story, 1, word.word());
        assert!(story.runs("q/s0"), "{word:?}: the same job, again");
        assert_eq!(story.record("q/s0").failures, 0, "{word:?}");
    }
}

/// squeue's own word for it, in the moments before the id is back in the queue.
#[test]
fn the_word_preempted_is_no_end_of_a_job_that_may_be_requeued() {
    for (requeue, expected) in [(true, false), (false, true)] {
        let mut story = in_lanes();
        story.tick();
        story.after(Secs::minutes(40));
        let job = story.job("q/s0");
        let mut shown = rules::look(&mut story.world.cluster);
        let ours = shown.jobs.iter_mut().find(|seen| seen.id == job).expect("in the queue");
        ours.state = JobState::Over(EndWord::Preempted);
        ours.requeue = requeue;
        ours.ends = Some(story.world.now());
        let (state, plan) = cycle(&story, shown, Some(Vec::new()), story.world.now());
        let submits = plan.actions.iter().any(|action| matches!(action, Action::Submit(_)));
        assert_eq!(submits, expected, "requeue {requeue}: {plan:#?}");
        assert_eq!(state.shards[0].live().is_none(), expected, "requeue {requeue}");
    }
}

// ---- an id that is somebody else's by now

/// What a cycle makes of these answers; the state of the story stays as it is.
fn cycle(story: &Story, shown: Shown, past: Option<Vec<PastJob>>, now: Time) -> (State, Plan) {
    let mut state = story.world.state.clone();
    let seen = seen(&state, shown, past);
    let plan = planned(&story.world.policy, &mut state, &seen, now, 7);
    (state, plan)
}

fn seen(state: &State, cluster: Shown, past: Option<Vec<PastJob>>) -> Observation {
    let progress = vec![None; state.shards.len()];
    let accounting = past.map(Ok);
    Observation {
        cluster,
        accounting,
        progress,
        logs: Vec::new(),
        own_gpus: None,
        takes_both: None,
        claims: None,
    }
}

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

// ---- a queue that lies

/// A queue that shows a job twice, once of them in another state, and other people's rows in a question
/// for our own: one job is one job.
#[test]
fn a_job_that_is_shown_twice_is_no_twin_of_itself() {
    use babysit::planning::differences::differences;
    for state in [JobState::Pending, JobState::Running] {
        let mut story = in_lanes();
        story.tick();
        story.after(Secs::minutes(1));
        let job = story.job("q/s0");
        let mut shown = rules::look(&mut story.world.cluster);
        let mut again = shown.jobs.iter().find(|seen| seen.id == job).expect("there").clone();
        again.state = state.clone();
        shown.jobs.push(again.clone());
        again.id = JobId(job.0 + 7);
        (again.uid, again.name, again.comment) = (again.uid + 1, "x".to_owned(), String::new());
        shown.jobs.push(again);
        let (after, plan) = cycle(&story, shown.clone(), None, story.world.now());
        assert_eq!(plan.actions, [], "{state:?}");
        assert_eq!(after.shards[0].live().map(|live| live.job), Some(job));
        assert_eq!(differences(&story.world.state, &shown), []);
        // Also where the state does not know it yet.
        let mut fresh = State::new("oracle-plan", &story.world.state.instance);
        fresh.align(&story.world.policy, story.world.now());
        let observed = seen(&fresh, shown.clone(), None);
        let plan = planned(&story.world.policy, &mut fresh, &observed, story.world.now(), 7);
        assert_eq!(plan.actions, [], "{state:?}: adopted");
        assert_eq!(fresh.shards[0].live().map(|live| live.job), Some(job));
    }
}

/// sbatch (or a wrapper of the site's) names an id that is not our job's: the token decides, and the job is
/// neither taken for a second one nor cancelled.
#[test]
fn an_id_that_nobody_has_seen_gives_way_to_the_job_of_the_token() {
    for state in [JobState::Pending, JobState::Running] {
        let mut story = in_lanes();
        story.tick();
        story.world.advance(Secs::minutes(1));
        let job = story.job("q/s0");
        let mut shown = rules::look(&mut story.world.cluster);
        let ours = shown.jobs.iter_mut().find(|seen| seen.id == job).expect("in the queue");
        ours.state = state.clone();
        ours.id = JobId(job.0 + 500);
        let (after, plan) = cycle(&story, shown.clone(), Some(Vec::new()), story.world.now());
        assert_eq!(plan.actions, [], "{state:?}");
        assert_eq!(after.shards[0].live().map(|live| live.job), Some(JobId(job.0 + 500)));
        // With the accounting away nothing is decided, and nothing cancelled either.
        let mut state = story.world.state.clone();
        let mut observed = seen(&state, shown, None);
        let source = "sacct".to_owned();
        let detail = "Connection refused".to_owned();
        observed.accounting = Some(Err(Gap { kind: GapKind::Failed, source, detail }));
        let plan = planned(&story.world.policy, &mut state, &observed, story.world.now(), 7);
        assert_eq!(plan.actions, []);
        assert_eq!(state.shards[0].live().map(|live| live.job), Some(job));
    }
}

/// A submission that was given up and came through all the same, hours later.
#[test]
fn a_job_that_was_given_up_is_taken_when_it_shows_up() {
    use babysit::sim::{Command, Fault};
    let mut story = in_lanes();
    story.faulty = true;
    story.world.cluster.faults.next(Command::Sbatch, Fault::HangLate(Secs::hours(1)));
    story.tick();
    // Else it would be submitted again when it is given up.
    story.hold("q/s0");
    for _ in 0..58 {
        story.after(Secs::minutes(1));
    }
    assert_eq!(story.told(|what| matches!(what, What::SubmissionGivenUp { .. })), 1);
    assert_eq!(story.record("q/s0").slot, Slot::Free);
    for _ in 0..4 {
        story.after(Secs::minutes(1));
    }
    assert!(story.runs("q/s0"), "{:?}", story.record("q/s0"));
    story.release("q/s0");
    for _ in 0..10 {
        story.after(Secs::minutes(1));
    }
    untouched(&story, 1, "it was given up");
}

/// Two jobs of one shard, and a state that knows of neither: the older one is taken.
#[test]
fn of_two_jobs_that_nobody_knows_the_oldest_is_kept() {
    let mut story = in_lanes();
    story.tick();
    story.world.advance(Secs(1));
    let job = story.job("q/s0");
    let mut shown = rules::look(&mut story.world.cluster);
    let ours = shown.jobs.iter_mut().find(|seen| seen.id == job).expect("in the queue");
    ours.state = JobState::Pending;
    let mut older = ours.clone();
    // Younger by its id, as ids begin anew one day.
    (older.id, older.submitted) = (JobId(job.0 + 1), older.submitted.map(|at| at - Secs(60)));
    shown.jobs.push(older);
    let mut fresh = State::new("oracle-plan", &story.world.state.instance);
    fresh.align(&story.world.policy, story.world.now());
    let observed = seen(&fresh, shown, None);
    let plan = planned(&story.world.policy, &mut fresh, &observed, story.world.now(), 7);
    assert_eq!(fresh.shards[0].live().map(|live| live.job), Some(JobId(job.0 + 1)));
    let [Action::Cancel { jobs, .. }] = plan.actions.as_slice() else { panic!("{plan:#?}") };
    assert_eq!(jobs.iter().map(|target| target.job).collect::<Vec<_>>(), [job]);
}

/// An answer that holds a header and no job, while ours run: it is the accounting's word that counts.
#[test]
fn an_empty_queue_is_no_end_of_what_runs() {
    use babysit::sim::{Command, Fault};
    let mut story = in_lanes();
    story.tick();
    story.after(Secs::minutes(20));
    let job = story.job("q/s0");
    story.faulty = true;
    for _ in 0..45 {
        story.world.cluster.faults.next(Command::Squeue, Fault::Bare);
        story.after(Secs::minutes(1));
        assert_eq!(story.job("q/s0"), job);
    }
    untouched(&story, 1, "a bare header");
    story.faulty = false;
    story.after(Secs::minutes(1));
    assert!(story.record("q/s0").live().is_some_and(|live| live.absent.is_none()));
}

/// The same on a cluster without accounting, where the queue alone decides: not over a single answer,
/// and not within minutes.
#[test]
fn without_accounting_a_few_empty_answers_are_no_end() {
    use babysit::sim::{Command, Fault};
    let mut story = in_lanes();
    story.world.cluster.site.accounting = Accounting::Off;
    story.tick();
    story.after(Secs::minutes(20));
    let job = story.job("q/s0");
    story.faulty = true;
    for seconds in [10, 10, 10, 60, 60, 60] {
        story.world.cluster.faults.next(Command::Squeue, Fault::Bare);
        story.after(Secs(seconds));
        assert_eq!(story.job("q/s0"), job);
    }
    untouched(&story, 1, "a bare header");
    story.after(Secs::minutes(1));
    assert_eq!(story.job("q/s0"), job);
    assert!(story.runs("q/s0"));
    assert!(story.world.state.learned.accounting_off);
    assert_eq!(story.world.cluster.calls.sacct, 1, "learned once");
}
