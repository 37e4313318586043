//! One sentence per reason: every variant, so that a new one cannot come without words.

mod common;

use std::collections::BTreeSet;

use babysit::model::id::JobId;
use babysit::model::policy::{Lane, Policy};
use babysit::model::reason::Reason;
use babysit::model::state::{Alike, OwnLane, Slot, State, TickOutcome};
use babysit::model::units::Secs;
use babysit::output::{causes, evidence, view, why};
use common::{NOW, afternoon, dollars};
use expect_test::expect;

/// One of each. The match has no `_`: a new variant does not compile until it is here.
fn all() -> Vec<Reason> {
    fn known(reason: &Reason) {
        match reason {
            Reason::NotLookedYet | Reason::Running { .. } | Reason::Done => {}
            Reason::OverCap { .. } | Reason::HeldByPerson { .. } | Reason::JobCancelled { .. } => {}
            Reason::TooManyFailures { .. } | Reason::TopTierOutOfMemory => {}
            Reason::HostOutOfMemory | Reason::Refused { .. } | Reason::NoFit { .. } => {}
            Reason::Cancelled { .. } | Reason::Backoff { .. } | Reason::Settling { .. } => {}
            Reason::OutcomeUnknown { .. } | Reason::EndUnknown { .. } => {}
            Reason::PendingInSlurm { .. } | Reason::StuckInSlurm { .. } => {}
            Reason::InSlurm { .. } | Reason::Stopping { .. } | Reason::SubmitBudget { .. } => {}
            Reason::SlurmBusy { .. } | Reason::Collecting { .. } | Reason::QueueWait { .. } => {}
            Reason::FitNodesDown | Reason::NoCpusOrMemory | Reason::Submitted => {}
            Reason::BreakerOpen { .. } | Reason::Stalled { .. } => {}
            Reason::AllRows { .. } | Reason::RunsHeld { .. } => {}
            Reason::NothingFinished { .. } => {}
            Reason::RowsInHand { .. } | Reason::NoHelpNeeded => {}
        }
    }
    let pending = |lane, parked, slurm: &str| Reason::PendingInSlurm {
        lane,
        parked,
        rank: 2,
        of: 6,
        slurm: slurm.into(),
    };
    let job = JobId(152_012);
    let said = String::from("Socket timed out");
    let all = vec![
        Reason::NotLookedYet,
        Reason::Running { node: "gpu07".into() },
        Reason::Done,
        Reason::OverCap { spent: dollars(25.07), cap: dollars(25.0) },
        Reason::HeldByPerson { by: "anna".into() },
        Reason::JobCancelled { job, by: Some(1003) },
        Reason::JobCancelled { job, by: None },
        Reason::TooManyFailures { count: 3, last: "KeyError: 'plan'".into() },
        Reason::TooManyFailures { count: 3, last: String::new() },
        Reason::TopTierOutOfMemory,
        Reason::HostOutOfMemory,
        Reason::Refused { text: "sbatch: error: Invalid qos specification".into() },
        Reason::NoFit { asked: "8x rtx4090".into(), largest: "4x rtx5090 on x1".into() },
        Reason::Cancelled { by: "anna".into() },
        Reason::Backoff { until: NOW + Secs(95), failures: 2 },
        Reason::Settling { until: NOW + Secs(80) },
        Reason::OutcomeUnknown { since: NOW - Secs(61), said: said.clone() },
        Reason::EndUnknown { since: NOW - Secs(61), said: "not in the queue".into() },
        pending(Some(Lane::Own), true, "QOSGrpGRES"),
        pending(Some(Lane::Own), false, "None"),
        pending(Some(Lane::Extra), false, "Priority"),
        pending(None, false, "SomethingNew"),
        Reason::StuckInSlurm { slurm: "JobHeldUser".into() },
        Reason::InSlurm { word: "SUSPENDED".into() },
        Reason::Stopping { job },
        Reason::SubmitBudget { rank: 53 },
        Reason::SlurmBusy { said },
        Reason::BreakerOpen { refused: 3, said: "sbatch: error: Invalid qos".into() },
        Reason::Stalled { node: "gpu07".into(), since: NOW - Secs::hours(3) },
        Reason::Collecting { node: "p1".into(), tier: "rtx4090".into(), have: 1, need: 2 },
        Reason::QueueWait { rank: 2, ahead: Some("find/s0".into()), idle_but_reserved: 1 },
        Reason::FitNodesDown,
        Reason::NoCpusOrMemory,
        Reason::AllRows { node: "gpu07".into(), since: None },
        Reason::AllRows { node: "gpu07".into(), since: Some(NOW - Secs::hours(3)) },
        Reason::RunsHeld { node: "gpu07".into(), by: "anna".into() },
        Reason::NothingFinished { count: 3, looked_for: "a file like /lab/s0/row_*.json".into() },
        Reason::RowsInHand { rows: 1 },
        Reason::RowsInHand { rows: 2 },
        Reason::NoHelpNeeded,
        Reason::Submitted,
    ];
    all.iter().for_each(known);
    all
}

