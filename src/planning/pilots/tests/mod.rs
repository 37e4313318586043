//! Claims as records, one situation after the other. Two shards of find and the jobs 11 and 12, each
//! submitted for its own, unless a test says otherwise.

mod booking;
mod numbers;
mod runs;

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

fn cancelled(plan: &Plan) -> Vec<u64> {
    let jobs = plan.actions.iter().filter_map(|action| match action {
        Action::Cancel { jobs, .. } => Some(jobs.iter().map(|job| job.job.0)),
        _ => None,
    });
    jobs.flatten().collect()
}
