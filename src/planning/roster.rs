//! Which jobs in the queue are ours, and of which shard.
//!
//! A job is ours if its comment carries our instance and its name is the one that belongs to that
//! comment; the user is compared where a shard's attempt is matched (contract.md, "Job names").

use std::collections::{HashMap, HashSet};

use crate::model::cluster::QueueJob;
use crate::model::id::{JobId, ShardId, Token};
use crate::model::policy::{Lane, LaneSpec, Lanes};
use crate::model::state::State;

/// A job of ours, with what its comment says.
#[derive(Debug, Clone, Copy)]
pub struct Ours<'a> {
    pub job: &'a QueueJob,
    pub attempt: u32,
}

/// Our jobs by shard index, each list oldest first.
#[derive(Debug)]
pub struct Roster<'a> {
    by_shard: Vec<Vec<Ours<'a>>>,
    /// Every job, for one whose comment somebody changed.
    by_id: HashMap<JobId, &'a QueueJob>,
    ids: HashSet<JobId>,
    /// Jobs under our project's names that another state's babysitter made.
    pub foreign: Vec<&'a QueueJob>,
}

impl<'a> Roster<'a> {
    pub fn new(state: &State, jobs: &'a [QueueJob], me: u32) -> Roster<'a> {
        let mut by_shard: Vec<Vec<Ours<'a>>> = vec![Vec::new(); state.shards.len()];
        let mut foreign = Vec::new();
        let mut ids = HashSet::new();
        let index: HashMap<&ShardId, usize> =
            state.shards.iter().enumerate().map(|(i, r)| (&r.id, i)).collect();
        let ours = format!("babysit:{}:", state.instance);
        let project = format!("{}.", state.project);
        for job in jobs {
            let Some(rest) = job.comment.strip_prefix(ours.as_str()) else {
                if job.uid == me
                    && job.name.starts_with(&project)
                    && job.comment.starts_with("babysit:")
                    && !job.state.is_over()
                {
                    foreign.push(job);
                }
                continue;
            };
            let Some((id, attempt, nonce)) = read_comment(rest) else { continue };
            let token = Token::new(&state.project, &state.instance, &id, attempt, nonce);
            if token.name != job.name {
                continue;
            }
            if let Some(&i) = index.get(&id) {
                ids.insert(job.id);
                by_shard[i].push(Ours { job, attempt });
            }
        }
        for list in &mut by_shard {
            list.sort_by_key(|o| (o.job.submitted, o.job.id));
        }
        let by_id = jobs.iter().map(|job| (job.id, job)).collect();
        Roster { by_shard, by_id, ids, foreign }
    }

    pub fn of(&self, shard: usize) -> &[Ours<'a>] {
        self.by_shard.get(shard).map_or(&[], Vec::as_slice)
    }

    /// Is it a job of one of our shards?
    pub fn is_ours(&self, id: JobId) -> bool {
        self.ids.contains(&id)
    }

    pub fn by_id(&self, id: JobId) -> Option<&'a QueueJob> {
        self.by_id.get(&id).copied()
    }
}

/// `family/shard:aN:nonce`
fn read_comment(rest: &str) -> Option<(ShardId, u32, &str)> {
    let mut parts = rest.splitn(3, ':');
    let id = ShardId::parse(parts.next()?)?;
    let attempt = parts.next()?.strip_prefix('a')?.parse().ok()?;
    Some((id, attempt, parts.next()?))
}

/// The lane a job is in now, by what Slurm shows of it.
pub fn lane_of(lanes: Option<&Lanes>, job: &QueueJob) -> Option<Lane> {
    let lanes = lanes?;
    [Lane::Own, Lane::Extra].into_iter().find(|lane| in_lane(lanes.spec(*lane), job))
}

fn in_lane(spec: &LaneSpec, job: &QueueJob) -> bool {
    let is = |want: &Option<String>, have: &str| want.as_deref().is_none_or(|w| w == have);
    is(&spec.qos, &job.qos)
        && is(&spec.partition, &job.partition)
        && is(&spec.account, &job.account)
}
