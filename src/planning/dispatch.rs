//! Dispatch (policy.md section 6, (a)-(d)): each placed shard in queue order starts, collects, or
//! waits with a reason.

use crate::model::id::JobId;
use crate::model::reason::Reason;
use crate::model::state::{Pin, State};

use super::backfill;
use super::event::Event;
use super::no_fit;
use super::placement::{Placement, fits, give, has_room_beside_gpus};
use super::reservation;
use super::submit::Moment;

/// One start, on one placement.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    pub shard: usize,
    pub pin: Pin,
    /// Slurm's spelling of the model.
    pub model: String,
    /// Backfill jobs that must give way, and the GPUs each holds there.
    pub stop: Vec<(JobId, u32)>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dispatch {
    pub starts: Vec<Start>,
    /// Why each of the others waits.
    pub waits: Vec<(usize, Reason)>,
}

/// Parts the queue: shards that some placement could hold, and the others with NO_FIT_PLACEMENT.
/// These do not wait, so they have no rank: nobody would collect GPUs behind them.
pub fn fitting(
    moment: &Moment<'_>,
    state: &State,
    queue: Vec<usize>,
    placements: &[Placement],
) -> (Vec<usize>, Vec<(usize, Reason)>) {
    let Moment { policy, cluster, .. } = *moment;
    // A node whose GPUs cannot be read may hold anything.
    let unknown = cluster.nodes.is_empty() || cluster.nodes.iter().any(|node| node.gpus.is_none());
    let mut refused = Vec::new();
    let mut fit = queue;
    fit.retain(|&i| {
        let (shard, min_tier) = (&policy.shards[i], state.shards[i].min_tier);
        if unknown || placements.iter().any(|p| fits(policy, shard, min_tier, p)) {
            return true;
        }
        let min = min_tier.or(shard.min_tier);
        let good = |p: &&Placement| p.capacity > 0 && min.is_none_or(|min| p.rank >= min);
        let largest = placements.iter().filter(good).max_by_key(|p| (p.capacity, p.rank));
        let largest = largest.map(|p| (p.capacity, p.pin.tier.as_str(), p.pin.node.as_str()));
        refused.push((i, no_fit::reason(policy, shard, min, largest)));
        false
    });
    (fit, refused)
}

pub fn dispatch(
    moment: &Moment<'_>,
    state: &mut State,
    queue: &[usize],
    placements: &mut [Placement],
    events: &mut Vec<Event>,
) -> Dispatch {
    let Moment { policy, cluster, now, .. } = *moment;
    let budget = policy.rules.max_submits_per_tick;
    let mut out = Dispatch::default();
    let mut stopped: Vec<JobId> = Vec::new();
    for &i in queue {
        // Who has started in this cycle has left the queue.
        let rank = out.waits.len() as u32 + 1;
        let shard = &policy.shards[i];
        let min_tier = state.shards[i].min_tier;
        let fit: Vec<usize> = (0..placements.len())
            .filter(|&p| fits(policy, shard, min_tier, &placements[p]))
            .collect();
        let held = state.shards[i].reservation.as_ref().map(|r| (r.pin.clone(), r.gpus));
        // What this shard may draw from a placement: the free GPUs and its own reserved ones.
        let mine = |p: &Placement| match &held {
            Some((pin, gpus)) if *pin == p.pin => *gpus,
            _ => 0,
        };
        let mut up: Vec<usize> = fit.into_iter().filter(|&p| placements[p].up).collect();
        // Best first: tier rank descending, then idle descending, then name.
        up.sort_by(|&a, &b| {
            let (a, b) = (&placements[a], &placements[b]);
            let idle = |p: &Placement| p.free() + mine(p);
            b.rank.cmp(&a.rank).then(idle(b).cmp(&idle(a))).then(a.pin.cmp(&b.pin))
        });
        let enough = |&&p: &&usize| placements[p].free() + mine(&placements[p]) >= shard.gpus;
        let beside = |&&p: &&usize| has_room_beside_gpus(shard, &placements[p]);
        let available = up.iter().filter(enough).find(beside).copied();
        if let Some(p) = available {
            if out.starts.len() >= budget {
                out.waits.push((i, Reason::SubmitBudget { rank }));
                continue;
            }
            if let Some((pin, gpus)) = &held
                && let Some(old) = placements.iter_mut().find(|p| p.pin == *pin)
            {
                old.reserved = old.reserved.saturating_sub(*gpus);
            }
            reservation::led_to_start(&mut state.shards[i]);
            let at = &mut placements[p];
            let truly_idle = at.idle.saturating_sub(at.held_by_backfill);
            let need = shard.gpus.saturating_sub(truly_idle);
            let stop = backfill::to_stop(&at.pin, &at.model, need, policy, cluster, &stopped);
            stopped.extend(stop.iter().map(|(job, _)| *job));
            at.held_by_backfill = at.held_by_backfill.saturating_sub(need);
            let (pin, model) = (at.pin.clone(), at.model.clone());
            give(placements, &pin, shard.gpus, shard);
            out.starts.push(Start { shard: i, pin, model, stop });
            continue;
        }
        let short_beside_gpus = up.iter().any(|p| enough(&p));
        let reason = match held {
            Some((pin, gpus)) => collect_more(state, i, shard.gpus, &pin, gpus, placements),
            None if rank == 1 && shard.gpus >= 2 => {
                // (c) the best fit placement that has any idle GPU.
                let first = up.iter().copied().find(|&p| placements[p].free() > 0);
                first.map(|p| {
                    let gpus = placements[p].free().min(shard.gpus);
                    let record = &mut state.shards[i];
                    let what = reservation::begin(record, &mut placements[p], gpus, now);
                    events.push(Event { at: now, shard: Some(record.id.clone()), what });
                    collecting(&placements[p].pin, gpus, shard.gpus)
                })
            }
            None => None,
        };
        // All its GPUs are there and kept for it; something else is missing.
        let all_there = |reason: &Reason| matches!(reason, Reason::Collecting { have, need, .. } if have >= need);
        let reason = reason.filter(|reason| !all_there(reason));
        let reserved: u32 = up.iter().map(|&p| placements[p].reserved).sum();
        let ahead = out.waits.first().map(|(first, _)| policy.shards[*first].id.to_string());
        out.waits.push((
            i,
            reason.unwrap_or(if up.is_empty() {
                Reason::FitNodesDown
            } else if short_beside_gpus {
                Reason::NoCpusOrMemory
            } else {
                Reason::QueueWait { rank, ahead, idle_but_reserved: reserved }
            }),
        ));
    }
    out
}

/// (b) take what became idle on the reserved placement, up to the need.
fn collect_more(
    state: &mut State,
    shard: usize,
    need: u32,
    pin: &Pin,
    gpus: u32,
    placements: &mut [Placement],
) -> Option<Reason> {
    let at = placements.iter_mut().find(|p| p.pin == *pin)?;
    let more = at.free().min(need.saturating_sub(gpus));
    at.reserved += more;
    if let Some(reservation) = &mut state.shards[shard].reservation {
        reservation.gpus += more;
    }
    Some(collecting(pin, gpus + more, need))
}

fn collecting(pin: &Pin, have: u32, need: u32) -> Reason {
    Reason::Collecting { node: pin.node.clone(), tier: pin.tier.clone(), have, need }
}
