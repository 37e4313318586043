//! Runs that went by unseen, or brought nothing: each is paid for once.

use super::*;

/// Runs that went by between two ticks are paid for by the record that has the job, before another
/// gets it.
#[test]
fn a_requeued_pilot_stays_where_it_is_until_its_runs_are_paid_for() {
    let mut desk = Desk::new(2);
    desk.starts(11, 0);
    desk.claims(11, 0, 1, 0, 0);
    desk.tick(60);
    // Put back, started and put back again, and started, all unseen; then the other's shard is taken.
    let again = |desk: &mut Desk, run: u32, at: i64| {
        desk.job(11).restarts = run;
        desk.job(11).submitted = Some(START + Secs(at - 10));
        desk.starts(11, at);
    };
    again(&mut desk, 2, 300);
    desk.claims(11, 1, 1, 0, 0).run = 2;
    desk.tick(310);
    assert_eq!((desk.jobs().as_str(), desk.charged()), ("11 12", vec![0, 0]), "not booked yet");
    let row = |from: i64, to: Option<i64>| PastJob {
        id: JobId(11),
        uid: ME,
        name: token(0).name,
        comment: String::new(),
        qos: String::new(),
        end: to.map(|_| EndWord::NodeFail),
        submitted: Some(START + Secs(from)),
        started: Some(START + Secs(from)),
        ended: to.map(|to| START + Secs(to)),
        nodes: vec!["n1".to_owned()],
        exit: "0:0".to_owned(),
        cancelled_by: None,
    };
    desk.past = Some(Ok(vec![row(300, None), row(150, Some(170)), row(0, Some(100))]));
    desk.tick(320);
    assert_eq!(desk.charged(), [120, 0]);
    desk.tick(330);
    assert_eq!(desk.jobs(), "12 11!");
    desk.past = Some(Ok(vec![row(150, Some(170)), row(0, Some(100))]));
    desk.ends(11, EndWord::Completed, 400);
    desk.settle();
    assert_eq!(desk.charged(), [120, 100], "no run twice, and none left out");
}

#[test]
fn while_accounting_cannot_tell_a_pilot_with_news_is_left_as_it_is() {
    let mut desk = Desk::new(2);
    desk.starts(11, 0);
    desk.claims(11, 0, 1, 0, 0);
    // Gone between two ticks, never seen running.
    desk.claims(11, 1, 1, 1, 30);
    desk.ends(11, EndWord::Completed, 70);
    let past = desk.past.take();
    let gap = |kind| Gap { kind, source: "sacct".to_owned(), detail: "down".to_owned() };
    desk.past = Some(Err(gap(GapKind::Failed)));
    desk.tick(100);
    assert_eq!((desk.jobs().as_str(), desk.charged()), ("11! 12", vec![0, 0]));
    desk.past = past;
    desk.settle();
    assert_eq!(desk.charged(), [30, 40]);
}

#[test]
fn a_claim_from_the_time_to_come_charges_nobody_for_it() {
    let mut desk = Desk::new(2);
    desk.starts(11, 0);
    desk.claims(11, 0, 1, 0, 0);
    desk.claims(11, 1, 1, 1, i64::MAX);
    desk.ends(11, EndWord::Completed, 70);
    desk.settle();
    assert_eq!(desk.charged().iter().sum::<u64>(), 70);
}

#[test]
fn a_pilot_that_found_nothing_has_failed_in_nothing_and_is_charged() {
    let mut desk = Desk::new(1);
    desk.policy.rules.settle = Secs(0);
    desk.starts(11, 0);
    desk.ends(11, EndWord::Completed, 3);
    desk.tick(60);
    assert_eq!((desk.state.shards[0].failures, desk.charged()), (0, vec![3]));
    // One whose program is not there has.
    let mut desk = Desk::new(1);
    desk.policy.rules.settle = Secs(0);
    desk.starts(11, 0);
    desk.ends(11, EndWord::Failed, 90);
    desk.tick(100);
    assert_eq!(desk.state.shards[0].failures, 1);
}
