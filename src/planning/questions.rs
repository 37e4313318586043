//! What a cycle must ask beyond the two probes: accounting about jobs that left the queue or were
//! never seen in it, the files of shards that may have new rows, the logs of jobs that ended.

use crate::model::cluster::JobState;
use crate::model::id::JobId;
use crate::model::observation::Seen;
use crate::model::pilot::Claims;
use crate::model::policy::Policy;
use crate::model::state::{Attempt, Slot, State};
use crate::model::units::{Secs, Time};

use super::orphans;
use super::pilots;
use super::roster::Roster;

/// What this cycle must ask beyond the two probes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Questions {
    /// Names to ask accounting about, and the earliest of their submissions.
    pub names: Vec<String>,
    pub since: Option<Time>,
    /// Shards whose files are to be read.
    pub measure: Vec<usize>,
    /// Shards whose job ended, with the job whose log tells more.
    pub logs: Vec<(usize, JobId)>,
}

impl Questions {
    fn ask(&mut self, attempt: &Attempt) {
        self.names.push(attempt.token.name.clone());
        // An hour of slack: the clocks of this host and of the controller may differ.
        let from = attempt.asked_at - Secs::hours(1);
        self.since = Some(self.since.map_or(from, |since| since.min(from)));
    }
}

/// Cycles this far apart read the files of shards that wait again, in case somebody else worked
/// on them; those that run or just ended are read in every cycle.
const REMEASURE: Secs = Secs::minutes(10);

/// `claims`: what pilots claimed since the last cycle.
pub fn questions(
    policy: &Policy,
    state: &State,
    roster: &Roster<'_>,
    claims: Option<&Seen<Claims>>,
    now: Time,
) -> Questions {
    let mut asked = Questions::default();
    let claimed = match claims {
        Some(Ok(claims)) => pilots::claimed(policy, state, claims),
        Some(Err(_)) | None => Vec::new(),
    };
    let attempts = state.orphans.iter().filter_map(|record| orphans::unclear(record, roster));
    attempts.for_each(|attempt| asked.ask(attempt));
    for (i, record) in state.shards.iter().enumerate() {
        let fresh = record.progress.measured_at.is_some_and(|at| now.since(at) < REMEASURE)
            && record.progress.gap.is_none();
        let finished = record.finished.is_some_and(|f| f.rows >= policy.shards[i].rows);
        let measure = match &record.slot {
            Slot::Free => !finished && !fresh,
            Slot::Submitting(intent) => match roster.find(i, &intent.attempt) {
                None => {
                    asked.ask(&intent.attempt);
                    !fresh
                }
                // It came through, and may be over already.
                Some(job) => {
                    if job.state.is_over() {
                        asked.logs.push((i, job.id));
                        if job.restarts > 0 {
                            asked.ask(&intent.attempt);
                        }
                    }
                    job.state != JobState::Pending || !fresh
                }
            },
            Slot::Live(live) => match roster.find_live(i, live) {
                None => {
                    asked.ask(&live.attempt);
                    asked.logs.push((i, live.job));
                    true
                }
                Some(job) => {
                    if job.state.is_over() {
                        asked.logs.push((i, live.job));
                        // Only accounting has the runs that began and ended between two cycles.
                        if job.restarts > 0 {
                            asked.ask(&live.attempt);
                        }
                    } else if live.attempt.pilot && live.paid < job.restarts {
                        // It may be another shard's next, and what it ran before is paid for first.
                        asked.ask(&live.attempt);
                    }
                    job.state != JobState::Pending || record.progress.measured_at.is_none()
                }
            },
            Slot::Settling(end) => {
                asked.logs.push((i, end.job));
                true
            }
        };
        // A pilot works on it, or has; its own record does not know yet.
        let claim = claimed.binary_search_by_key(&i, |(shard, _)| *shard);
        let claim = claim.ok().and_then(|at| claimed.get(at));
        if let Some((_, job)) = claim
            && roster.by_id(*job).is_none_or(|job| job.state.is_over())
            && asked.logs.last().is_none_or(|(last, _)| *last != i)
        {
            asked.logs.push((i, *job));
        }
        // Rows that are begun while nobody works on it.
        let to_give_back = record.progress.begun > 0 && !finished;
        match policy.shards[i].helps {
            None if measure || claim.is_some() || to_give_back => asked.measure.push(i),
            None => {}
            // Its rows are its shard's, whose files tell of both.
            Some(helped) if record.slot != Slot::Free && !asked.measure.contains(&helped) => {
                asked.measure.push(helped);
            }
            Some(_) => {}
        }
    }
    asked
}
