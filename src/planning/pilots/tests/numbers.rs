//! The numbers of claims: what is offered, and what is refused.

use super::*;

fn kinds(plan: &Plan) -> Vec<&Event> {
    plan.events.iter().filter(|e| matches!(e.what, What::ClaimRefused { .. })).collect()
}

#[test]
fn a_claim_dies_with_its_job_and_the_shard_is_offered_by_a_higher_number() {
    let mut desk = Desk::new(2);
    desk.starts(11, 0);
    // Claimed, and dead before anything began.
    desk.claims(11, 1, 1, 0, 0);
    desk.ends(11, EndWord::NodeFail, 5);
    desk.tick(60);
    assert_eq!(desk.charged(), [0, 5]);
    assert!(desk.jobs().starts_with("12 "), "{}", desk.jobs());
    assert!(desk.offered().contains(&"s1.2".to_owned()), "{:?}", desk.offered());
}

#[test]
fn claims_that_are_nobodys_are_refused_once_and_hurt_nobody() {
    let check = |change: &dyn Fn(&mut Desk), why: &str| {
        let mut desk = Desk::new(2);
        desk.starts(11, 0);
        change(&mut desk);
        let plan = desk.tick(60);
        let told = kinds(&plan);
        let [Event { what: What::ClaimRefused { why: said, fence: 1, .. }, .. }] = told[..] else {
            panic!("{why}: {told:?}");
        };
        assert!(said.contains(why), "{said}");
        assert_eq!(desk.jobs(), "11 12", "{why}");
        assert!(desk.offered().contains(&"s1.2".to_owned()), "{why}: {:?}", desk.offered());
        assert!(kinds(&desk.tick(120)).is_empty(), "{why}: told again");
    };
    check(&|desk| desk.claims(11, 1, 1, 0, 0).instance = "other".into(), "of another state");
    check(&|desk| desk.claims(11, 1, 1, 0, 0).uid = 7, "not its writer's");
    check(&|desk| desk.claims(11, 1, 1, 0, 0).token = token(1).comment, "not its writer's");
    check(&|desk| desk.claims(11, 1, 1, 0, 0).job = JobId(99), "Slurm shows no job 99");
    check(
        &|desk| {
            desk.claims(11, 1, 1, 0, 0);
            desk.job(11).restarts = 1;
        },
        "was started anew",
    );
    check(
        &|desk| {
            let shard = ShardId::new("find", "s1");
            desk.claims.bad.push(BadClaim { shard, fence: 1, why: "it is a symlink".into() });
        },
        "symlink",
    );
}

#[test]
fn numbers_that_are_past_or_to_come_change_nothing() {
    let mut desk = Desk::new(2);
    desk.state.shards[1].claims = 4;
    desk.starts(11, 0);
    for fence in [1, 4, 6, u32::MAX] {
        desk.claims(11, 1, fence, 0, 0);
    }
    let plan = desk.tick(60);
    assert_eq!((desk.jobs().as_str(), kinds(&plan).len()), ("11 12", 0));
    assert!(desk.offered().contains(&"s1.5".to_owned()));
}

#[test]
fn what_may_not_be_submitted_is_not_offered() {
    let check = |change: &dyn Fn(&mut ShardRecord), expected: &[&str]| {
        let mut desk = Desk::new(2);
        change(&mut desk.state.shards[1]);
        assert_eq!(desk.offered(), expected);
    };
    check(&|_| {}, &["s1.1", "s0.1"]);
    check(&|record| record.slot = Slot::Free, &["s1.1", "s0.1"]);
    check(&|record| record.gate = Gate::Backoff { until: START }, &["s0.1"]);
    check(&|record| record.gate = Gate::Cancelled { by: "x".into(), at: START }, &["s0.1"]);
    check(&|record| record.progress.measured_at = None, &["s0.1"]);
    let over = crate::model::state::OverCap {
        spent: Default::default(),
        cap: Default::default(),
        at: START,
    };
    check(&|record| record.over_cap = Some(over), &["s0.1"]);
    let done = crate::model::state::Finished { at: START, rows: 99 };
    check(&|record| record.finished = Some(done), &["s0.1"]);
}
