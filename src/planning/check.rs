//! Invariants of a plan: checked before anything is carried out, and after every tick in tests.
//! A violation is a bug of babysit; it is told and the cycle does nothing.

use std::collections::HashSet;

use crate::model::cluster::JobState;
use crate::model::policy::Policy;
use crate::model::state::{Gate, Slot, State};

use super::breaker;
use super::measure::is_done;
use super::plan::{Action, Plan, Purpose};

pub fn violations(policy: &Policy, state: &State, plan: &Plan) -> Vec<String> {
    let mut found = Vec::new();
    let mut submitted = HashSet::new();
    for action in &plan.actions {
        match action {
            Action::Submit(submit) => {
                let id = &submit.id;
                let (Some(record), Some(shard)) =
                    (state.shards.get(submit.shard), policy.shards.get(submit.shard))
                else {
                    found.push(format!("{id}: submission for a shard that does not exist"));
                    continue;
                };
                let mut must = |holds: bool, text: &str| {
                    if !holds {
                        found.push(format!("{id}: submission of {text}"));
                    }
                };
                must(submitted.insert(submit.shard), "a shard twice in one cycle");
                must(record.slot == Slot::Free, "a shard that Slurm may have a job of");
                must(record.gate == Gate::Open, "a shard whose gate is shut");
                must(record.over_cap.is_none(), "a shard over its cost cap");
                must(
                    !breaker::is_open(&state.caution, &id.family),
                    "a family whose breaker is open",
                );
                must(!is_done(shard, record), "a shard that is done");
                must(submit.attempt.number > record.attempts, "an attempt number used before");
            }
            Action::Update { purpose, jobs, .. } => {
                for target in jobs {
                    let live = state.shards.get(target.shard).and_then(|record| record.live());
                    let pending = live.is_some_and(|live| {
                        live.job == target.job && live.state == JobState::Pending
                    });
                    if !pending {
                        let what = match purpose {
                            Purpose::Move(_) | Purpose::Detour(_) => "lane change",
                            Purpose::Order => "reordering",
                            Purpose::KeepOff(_) => "exclusion",
                        };
                        found.push(format!("{}: {what} of a job that does not pend", target.id));
                    }
                }
            }
            Action::Cancel { .. } | Action::StopBackfill { .. } | Action::FreeRows(_) => {}
        }
    }
    found
}
