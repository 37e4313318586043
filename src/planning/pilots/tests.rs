//! Claims as records, one situation after the other. Two shards of find and the jobs 11 and 12, each
//! submitted for its own, unless a test says otherwise.

use super::*;
use crate::model::cluster::{EndWord, JobState, QueueJob};
use crate::model::id::{JobId, ShardId, Token};
use crate::model::observation::{Cluster, Gap, GapKind, Observation, PastJob};
use crate::model::pilot::{BadClaim, Claim, Claims};
use crate::model::state::{Attempt, Live, State};
use crate::model::units::Time;
use crate::planning::event::{Event, What};
use crate::planning::plan;
use crate::planning::plan::{Action, Plan};

const START: Time = Time(1_790_000_000);
const ME: u32 = 1000;

fn policy(shards: u32) -> Policy {
    let mut policy = crate::planning::alike::tests::policy();
    let like = policy.shards[0].clone();
    let shard = |i: u32| Shard {
        id: ShardId::new("find", &format!("s{i}")),
        index: i,
        rows: 40 + i,
        pilot: true,
        kin: crate::model::policy::Kin::Family,
        submit: crate::model::policy::SubmitMode::Queued,
        gpus: 1,
        min_tier: None,
        ..like.clone()
    };
    policy.shards = (0..shards).map(shard).collect();
    policy.slurm.babysit = Some("/bin/babysit".into());
    policy.slurm.pilots = Some("/lab/state.json.pilots".into());
    policy
}

struct Desk {
    policy: Policy,
    state: State,
    claims: Claims,
    jobs: Vec<QueueJob>,
    past: Option<Result<Vec<PastJob>, Gap>>,
    now: Time,
}

fn token(shard: u32) -> Token {
    Token::new("p", "abc", &ShardId::new("find", &format!("s{shard}")), 1, "n")
}

impl Desk {
    /// Each shard's job `11 + i` pends.
    fn new(shards: u32) -> Desk {
        let policy = policy(shards);
        let mut state = State::new("p", "abc");
        state.align(&policy, START);
        let mut jobs = Vec::new();
        for (i, record) in (0..).zip(&mut state.shards) {
            record.attempts = 1;
            record.progress.measured_at = Some(START);
            record.kept_off.told = true;
            let attempt = Attempt {
                number: 1,
                token: token(i),
                lane: None,
                gpus: 1,
                pin: None,
                rows_before: 0,
                asked_at: START,
                uid: ME,
                exclude: Vec::new(),
                pilot: true,
            };
            let job = JobId(11 + u64::from(i));
            record.slot = Slot::Live(Box::new(Live::new(attempt, job)));
            jobs.push(QueueJob {
                id: job,
                uid: ME,
                name: token(i).name,
                comment: token(i).comment,
                state: JobState::Pending,
                submitted: Some(START),
                gpus: Some(1),
                excluded: Some(Vec::new()),
                ..QueueJob::default()
            });
        }
        let claims = Claims::default();
        Desk { policy, state, claims, jobs, past: None, now: START }
    }

    fn job(&mut self, job: u64) -> &mut QueueJob {
        self.jobs.iter_mut().find(|queued| queued.id.0 == job).expect("in the queue")
    }

    fn starts(&mut self, job: u64, at: i64) {
        let queued = self.job(job);
        queued.state = JobState::Running;
        queued.started = Some(START + Secs(at));
        queued.nodes = vec!["n1".to_owned()];
    }

    /// It leaves the queue, and accounting says how.
    fn ends(&mut self, job: u64, end: EndWord, at: i64) {
        let queued = self.job(job).clone();
        self.jobs.retain(|queued| queued.id.0 != job);
        let row = PastJob {
            id: queued.id,
            uid: ME,
            name: queued.name,
            comment: String::new(),
            qos: String::new(),
            end: Some(end),
            submitted: queued.submitted,
            started: queued.started,
            ended: Some(START + Secs(at)),
            nodes: queued.nodes,
            exit: "0:0".to_owned(),
            cancelled_by: None,
        };
        match &mut self.past {
            Some(Ok(rows)) => rows.push(row),
            _ => self.past = Some(Ok(vec![row])),
        }
    }

