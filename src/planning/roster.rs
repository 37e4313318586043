//! Which jobs in the queue are ours, and of which shard.
//!
//! A job is ours if its comment carries our instance and its name is the one that belongs to that
//! comment; the user is compared where a shard's attempt is matched (contract.md, "Job names").

use std::collections::{HashMap, HashSet};

use crate::model::cluster::QueueJob;
use crate::model::id::JobId;
use crate::model::policy::{Lane, LaneSpec, Lanes};
use crate::model::state::{Attempt, Live, ShardRecord, Slot, State};

use super::both;
use super::quick::QuickMap;

/// A job of ours, with what its comment says.
#[derive(Debug, Clone, Copy)]
pub struct Ours<'a> {
    pub job: &'a QueueJob,
    pub attempt: u32,
    /// The record of its shard holds it, under this very token.
    pub held: bool,
}

/// Our jobs by shard index, each shard's oldest first.
#[derive(Debug)]
pub struct Roster<'a> {
    /// By shard, then by age.
    ours: Vec<Ours<'a>>,
    /// By shard index: where its jobs begin in `ours`; one more at the end.
    begins: Vec<usize>,
    /// Every job by id, for one whose comment somebody changed.
    by_id: Vec<(JobId, &'a QueueJob)>,
    /// By place in the queue: the job is of one of our shards.
    is_ours: Vec<bool>,
    /// Jobs under our project's names that another state's babysitter made.
    pub foreign: Vec<&'a QueueJob>,
}

impl<'a> Roster<'a> {
    pub fn new(state: &State, jobs: &'a [QueueJob], me: u32) -> Roster<'a> {
        Roster::without(state, jobs, me, &HashSet::new())
    }

    /// The same; these jobs are ours, but of no shard.
    pub fn without(
        state: &State,
        jobs: &'a [QueueJob],
        me: u32,
        aside: &HashSet<JobId>,
    ) -> Roster<'a> {
        let known = Known::new(state);
        let mut found: Vec<(usize, Ours<'a>)> = Vec::with_capacity(jobs.len());
        let mut foreign = Vec::new();
        let mut is_ours = Vec::with_capacity(jobs.len());
        let mut by_id = Vec::with_capacity(jobs.len());
        for job in jobs {
            by_id.push((job.id, job));
            let owner = known.owner(job);
            is_ours.push(owner.is_some());
            if let Some((shard, attempt, held)) = owner {
                if !aside.contains(&job.id) {
                    found.push((shard, Ours { job, attempt, held }));
                }
            } else if job.uid == me
                && job.name.strip_prefix(&state.project).is_some_and(|rest| rest.starts_with('.'))
                && known.is_of_another_state(job)
                && !job.state.is_over()
            {
                foreign.push(job);
            }
        }
        let (begins, ours) = by_shard(&found, state.shards.len());
        by_id.sort_unstable_by_key(|(id, _)| *id);
        Roster { ours, begins, by_id, is_ours, foreign }
    }

    pub fn of(&self, shard: usize) -> &[Ours<'a>] {
        match (self.begins.get(shard), self.begins.get(shard + 1)) {
            (Some(from), Some(to)) => self.ours.get(*from..*to).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// For each job of the queue, in its order: is it of one of our shards?
    pub fn is_ours(&self) -> &[bool] {
        &self.is_ours
    }

    pub fn by_id(&self, id: JobId) -> Option<&'a QueueJob> {
        let at = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.by_id.get(at).map(|(_, job)| *job)
    }

    /// The job of an attempt whose id is not known yet.
    pub fn find(&self, shard: usize, attempt: &Attempt) -> Option<&'a QueueJob> {
        self.of(shard)
            .iter()
            .map(|ours| ours.job)
            .find(|job| job.uid == attempt.uid && job.comment == attempt.token.comment)
    }

    /// The job of a live record: same id, user and name; and the comment, or where somebody changed
    /// that, the submit time.
    pub fn find_live(&self, shard: usize, live: &Live) -> Option<&'a QueueJob> {
        let token = &live.attempt.token;
        let same = |job: &&QueueJob| {
            job.id == live.job
                && job.uid == live.attempt.uid
                && job.name == token.name
                && (job.comment == token.comment
                    || (job.submitted.is_some() && job.submitted == live.submitted))
        };
        // No text need be compared a second time.
        let held = |ours: &&Ours<'_>| {
            ours.held && ours.job.id == live.job && ours.job.uid == live.attempt.uid
        };
        if let Some(ours) = self.of(shard).iter().find(held) {
            return Some(ours.job);
        }
        let listed = self.of(shard).iter().map(|ours| ours.job).find(same);
        listed.or_else(|| self.by_id(live.job).filter(same))
    }
}

/// Where each shard's jobs begin, and the jobs. Counted, not sorted: few shards have more than one, and
/// every look at a job is a walk to somewhere else in memory.
fn by_shard<'a>(found: &[(usize, Ours<'a>)], shards: usize) -> (Vec<usize>, Vec<Ours<'a>>) {
    let mut begins = vec![0; shards + 1];
    found.iter().for_each(|(shard, _)| begins[shard + 1] += 1);
    for shard in 0..shards {
        begins[shard + 1] += begins[shard];
    }
    let Some((_, any)) = found.first() else { return (begins, Vec::new()) };
    let mut ours = vec![*any; found.len()];
    let mut next = begins.clone();
    for (shard, job) in found {
        ours[next[*shard]] = *job;
        next[*shard] += 1;
    }
    for ends in begins.windows(2) {
        if ends[1] - ends[0] > 1 {
            ours[ends[0]..ends[1]].sort_by_key(|ours| (ours.job.submitted, ours.job.id));
        }
    }
    (begins, ours)
}

