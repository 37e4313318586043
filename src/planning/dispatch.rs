//! Dispatch (policy.md section 6, (a)-(d)): each placed shard in queue order starts, collects, or
//! waits with a reason.

use std::sync::Arc;

use crate::model::id::JobId;
use crate::model::policy::{R3, Reserve, Shard};
use crate::model::reason::Reason;
use crate::model::state::{Pin, ShardRecord, State};

use super::backfill;
use super::bad_nodes;
use super::breaker;
use super::event::Event;
use super::fit_places::FitPlaces;
use super::foresight::Foresight;
use super::guard::Guard;
use super::no_fit;
use super::placement::{Placement, fits, give, has_room_beside_gpus};
use super::quick::QuickMap;
use super::reservation;
use super::shadow::{self, Shadow};
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
    if unknown {
        return (queue, Vec::new());
    }
    let mut refused = Vec::new();
    let mut answers: QuickMap<(u32, Option<u32>), Option<Reason>> = QuickMap::default();
    let mut fit = queue;
    fit.retain(|&i| {
        let shard = &policy.shards[i];
        let min = state.shards[i].min_tier.or(shard.min_tier);
        let answer = answers.entry((shard.gpus, min)).or_insert_with(|| {
            let fits = placements.iter().any(|p| fits(policy, shard, min, p));
            (!fits).then(|| {
                let good = |p: &&Placement| p.capacity > 0 && min.is_none_or(|min| p.rank >= min);
                let largest = placements.iter().filter(good).max_by_key(|p| (p.capacity, p.rank));
                let names = |p: &Placement| (p.capacity, p.pin.tier.clone(), p.pin.node.clone());
                let largest = largest.map(names);
                let largest = largest.as_ref().map(|(n, t, node)| (*n, t.as_str(), node.as_str()));
                no_fit::reason(policy, shard, min, largest)
            })
        });
        match answer {
            None => true,
            Some(reason) => {
                refused.push((i, reason.clone()));
                false
            }
        }
    });
    (fit, refused)
}

pub fn dispatch(
    moment: &Moment<'_>,
    state: &mut State,
    queue: &[usize],
    placements: &mut [Placement],
    foresight: Foresight,
    events: &mut Vec<Event>,
) -> Dispatch {
    let Foresight { shadow, ends, guard, places } = foresight;
    let mut hall = Hall {
        moment,
        placements,
        shadow,
        ends,
        guard,
        places,
        kept: None,
        first: None,
        stopped: Vec::new(),
        starts: Vec::new(),
        most: breaker::most_submissions(moment.policy, &state.caution, moment.now),
        in_vain: QuickMap::default(),
    };
    let mut waits: Vec<(usize, Reason)> = Vec::new();
    for &shard in queue {
        // Who has started in this cycle has left the queue.
        let rank = waits.len() as u32 + 1;
        if let Some(reason) = hall.serve(state, shard, rank, events) {
            hall.first.get_or_insert_with(|| moment.policy.shards[shard].id.to_string().into());
            waits.push((shard, reason));
        }
    }
    let Hall { starts, kept, placements, .. } = hall;
    if let Some((pin, gpus)) = kept
        && let Some(at) = placements.iter_mut().find(|p| p.pin == pin)
    {
        shadow::keep(at, gpus);
    }
    Dispatch { starts, waits }
}

/// What one shard may ask of the placements.
#[derive(Debug, Clone, Copy)]
struct Asks<'a> {
    shard: usize,
    min: Option<u32>,
    held: &'a Option<(Pin, u32)>,
    /// It may draw from what others have reserved.
    soft: bool,
    shunned: &'a [String],
}

/// What one shard asks of a placement: shards of one class have the same answer.
type Class<'a> = (u32, Option<u32>, Option<u32>, Option<&'a str>);

