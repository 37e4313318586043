//! What stays as it is about helpers while no job of theirs changes, so that a cycle in which only rows
//! have come may be left out (`quiet.rs`).

use crate::model::policy::{LaneMode, Policy};
use crate::model::state::{Slot, State};

use super::super::both;
use super::super::census::Census;
use super::super::measure::is_done;
use super::{MOST_STANDING, Review, Team, asked, own_job, teams};

/// What is asked for a team from which nobody is called back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Helpers that are asked for and have no job.
    new: usize,
    /// Its own job is not asked for, since helpers have all that is left.
    in_hand: bool,
}

/// `None`: somebody is called back. The rows of the team's shard alone can change it while none of its
/// jobs does.
pub fn demand(policy: &Policy, state: &State, census: &Census, team: &Team) -> Option<Demand> {
    let mut review = Review::default();
    own_job(policy, state, census, team, &mut review);
    let asked = asked(policy, state, census, team);
    let stays = review.unwanted.is_empty() && asked.unwanted.is_empty();
    stays.then_some(Demand { new: asked.new.len(), in_hand: !review.in_hand.is_empty() })
}

/// Of all teams, where nobody is to be submitted or called back as long as each of them stays what it
/// is; else `None`.
pub fn demands(policy: &Policy, state: &State, census: &Census) -> Option<Vec<(Team, Demand)>> {
    let teams = teams(policy);
    let mut demands = Vec::with_capacity(teams.len());
    let (mut standing, mut least) = (0u32, u32::MAX);
    for team in teams {
        let demand = demand(policy, state, census, &team)?;
        let record = &state.shards[team.shard];
        let waits = record.slot == Slot::Free && !is_done(&policy.shards[team.shard], record);
        if waits && !demand.in_hand {
            return None;
        }
        let gpus = policy.shards[team.shard].gpus;
        let there = team.helpers.clone().filter(|&i| state.shards[i].slot != Slot::Free).count();
        standing = standing.saturating_add(gpus.saturating_mul(there as u32));
        least = if demand.new > 0 { least.min(gpus) } else { least };
        demands.push((team, demand));
    }
    // Whoever is asked for all the same is one too many for the queue. Where helpers do not stand in
    // it, that is a question of the nodes that are there.
    let stand = policy.rules.lanes.mode == LaneMode::Both && both::works(policy, state);
    let nobody = least == u32::MAX || (stand && standing.saturating_add(least) > MOST_STANDING);
    nobody.then_some(demands)
}
