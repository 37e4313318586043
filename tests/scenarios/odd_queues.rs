//! A queue that lies: jobs that it shows twice, late or not at all.

use babysit::model::cluster::JobState;
use babysit::model::id::JobId;
use babysit::model::observation::{Gap, GapKind};
use babysit::model::state::{Slot, State};
use babysit::model::units::Secs;
use babysit::planning::event::What;
use babysit::planning::plan as planned;
use babysit::planning::plan::Action;
use babysit::sim::Accounting;

use crate::odd_states::{cycle, in_lanes, seen, untouched};
use crate::rules;

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

/// Anybody may ask for more GPUs than any cluster has, and his job then waits in own for ever.
#[test]
fn requests_beyond_all_counting_leave_own_full_and_break_nothing() {
    let mut story = in_lanes();
    let mut shown = rules::look(&mut story.world.cluster);
    let stranger = story.stranger_takes("P", 1, "rtx4090");
    let jobs = rules::look(&mut story.world.cluster).jobs;
    let mut asked = jobs.into_iter().find(|seen| seen.id == stranger).expect("there");
    (asked.state, asked.gpus) = (JobState::Pending, Some(u32::MAX));
    (asked.qos, asked.nodes, asked.ends) = ("own".into(), Default::default(), None);
    for id in [900, 901] {
        asked.id = JobId(id);
        shown.jobs.push(asked.clone());
    }
    story.tick();
    let (state, _) = cycle(&story, shown, None, story.world.now() + Secs(60));
    let lane = state.learned.own_lane.expect("looked at");
    assert_eq!(lane.pending_others, u32::MAX);
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
