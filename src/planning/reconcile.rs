//! What we knew, what Slurm says -> what is so now.
//!
//! One rule above all: a job that is not in the queue has not thereby ended, and a submission
//! without an answer has not thereby failed (policy.md section 2.1, slurm.md "Ending").

mod ends;
mod runs;
mod twins;

pub(super) use runs::tier_of_run;

use std::collections::{BTreeMap, HashSet};
use std::mem;

use crate::model::cluster::{JobState, Node, QueueJob};
use crate::model::id::{JobId, Token};
use crate::model::observation::{GapKind, Observation};
use crate::model::policy::Policy;
use crate::model::state::{
    Absence, Attempt, End, EndHow, Intent, LabRecord, Live, ShardRecord, Slot, State, Stop,
};
use crate::model::units::{Secs, Time};

use super::event::{Event, What};
use super::kept_off;
use super::past::Past;
use super::plan::Target;
use super::roster::{Roster, lane_of};

/// A job that neither the queue nor accounting knows is given up after this long, and not before
/// this many healthy queues were seen without it: accounting lags by minutes, not by hours.
pub(super) const VANISH_AFTER: Secs = Secs::minutes(5);
const VANISH_LOOKS: u32 = 3;
/// Accounting says "running", the controller has not known the job for this long: a runaway record.
const RUNAWAY_AFTER: Secs = Secs::hours(1);
/// A scancel that Slurm took shows by then.
const SCANCEL_TAKES: Secs = Secs(60);

/// Brings every record up to what Slurm shows. Returns twins that may be cancelled.
pub fn reconcile(
    policy: &Policy,
    state: &mut State,
    seen: &Observation,
    roster: &Roster<'_>,
    wait: &HashSet<JobId>,
    now: Time,
    events: &mut Vec<Event>,
) -> Vec<Target> {
    let shown = Shown::new(policy, state, seen, roster, wait, now);
    let mut twins = Vec::new();
    let State { shards, labs, .. } = state;
    for (i, record) in shards.iter_mut().enumerate() {
        shown.bring_up(i, record, labs, events, &mut twins);
    }
    twins
}

/// What Slurm shows in this cycle, for one record after the other.
pub struct Shown<'a> {
    policy: &'a Policy,
    roster: &'a Roster<'a>,
    past: Past<'a>,
    nodes: &'a [Node],
    /// Pilots with a claim that is not booked yet: their records stay as they are.
    wait: &'a HashSet<JobId>,
    me: u32,
    now: Time,
}

impl<'a> Shown<'a> {
    pub fn new(
        policy: &'a Policy,
        state: &mut State,
        seen: &'a Observation,
        roster: &'a Roster<'a>,
        wait: &'a HashSet<JobId>,
        now: Time,
    ) -> Shown<'a> {
        let past = Past::new(state, seen);
        if matches!(&seen.accounting, Some(Err(gap)) if gap.kind == GapKind::Off) {
            state.learned.accounting_off = true;
        }
        let (nodes, me) = (seen.cluster.nodes.as_slice(), seen.cluster.me);
        Shown { policy, roster, past, nodes, wait, me, now }
    }

    /// Brings one record up to it.
    pub fn bring_up(
        &self,
        shard: usize,
        record: &mut ShardRecord,
        labs: &mut BTreeMap<String, LabRecord>,
        events: &mut Vec<Event>,
        twins: &mut Vec<Target>,
    ) {
        let stays = match &record.slot {
            Slot::Free => self.roster.of(shard).is_empty(),
            Slot::Live(live) => self.wait.contains(&live.job),
            Slot::Submitting(_) | Slot::Settling(_) => false,
        };
        if stays {
            return;
        }
        let before = mem::replace(&mut record.slot, Slot::Free);
        let Shown { policy, roster, past, nodes, wait: _, me, now } = self;
        let mut step = Step { policy, record, labs, roster, past, nodes, shard, now: *now, events };
        let after = match before {
            Slot::Free => step.adopt_stray(Slot::Free),
            Slot::Settling(end) => step.adopt_stray(Slot::Settling(end)),
            Slot::Submitting(intent) => step.settle(intent),
            Slot::Live(live) => step.follow(live),
        };
        record.slot = after;
        twins::of(record, roster, shard, *me, *now, events, twins);
    }
}

