//! Jobs that a rule wants to end: each is asked to once a cycle, as long as one of them wants it.

use std::collections::HashSet;

use crate::model::id::JobId;
use crate::model::state::{Slot, State, Stop};

use super::plan::{Action, Plan, Target};

/// Asks for the end of jobs, and notes on the record that it was babysit who asked. Jobs of other
/// users in a shared state are theirs to cancel; Slurm would refuse us.
pub fn cancel(state: &mut State, me: u32, why: Stop, mut jobs: Vec<Target>, plan: &mut Plan) {
    if jobs.is_empty() {
        return;
    }
    // Also where another rule was the first to want it: what that one asked may have come to nothing,
    // and it may want it no more.
    let asked = asked_to_end(plan);
    jobs.retain(|target| {
        let record = &mut state.shards[target.shard];
        let Slot::Live(live) = &mut record.slot else { return true };
        if live.job != target.job {
            return true;
        }
        live.stop.get_or_insert(why);
        live.attempt.uid == me && !asked.contains(&live.job)
    });
    if !jobs.is_empty() {
        plan.actions.push(Action::Cancel { why, jobs });
    }
}

fn asked_to_end(plan: &Plan) -> HashSet<JobId> {
    let cancels = plan.actions.iter().filter_map(|action| match action {
        Action::Cancel { jobs, .. } => Some(jobs),
        _ => None,
    });
    cancels.flatten().map(|target| target.job).collect()
}
