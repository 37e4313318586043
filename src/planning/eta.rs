//! When a shard will be done: list scheduling of what waits behind what runs, in LPT order, over
//! the GPUs at hand. An estimate of the middle, without preemptions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::model::cluster::Usable;
use crate::model::observation::Observation;
use crate::model::policy::Policy;
use crate::model::state::{Gate, ShardRecord, Slot, State};

use super::lpt::Lpt;
use super::measure::is_done;
use super::roster::Roster;

/// GPUs that our shards run on, plus what stands idle on usable nodes, but no more than could be
/// used. Own-lane room is idle hardware or held by extra jobs, so it is not counted twice.
pub fn gpus_at_hand(
    policy: &Policy,
    state: &State,
    seen: &Observation,
    roster: &Roster<'_>,
) -> u32 {
    let running: u32 = seen
        .cluster
        .jobs
        .iter()
        .zip(roster.is_ours())
        .filter(|(job, ours)| **ours && job.state.holds_gpus())
        .map(|(job, _)| job.gpus.unwrap_or(1))
        .sum();
    let idle: u32 = seen
        .cluster
        .nodes
        .iter()
        .filter(|node| node.usable == Usable::Yes)
        .flat_map(|node| node.gpus.iter().flatten())
        .map(|gpus| gpus.capacity.saturating_sub(gpus.used))
        .sum();
    let there = running.saturating_add(idle);
    // Nearly always the first few shards can use them all.
    let mut useful = 0_u32;
    for (shard, record) in policy.shards.iter().zip(&state.shards) {
        if useful >= there {
            break;
        }
        if !is_done(shard, record) {
            useful = useful.saturating_add(shard.gpus);
        }
    }
    there.min(useful)
}

/// Seconds from now until a shard is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Eta {
    pub seconds: f64,
    /// The rate behind it is the configured one, not a measured one.
    pub guess: bool,
}

/// By shard index; `None` where nothing moves until a person does something, or all is done.
pub fn etas(policy: &Policy, state: &State, lpt: &Lpt) -> Vec<Option<Eta>> {
    let mut etas = vec![None; policy.shards.len()];
    let mut running = Vec::new();
    let mut waiting = Vec::new();
    // Each takes its part of the rows that are left; together they have as many GPUs less for others.
    let helping = state.busy_helpers();
    let helping: Vec<&ShardRecord> =
        helping.into_iter().filter(|r| r.live().is_some_and(|l| l.started.is_some())).collect();
    let helpers = |i: usize| helping.iter().filter(|r| r.id.helps(&policy.shards[i].id)).count();
    for (i, shard) in policy.shards.iter().enumerate().take(policy.named()) {
        let record = &state.shards[i];
        let stopped = record.over_cap.is_some()
            || matches!(
                record.gate,
                Gate::Held { .. } | Gate::Refused { .. } | Gate::Cancelled { .. }
            );
        match &record.slot {
            _ if is_done(shard, record) => {}
            Slot::Live(live) if live.started.is_some() => running.push(i),
            // Its own job waits, and it goes on.
            _ if helpers(i) > 0 => running.push(i),
            Slot::Live(_) | Slot::Submitting(_) => waiting.push(i),
            Slot::Free | Slot::Settling(_) if !stopped => waiting.push(i),
            Slot::Free | Slot::Settling(_) => {}
        }
    }
    lpt.sort(policy, &mut waiting, |i| *i);
    let widest = waiting.iter().map(|&i| policy.shards[i].gpus).max().unwrap_or(1);
    let runs = |i: usize| state.shards[i].live().is_some_and(|live| live.started.is_some());
    let own_gpus = |i: usize| if runs(i) { policy.shards[i].gpus } else { 0 };
    let helpers_gpus: u32 =
        helping.iter().filter_map(|r| r.live()).map(|live| live.attempt.gpus).sum();
    let busy = running.iter().map(|&i| own_gpus(i)).sum::<u32>().saturating_add(helpers_gpus);
    // Before the first cycle nothing of the cluster is known but the size of own.
    let own = policy.lanes.as_ref().and_then(|lanes| lanes.own_gpus).unwrap_or(0);
    let hand = if state.last_tick.is_none() { own } else { state.learned.gpus_at_hand };
    let idle = hand.saturating_sub(busy);
    // Moments (in milliseconds, so that they can be ordered) at which one GPU gets free.
    let mut free: BinaryHeap<Reverse<u64>> = (0..idle).map(|_| Reverse(0)).collect();
    let mut put = |i: usize, start: f64, free: &mut BinaryHeap<Reverse<u64>>| {
        let workers = helpers(i) + usize::from(helpers(i) == 0 || runs(i));
        let seconds = start + lpt.remaining[i] / workers as f64;
        etas[i] = Some(Eta { seconds, guess: !lpt.measured[i] });
        let at = Reverse((seconds * 1000.0) as u64);
        free.extend((0..policy.shards[i].gpus).map(|_| at));
    };
    for i in running {
        put(i, 0.0, &mut free);
    }
    // Nothing runs and nothing is idle: as if as many GPUs as the widest shard needs came now.
    while free.len() < widest as usize {
        free.push(Reverse(0));
    }
    for i in waiting {
        let mut start = 0;
        for _ in 0..policy.shards[i].gpus {
            if let Some(Reverse(at)) = free.pop() {
                start = start.max(at);
            }
        }
        put(i, start as f64 / 1000.0, &mut free);
    }
    etas
}
