//! Every event as a sentence, and as a line of the journal that reads back as the same sentence.

mod common;

use std::collections::BTreeSet;

use babysit::model::cluster::EndWord;
use babysit::model::id::{JobId, ShardId};
use babysit::model::policy::Lane;
use babysit::model::state::EndHow;
use babysit::model::units::Secs;
use babysit::output::journal;
use babysit::planning::event::{Event, What};
use common::{NOW, dollars};
use expect_test::expect;

fn events() -> Vec<Event> {
    let (job, other) = (JobId(152_012), JobId(152_054));
    let said = String::from("Access/permission denied");
    let (node, tier) = (String::from("p1"), String::from("rtx4090"));
    let preempted = EndHow::Word(EndWord::Preempted);
    let all = vec![
        What::CycleSkipped { why: "squeue: exit 1: Connection reset by peer".into() },
        What::Submitted { job, lane: Some(Lane::Own), attempt: 2 },
        What::OutcomeUnknown { attempt: 2, said: "Socket timed out".into() },
        What::Adopted { job, attempt: 2 },
        What::Took { job, after: Some(ShardId::new("find", "s1")), instead: None },
        What::Took { job, after: None, instead: Some(ShardId::new("find", "s0")) },
        What::ClaimRefused { job: Some(job), fence: 3, why: "job 152012 was started anew".into() },
        What::SubmissionGivenUp { attempt: 2 },
        What::SubmitRefused { said: "Invalid qos\u{1b}[31m specification".into() },
        What::SubmitPaused { said: "QOSMaxSubmitJobPerUserLimit".into() },
        What::Started { job, lane: Some(Lane::Extra), node: "gpu07".into() },
        What::Moved { job, to: Lane::Extra },
        What::MoveRefused { job, to: Lane::Own, said: said.clone() },
        What::MoveUnanswered { job, to: Lane::Own, said: "Socket timed out".into() },
        What::MovedDespiteError { job, to: Lane::Own, said: said.clone() },
        What::Ended { job, how: preempted, new_rows: 1 },
        What::Ended { job, how: EndHow::Vanished, new_rows: 0 },
        What::EndPutOff { job, why: "sacct: exit 1".into() },
        What::Done { rows: 44 },
        What::BackedOff { until: NOW + Secs(120), failures: 2 },
        What::Held { why: "3 failures in a row without a new row".into() },
        What::OverCap { spent: dollars(25.07), cap: dollars(25.0) },
        What::CapRaised { cap: dollars(40.0) },
        What::StopAsked { job, why: "its cost cap is reached".into() },
        What::StopFailed { job, said },
        What::Twin { kept: job, other, cancelled: true },
        What::RowsShrank { before: 12, now: 3 },
        What::MeasureFailed { why: "runs/find/s0.jsonl: Permission denied".into() },
        What::Reserved { node: node.clone(), tier: tier.clone(), gpus: 1 },
        What::ReservationShrank { before: 2, now: 1 },
        What::ReservationReleased {
            node: node.clone(),
            tier: tier.clone(),
            gpu_seconds: 300,
            why: "KDG is first in turn now".into(),
        },
        What::BackfillAsked { node: node.clone(), jobs: vec![job, other], gpus: 2 },
        What::BackfillStopFailed { node, said: "exit 1".into() },
        What::MinTierRaised { tier },
        What::NoFit { asked: "8 GPUs of one model".into(), largest: "4x rtx5090 on x1".into() },
        What::Charged { attempt: 2, gpu_seconds: 7200 },
        What::RowsFreed { rows: 1, all: false },
        What::RowsFreed { rows: 0, all: true },
        What::KeptOff { job, nodes: vec!["p1".into()] },
        What::KeptOff { job, nodes: Vec::new() },
        What::Person { by: "anna (uid 1000)".into(), did: "is held".into() },
    ];
    let skipped = |what: &What| matches!(what, What::CycleSkipped { .. });
    let id = ShardId::new("find", "s2");
    let event = |what| Event { at: NOW, shard: (!skipped(&what)).then(|| id.clone()), what };
    all.into_iter().map(event).collect()
}

