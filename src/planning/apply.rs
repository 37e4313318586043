//! What the outcome of an action means for the state. The hand that carries a plan out calls these
//! and decides nothing itself.

use std::mem;

use crate::model::cluster::{JobState, QueueJob};
use crate::model::policy::{Lane, Policy, Rules};
use crate::model::reason::Reason;
use crate::model::request::{Asked, Refusal, RefusalClass, Submitted};
use crate::model::state::{Gate, Intent, KeptOff, Live, MoveRefused, Slot, State};
use crate::model::units::{Secs, Time};

use super::breaker;
use super::event::{Event, What};
use super::plan::{Action, FreeRows, Plan, Purpose, Submit, Target};
use super::roster::lane_of;

/// A move that Slurm denied and did not make is not asked for again before this.
const REFUSED_MOVE_REST: Secs = Secs::hours(1);

/// Before sbatch: the intent, to be saved and synced before anything is asked of Slurm.
pub fn begin(state: &mut State, submit: &Submit) {
    let record = &mut state.shards[submit.shard];
    record.attempts = submit.attempt.number;
    record.kept_off = KeptOff { nodes: submit.kept_off.clone(), told: true };
    record.slot = Slot::Submitting(Box::new(Intent {
        attempt: submit.attempt.clone(),
        looks: 0,
        quiet_since: None,
        said: "asked just now".to_owned(),
    }));
}

/// Before scontrol: which nodes the jobs will be kept off. Told only once Slurm has answered.
pub fn begin_keeping_off(state: &mut State, nodes: &[String], jobs: &[Target]) {
    for target in jobs {
        state.shards[target.shard].kept_off = KeptOff { nodes: nodes.to_vec(), told: false };
    }
}

/// Before rows are given back: until that is done they are begun, so that a cycle that is killed in
/// between leaves a record that asks for another look.
pub fn begin_freeing(state: &mut State, free: &FreeRows) {
    if let Some(record) = state.shards.iter_mut().find(|record| record.id == free.id) {
        let begun = &mut record.progress.begun;
        *begun = begun.saturating_add(free.rows.len() as u32);
    }
}

/// They were given back.
pub fn freed(state: &mut State, free: &FreeRows) {
    if let Some(record) = state.shards.iter_mut().find(|record| record.id == free.id) {
        let begun = &mut record.progress.begun;
        *begun = begun.saturating_sub(free.rows.len() as u32);
    }
}

/// sbatch was never called for this intent: it is taken back.
pub fn not_asked(state: &mut State, submit: &Submit) {
    let record = &mut state.shards[submit.shard];
    record.slot = Slot::Free;
    record.attempts = submit.attempt.number.saturating_sub(1);
}

/// Slurm can take no more in this cycle, or no more of this family: sbatch was not called.
pub fn paused(state: &mut State, submit: &Submit, said: &str) {
    not_asked(state, submit);
    let record = &mut state.shards[submit.shard];
    record.why = breaker::reason(&state.caution, record)
        .unwrap_or_else(|| Reason::SlurmBusy { said: said.to_owned() });
}

/// After sbatch.
pub fn submitted(
    rules: &Rules,
    state: &mut State,
    submit: &Submit,
    outcome: &Submitted,
    now: Time,
) -> Vec<Event> {
    let opened = breaker::heed(rules, &mut state.caution, &submit.id.family, outcome, now);
    let record = &mut state.shards[submit.shard];
    let attempt = submit.attempt.number;
    let what = match outcome {
        Submitted::Accepted(job) => {
            let asked = match mem::replace(&mut record.slot, Slot::Free) {
                Slot::Submitting(intent) if intent.attempt == submit.attempt => intent.attempt,
                _ => submit.attempt.clone(),
            };
            let mut live = Live::new(asked, *job);
            live.qos = submit.request.qos.clone().unwrap_or_default();
            record.slot = Slot::Live(Box::new(live));
            What::Submitted { job: *job, lane: submit.attempt.lane, attempt }
        }
        Submitted::Unknown(said) => {
            if let Slot::Submitting(intent) = &mut record.slot {
                intent.said.clone_from(said);
            }
            record.why = Reason::OutcomeUnknown { since: now, said: said.clone() };
            What::OutcomeUnknown { attempt, said: said.clone() }
        }
        Submitted::Refused(Refusal { class, text }) => {
            record.slot = Slot::Free;
            match class {
                RefusalClass::Request => {
                    record.gate = Gate::Refused { text: text.clone(), at: now };
                    record.why = Reason::Refused { text: text.clone() };
                    What::SubmitRefused { said: text.clone() }
                }
                RefusalClass::Limit | RefusalClass::Overload => {
                    record.why = Reason::SlurmBusy { said: text.clone() };
                    What::SubmitPaused { said: text.clone() }
                }
            }
        }
    };
    let opened = opened.map(|what| Event { at: now, shard: None, what });
    let told = Event { at: now, shard: Some(submit.id.clone()), what };
    std::iter::once(told).chain(opened).collect()
}

