//! Dispatch (policy.md section 6, (a)-(d)): each placed shard in queue order starts, collects, or
//! waits with a reason.

use std::collections::HashMap;

use crate::model::id::JobId;
use crate::model::policy::{Policy, Shard};
use crate::model::reason::Reason;
use crate::model::state::{Pin, ShardRecord, State};

use super::backfill;
use super::event::Event;
use super::no_fit;
use super::placement::{Placement, fits, has_room_beside_gpus};
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

pub fn dispatch(
    moment: &Moment<'_>,
    state: &mut State,
    queue: &[usize],
    placements: &mut [Placement],
    events: &mut Vec<Event>,
) -> Dispatch {
    let mut hall = Hall {
        moment,
        placements,
        first: queue.first().map(|&i| moment.policy.shards[i].id.to_string()),
        stopped: Vec::new(),
        starts: Vec::new(),
        in_vain: HashMap::new(),
    };
    let mut waits = Vec::new();
    for (place, &shard) in queue.iter().enumerate() {
        if let Some(reason) = hall.serve(state, shard, place as u32 + 1, events) {
            waits.push((shard, reason));
        }
    }
    Dispatch { starts: hall.starts, waits }
}

/// What one shard asks of a placement: shards of one class have the same answer.
type Class<'a> = (u32, Option<u32>, Option<u32>, Option<&'a str>);

/// One pass over the queue.
struct Hall<'a> {
    moment: &'a Moment<'a>,
    placements: &'a mut [Placement],
    /// Who is rank 1, for those behind.
    first: Option<String>,
    /// Backfill jobs that were told to stop in this pass.
    stopped: Vec<JobId>,
    starts: Vec<Start>,
    /// Classes that found no place in this pass. Only rank 1 can give GPUs back (a swap), and it
    /// is served first, so whoever comes later and asks the same finds none either.
    in_vain: HashMap<Class<'a>, Reason>,
}

impl<'a> Hall<'a> {
    /// Starts the shard, or says why it waits.
    fn serve(
        &mut self,
        state: &mut State,
        i: usize,
        rank: u32,
        events: &mut Vec<Event>,
    ) -> Option<Reason> {
        let Moment { policy, now, .. } = *self.moment;
        let shard = &policy.shards[i];
        let record = &mut state.shards[i];
        let min = record.min_tier.or(shard.min_tier);
        let class = (shard.gpus, min, shard.cpus, shard.mem.as_deref());
        if let Some(reason) = self.in_vain.get(&class) {
            return Some(self.again(reason, rank));
        }
        let held = record.reservation.as_ref().map(|r| (r.pin.clone(), r.gpus));
        if let Some(p) = self.best(shard, min, &held, Wants::Start) {
            if self.starts.len() >= policy.rules.max_submits_per_tick {
                return Some(Reason::SubmitBudget { rank });
            }
            if let Some((pin, gpus)) = &held
                && let Some(old) = self.placements.iter_mut().find(|p| p.pin == *pin)
            {
                old.reserved = old.reserved.saturating_sub(*gpus);
            }
            reservation::led_to_start(record);
            self.start(i, p);
            return None;
        }
        if let Some((pin, gpus)) = held {
            return collect_more(record, shard.gpus, &pin, gpus, self.placements);
        }
        if rank == 1
            && shard.gpus >= 2
            && let Some(p) = self.best(shard, min, &None, Wants::Any)
        {
            let at = &mut self.placements[p];
            let gpus = at.free().min(shard.gpus);
            let what = reservation::begin(record, at, gpus, now);
            events.push(Event { at: now, shard: Some(record.id.clone()), what });
            return Some(collecting(&at.pin, gpus, shard.gpus));
        }
        let reason = self.why_not(shard, min, rank);
        self.in_vain.insert(class, reason.clone());
        Some(self.again(&reason, rank))
    }

