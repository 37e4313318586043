//! Keeping our own pending jobs off a reserved placement (policy.md section 6): Slurm knows nothing
//! of reservations, so the node is excluded for every "queued" job of ours that could start there,
//! and let back afterwards.

use crate::model::cluster::JobState;
use crate::model::policy::Policy;
use crate::model::request::Change;
use crate::model::state::{ShardRecord, State};

use super::parking::is_stuck;
use super::placement::{Placement, fits};
use super::plan::{Action, Purpose, Target};
use super::reconcile::target;

/// Nodes of placements that are kept for a holder now.
pub fn reserved(placements: &[Placement]) -> Vec<&Placement> {
    placements.iter().filter(|p| p.reserved > 0).collect()
}

/// Nodes that a queued job of this shard must be kept off.
pub fn nodes_for(
    policy: &Policy,
    state: &State,
    shard: usize,
    reserved: &[&Placement],
) -> Vec<String> {
    let spec = &policy.shards[shard];
    let min_tier = state.shards[shard].min_tier;
    let could = |p: &&&Placement| fits(policy, spec, min_tier, p);
    let mut nodes: Vec<String> =
        reserved.iter().filter(could).map(|p| p.pin.node.clone()).collect();
    nodes.sort();
    nodes.dedup();
    nodes
}

/// One update per distinct list of nodes, for the pending jobs whose exclusions differ from what
/// the reservations of this cycle want.
pub fn updates(policy: &Policy, state: &State, me: u32, reserved: &[&Placement]) -> Vec<Action> {
    let mut groups: Vec<(Vec<String>, Vec<String>, Vec<Target>)> = Vec::new();
    for (i, record) in state.shards.iter().enumerate() {
        if !is_changeable(record, me) {
            continue;
        }
        let Some(live) = record.live() else { continue };
        let wanted = nodes_for(policy, state, i, reserved);
        let kept = &record.kept_off;
        if wanted == kept.nodes && kept.told {
            continue;
        }
        let all = union(&live.attempt.exclude, &wanted);
        let job = target(i, &record.id, live.job);
        match groups.iter_mut().find(|(list, keep, _)| *list == all && *keep == wanted) {
            Some((.., jobs)) => jobs.push(job),
            None => groups.push((all, wanted, vec![job])),
        }
    }
    let action = |(all, keep, jobs)| Action::Update {
        purpose: Purpose::KeepOff(keep),
        change: Change::Exclude(all),
        jobs,
    };
    groups.into_iter().map(action).collect()
}

fn is_changeable(record: &ShardRecord, me: u32) -> bool {
    record.live().is_some_and(|live| {
        live.state == JobState::Pending
            && live.attempt.pin.is_none()
            && live.attempt.uid == me
            && live.absent.is_none()
            && live.stop.is_none()
            && !is_stuck(&live.reason)
    })
}

/// What Slurm shows of a job's exclusions, where its release shows them, beats what it was told.
pub fn see(record: &mut ShardRecord, base: &[String], shown: Option<&[String]>) {
    if let Some(shown) = shown {
        record.kept_off.told = union(base, &record.kept_off.nodes) == union(shown, &[]);
    }
}

/// Both lists, sorted, each name once.
pub fn union(a: &[String], b: &[String]) -> Vec<String> {
    let mut all: Vec<String> = a.iter().chain(b).cloned().collect();
    all.sort();
    all.dedup();
    all
}