    fn claims(&mut self, job: u64, shard: u32, fence: u32, place: u32, after: i64) -> &mut Claim {
        let comment = token(u32::try_from(job - 11).expect("small")).comment;
        self.claims.claims.push(Claim {
            shard: ShardId::new("find", &format!("s{shard}")),
            fence,
            instance: "abc".to_owned(),
            job: JobId(job),
            token: comment,
            run: 0,
            place,
            after: Secs(after),
            host: "n1".to_owned(),
            at: self.now,
            uid: ME,
            returned: false,
        });
        self.claims.claims.last_mut().expect("just put there")
    }

    fn tick(&mut self, at: i64) -> Plan {
        self.now = START + Secs(at);
        let seen = Observation {
            cluster: Cluster { jobs: self.jobs.clone(), nodes: Vec::new(), me: ME },
            accounting: self.past.clone(),
            progress: vec![None; self.policy.shards.len()],
            logs: Vec::new(),
            own_gpus: None,
            takes_both: None,
            claims: Some(Ok(self.claims.clone())),
        };
        plan(&self.policy, &mut self.state, &seen, self.now, 7)
    }

    /// Ticks until all is booked, with a Slurm that does what it is asked.
    fn settle(&mut self) {
        for minute in 1..=8 {
            let at = self.now.since(START).0 + 60 * minute;
            for job in cancelled(&self.tick(at)) {
                let job = self.job(job);
                job.state = JobState::Over(EndWord::Cancelled);
            }
        }
    }

    /// `12 -` : the job of each shard, `!` where it claimed it.
    fn jobs(&self) -> String {
        let of = |record: &ShardRecord| match &record.slot {
            Slot::Live(live) if live.is_unclaimed() => live.job.to_string(),
            Slot::Live(live) => format!("{}!", live.job),
            Slot::Settling(end) => format!("({})", end.job),
            Slot::Free | Slot::Submitting(_) => "-".to_owned(),
        };
        self.state.shards.iter().map(of).collect::<Vec<_>>().join(" ")
    }

    /// GPU-seconds by shard, as charged.
    fn charged(&self) -> Vec<u64> {
        let sum = |record: &ShardRecord| record.charges.iter().map(|c| c.gpu_seconds.0).sum();
        self.state.shards.iter().map(sum).collect()
    }

    fn offered(&self) -> Vec<String> {
        let offer = offer(&self.policy, &self.state);
        offer.shards.iter().map(|o| format!("{}.{}", o.shard.shard, o.fence)).collect()
    }
}

fn kinds(plan: &Plan) -> Vec<&Event> {
    plan.events.iter().filter(|e| matches!(e.what, What::ClaimRefused { .. })).collect()
}

#[test]
fn pilots_that_start_side_by_side_change_places() {
    let mut desk = Desk::new(3);
    assert_eq!(desk.offered(), ["s2.1", "s1.1", "s0.1"], "longest first");
    // Slurm starts the oldest; it takes the longest, and the next one the next.
    desk.starts(11, 10);
    desk.starts(12, 11);
    desk.claims(11, 2, 1, 0, 0);
    desk.claims(12, 1, 1, 0, 0);
    desk.tick(60);
    assert_eq!(desk.jobs(), "13 12! 11!");
    assert_eq!(desk.offered(), ["s0.1"]);
    let before = desk.state.clone();
    let plan = desk.tick(60);
    assert_eq!((desk.state.shards, plan.actions), (before.shards, Vec::new()), "booked once");
}

#[test]
fn the_attempts_of_one_run_add_up_to_it_whatever_ticks_saw() {
    // From a tick after each claim to one tick when all is over.
    for every in [1, 2, 4] {
        let mut desk = Desk::new(3);
        desk.starts(11, 10);
        let steps: [&dyn Fn(&mut Desk); 4] = [
            &|desk| _ = desk.claims(11, 2, 1, 0, 0),
            &|desk| _ = desk.claims(11, 1, 1, 1, 100),
            &|desk| _ = desk.claims(11, 0, 1, 2, 250),
            &|desk| desk.ends(11, EndWord::Completed, 417),
        ];
        for (i, step) in steps.iter().enumerate() {
            step(&mut desk);
            if (i + 1) % every == 0 {
                desk.tick(500 + i as i64);
            }
        }
        desk.settle();
        // 10 to 417, cut at 110 and 260.
        assert_eq!(desk.charged(), [157, 150, 100], "a tick every {every} steps");
    }
}