    /// The best placement that gives what is wanted: tier rank descending, then idle descending,
    /// then name.
    fn best(
        &self,
        shard: &Shard,
        min: Option<u32>,
        held: &Option<(Pin, u32)>,
        wants: Wants,
    ) -> Option<usize> {
        // What this shard may draw from a placement: the free GPUs and its own reserved ones.
        let draw = |p: &Placement| match held {
            Some((pin, gpus)) if *pin == p.pin => p.free() + gpus,
            _ => p.free(),
        };
        let good = |(_, p): &(usize, &Placement)| {
            let enough = match wants {
                Wants::Start => draw(p) >= shard.gpus && has_room_beside_gpus(shard, p),
                Wants::Any => draw(p) > 0,
            };
            enough && p.up && fits(self.moment.policy, shard, min, p)
        };
        let order = |a: &Placement, b: &Placement| {
            b.rank.cmp(&a.rank).then(draw(b).cmp(&draw(a))).then(a.pin.cmp(&b.pin))
        };
        let places = self.placements.iter().enumerate().filter(good);
        places.min_by(|(_, a), (_, b)| order(a, b)).map(|(p, _)| p)
    }

    fn start(&mut self, i: usize, p: usize) {
        let Moment { policy, cluster, .. } = *self.moment;
        let at = &mut self.placements[p];
        let truly_idle = at.idle.saturating_sub(at.held_by_backfill);
        let need = policy.shards[i].gpus.saturating_sub(truly_idle);
        let stop = backfill::to_stop(at, need, policy, cluster, &self.stopped);
        self.stopped.extend(stop.iter().map(|(job, _)| *job));
        at.held_by_backfill = at.held_by_backfill.saturating_sub(need);
        let (pin, model) = (at.pin.clone(), at.model.clone());
        take(self.placements, p, policy, i);
        self.starts.push(Start { shard: i, pin, model, stop });
    }

    fn why_not(&self, shard: &Shard, min: Option<u32>, rank: u32) -> Reason {
        let policy = self.moment.policy;
        let fit = || self.placements.iter().filter(|p| fits(policy, shard, min, p));
        if fit().next().is_none() {
            let good = |p: &&Placement| min.is_none_or(|min| p.rank >= min);
            let largest = self.placements.iter().filter(good).max_by_key(|p| (p.capacity, p.rank));
            let largest = largest.map(|p| (p.capacity, p.pin.tier.as_str(), p.pin.node.as_str()));
            return no_fit::reason(policy, shard, min, largest);
        }
        if !fit().any(|p| p.up) {
            return Reason::FitNodesDown;
        }
        if fit().any(|p| p.up && p.free() >= shard.gpus) {
            return Reason::NoCpusOrMemory;
        }
        let idle_but_reserved = fit().filter(|p| p.up).map(|p| p.reserved).sum();
        Reason::QueueWait { rank, ahead: None, idle_but_reserved }
    }

    /// The answer of a class, for one of its shards.
    fn again(&self, reason: &Reason, place: u32) -> Reason {
        match reason {
            Reason::QueueWait { idle_but_reserved, .. } => Reason::QueueWait {
                rank: place,
                ahead: self.first.clone().filter(|_| place > 1),
                idle_but_reserved: *idle_but_reserved,
            },
            other => other.clone(),
        }
    }
}

/// What a placement must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    /// All GPUs, and CPUs and memory beside them.
    Start,
    /// (c): any idle GPU.
    Any,
}

/// The GPUs go, and with them the CPUs and memory the next shard may not count on.
fn take(placements: &mut [Placement], at: usize, policy: &Policy, shard: usize) {
    let shard = &policy.shards[shard];
    placements[at].idle = placements[at].idle.saturating_sub(shard.gpus);
    let node = placements[at].pin.node.clone();
    for placement in placements.iter_mut().filter(|p| p.pin.node == node) {
        if let (Some(idle), Some(cpus)) = (&mut placement.cpus_idle, shard.cpus) {
            *idle = idle.saturating_sub(cpus);
        }
    }
}

/// (b) take what became idle on the reserved placement, up to the need.
fn collect_more(
    record: &mut ShardRecord,
    need: u32,
    pin: &Pin,
    gpus: u32,
    placements: &mut [Placement],
) -> Option<Reason> {
    let at = placements.iter_mut().find(|p| p.pin == *pin)?;
    let more = at.free().min(need.saturating_sub(gpus));
    at.reserved += more;
    if let Some(reservation) = &mut record.reservation {
        reservation.gpus += more;
    }
    Some(collecting(pin, gpus + more, need))
}

fn collecting(pin: &Pin, have: u32, need: u32) -> Reason {
    Reason::Collecting { node: pin.node.clone(), tier: pin.tier.clone(), have, need }
}
