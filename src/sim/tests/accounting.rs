//! sacct: late, down, off, one row for each run (facts, sections 4 and 6).

use super::super::{Accounting, Controller, Table};
use super::*;
use crate::model::observation::{GapKind, PastJob};
use crate::model::request::Asked;
use crate::model::units::Secs;
use crate::slurm::PastAsk;

fn past(cluster: &mut Cluster, name: &str) -> Vec<PastJob> {
    let ask = PastAsk { names: vec![name.to_owned()], since: T0 };
    cluster.door("alice").past(&ask).expect("no fault")
}

fn words(cluster: &mut Cluster, name: &str) -> Vec<String> {
    let word = |row: PastJob| match row.end {
        None => "still there".to_owned(),
        Some(end) => format!("{} {}", end.word(), row.exit),
    };
    past(cluster, name).into_iter().map(word).collect()
}

#[test]
fn a_row_is_as_old_as_the_lag() {
    let mut cluster = lab().site(|site| site.accounting_lag = Secs(30));
    cluster.work.add("x", Table::new(1, Secs(60)));
    submit(&mut cluster, &request("x", "own", "gpu:1"));
    let mut after = |seconds: i64| {
        cluster.advance(seconds);
        words(&mut cluster, "x")
    };
    assert_eq!(after(10), Vec::<String>::new());
    assert_eq!(after(30), ["still there"]);
    // It ended at second 61.
    assert_eq!(after(50), ["still there"]);
    assert_eq!(after(1), ["COMPLETED 0:0"]);
}

#[test]
fn held_jobs_are_not_known_and_strangers_are_not_shown() {
    let mut cluster = lab();
    let id = submit(&mut cluster, &request("x", "own", "gpu:1"));
    cluster.hold(id).expect("there");
    cluster.advance(60);
    assert_eq!(words(&mut cluster, "x"), Vec::<String>::new());
    let theirs = super::super::Stranger::new("bob", "own", "gpu:1").named("y");
    cluster.add_job(theirs).expect("fits");
    cluster.advance(60);
    assert_eq!(words(&mut cluster, "y"), Vec::<String>::new());
}

#[test]
fn a_requeued_job_has_a_row_for_each_run() {
    let mut cluster = pair();
    cluster.work.add("x", Table::new(100, Secs(60)));
    let mut asked = request("x", "extra", "gpu:2");
    asked.args = vec!["--requeue".to_owned()];
    submit(&mut cluster, &asked);
    cluster.advance(100);
    cluster.add_job_of("bob", "own", "gpu:1", Some(Secs(10))).expect("fits");
    cluster.advance(200);
    let rows = past(&mut cluster, "x");
    assert_eq!(words(&mut cluster, "x"), ["PREEMPTED 0:0", "still there"]);
    assert_eq!(rows[0].id, rows[1].id);
    assert_eq!(rows[0].ended, rows[1].submitted);
    assert_eq!(rows[0].nodes, ["p"]);
}

#[test]
fn a_cancelled_job_names_who_and_a_never_started_one_has_no_start() {
    let mut cluster = pair();
    cluster.work.add("x", Table::new(100, Secs(60)));
    let ids = [1, 2].map(|_| submit(&mut cluster, &request("x", "own", "gpu:2")));
    cluster.advance(5);
    assert_eq!(cluster.door("alice").cancel(&[ids[0]]), Asked::Done);
    cluster.admin_cancels(ids[1]).expect("pending");
    let rows = past(&mut cluster, "x");
    assert_eq!(words(&mut cluster, "x"), ["CANCELLED 0:15", "CANCELLED 0:0"]);
    assert_eq!((rows[0].cancelled_by, rows[1].cancelled_by), (Some(1001), Some(0)));
    assert_eq!((rows[0].started.is_some(), rows[1].started), (true, None));
}

#[test]
fn comments_are_kept_only_where_the_site_stores_them_and_only_of_ended_jobs() {
    for stores in [false, true] {
        let mut cluster = lab().site(|site| site.stores_comments = stores);
        cluster.work.add("x", Table::new(1, Secs(60)));
        submit(&mut cluster, &request("x", "own", "gpu:1"));
        cluster.advance(10);
        assert_eq!(past(&mut cluster, "x")[0].comment, "");
        cluster.advance(60);
        let expected = if stores { "babysit:x" } else { "" };
        assert_eq!(past(&mut cluster, "x")[0].comment, expected);
    }
}

#[test]
fn down_and_off_are_told_apart_and_the_queue_works_on() {
    let mut cluster = lab();
    for (accounting, kind, text) in [
        (Accounting::Down, GapKind::Failed, "Connection refused"),
        (Accounting::Off, GapKind::Off, "disabled"),
    ] {
        cluster.site.accounting = accounting;
        let gap = cluster.door("alice").qos_gpus("own").expect_err("no accounting");
        assert_eq!((gap.kind, gap.source.as_str()), (kind, "sacctmgr"));
        let ask = PastAsk { names: Vec::new(), since: T0 };
        let gap = cluster.door("alice").past(&ask).expect_err("no accounting");
        assert!(gap.kind == kind && gap.detail.contains(text), "{gap}");
        assert!(cluster.door("alice").look(Scope::Mine).is_ok());
    }
    cluster.site.accounting = Accounting::On;
    // Accounting does not need the controller.
    cluster.controller(Controller::Down);
    assert_eq!(cluster.door("alice").qos_gpus("own"), Ok(Some(4)));
    assert_eq!(cluster.door("alice").qos_gpus("extra"), Ok(None));
}