#[test]
fn a_job_that_goes_on_takes_the_next_shard_from_its_pending_job_which_is_left_over() {
    let mut desk = Desk::new(2);
    desk.starts(11, 0);
    desk.claims(11, 0, 1, 0, 0);
    desk.tick(60);
    assert_eq!(desk.jobs(), "11! 12");
    desk.claims(11, 1, 1, 1, 90);
    // It has to be gone first, so that nothing that it still does is lost.
    assert_eq!((cancelled(&desk.tick(120)), desk.jobs().as_str()), (vec![12], "11! 12"));
    assert_eq!(desk.offered(), Vec::<String>::new());
    desk.job(12).state = JobState::Over(EndWord::Cancelled);
    let plan = desk.tick(180);
    assert_eq!((plan.actions, desk.jobs().as_str()), (Vec::new(), "11! -"), "it has a job");
    desk.tick(240);
    assert_eq!((desk.jobs().as_str(), desk.charged()), ("(11) 11!", vec![90, 0]));
    assert_eq!(desk.state.shards[1].failures, 0);
}

#[test]
fn a_pilot_that_starts_before_it_could_be_cancelled_is_left_alone_and_charged() {
    let mut desk = Desk::new(2);
    desk.starts(11, 0);
    desk.claims(11, 0, 1, 0, 0);
    desk.tick(60);
    desk.claims(11, 1, 1, 1, 90);
    desk.starts(12, 100);
    assert_eq!((cancelled(&desk.tick(120)), desk.jobs().as_str()), (vec![], "11! 12"));
    // It found nothing.
    desk.ends(12, EndWord::Completed, 104);
    desk.ends(11, EndWord::Completed, 150);
    desk.tick(180);
    desk.tick(240);
    assert_eq!(desk.charged(), [90, 4 + 60]);
}

#[test]
fn the_pending_job_of_a_shard_that_is_taken_goes_to_one_without() {
    let mut desk = Desk::new(3);
    desk.starts(11, 0);
    desk.claims(11, 0, 1, 0, 0);
    desk.tick(60);
    desk.state.shards[2].slot = Slot::Free;
    desk.jobs.retain(|job| job.id.0 != 13);
    desk.claims(11, 1, 1, 1, 90);
    let plan = desk.tick(120);
    assert_eq!((cancelled(&plan), desk.jobs().as_str()), (vec![], "(11) 11! 12"));
}

fn cancelled(plan: &Plan) -> Vec<u64> {
    let jobs = plan.actions.iter().filter_map(|action| match action {
        Action::Cancel { jobs, .. } => Some(jobs.iter().map(|job| job.job.0)),
        _ => None,
    });
    jobs.flatten().collect()
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

/// Its shard is no longer in shards.toml, and the job pends on: it may take another's all the same.
#[test]
fn a_pilot_of_a_shard_that_was_taken_out_works_for_those_that_are_left() {
    let mut desk = Desk::new(3);
    desk.policy.shards.remove(0);
    desk.state.align(&desk.policy, START);
    assert_eq!(desk.state.orphans.len(), 1);
    desk.tick(5);
    desk.starts(11, 10);
    desk.claims(11, 2, 1, 0, 0);
    desk.tick(60);
    assert_eq!(desk.jobs(), "12 11!");
    let left = desk.state.orphans.iter().filter_map(|orphan| Some(orphan.live()?.job.0));
    assert_eq!(left.collect::<Vec<_>>(), [13], "followed to its end");
    // It starts, finds nothing, and is charged as any run.
    desk.starts(13, 70);
    desk.tick(120);
    desk.ends(13, EndWord::Completed, 72);
    desk.ends(11, EndWord::Completed, 110);
    desk.tick(180);
    desk.tick(240);
    assert_eq!(desk.charged(), [0, 100]);
    let orphans = desk.state.orphans.iter().flat_map(|orphan| &orphan.charges);
    assert_eq!(orphans.map(|charge| charge.gpu_seconds.0).sum::<u64>(), 2);
}

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