#[test]
fn every_event_has_a_sentence() {
    let text: String = events().iter().map(|event| format!("{}\n", journal::line(event))).collect();
    expect![[r#"
        this tick was skipped, nothing was decided: squeue: exit 1: Connection reset by peer
        find/s2: submitted as job 152012 in own (attempt 2)
        find/s2: submitted (attempt 2) without a clear answer, looked for before anything else is done: Socket timed out
        find/s2: job 152012 was found in the queue as attempt 2
        find/s2: job 152012 took it after find/s1
        find/s2: job 152012, submitted for find/s0, took it as the longest that waited
        find/s2: claim 3 (job 152012) of it counts for nothing: job 152012 was started anew
        find/s2: attempt 2 never reached Slurm; it is submitted again
        find/s2: refused by Slurm: Invalid qos [31m specification
        find/s2: not submitted now, tried again later: QOSMaxSubmitJobPerUserLimit
        find/s2: job 152012 started on gpu07 in extra
        find/s2: pending job 152012 moved to extra
        find/s2: pending job 152012 could not be moved to own, not tried again for a while: Access/permission denied
        find/s2: pending job 152012 is not in own yet, the next tick tries again: Socket timed out
        find/s2: pending job 152012 moved to own, although Slurm answered: Access/permission denied
        find/s2: job 152012 was preempted after 1 new row
        find/s2: job 152012 is gone (accounting does not say how) after 0 new rows
        find/s2: job 152012 is not in the queue, and what became of it cannot be told yet: sacct: exit 1
        find/s2: done, 44 rows
        find/s2: 2 failures in a row, next try in 2m
        find/s2: held: 3 failures in a row without a new row
        find/s2: cost cap reached: $25.07 of $25 spent
        find/s2: goes on: its cap is now $40
        find/s2: end of job 152012 asked: its cost cap is reached
        find/s2: job 152012 could not be cancelled: Access/permission denied
        find/s2: two live jobs: 152012 is kept, 152054 is cancelled
        find/s2: finished rows went down from 12 to 3: were files removed?
        find/s2: its files cannot be read, the numbers are older: runs/find/s0.jsonl: Permission denied
        find/s2: 1 GPU on p1 (rtx4090) reserved for it
        find/s2: its reservation shrank from 2 GPUs to 1: others took GPUs
        find/s2: its reservation on p1 (rtx4090) is released after 300 GPU-seconds: KDG is first in turn now
        find/s2: 2 jobs of backfill on p1 told to give 2 GPUs back
        find/s2: backfill on p1 could not be told to give way: exit 1
        find/s2: out of GPU memory; from now on only on rtx4090 or better
        find/s2: fits no node: asks for 8 GPUs of one model; the largest there is: 4x rtx5090 on x1
        find/s2: attempt 2 charged to its lab: 7200 GPU-seconds
        find/s2: 1 row was in hand of jobs that are over: given out again
        find/s2: rows are missing though all were marked as done: all are given out again
        find/s2: pending job 152012 is kept off p1: GPUs are reserved there, or jobs die there
        find/s2: pending job 152012 may use every node again
        find/s2: is held, by anna (uid 1000)
    "#]].assert_eq(&text);
}

#[test]
fn a_line_of_the_journal_reads_back_as_its_sentence() {
    for event in events() {
        let json = journal::json(&event);
        for key in ["schema", "at", "shard", "kind", "text"] {
            assert!(json.get(key).is_some(), "no `{key}` in {json}");
        }
        let read = serde_json::from_str(&json.to_string()).expect("what was written");
        let want = format!("2025-11-02T15:00:00Z  {}", journal::line(&event));
        assert_eq!(journal::recall(&read), Some(want));
    }
    assert_eq!(journal::recall(&serde_json::json!({ "torn": 1 })), None);
}

/// `babysit log --kind` knows every kind that is written, and no other.
#[test]
fn the_list_of_kinds_is_that_of_the_events() {
    let (job, node, said) = (JobId(7), String::from("p1"), String::from("no"));
    let mut all = events();
    let rest = vec![
        What::BreakerOpened { family: "find".into(), refused: 3, said },
        What::NodeBlamed { job, node: node.clone() },
        What::NodeKeptOut { node: node.clone(), deaths: 2, until: NOW },
        What::NodeLetBack { node },
        What::Stalled { job, since: NOW, restarted: false },
        What::Lingers { job, since: NOW, ended: false },
        What::Notified { events: 2 },
        What::NotifyFailed { events: 2, said: "no".into() },
        What::Totals { rows: 1, of: 2, spent: dollars(3.0) },
    ];
    all.extend(rest.into_iter().map(|what| Event { at: NOW, shard: None, what }));
    let written: BTreeSet<String> =
        all.iter().map(|event| journal::json(event)["kind"].to_string()).collect();
    let known = journal::KINDS.iter().map(|kind| format!("{kind:?}")).collect();
    assert_eq!(written, known);
}

#[test]
fn totals_are_for_pictures_and_no_line_of_a_reader_s_log() {
    let what = What::Totals { rows: 235, of: 671, spent: dollars(137.48) };
    let event = Event { at: NOW, shard: None, what };
    assert!(!event.what.is_news());
    assert_eq!(journal::line(&event), "235 of 671 rows done, $137.48 spent");
    let json = journal::json(&event);
    assert_eq!([&json["rows"], &json["of"], &json["spent"]], [235.0, 671.0, 137.48]);
    assert_eq!(journal::recall(&json), None);
}
