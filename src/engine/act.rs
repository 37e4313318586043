//! Carries a plan out, in its order. No policy here: the plan leaves no choice but to stop where
//! Slurm can take no more.

use crate::model::id::JobId;
use crate::model::policy::Lane;
use crate::model::request::{RefusalClass, Submitted};
use crate::model::state::State;
use crate::planning::apply::{self, Said};
use crate::planning::breaker;
use crate::planning::event::{Event, What};
use crate::planning::plan::{Action, Plan, Submit, Target};

use super::Hands;

/// What was said, and why it was broken off, if it was.
pub fn act(
    hands: &mut Hands<'_>,
    state: &mut State,
    plan: &Plan,
    events: &mut Vec<Event>,
) -> (Said, Option<String>) {
    let mut lost: Option<String> = None;
    let mut said = Said::default();
    let mut stop = Brakes::default();
    for (at, action) in plan.actions.iter().enumerate() {
        // Between two effects somebody on another host may have taken over, where the file
        // system's locks do not reach across hosts.
        if lost.is_none() {
            lost = hands.checkpoint.still_ours().err().map(|error| format!("{error:#}"));
        }
        if let Some(text) = &lost {
            if let Action::Submit(submit) = action {
                apply::paused(state, submit, text);
            }
            continue;
        }
        match action {
            Action::Cancel { jobs, .. } => {
                said.answers.push((at, hands.slurm.cancel(&ids(jobs))));
            }
            Action::Update { change, jobs, .. } => {
                said.answers.push((at, hands.slurm.update(&ids(jobs), change)));
            }
            Action::StopBackfill { jobs, command, .. } => {
                let asked = match command {
                    Some(line) => hands.slurm.run(line),
                    None => hands.slurm.cancel(jobs),
                };
                said.answers.push((at, asked));
            }
            Action::FreeRows(free) => {
                match hands.checkpoint.free_rows(free) {
                    Ok(()) => apply::freed(state, free),
                    // The next cycle reads the claims again, and asks again for what is still there.
                    Err(error) => {
                        let why = format!("its rows could not be given back: {error:#}");
                        let what = What::MeasureFailed { why };
                        events.push(Event { at: hands.now, shard: Some(free.id.clone()), what });
                    }
                }
            }
            Action::Submit(submit) => match stop.holds(state, submit) {
                Some(text) => apply::paused(state, submit, &text),
                None => {
                    let outcome = hands.slurm.submit(&submit.request);
                    stop.heed(submit, &outcome);
                    let rules = &hands.policy.rules;
                    events.extend(apply::submitted(rules, state, submit, &outcome, hands.now));
                }
            },
        }
    }
    (said, lost)
}

fn ids(jobs: &[Target]) -> Vec<JobId> {
    jobs.iter().map(|target| target.job).collect()
}

/// What keeps the rest of this cycle's submissions back (slurm.md "Submitting").
#[derive(Default)]
struct Brakes {
    all: Option<String>,
    lanes: Vec<(Option<Lane>, String)>,
}

impl Brakes {
    fn heed(&mut self, submit: &Submit, outcome: &Submitted) {
        match outcome {
            Submitted::Refused(refusal) => match refusal.class {
                RefusalClass::Overload => self.all = Some(refusal.text.clone()),
                RefusalClass::Limit => {
                    self.lanes.push((submit.attempt.lane, refusal.text.clone()));
                }
                RefusalClass::Request => {}
            },
            // A controller that does not answer one will not answer the next; each try would
            // leave one more job whose fate must be found out.
            Submitted::Unknown(text) => self.all = Some(text.clone()),
            Submitted::Accepted(_) => {}
        }
    }

    fn holds(&self, state: &State, submit: &Submit) -> Option<String> {
        let family = &submit.id.family;
        if breaker::is_open(&state.caution, family) {
            return Some(format!("the submissions of {family} are refused"));
        }
        let lane = self.lanes.iter().find(|(lane, _)| *lane == submit.attempt.lane);
        self.all.as_ref().or(lane.map(|(_, text)| text)).cloned()
    }
}
