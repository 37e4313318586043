//! What Slurm's queue and the state disagree on, for a person to read (`babysit reconcile`).
//! Nothing is settled here: that is `reconcile`, by the very rules of a tick.

use crate::model::cluster::{JobState, QueueJob};
use crate::model::id::{JobId, ShardId};
use crate::model::observation::Cluster;
use crate::model::state::{Slot, State};
use crate::model::units::Time;

use super::roster::Roster;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// sbatch was asked, and its job is not in the queue.
    UnknownSubmission { shard: ShardId, attempt: u32, since: Time, said: String },
    /// The state holds a live job that the queue does not show.
    Missing { shard: ShardId, job: JobId, since: Option<Time> },
    /// More than one live job of one shard; the state holds `kept`.
    Twins { shard: ShardId, kept: Option<JobId>, others: Vec<Twin> },
    /// A live job of this state whose shard is no longer in shards.toml. `followed`: the state has it,
    /// so ticks see it to its end.
    Orphan { shard: String, job: JobId, running: bool, followed: bool },
    /// Live jobs under our project's names that belong to another state. `lost`: all that is to be
    /// seen would fit a state that was lost, and only a person knows whether it was.
    Strangers { instance: String, jobs: Vec<JobId>, lost: bool },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Twin {
    pub job: JobId,
    /// It still pends and is this user's, so that it may be cancelled without losing work.
    pub may_go: bool,
}

impl Difference {
    /// Time alone settles the others, or babysit does.
    pub fn needs_person(&self) -> bool {
        match self {
            Difference::UnknownSubmission { .. } | Difference::Missing { .. } => false,
            Difference::Twins { others, .. } => others.iter().any(|twin| !twin.may_go),
            Difference::Orphan { followed, .. } => !followed,
            Difference::Strangers { .. } => true,
        }
    }
}

/// In the order of the shards, then what belongs to none of them.
pub fn differences(state: &State, cluster: &Cluster) -> Vec<Difference> {
    let roster = Roster::new(state, &cluster.jobs, cluster.me);
    let mut found = Vec::new();
    for (i, record) in state.shards.iter().enumerate() {
        let shard = &record.id;
        let alive: Vec<&QueueJob> =
            roster.of(i).iter().map(|ours| ours.job).filter(|job| !job.state.is_over()).collect();
        let kept = record.live().map(|live| live.job);
        match &record.slot {
            Slot::Submitting(intent) if alive.is_empty() => {
                found.push(Difference::UnknownSubmission {
                    shard: shard.clone(),
                    attempt: intent.attempt.number,
                    since: intent.attempt.asked_at,
                    said: intent.said.clone(),
                });
            }
            Slot::Live(live) if roster.by_id(live.job).is_none() => {
                let since = live.absent.map(|absent| absent.since);
                found.push(Difference::Missing { shard: shard.clone(), job: live.job, since });
            }
            Slot::Free | Slot::Submitting(_) | Slot::Live(_) | Slot::Settling(_) => {}
        }
        // Without a record the oldest is the one that a tick would take. A job that the queue shows twice
        // is one job.
        let first = kept.or_else(|| alive.first().map(|job| job.id));
        let others: Vec<Twin> = alive
            .iter()
            .filter(|job| alive.len() > 1 && Some(job.id) != first)
            .map(|job| Twin {
                job: job.id,
                may_go: job.state == JobState::Pending && job.uid == cluster.me,
            })
            .collect();
        if !others.is_empty() {
            found.push(Difference::Twins { shard: shard.clone(), kept: first, others });
        }
    }
    found.extend(orphans(state, cluster));
    let lost = lost_instance(state, cluster);
    found.extend(strangers(&roster, lost.as_deref()));
    found
}

fn orphans(state: &State, cluster: &Cluster) -> Vec<Difference> {
    let ours = format!("babysit:{}:", state.instance);
    let orphan = |job: &QueueJob| {
        let shard = job.comment.strip_prefix(&ours)?.split(':').next()?.to_owned();
        let known = state.shards.iter().any(|record| record.id.to_string() == shard);
        let prefix = format!("{}.{}.a", state.project, shard.replacen('/', ".", 1));
        let is_ours = job.name.starts_with(&prefix);
        let mut lives = state.orphans.iter().filter_map(|record| record.live());
        (!known && is_ours && !job.state.is_over()).then(|| Difference::Orphan {
            shard,
            job: job.id,
            running: job.state.holds_gpus(),
            followed: lives.any(|live| live.job == job.id),
        })
    };
    cluster.jobs.iter().filter_map(orphan).collect()
}

/// The instance whose state may have been lost: this one has no history, and all live jobs under its
/// names are this user's, of one instance and of shards that it has, one job each, with name and
/// comment that agree. A second campaign that is at work elsewhere looks just the same.
pub fn lost_instance(state: &State, cluster: &Cluster) -> Option<String> {
    if state.shards.iter().chain(&state.orphans).any(|record| record.attempts > 0) {
        return None;
    }
    let roster = Roster::new(state, &cluster.jobs, cluster.me);
    let first = roster.foreign.first()?;
    let instance = first.comment.split(':').nth(1)?;
    // It is going to be typed, and the comment may be anybody's.
    if instance.is_empty() || !instance.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let lost = State { instance: instance.to_owned(), ..state.clone() };
    let theirs = Roster::new(&lost, &cluster.jobs, cluster.me);
    let live = |shard: usize| theirs.of(shard).iter().filter(|ours| !ours.job.state.is_over());
    let proved: usize = (0..state.shards.len()).map(|shard| live(shard).count()).sum();
    let single = (0..state.shards.len()).all(|shard| live(shard).count() <= 1);
    let mine = (0..state.shards.len()).all(|shard| live(shard).all(|o| o.job.uid == cluster.me));
    let all = theirs.foreign.is_empty() && proved == roster.foreign.len();
    (all && single && mine).then(|| instance.to_owned())
}

fn strangers(roster: &Roster<'_>, lost: Option<&str>) -> Vec<Difference> {
    let mut by_instance: Vec<(String, Vec<JobId>)> = Vec::new();
    for job in &roster.foreign {
        let instance = job.comment.split(':').nth(1).unwrap_or_default();
        match by_instance.iter_mut().find(|(known, _)| known == instance) {
            Some((_, jobs)) => jobs.push(job.id),
            None => by_instance.push((instance.to_owned(), vec![job.id])),
        }
    }
    let stranger = |(instance, jobs): (String, Vec<JobId>)| {
        let lost = lost == Some(instance.as_str());
        Difference::Strangers { instance, jobs, lost }
    };
    by_instance.into_iter().map(stranger).collect()
}
