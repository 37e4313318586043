//! Shards that helpers must leave the GPUs to: those that nobody works on, and those that nobody can
//! help.

use std::collections::BTreeSet;

use crate::model::policy::{Lane, Policy};
use crate::model::state::{ShardRecord, Slot, State};

use super::super::census::Census;
use super::super::lpt::Lpt;
use super::super::measure::is_done;
use super::super::parking::is_stuck;
use super::{Team, runs};

/// Is there a shard that could start and that nobody works on?
pub fn somebody_waits(
    policy: &Policy,
    state: &State,
    census: &Census,
    teams: &[Team],
    in_hand: &BTreeSet<usize>,
) -> bool {
    let helped: BTreeSet<usize> = teams
        .iter()
        .filter(|team| team.helpers.clone().any(|i| runs(&state.shards[i])))
        .map(|team| team.shard)
        .collect();
    let named = |i: &usize| policy.shards[*i].helps.is_none();
    let alone = |i: &usize| named(i) && !helped.contains(i) && !in_hand.contains(i);
    let unknown = |i: usize| matches!(state.shards[i].slot, Slot::Submitting(_));
    could_start(policy, state, census).any(|i| alone(&i))
        || (0..policy.named()).any(|i| unknown(i) && alone(&i))
}

/// Seconds of work left of the longest shard that no helper can take rows from and that may yet need a
/// GPU: it waits, or runs where it may be preempted. 0: there is none.
pub fn longest(policy: &Policy, state: &State, census: &Census, lpt: &Lpt) -> f64 {
    let in_extra = |i: &usize| {
        let live = state.shards[*i].live();
        live.is_some_and(|live| live.started.is_some() && live.lane != Some(Lane::Own))
    };
    let alone = |i: &usize| policy.shards[*i].helps.is_none() && policy.shards[*i].split.is_none();
    could_start(policy, state, census)
        .chain((0..policy.named()).filter(in_extra))
        .filter(alone)
        .map(|i| lpt.remaining[i])
        .fold(0.0, f64::max)
}

/// Those that are to be submitted and those that wait in Slurm, but for what it will not start.
fn could_start(policy: &Policy, state: &State, census: &Census) -> impl Iterator<Item = usize> {
    let ready = census.queued.iter().chain(&census.placed).chain(&census.pinned);
    let pending = census.pending.iter().filter(|&&i| {
        let stuck = |record: &ShardRecord| {
            record.live().is_some_and(|live| is_stuck(&live.reason) || live.stop.is_some())
        };
        !stuck(&state.shards[i]) && !is_done(&policy.shards[i], &state.shards[i])
    });
    ready.chain(pending).copied()
}
