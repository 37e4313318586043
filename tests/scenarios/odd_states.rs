//! What Slurm shows of a job that babysit neither began nor ended: holds, words between pending and
//! over, ids that come back. What the accounting says of it is in odd_pasts.rs, queues that lie are in
//! odd_queues.rs. One thing above all: none of it ever leads to a second live job.

use babysit::model::cluster::{EndWord, JobState};
use babysit::model::id::JobId;
use babysit::model::observation::{Cluster as Shown, Observation, PastJob};
use babysit::model::policy::{Policy, Shard};
use babysit::model::reason::Reason;
use babysit::model::state::State;
use babysit::model::units::{Secs, Time};
use babysit::planning::plan as planned;
use babysit::planning::plan::{Action, Plan};
use babysit::sim::{Stranger, Table};

use crate::harness::{Story, lanes, shard};
use crate::prose::nodes;
use crate::rules;

/// Hours.
pub const DAY: i64 = 24;

/// One shard of long rows; own is full, so that moves are possible.
pub fn in_lanes() -> Story {
    let mut cluster = nodes(&[("P", "rtx4090", 4)]);
    cluster = cluster.qos("extra", 10, None, &[]).qos("own", 100, Some(2), &["extra"]);
    cluster.work.add("q/s0", Table::new(400, Secs::minutes(15)));
    Story::new(Policy { shards: vec![shard("q/s0", 400)].into(), ..lanes(2, 1) }, cluster)
}

/// Nothing was asked of Slurm since `jobs` submissions, whatever went by.
pub fn untouched(story: &Story, jobs: usize, what: &str) {
    let calls = story.world.cluster.calls;
    assert_eq!(story.submissions("q/s0"), jobs, "{what}: submitted again");
    assert_eq!(calls.scancel, 0, "{what}: cancelled");
}

/// What a cycle makes of these answers; the state of the story stays as it is.
pub fn cycle(story: &Story, shown: Shown, past: Option<Vec<PastJob>>, now: Time) -> (State, Plan) {
    let mut state = story.world.state.clone();
    let seen = seen(&state, shown, past);
    let plan = planned(&story.world.policy, &mut state, &seen, now, 7);
    (state, plan)
}

pub fn seen(state: &State, cluster: Shown, past: Option<Vec<PastJob>>) -> Observation {
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