/// One pass over the queue.
struct Hall<'a> {
    moment: &'a Moment<'a>,
    placements: &'a mut [Placement],
    /// When those ahead will start, where that is how GPUs are kept for them.
    shadow: Option<Shadow>,
    /// When the GPUs of each placement will be free, where a reservation is begun by that.
    ends: Option<Shadow>,
    /// What is taken last of all, since wider ones will start there.
    guard: Option<Guard>,
    places: FitPlaces,
    /// Where rank 1 will start, and its GPUs: our jobs in Slurm's queue are kept off there.
    kept: Option<(Pin, u32)>,
    /// The first that waits, for those behind.
    first: Option<Arc<str>>,
    /// Backfill jobs that were told to stop in this pass.
    stopped: Vec<JobId>,
    starts: Vec<Start>,
    /// Submissions that this cycle may make.
    most: usize,
    /// Classes that found no place in this pass. Only rank 1 can give GPUs back (a swap), and it
    /// is served first, so whoever comes later and asks the same finds none either.
    in_vain: QuickMap<Class<'a>, Reason>,
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
        let record = &state.shards[i];
        let min = record.min_tier.or(shard.min_tier);
        let shunned = bad_nodes::shunned(policy, state, i, self.placements, now);
        let record = &mut state.shards[i];
        let class = (shard.gpus, min, shard.cpus, shard.mem.as_deref());
        // With soft reservations a holder behind rank 1 may swap, too.
        let once_vain = self.shadow.is_none() && policy.rules.place.r3 == R3::Release;
        if let Some(reason) = self.in_vain.get(&class).filter(|_| once_vain) {
            return Some(self.again(reason, rank));
        }
        let held = record.reservation.as_ref().map(|r| (r.pin.clone(), r.gpus));
        let soft = rank == 1 && policy.rules.place.r3 == R3::Soft;
        let asks = Asks { shard: i, min, held: &held, soft, shunned: &shunned };
        if let Some(p) = self.best(&asks, Wants::Start) {
            if self.starts.len() >= self.most {
                return Some(breaker::not_now(&state.caution, rank, now));
            }
            if let Some((pin, gpus)) = &held
                && let Some(old) = self.placements.iter_mut().find(|p| p.pin == *pin)
            {
                old.reserved = old.reserved.saturating_sub(*gpus);
            }
            reservation::led_to_start(record);
            self.draw(state, &asks, p, events);
            self.start(i, p);
            return None;
        }
        if let Some((pin, gpus)) = &held {
            if let Some(p) = self.placements.iter().position(|p| p.pin == *pin) {
                self.draw(state, &asks, p, events);
            }
            let record = &mut state.shards[i];
            let reason = collect_more(record, shard.gpus, pin, *gpus, self.placements);
            // All its GPUs may be there and kept for it, and something else be missing.
            let all = matches!(reason, Some(Reason::Collecting { have, need, .. }) if have >= need);
            return if all { Some(Reason::NoCpusOrMemory) } else { reason };
        }
        if self.shadow.is_some() {
            return Some(self.keep(state, i, &shunned, rank));
        }
        if rank == 1
            && policy.rules.place.reserve == Reserve::Mark
            && shard.gpus >= 2
            && let Some(p) = self.best(&asks, Wants::Any)
        {
            self.draw(state, &asks, p, events);
            let (record, at) = (&mut state.shards[i], &mut self.placements[p]);
            let gpus = at.free().min(shard.gpus);
            let what = reservation::begin(record, at, gpus, now);
            events.push(Event { at: now, shard: Some(record.id.clone()), what });
            return Some(collecting(&at.pin, gpus, shard.gpus));
        }
        let reason = self.why_not(shard, min, &shunned, rank);
        // The next of this class may be let on the nodes that this one is kept off.
        if shunned.is_empty() {
            self.in_vain.insert(class, reason.clone());
        }
        Some(self.again(&reason, rank))
    }

    /// `r3 = "soft"`: what rank 1 needs of a placement, beside the free GPUs and its own reserved ones,
    /// comes out of what others have reserved there.
    fn draw(&mut self, state: &mut State, asks: &Asks<'_>, p: usize, events: &mut Vec<Event>) {
        let Moment { policy, now, .. } = *self.moment;
        let need = policy.shards[asks.shard].gpus;
        let at = &mut self.placements[p];
        let own = state.shards[asks.shard].reservation.as_ref();
        let own = own.filter(|r| r.pin == at.pin).map_or(0, |r| r.gpus);
        let more = need.saturating_sub(at.free() + own);
        if asks.soft && more > 0 {
            reservation::draw(policy, state, asks.shard, at, more, now, events);
        }
    }

    /// The best placement that gives what is wanted: tier rank descending, then idle descending,
    /// then name. Where one is begun and `reserve_at` says so, the earliest to be all free goes first;
    /// `placement_order = "guard"` takes what wider ones will need last, and the fullest first. What
    /// others have reserved is drawn on last of all.
    fn best(&self, asks: &Asks<'_>, wants: Wants) -> Option<usize> {
        let without = self.best_with(&Asks { soft: false, ..*asks }, wants);
        without.or_else(|| if asks.soft { self.best_with(asks, wants) } else { None })
    }

    fn best_with(&self, asks: &Asks<'_>, wants: Wants) -> Option<usize> {
        let Asks { shard: i, min, held, soft, shunned } = *asks;
        let policy = self.moment.policy;
        let shard = &policy.shards[i];
        let delays_nobody = |at: usize| {
            let shadow = self.shadow.as_ref().filter(|_| wants == Wants::Start);
            shadow.is_none_or(|shadow| shadow.lets_start(i, shard.gpus, at))
        };
        // What this shard may draw from a placement: the free GPUs and its own reserved ones.
        let draw = |p: &Placement| match held {
            // Reserved is all that anybody has there, this shard too.
            _ if soft => p.idle,
            Some((pin, gpus)) if *pin == p.pin => p.free() + gpus,
            _ => p.free(),
        };
        let good = |(at, p): &(usize, &Placement)| {
            let enough = match wants {
                Wants::Start => draw(p) >= shard.gpus && has_room_beside_gpus(shard, p),
                Wants::Any => draw(p) > 0,
            };
            enough
                && p.up
                && !shunned.contains(&p.pin.node)
                && fits(policy, shard, min, p)
                && delays_nobody(*at)
        };
        let guard = self.guard.as_ref();
        let missed = |at: usize| guard.map_or(0, |guard| guard.wanted_by(shard.gpus, at));
        let packs = guard.is_some() && wants == Wants::Start;
        let ends = self.ends.as_ref().filter(|_| wants == Wants::Any);
        let whole = |at: usize| ends.map(|ends| ends.earliest(i, shard.gpus, at));
        let order = |(m, a): (usize, &Placement), (n, b): (usize, &Placement)| {
            whole(m)
                .cmp(&whole(n))
                .then(missed(m).cmp(&missed(n)))
                .then(b.rank.cmp(&a.rank))
                .then(if packs { draw(a).cmp(&draw(b)) } else { draw(b).cmp(&draw(a)) })
                .then(a.pin.cmp(&b.pin))
        };
        let places = self.placements.iter().enumerate().filter(good);
        places.min_by(|a, b| order(*a, *b)).map(|(p, _)| p)
    }

    /// Keeps its earliest start from those behind; says why it waits.
    fn keep(&mut self, state: &State, i: usize, shunned: &[String], rank: u32) -> Reason {
        let policy = self.moment.policy;
        let shard = &policy.shards[i];
        let fit = self.places.of(policy, state, i, self.placements, shunned);
        if fit.is_empty() {
            return Reason::FitNodesDown;
        }
        let kept = match &mut self.shadow {
            Some(shadow) if shard.gpus >= 2 => shadow.waits(i, shard.gpus, &fit),
            _ => None,
        };
        if let Some(at) = kept.and_then(|(at, _)| self.placements.get_mut(at)).filter(|_| rank == 1)
        {
            self.kept = Some((at.pin.clone(), shard.gpus));
        }
        let idle = fit.iter().filter_map(|at| self.placements.get(*at)).map(|p| p.idle).sum();
        let ahead = self.first.clone().filter(|_| rank > 1);
        Reason::QueueWait { rank, ahead, idle_but_reserved: idle }
    }

    fn start(&mut self, i: usize, p: usize) {
        let Moment { policy, cluster, .. } = *self.moment;
        if let Some(shadow) = &mut self.shadow {
            shadow.starts(i, policy.shards[i].gpus, p);
        }
        let at = &mut self.placements[p];
        let truly_idle = at.idle.saturating_sub(at.held_by_backfill);
        let need = policy.shards[i].gpus.saturating_sub(truly_idle);
        let stop = backfill::to_stop(&at.pin, &at.model, need, policy, cluster, &self.stopped);
        self.stopped.extend(stop.iter().map(|(job, _)| *job));
        at.held_by_backfill = at.held_by_backfill.saturating_sub(need);
        let (pin, model) = (at.pin.clone(), at.model.clone());
        let shard = &policy.shards[i];
        give(self.placements, &pin, shard.gpus, shard);
        self.starts.push(Start { shard: i, pin, model, stop });
    }

    fn why_not(&self, shard: &Shard, min: Option<u32>, shunned: &[String], rank: u32) -> Reason {
        let policy = self.moment.policy;
        let fit = || {
            let may = |p: &&Placement| !shunned.contains(&p.pin.node);
            self.placements.iter().filter(may).filter(|p| fits(policy, shard, min, p))
        };
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
