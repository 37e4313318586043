//! Rows that are given back: a claim outlives its job, and only Slurm's word that the job is over
//! makes it void (never a guess). What of a row such a job had done is lost, as at any preemption.

use crate::model::observation::Observation;
use crate::model::policy::Policy;
use crate::model::rows::{Claimant, RowClaim};
use crate::model::state::{ShardRecord, Slot, State};
use crate::model::units::Time;

use super::event::{Event, What};
use super::helpers::{Team, present, teams};
use super::measure::is_done;
use super::plan::{Action, FreeRows};
use super::roster::Roster;

/// The claims of jobs that are over.
pub fn review(
    policy: &Policy,
    state: &mut State,
    seen: &Observation,
    roster: &Roster<'_>,
    now: Time,
    events: &mut Vec<Event>,
) -> Vec<Action> {
    let mut actions = Vec::new();
    for team in teams(policy) {
        let Some(free) = of_team(policy, state, seen, roster, &team) else { continue };
        // They are there to be taken for whatever is decided in this very cycle.
        let progress = &mut state.shards[team.shard].progress;
        progress.begun = progress.begun.saturating_sub(free.rows.len() as u32);
        let what = What::RowsFreed { rows: free.rows.len() as u32, all: free.all };
        events.push(Event { at: now, shard: Some(free.id.clone()), what });
        actions.push(Action::FreeRows(Box::new(free)));
    }
    actions
}

fn of_team(
    policy: &Policy,
    state: &State,
    seen: &Observation,
    roster: &Roster<'_>,
    team: &Team,
) -> Option<FreeRows> {
    let (shard, record) = (&policy.shards[team.shard], &state.shards[team.shard]);
    let split = shard.split.as_ref()?;
    let reading = seen.progress.get(team.shard)?.as_ref()?.as_ref().ok()?;
    let claims = reading.claims.as_ref().filter(|_| !is_done(shard, record))?;
    let alive = |i: usize| roster.of(i).iter().any(|ours| !ours.job.state.is_over());
    let busy = team.members().any(|i| present(&state.shards[i]).is_some() || alive(i));
    // One that shards.toml no longer allows may still run.
    let others = state.orphans.iter().filter(|r| r.id.helps(&record.id) || r.id == record.id);
    let busy = busy || others.clone().any(|r| present(r).is_some());
    let is_ours = |comment: &str| {
        let rest = comment.strip_prefix("babysit:").and_then(|c| c.strip_prefix(&*state.instance));
        rest.is_some_and(|rest| rest.starts_with(':'))
    };
    let has = |i: usize, claim: &RowClaim| {
        let comment = present(&state.shards[i]).map(|attempt| attempt.token.comment.as_str());
        let rest = comment.and_then(|comment| claim.claimant.strip_prefix(comment));
        rest.is_some_and(|rest| rest.starts_with(' '))
    };
    let is_over = |claim: &RowClaim| {
        // Nearly all are of a job that a record holds now.
        if team.members().any(|i| has(i, claim)) {
            return false;
        }
        let owner = Claimant::read(&claim.claimant)
            .filter(|owner| is_ours(owner.comment) && shard.id.family == owner.family);
        let Some(owner) = owner else { return !busy };
        let member = team.members().map(|i| &state.shards[i]).chain(others.clone());
        let Some(member) = member.into_iter().find(|r| r.id.shard == owner.shard) else {
            return !busy;
        };
        let lives = |job: &&crate::model::cluster::QueueJob| {
            job.comment == owner.comment && !job.state.is_over()
        };
        ended(member, owner.attempt) && !seen.cluster.jobs.iter().any(|job| lives(&job))
    };
    let rows: Vec<RowClaim> = claims.begun.iter().filter(|c| is_over(c)).cloned().collect();
    // Marked as done, every one, and yet rows are missing: somebody took their files away. The
    // program skips what it finds, so all of them may be given out again once nobody works.
    let all = !busy && claims.done >= shard.rows && record.slot == Slot::Free;
    (all || !rows.is_empty()).then(|| FreeRows {
        id: record.id.clone(),
        claims: split.claims.clone(),
        rows,
        all,
    })
}

/// A record has one job at a time: it gets the next only after the one before is over.
fn ended(record: &ShardRecord, attempt: u32) -> bool {
    attempt <= record.attempts && present(record).is_none_or(|now| now.number != attempt)
}