/// Whose job is it?
struct Known<'s> {
    project: &'s str,
    instance: &'s str,
    /// Jobs that the records hold, which nearly all of ours are: no comment need be read for them.
    live: QuickMap<JobId, usize>,
    shards: &'s [ShardRecord],
    /// By family and shard; made for the first job that no record holds.
    names: std::cell::OnceCell<HashMap<(&'s str, &'s str), usize>>,
}

impl<'s> Known<'s> {
    fn new(state: &'s State) -> Known<'s> {
        let live = |(i, record): (usize, &ShardRecord)| Some((record.live()?.job, i));
        let mut jobs = QuickMap::with_capacity_and_hasher(state.shards.len(), Default::default());
        jobs.extend(state.shards.iter().enumerate().filter_map(live));
        Known {
            project: &state.project,
            instance: &state.instance,
            live: jobs,
            shards: &state.shards,
            names: std::cell::OnceCell::new(),
        }
    }

    /// Shard and attempt of a job whose comment is of this state and whose name belongs to it, and
    /// whether the shard's record holds it.
    fn owner(&self, job: &QueueJob) -> Option<(usize, u32, bool)> {
        if let Some(&shard) = self.live.get(&job.id)
            && let Some(Slot::Live(live)) = self.shards.get(shard).map(|record| &record.slot)
            && live.attempt.token.comment == job.comment
            && live.attempt.token.name == job.name
        {
            return Some((shard, live.attempt.number, true));
        }
        let comment = read_comment(self.ours(&job.comment)?)?;
        let names = self.names.get_or_init(|| {
            let name =
                |(i, r): (usize, &'s ShardRecord)| ((r.id.family.as_str(), r.id.shard.as_str()), i);
            self.shards.iter().enumerate().map(name).collect()
        });
        let Comment { family, shard, attempt } = comment;
        let index = *names.get(&(family, shard))?;
        let name = format!("{}.{family}.{shard}.a{attempt}", self.project);
        (name == job.name).then_some((index, attempt, false))
    }

    /// What comes after the part that the comments of all jobs of this state begin with.
    fn ours<'c>(&self, comment: &'c str) -> Option<&'c str> {
        comment.strip_prefix("babysit:")?.strip_prefix(self.instance)?.strip_prefix(':')
    }

    fn is_of_another_state(&self, job: &QueueJob) -> bool {
        job.comment.starts_with("babysit:") && self.ours(&job.comment).is_none()
    }
}

struct Comment<'a> {
    family: &'a str,
    shard: &'a str,
    attempt: u32,
}

/// `family/shard:aN:nonce`
fn read_comment(rest: &str) -> Option<Comment<'_>> {
    let mut parts = rest.splitn(3, ':');
    let (family, shard) = parts.next()?.split_once('/')?;
    let attempt = parts.next()?.strip_prefix('a')?.parse().ok()?;
    parts.next()?;
    Some(Comment { family, shard, attempt })
}

/// The lane a job is in now, by what Slurm shows of it.
pub fn lane_of(lanes: Option<&Lanes>, job: &QueueJob) -> Option<Lane> {
    let lanes = lanes?;
    [(Lane::Own, &lanes.own), (Lane::Extra, &lanes.extra)]
        .into_iter()
        .find(|(_, spec)| in_lane(spec, job))
        .map(|(lane, _)| lane)
        .or_else(|| both::in_both(lanes, job).then_some(Lane::Both))
}

pub(super) fn in_lane(spec: &LaneSpec, job: &QueueJob) -> bool {
    is_as_asked(&spec.qos, &job.qos) && in_lane_but_for_qos(spec, job)
}

pub(super) fn in_lane_but_for_qos(spec: &LaneSpec, job: &QueueJob) -> bool {
    is_as_asked(&spec.partition, &job.partition) && is_as_asked(&spec.account, &job.account)
}

fn is_as_asked(want: &Option<String>, have: &str) -> bool {
    want.as_deref().is_none_or(|want| want == have)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::units::Time;

    #[test]
    fn jobs_stand_by_shard_and_then_by_age() {
        let told = [(2, 5, 7), (0, 1, 3), (2, 1, 9), (2, 1, 8)];
        let job = |&(_, at, id)| QueueJob {
            id: JobId(id),
            submitted: Some(Time(at)),
            ..QueueJob::default()
        };
        let jobs: Vec<QueueJob> = told.iter().map(job).collect();
        let found: Vec<(usize, Ours<'_>)> = told
            .iter()
            .zip(&jobs)
            .map(|((shard, ..), job)| (*shard, Ours { job, attempt: 1, held: false }))
            .collect();
        let (begins, ours) = by_shard(&found, 4);
        assert_eq!(begins, [0, 1, 1, 4, 4]);
        assert_eq!(ours.iter().map(|ours| ours.job.id.0).collect::<Vec<_>>(), [3, 8, 9, 7]);
        assert_eq!(by_shard(&[], 2).0, [0, 0, 0]);
    }
}