/// One shard in one cycle.
struct Step<'s, 'a> {
    policy: &'s Policy,
    record: &'s mut ShardRecord,
    labs: &'s mut BTreeMap<String, LabRecord>,
    roster: &'s Roster<'a>,
    past: &'s Past<'a>,
    nodes: &'s [Node],
    shard: usize,
    now: Time,
    events: &'s mut Vec<Event>,
}

impl Step<'_, '_> {
    fn tell(&mut self, what: What) {
        self.events.push(Event { at: self.now, shard: Some(self.record.id.clone()), what });
    }

    /// A live job of ours that the record does not know: after a crash, or after a submission
    /// that was given up and came through all the same. It is taken, never doubled.
    fn adopt_stray(&mut self, otherwise: Slot) -> Slot {
        let Some(stray) =
            self.roster.of(self.shard).iter().find(|ours| !ours.job.state.is_over()).copied()
        else {
            return otherwise;
        };
        self.record.attempts = self.record.attempts.max(stray.attempt);
        let attempt = Attempt {
            number: stray.attempt,
            token: Token { name: stray.job.name.clone(), comment: stray.job.comment.clone() },
            lane: lane_of(self.policy.lanes.as_ref(), stray.job),
            gpus: stray.job.gpus.unwrap_or(self.policy.shards[self.shard].gpus),
            pin: None,
            rows_before: self.record.progress.rows,
            asked_at: stray.job.submitted.unwrap_or(self.now),
            uid: stray.job.uid,
            exclude: Vec::new(),
            pilot: self.policy.shards[self.shard].pilot,
        };
        self.adopt(attempt, stray.job)
    }

    fn adopt(&mut self, attempt: Attempt, job: &QueueJob) -> Slot {
        self.tell(What::Adopted { job: job.id, attempt: attempt.number });
        let live = Live::new(attempt, job.id);
        self.see(Box::new(live), job)
    }

    /// sbatch gave no clear answer: the token decides (policy.md section 2.1, contract.md).
    fn settle(&mut self, mut intent: Box<Intent>) -> Slot {
        if let Some(job) = self.roster.find(self.shard, &intent.attempt) {
            return self.adopt(intent.attempt, job);
        }
        if let Some(row) = self.past.of(&intent.attempt, None) {
            let Some(how) = row.end else {
                return Slot::Submitting(intent);
            };
            self.tell(What::Adopted { job: row.id, attempt: intent.attempt.number });
            return self.end_of_past(&intent.attempt, row, EndHow::Word(how));
        }
        if let Some(why) = self.past.gap {
            intent.said = format!("accounting: {why}");
            return Slot::Submitting(intent);
        }
        intent.looks += 1;
        let since = *intent.quiet_since.get_or_insert(self.now);
        let long_enough = self.now.since(since) >= self.policy.rules.submit_settle;
        if long_enough && intent.looks >= VANISH_LOOKS {
            self.tell(What::SubmissionGivenUp { attempt: intent.attempt.number });
            return Slot::Free;
        }
        Slot::Submitting(intent)
    }

    fn follow(&mut self, live: Box<Live>) -> Slot {
        if let Some(job) = self.roster.find_live(self.shard, &live) {
            return self.see(live, job);
        }
        // An id that sbatch named (or what a site's wrapper printed behind it) and nobody has ever seen,
        // while the job of its token is there under another one.
        let by_token = self.roster.find(self.shard, &live.attempt);
        match by_token.filter(|_| live.submitted.is_none() && self.past.gap.is_none()) {
            Some(job) if self.past.of(&live.attempt, Some(live.job)).is_none() => {
                self.adopt(live.attempt, job)
            }
            _ => self.missing(live),
        }
    }

