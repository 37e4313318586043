//! Lost answers and other faults (facts, sections 3 and 4).

use super::super::{Command, Controller, Fault, Faults};
use super::*;
use crate::model::observation::GapKind;
use crate::model::request::{Asked, Change, Refusal, RefusalClass};
use crate::model::units::Secs;

fn to_extra() -> Change {
    Change::Lane { qos: Some("extra".to_owned()), partition: None, account: None }
}

#[test]
fn a_failed_probe_is_a_gap_of_its_kind_once() {
    let check = |command: Command, fault: Fault, kind: GapKind| {
        let mut cluster = lab();
        cluster.faults.next(command, fault);
        let gap = cluster.door("alice").look(Scope::Mine).expect_err("a fault was set");
        assert_eq!((gap.kind, gap.source.as_str()), (kind, command.word()), "{fault:?}");
        assert!(cluster.door("alice").look(Scope::Mine).is_ok());
    };
    for command in [Command::Squeue, Command::Sinfo] {
        check(command, Fault::Error, GapKind::Failed);
        check(command, Fault::Hang, GapKind::TimedOut);
        check(command, Fault::Silent, GapKind::Unreadable);
        check(command, Fault::Torn, GapKind::Unreadable);
        check(command, Fault::FalseAlarm, GapKind::Failed);
    }
}

#[test]
fn a_bare_answer_looks_like_an_empty_cluster() {
    let mut cluster = lab();
    submit(&mut cluster, &request("x", "own", "gpu:1"));
    cluster.faults.next(Command::Squeue, Fault::Bare);
    assert_eq!(cluster.door("alice").jobs(Scope::Mine), Ok(Vec::new()));
    assert_eq!(queue(&mut cluster).len(), 1);
}

#[test]
fn the_case_of_18_52_says_what_slurm_said() {
    let mut cluster = lab();
    cluster.faults.next_says(Command::Squeue, Fault::Error, "Connection reset by peer");
    let gap = cluster.door("alice").jobs(Scope::Mine).expect_err("a fault was set");
    let text = "squeue: exit code 1: slurm_load_jobs error: Connection reset by peer";
    assert_eq!(gap.to_string(), text);
}

#[test]
fn a_submission_whose_answer_is_lost_is_unknown_whether_it_exists_or_not() {
    let check = |fault: Fault, exists: bool| {
        let mut cluster = lab();
        cluster.faults.next_says(Command::Sbatch, fault, "Connection reset by peer");
        let said = cluster.door("alice").submit(&request("x", "own", "gpu:1"));
        assert!(matches!(said, Submitted::Unknown(_)), "{fault:?}: {said:?}");
        assert_eq!(queue(&mut cluster).len(), usize::from(exists), "{fault:?}");
    };
    check(Fault::Error, false);
    check(Fault::Hang, false);
    check(Fault::HangLate(Secs(20)), false);
    for done in [Fault::LostReply, Fault::HangDone, Fault::Silent, Fault::Torn, Fault::FalseAlarm] {
        check(done, true);
    }
}

#[test]
fn a_request_that_hangs_may_still_arrive() {
    let mut cluster = lab();
    cluster.faults.next(Command::Sbatch, Fault::HangLate(Secs(20)));
    cluster.door("alice").submit(&request("x", "own", "gpu:1"));
    cluster.advance(19);
    assert_eq!(queue(&mut cluster), []);
    cluster.advance(1);
    assert_eq!(queue(&mut cluster).len(), 1);
}

#[test]
fn a_refusal_that_proves_that_nothing_was_taken_in_is_overload() {
    let mut cluster = lab();
    let text = "Unable to contact slurm controller (connect failure)";
    cluster.faults.next_says(Command::Sbatch, Fault::Error, text);
    let said = cluster.door("alice").submit(&request("x", "own", "gpu:1"));
    let Submitted::Refused(Refusal { class: RefusalClass::Overload, text: said }) = said else {
        panic!("{said:?}")
    };
    assert!(said.ends_with(text));
}

#[test]
fn an_update_may_be_denied_and_have_worked_and_the_other_way_round() {
    let check = |fault: Fault, said: &str, qos: &str| {
        let mut cluster = lab();
        let id = submit(&mut cluster, &request("x", "own", "gpu:1"));
        cluster.faults.next(Command::Scontrol, fault);
        let answer = format!("{:?}", cluster.door("alice").update(&[id], &to_extra()));
        assert!(answer.contains(said), "{fault:?}: {answer}");
        assert_eq!(&*line(&mut cluster, id).qos, qos, "{fault:?}");
    };
    check(Fault::FalseAlarm, "Access/permission denied for job 1", "extra");
    check(Fault::LostReply, "Unexpected message received for job 1", "extra");
    check(Fault::Error, "Unexpected message received for job 1", "own");
    check(Fault::Hang, "deadline", "own");
    check(Fault::HangDone, "deadline", "extra");
    check(Fault::Silent, "Done", "own");
}

#[test]
fn a_stalled_controller_does_later_what_it_was_asked() {
    let mut cluster = lab();
    let id = submit(&mut cluster, &request("x", "own", "gpu:4"));
    cluster.controller(Controller::Stalled);
    let gap = cluster.door("alice").look(Scope::Mine).expect_err("stalled");
    assert!(gap.detail.contains("Socket timed out"), "{gap}");
    let said = cluster.door("alice").submit(&request("y", "own", "gpu:1"));
    assert!(matches!(said, Submitted::Unknown(_)));
    assert!(matches!(cluster.door("alice").update(&[id], &to_extra()), Asked::Failed(_)));
    cluster.advance(60);
    cluster.controller(Controller::Up);
    let seen: Vec<_> = queue(&mut cluster).into_iter().map(|job| (job.name, job.qos)).collect();
    assert_eq!(seen, [("x".into(), "extra".into()), ("y".into(), "own".into())]);
}

#[test]
fn a_controller_that_is_down_takes_nothing_and_starts_nothing() {
    let mut cluster = lab();
    let id = submit(&mut cluster, &request("x", "own", "gpu:1"));
    cluster.controller(Controller::Down);
    let said = cluster.door("alice").submit(&request("y", "own", "gpu:1"));
    assert!(matches!(said, Submitted::Refused(Refusal { class: RefusalClass::Overload, .. })));
    cluster.advance(60);
    cluster.controller(Controller::Up);
    assert_eq!(state(&mut cluster, id), "PENDING None");
    cluster.advance(1);
    assert!(cluster.job(id).is_some_and(|job| !job.is_pending()));
    assert_eq!(queue(&mut cluster).len(), 1);
}

#[test]
fn faults_by_chance_come_as_often_as_asked_and_the_same_for_a_seed() {
    let run = |seed: u64| {
        let mut cluster = lab().faulty(Faults::seeded(seed).rate(Command::Squeue, 0.2));
        let mut fails =
            || cluster.door("alice").look(Scope::Mine).err().map(|gap| gap.detail.clone());
        (0..1000).map(|_| fails()).collect::<Vec<_>>()
    };
    let gaps = run(1).into_iter().flatten().count();
    assert!((150..250).contains(&gaps), "{gaps}");
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
