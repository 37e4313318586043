//! sbatch, scontrol update and scancel: what they check and say (facts, sections 2 and 5).

use super::*;
use crate::model::request::{Asked, Change, Refusal, RefusalClass};
use crate::model::units::Secs;

fn refusal(cluster: &mut Cluster, request: &Request) -> (RefusalClass, String) {
    match cluster.door("alice").submit(request) {
        Submitted::Refused(Refusal { class, text }) => (class, text),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn sbatch_refuses_what_cannot_be_with_slurms_words() {
    let config = "Requested node configuration is not available";
    let base = || request("x", "own", "gpu:1");
    let gres = |text: &str| Request { gres: text.to_owned(), ..base() };
    let on = |node: &str, gres: &str| Request {
        node: Some(node.to_owned()),
        gres: gres.to_owned(),
        ..base()
    };
    let cases = [
        (gres("gpu:9"), config),
        (gres("gpu:rtx4090:5"), config),
        (gres("gpu:h100:1"), config),
        (gres("gpu:RTX4090:1"), config),
        (on("c1", "gpu:rtx4090:1"), config),
        (Request { exclude: vec!["a1".into(), "b1".into()], ..gres("gpu:rtx4090:1") }, config),
        (gres("mps:1"), "Invalid generic resource (gres) specification"),
        (on("zz", "gpu:1"), "Invalid node name specified"),
        (Request { qos: Some("gold".into()), ..base() }, "Invalid qos specification"),
        (
            Request { partition: Some("nosuch".into()), ..base() },
            "Invalid partition name specified",
        ),
        (Request { time: Some("soon".into()), ..base() }, "Invalid --time specification"),
    ];
    let mut cluster = lab();
    for (request, text) in cases {
        assert_eq!(refusal(&mut cluster, &request), (RefusalClass::Request, text.to_owned()));
    }
    let mut long = base();
    long.token.comment = "x".repeat(1025);
    assert!(refusal(&mut cluster, &long).1.contains("too long"));
    assert!(cluster.history().is_empty());
    assert_eq!(cluster.calls.sbatch, 12);
}

#[test]
fn a_qos_that_the_user_may_not_use_is_refused() {
    let mut cluster = lab().deny_qos("alice", "own");
    let (_, text) = refusal(&mut cluster, &request("x", "own", "gpu:1"));
    assert_eq!(text, "Invalid qos specification");
}

#[test]
fn more_than_the_lane_holds_is_accepted_and_waits_for_ever() {
    let mut cluster = Cluster::at(T0).node("a", &[("m", 8)]).qos("own", 100, Some(4), &[]);
    let id = submit(&mut cluster, &request("x", "own", "gpu:6"));
    cluster.advance(86_400);
    assert_eq!(state(&mut cluster, id), "PENDING QOSGrpGRES");
}

#[test]
fn the_submit_limit_of_a_user_is_a_limit_not_a_fault() {
    let mut cluster = lab().site(|site| site.max_submit = Some(1));
    submit(&mut cluster, &request("x", "own", "gpu:1"));
    let (class, text) = refusal(&mut cluster, &request("y", "own", "gpu:1"));
    assert_eq!((class, text.as_str()), (RefusalClass::Limit, "QOSMaxSubmitJobPerUserLimit"));
    submit(&mut cluster, &request("y", "extra", "gpu:1"));
}

#[test]
fn the_users_own_exclude_and_requeue_are_honoured() {
    let mut cluster = lab();
    let mut asked = request("x", "own", "gpu:rtx4090:1");
    asked.args = vec!["--exclude=a1".to_owned(), "--requeue".to_owned()];
    let id = submit(&mut cluster, &asked);
    cluster.advance(1);
    let seen = line(&mut cluster, id);
    assert_eq!((seen.nodes, seen.requeue), (vec!["b1".to_owned()], true));
    let plain = submit(&mut cluster, &request("y", "own", "gpu:1"));
    assert!(!line(&mut cluster, plain).requeue);
}

#[test]
fn update_says_why_not() {
    let mut cluster = lab();
    let running = submit(&mut cluster, &request("x", "own", "gpu:1"));
    cluster.work.add("x", super::super::Table::new(1, Secs(1_000_000)));
    cluster.advance(1);
    let pending = submit(&mut cluster, &request("y", "own", "gpu:4"));
    let over = submit(&mut cluster, &request("z", "extra", "gpu:1"));
    assert_eq!(cluster.door("alice").cancel(&[over]), Asked::Done);
    let lane =
        |qos: &str| Change::Lane { qos: Some(qos.to_owned()), partition: None, account: None };
    let mut check = |user: &str, id: u64, change: Change, expected: Option<&str>| {
        let said = cluster.door(user).update(&[JobId(id)], &change);
        let expected = match expected {
            None => Asked::Done,
            Some(text) => Asked::Failed(format!("scontrol: exit code 1: {text} for job {id}")),
        };
        assert_eq!(said, expected, "{user} {id} {change:?}");
    };
    check("alice", running.0, lane("extra"), Some("Job is no longer pending execution"));
    check("alice", over.0, lane("extra"), Some("Job has already finished"));
    check("alice", 999, lane("extra"), Some("Invalid job id specified"));
    check("bob", pending.0, lane("extra"), Some("Invalid user id"));
    check("alice", pending.0, lane("gold"), Some("Invalid qos specification"));
    check("alice", pending.0, Change::Nice(-1), Some("Access/permission denied"));
    check("alice", pending.0, Change::Nice(70), None);
    check("alice", pending.0, Change::Nice(0), None);
    check(
        "alice",
        pending.0,
        Change::Exclude(vec!["zz".into()]),
        Some("Invalid node name specified"),
    );
    check("alice", pending.0, Change::Exclude(vec!["a1".into()]), None);
    check("alice", pending.0, lane("extra"), None);
}

#[test]
fn a_list_is_applied_as_far_as_it_can_be() {
    let mut cluster = lab();
    let first = submit(&mut cluster, &request("x", "own", "gpu:1"));
    let last = submit(&mut cluster, &request("y", "own", "gpu:1"));
    let change = Change::Lane { qos: Some("extra".to_owned()), partition: None, account: None };
    let said = cluster.door("alice").update(&[first, JobId(77), last], &change);
    let text = "scontrol: exit code 1: Invalid job id specified for job 77";
    assert_eq!(said, Asked::Failed(text.to_owned()));
    let lanes: Vec<_> = queue(&mut cluster).into_iter().map(|job| job.qos).collect();
    assert_eq!(lanes, ["extra".into(), "extra".into()]);
}

#[test]
fn an_exclude_list_keeps_a_pending_job_off_and_clearing_it_lets_it_back() {
    let mut cluster = pair().node("q", &[("rtx4090", 2)]);
    let id = submit(&mut cluster, &request("x", "own", "gpu:1"));
    let exclude = |nodes: &[&str]| Change::Exclude(nodes.iter().map(|n| (*n).to_owned()).collect());
    assert_eq!(cluster.door("alice").update(&[id], &exclude(&["p", "q"])), Asked::Done);
    cluster.advance(5);
    assert_eq!(state(&mut cluster, id), "PENDING BadConstraints");
    assert_eq!(cluster.door("alice").update(&[id], &exclude(&["p"])), Asked::Done);
    assert_eq!(line(&mut cluster, id).excluded, Some(vec!["p".to_owned()]));
    cluster.advance(1);
    assert_eq!(state(&mut cluster, id), "RUNNING q");
}

#[test]
fn scancel_is_silent_about_what_is_over_and_refuses_strangers_jobs() {
    let mut cluster = lab();
    let mine = submit(&mut cluster, &request("x", "own", "gpu:1"));
    let theirs = cluster.add_job_of("bob", "own", "gpu:1", None).expect("fits");
    cluster.advance(1);
    for _ in 0..2 {
        assert_eq!(cluster.door("alice").cancel(&[mine, JobId(99)]), Asked::Done);
    }
    assert_eq!(state(&mut cluster, mine), "CANCELLED");
    let Asked::Failed(text) = cluster.door("alice").cancel(&[theirs]) else {
        panic!("cancelled a stranger's job")
    };
    assert!(text.contains("Access/permission denied"), "{text}");
    assert_eq!(state(&mut cluster, theirs), "RUNNING a1");
}

#[test]
fn mine_are_mine_and_an_idle_look_is_one_of_each() {
    let mut cluster = lab();
    submit(&mut cluster, &request("x", "own", "gpu:1"));
    cluster.add_job_of("bob", "own", "gpu:1", None).expect("fits");
    let before = cluster.calls;
    let seen = cluster.door("alice").look(Scope::Mine).expect("no fault");
    assert_eq!((seen.jobs.len(), seen.me, seen.nodes.len()), (1, 1001, 3));
    let calls = cluster.calls.since(&before);
    assert_eq!((calls.looks, calls.squeue, calls.sinfo, calls.commands()), (1, 1, 1, 2));
    assert_eq!(queue(&mut cluster).len(), 2);
}

#[test]
fn a_job_may_be_shown_in_a_state_that_nobody_knows() {
    let mut cluster = lab();
    let id = cluster.add_job_of("bob", "own", "gpu:1", Some(Secs(9))).expect("fits");
    cluster.show_as(id, Some("COMPLETING")).expect("there");
    cluster.advance(10_000);
    assert_eq!(state(&mut cluster, id), "COMPLETING");
    cluster.show_as(id, None).expect("there");
    cluster.advance(1);
    assert_eq!(queue(&mut cluster), []);
}

#[test]
fn a_job_leaves_squeue_min_job_age_after_its_end() {
    let mut cluster = lab().site(|site| site.min_job_age = Secs(20));
    let id = cluster.add_job_of("bob", "own", "gpu:1", Some(Secs(9))).expect("fits");
    cluster.advance(10);
    assert_eq!(state(&mut cluster, id), "COMPLETED");
    cluster.advance(19);
    assert_eq!(queue(&mut cluster).len(), 1);
    cluster.advance(1);
    assert_eq!(queue(&mut cluster), []);
    let said = cluster.door("bob").update(&[id], &Change::Nice(0));
    let text = format!("scontrol: exit code 1: Invalid job id specified for job {id}");
    assert_eq!(said, Asked::Failed(text));
}
