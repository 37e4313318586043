//! The job behind a claim: whose it is, and what is known of it.

use crate::model::cluster::QueueJob;
use crate::model::id::JobId;
use crate::model::pilot::Claim;
use crate::model::state::{Live, ShardRecord, Slot};

use super::Desk;
use crate::planning::event::{Event, What};
use crate::planning::pilots::strays::stray;

impl Desk<'_> {
    /// The claim's job in the queue, if it is there: by id, user and comment.
    pub(super) fn queued(&self, claim: &Claim) -> Option<&'_ QueueJob> {
        let job = self.roster.by_id(claim.job)?;
        (job.uid == claim.uid && job.comment == claim.token).then_some(job)
    }

    /// A job whose submission had no clear answer is its record's first, so that it is not found a second
    /// time when it is over.
    pub(super) fn adopt(&mut self, claim: &Claim, events: &mut Vec<Event>) {
        if self.holders.contains_key(&claim.job) || self.queued(claim).is_none() {
            return;
        }
        let awaits = |record: &ShardRecord| match &record.slot {
            Slot::Submitting(intent) => intent.attempt.token.comment == claim.token,
            Slot::Free | Slot::Live(_) | Slot::Settling(_) => false,
        };
        let Some(i) = self.shards.iter().chain(self.orphans.iter()).position(awaits) else {
            return;
        };
        let now = self.now;
        let Some(record) = self.record(i) else { return };
        let Slot::Submitting(intent) = &record.slot else { return };
        let live = Live::new(intent.attempt.clone(), claim.job);
        let what = What::Adopted { job: claim.job, attempt: live.attempt.number };
        events.push(Event { at: now, shard: Some(record.id.clone()), what });
        record.slot = Slot::Live(Box::new(live));
        self.holders.insert(claim.job, i);
    }

    /// Some record has its end, and was charged for it.
    pub(super) fn has_ended(&self, job: JobId) -> bool {
        let ended = |record: &ShardRecord| {
            let settling = match &record.slot {
                Slot::Settling(end) => Some(end),
                Slot::Free | Slot::Submitting(_) | Slot::Live(_) => None,
            };
            settling.into_iter().chain(&record.last_end).any(|end| end.job == job)
        };
        self.shards.iter().chain(self.orphans.iter()).any(ended)
    }

    /// The job behind a claim as a record has it, or as the queue shows it. `Err`: none of ours.
    pub(super) fn pilot(&mut self, claim: &Claim) -> Result<Live, String> {
        if claim.instance != self.instance {
            return Err(format!("it is of another state, {}", claim.instance));
        }
        let queued = self.queued(claim).cloned();
        let (policy, instance, now) = (self.policy, self.instance, self.now);
        let held = self.holders.get(&claim.job).copied();
        let ended = held.is_none() && self.has_ended(claim.job);
        let held = held.and_then(|i| self.record(i)?.live());
        let live = match (held, &queued) {
            (Some(live), _) => {
                if live.attempt.token.comment != claim.token || live.attempt.uid != claim.uid {
                    return Err(format!("job {} is not its writer's", claim.job));
                }
                live.clone()
            }
            // Its submission was found to have come through after it was over, say.
            (None, Some(_)) if ended => {
                return Err(format!("job {} had ended before", claim.job));
            }
            (None, Some(job)) if is_of(instance, job) => stray(policy, job, now),
            (None, _) => return Err(format!("Slurm shows no job {} of ours", claim.job)),
        };
        let restarts = queued.map_or(live.restarts, |job| job.restarts.max(live.restarts));
        if claim.run < restarts {
            return Err(format!("job {} was started anew since", claim.job));
        }
        Ok(live)
    }
}

fn is_of(instance: &str, job: &QueueJob) -> bool {
    let rest = job.comment.strip_prefix("babysit:").and_then(|rest| rest.strip_prefix(instance));
    rest.is_some_and(|rest| rest.starts_with(':'))
}