    fn see(&mut self, mut live: Box<Live>, job: &QueueJob) -> Slot {
        self.put_back(&mut live, job);
        if live.owes() {
            self.pay_earlier(&mut live);
        }
        if let JobState::Over(word) = job.state {
            // Our jobs are submitted with --no-requeue; where a site or a person changed that,
            // the same id may come back, so the word is not the end yet.
            if !(word.may_return() && job.requeue) {
                if job.restarts > 0
                    && let Err(why) = self.charge_earlier(&live, job)
                {
                    if live.state != job.state {
                        self.tell(What::EndPutOff { job: live.job, why });
                    }
                    live.state = job.state.clone();
                    return Slot::Live(live);
                }
                let started = job.started.filter(|_| !job.nodes.is_empty());
                let started = started.map(|run| live.begun(run, job.restarts));
                let known = live.tier.clone().filter(|_| live.started.is_some());
                let tier =
                    known.or_else(|| self.tier_of_run(&live.attempt, &job.nodes, &job.asked));
                let end = End {
                    started,
                    ended: job.ends.unwrap_or(self.now),
                    nodes: job.nodes.clone(),
                    tier,
                    ..self.end_of(&live, EndHow::Word(word))
                };
                return self.end(end);
            }
        }
        let was_running = live.started.is_some();
        let runs = job.state.holds_gpus();
        live.state = job.state.clone();
        live.lane = lane_of(self.policy.lanes.as_ref(), job);
        job.qos.as_ref().clone_into(&mut live.qos);
        // Most cycles find each where it was.
        if live.nodes != job.nodes {
            live.nodes.clone_from(&job.nodes);
        }
        job.reason.as_ref().clone_into(&mut live.reason);
        if live.submitted.is_none() {
            kept_off::first_sight(&mut live.attempt, self.record, job.excluded.as_deref());
        }
        live.submitted = job.submitted.or(live.submitted);
        kept_off::see(self.record, &live.attempt.exclude, job.excluded.as_deref());
        live.absent = None;
        if runs {
            let began = job.started.map(|run| live.begun(run, job.restarts));
            live.started = began.or(live.started).or(Some(self.now));
        } else if !job.state.is_over() {
            live.started = None;
        }
        if runs && !was_running {
            live.mark = None;
            live.tier = self.tier_of_run(&live.attempt, &job.nodes, &job.asked);
            let node = live.nodes.join(",");
            self.tell(What::Started { job: live.job, lane: live.lane, node });
        }
        if live.stop == Some(Stop::OverCap) && self.was_let_go(&live.state) {
            live.stop = None;
        }
        Slot::Live(live)
    }

    /// Its cap was raised before any scancel got through, and by now none can be under way: from here
    /// on the job ends by itself, and how it does counts again.
    fn was_let_go(&self, state: &JobState) -> bool {
        let raised = self.record.over_cap.is_none().then_some(self.record.queued_since);
        let goes_on = matches!(state, JobState::Running | JobState::Pending);
        goes_on && raised.is_some_and(|at| self.now.since(at) >= SCANCEL_TAKES)
    }

    /// Not in a healthy queue: accounting decides, and until it can nothing is decided.
    fn missing(&mut self, mut live: Box<Live>) -> Slot {
        let first = live.absent.is_none();
        let absent = live.absent.get_or_insert(Absence { since: self.now, looks: 0 });
        absent.looks += 1;
        let Absence { since, looks } = *absent;
        let away = self.now.since(since);
        let row = self.past.of(&live.attempt, Some(live.job));
        if let Some((row, how)) = row.and_then(|row| Some((row, row.end?))) {
            if live.attempt.pilot {
                // What it claimed, it claimed in a run of its own: was that the last one?
                let runs = self.past.runs(&live.attempt, live.job, 0);
                let began = runs.iter().filter(|row| row.started.is_some()).count() as u32;
                live.restarts = live.restarts.max(began.saturating_sub(1));
            }
            return self.end_of_live(&live, row, EndHow::Word(how));
        }
        let patience = match (row, self.past.gap) {
            (_, Some(why)) => {
                if first {
                    self.tell(What::EndPutOff { job: live.job, why: why.to_owned() });
                }
                return Slot::Live(live);
            }
            (Some(_), None) => RUNAWAY_AFTER,
            (None, None) => VANISH_AFTER,
        };
        if looks >= VANISH_LOOKS && away >= patience {
            let end = End { ended: since, ..self.end_of(&live, EndHow::Vanished) };
            return self.end(end);
        }
        if first {
            let why = match (row, self.past.off) {
                (Some(_), _) => "accounting still lists it as live",
                (None, true) => "this cluster keeps no accounting",
                (None, false) => "accounting does not know it yet",
            };
            self.tell(What::EndPutOff { job: live.job, why: why.to_owned() });
        }
        Slot::Live(live)
    }
}