#[test]
fn every_reason_has_a_sentence() {
    let lines: String =
        all().iter().map(|reason| format!("{}\n", why::sentence(reason, NOW))).collect();
    expect![[r#"
        Waits for the next tick, which decides about it.
        Runs on gpu07.
        All rows are done.
        Its cost cap is reached: $25.07 of $25 spent; only a raised cap lets it go on.
        Held by anna; `babysit release` lets it go on.
        Its job 152012 was cancelled by user 1003, not by babysit.
        Its job 152012 was cancelled by somebody, not by babysit.
        It failed 3 times in a row without a new row; last line of its log: KeyError: 'plan'
        It failed 3 times in a row without a new row; its log has no last line.
        It ran out of GPU memory on the largest GPU model there is.
        It ran out of the node's memory (not the GPU's): `mem` must be raised.
        Slurm refuses this job: sbatch: error: Invalid qos specification
        No node can ever give 8x rtx4090; the most there is: 4x rtx5090 on x1.
        Cancelled for good by anna.
        Waits after 2 failures in a row; next try in 1m.
        Its job ended short of rows; late files are waited for, 1m more at most.
        Submitted 1m ago without a clear answer (Socket timed out); looked for in the queue before anything else is done.
        Its job left the queue 1m ago, and Slurm cannot say yet how it ended.
        Parked in own for the next own GPU (2nd of 6): the GPUs of its QOS are all in use.
        Waits in own for a GPU (2nd of 6).
        Waits in extra for any free GPU (2nd of 6): other jobs are ahead of it.
        Waits in Slurm for a GPU (2nd of 6): Slurm says SomethingNew.
        Its pending job cannot start by itself: a user holds it (`scontrol release` lets it go) (JobHeldUser).
        Slurm has its job in state SUSPENDED.
        babysit has asked Slurm to end its job 152012.
        53rd in line; the share of submissions of this tick was used up.
        Put off to the next tick: Socket timed out
        Not tried: Slurm refused 3 submissions of its family in a row, the last one with: sbatch: error: Invalid qos
        Runs on gpu07, but has finished no row for 3h.
        First in line: collects rtx4090 GPUs on p1, 1 of 2 so far.
        2nd in line; every GPU it may use is taken, and find/s0 is ahead of it (1 GPU idle, but reserved for another).
        Every node that could hold it is down or drained.
        GPUs for it are free, but their node lacks the CPUs or the memory it asks for.
        All rows are there; its job still runs on gpu07.
        All rows are there; its job still runs on gpu07, 3h after the last one.
        Runs on gpu07; held by anna, so no job follows this one.
        Its job ended without an error 3 times in a row, and none finished a row: no new one of what `done` names, a file like /lab/s0/row_*.json.
        Its last row is in hand with its helpers: a job of its own would find none to do.
        Its last 2 rows are in hand with its helpers: a job of its own would find none to do.
        Its shard needs no help now, or other shards wait.
        Just submitted to Slurm.
    "#]].assert_eq(&lines);
}

#[test]
fn every_reason_has_few_words_and_a_code_of_its_own() {
    let mut codes = BTreeSet::new();
    for reason in all() {
        let short = why::short(&reason, NOW);
        assert!(!short.contains('\n'), "{short}");
        codes.insert(why::code(&reason));
    }
    // Four of the list above are the same kind with and without a detail, or of one row and of two.
    assert_eq!(codes.len(), all().len() - 4);
}

#[test]
fn why_of_a_held_shard_and_of_a_parked_one() {
    let (policy, state) = afternoon();
    let status = common::status(&policy, &state);
    let mut text = String::new();
    for i in [10, 5] {
        let (shard, record, view) = (&policy.shards[i], &state.shards[i], &status.shards[i]);
        let found = evidence::evidence(&policy, &state, shard, record, view, NOW);
        text.push_str(&evidence::text(&view.id, &view.why, &found));
        text.push('\n');
    }
    expect![[r#"
        restore/s6: It failed 3 times in a row without a new row; last line of its log: KeyError: 'plan'

          state       held; no job in Slurm, queued just now
          work left   52 of 64 rows, about 22h 32m at 26m a row (measured)
          cost        $3.24 spent, cap $40, $0.270 a row, projected $17.28
          tries       4 attempts, 3 failures in a row without a new row (a person is asked at 3), 0 preemptions
          last end    attempt 4, job 152031 on gpu03: FAILED, exit 1:0, 50m ago; ran 10m, 0 rows done since it began
          log file    /lab/logs/restore/s6/152031.out
          log         Traceback (most recent call last):
                      KeyError: 'plan'
          next        babysit log restore/s6      # what happened
                      babysit retry restore/s6    # once it is put right

        restore/s1: Parked in own for the next own GPU (1st of 4): the GPUs of its QOS are all in use.

          state       pending; job 152021, QOS own, submitted 5h ago
          Slurm says  QOSGrpGRES: the GPUs of its QOS are all in use
          place       1 of 4 that wait, longest work first
          work left   64 of 64 rows, about 1d 3h at 26m a row (measured)
          cost        $0 spent, cap $40, $0.579 a row, projected $37.09
          tries       1 attempt, no failure since the last new row, 0 preemptions
          log file    /lab/logs/restore/s1/152021.out

    "#]].assert_eq(&text);
}

fn campaign(policy: &Policy, state: &State) -> (view::Status, Vec<causes::Cause>, String) {
    let status = common::status(policy, state);
    let causes = causes::causes(state, &status, NOW);
    let look = common::look(Some(100));
    let text = causes::text("oracle-plan", &status, &causes, 3, &look);
    (status, causes, text)
}

#[test]
fn why_of_the_whole_campaign() {
    let (policy, mut state) = afternoon();
    state.learned.own_lane = Some(OwnLane {
        size: Some(8),
        running_ours: 3,
        running_others: 5,
        others_until: Some(NOW - Secs::hours(1) + Secs::minutes(20 + 60)),
        ..OwnLane::default()
    });
    let (status, _, text) = campaign(&policy, &state);
    expect![[r#"
        oracle-plan: 12 shards, 2 done, 4 running; 259 of 671 rows done

        1. waiting for a GPU of own: 2 shards, 118 rows, 51 GPU-h
           such as restore/s1: Parked in own for the next own GPU (1st of 4): the GPUs of its QOS are all in
           use.
           own: 8 GPUs: 3 used by this project, 5 by others (the first of them until 15:20 UTC at most, in
           20m)

        2. restore, waiting after a failure: 1 shard, 59 rows, 26 GPU-h
           restore/s7: Waits after 1 failure in a row; next try in 1m.

        3. restore, held after failures: 1 shard, 52 rows, 23 GPU-h
           restore/s6: It failed 3 times in a row without a new row; last line of its log: KeyError: 'plan'
             babysit log restore/s6      # what happened
             babysit retry restore/s6    # once it is put right

        2 more causes hold back less work: `babysit why --json` has them
    "#]].assert_eq(&text);
    let most = causes::most_held_back(&status.shards).expect("one");
    assert_eq!(most.id, "restore/s6", "what needs a person comes before what only waits");
}

#[test]
fn a_campaign_without_ticks_is_held_back_by_that() {
    let (policy, mut state) = afternoon();
    let code = |state: &State| campaign(&policy, state).1.first().map(|cause| cause.code);
    assert_ne!(code(&state), Some("no-ticks"));
    state.last_tick.as_mut().expect("a tick").at = NOW - Secs::hours(2);
    assert_eq!(code(&state), Some("no-ticks"));
    assert!(campaign(&policy, &state).2.contains("crontab -l"));
    state.last_tick.as_mut().expect("a tick").at = NOW;
    state.last_tick.as_mut().expect("a tick").outcome = TickOutcome::Skipped("squeue: away".into());
    assert!(campaign(&policy, &state).2.contains("decided nothing: squeue: away"));
}

/// By the work that waits, and each group's numbers are the sums of its shards.
#[test]
fn causes_are_ranked_by_gpu_hours_and_nobody_is_counted_twice() {
    let (policy, state) = afternoon();
    let (status, causes, _) = campaign(&policy, &state);
    let hours: Vec<f64> = causes.iter().map(|cause| cause.gpu_hours).collect();
    assert!(hours.is_sorted_by(|a, b| a >= b), "{hours:?}");
    let all: u32 = causes.iter().map(|cause| cause.shards).sum();
    let totals = &status.totals;
    assert_eq!(all, totals.shards - totals.done - totals.running);
}

#[test]
fn nodes_that_are_down_are_named() {
    let (policy, mut state) = afternoon();
    for i in [5, 6] {
        state.shards[i].slot = Slot::Free;
        state.shards[i].why = Reason::FitNodesDown;
    }
    state.learned.placements = vec![Alike {
        tier: "rtx4090".into(),
        capacity: 4,
        idle: 0,
        reserved: 0,
        held_by_backfill: 0,
        up: false,
        reachable: true,
        nodes: vec!["gpu07".into(), "gpu08".into()],
        more: 0,
    }];
    let (_, causes, text) = campaign(&policy, &state);
    let down = causes.iter().find(|cause| cause.code == "fit-nodes-down").expect("a cause");
    assert_eq!(down.facts, ["rtx4090: 4, down or drained, on gpu07, gpu08"]);
    assert!(text.contains("sinfo -R"), "{text}");
}