/// What scontrol and scancel said, kept until the queue was read again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Said {
    /// By index of the action in the plan.
    pub answers: Vec<(usize, Asked)>,
}

impl Said {
    fn of(&self, action: usize) -> Option<&str> {
        self.answers.iter().find_map(|(at, asked)| match asked {
            Asked::Failed(text) if *at == action => Some(text.as_str()),
            Asked::Failed(_) | Asked::Done => None,
        })
    }
}

/// After the second squeue: only its columns count (policy.md section 3, F5). Without one nothing
/// is known of the moves, and the next cycle sees for itself.
pub fn verify(
    policy: &Policy,
    state: &mut State,
    plan: &Plan,
    said: &Said,
    jobs: Option<&[QueueJob]>,
    now: Time,
) -> Vec<Event> {
    let mut events = Vec::new();
    for (at, action) in plan.actions.iter().enumerate() {
        let error = said.of(at);
        match action {
            Action::Update { purpose: Purpose::Move(to), jobs: moved, .. } => {
                let Some(jobs) = jobs else { continue };
                for target in moved {
                    let seen = jobs.iter().find(|job| job.id == target.job);
                    let lanes = policy.lanes.as_ref();
                    let lane = seen.and_then(|job| lane_of(lanes, job));
                    let pending = seen.is_some_and(|job| job.state == JobState::Pending);
                    events.extend(moved_or_not(state, target, *to, lane, pending, error, now));
                }
            }
            Action::Cancel { jobs: stopped, .. } => {
                if let Some(text) = error {
                    events.extend(stopped.iter().map(|target| Event {
                        at: now,
                        shard: Some(target.id.clone()),
                        what: What::StopFailed { job: target.job, said: text.to_owned() },
                    }));
                }
            }
            Action::Update { purpose: Purpose::KeepOff(nodes), jobs: kept, .. } => {
                for target in kept.iter().filter(|_| error.is_none()) {
                    state.shards[target.shard].kept_off.told = true;
                    let what = What::KeptOff { job: target.job, nodes: nodes.clone() };
                    events.push(Event { at: now, shard: Some(target.id.clone()), what });
                }
            }
            Action::StopBackfill { node, .. } => {
                if let Some(said) = error {
                    let what =
                        What::BackfillStopFailed { node: node.clone(), said: said.to_owned() };
                    events.push(Event { at: now, shard: None, what });
                }
            }
            Action::Update { purpose: Purpose::Order | Purpose::Detour(_), .. }
            | Action::Submit(_)
            | Action::FreeRows(_) => {}
        }
    }
    events
}

/// Slurm itself said no, and would again. A broken connection, a time-out or silence is no answer
/// at all: that move is tried again in the next cycle (policy.md section 3).
fn is_denied(said: &str) -> bool {
    ["denied", "Invalid ", "not permitted"].iter().any(|word| said.contains(word))
}

fn moved_or_not(
    state: &mut State,
    target: &Target,
    to: Lane,
    lane: Option<Lane>,
    pending: bool,
    error: Option<&str>,
    now: Time,
) -> Option<Event> {
    let record = &mut state.shards[target.shard];
    let job = target.job;
    let what = if lane == Some(to) {
        record.move_refused = None;
        if let Slot::Live(live) = &mut record.slot {
            live.lane = Some(to);
        }
        match error {
            Some(said) => What::MovedDespiteError { job, to, said: said.to_owned() },
            None => What::Moved { job, to },
        }
    } else if pending {
        let said = error.unwrap_or("no error, but the queue still shows the old lane").to_owned();
        if is_denied(&said) {
            record.move_refused =
                Some(MoveRefused { to, until: now + REFUSED_MOVE_REST, said: said.clone() });
            What::MoveRefused { job, to, said }
        } else {
            What::MoveUnanswered { job, to, said }
        }
    } else {
        // It started or ended in between: nothing to move any more.
        return None;
    };
    Some(Event { at: now, shard: Some(target.id.clone()), what })
}
