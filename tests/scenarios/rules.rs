//! What must hold after every tick, worked out here from Slurm's side and the state alone: nothing
//! of this file uses the planner's own code.

use std::collections::BTreeMap;

use babysit::engine::Report;
use babysit::model::cluster::JobState;
use babysit::model::policy::{Policy, R3, Reserve, Shard, SubmitMode};
use babysit::model::reason::Reason;
use babysit::model::state::{Attempt, Gate, Pin, Reservation, ShardRecord, Slot, State};
use babysit::planning::event::{Event, What};
use babysit::planning::plan::Action;
use babysit::sim::{Cluster, Controller, Rows};
use babysit::slurm::{Scope, Slurm};
use babysit::study::World;

use crate::bills;

pub type Seen = babysit::model::observation::Cluster;
/// By shard, where it was started in this cycle.
type Started = BTreeMap<usize, Pin>;

/// One model on one node, counted from sinfo and squeue.
#[derive(Debug, Clone)]
pub struct Spot {
    pub pin: Pin,
    pub rank: u32,
    pub capacity: u32,
    /// Used by jobs that run and are no backfill.
    pub running: u32,
    /// Free, or held by backfill, and not promised to a job of ours that was pinned to it.
    pub idle: u32,
    pub cpus_idle: u32,
    pub up: bool,
    /// Neither down nor drained; all its CPUs may be taken.
    pub there: bool,
}

/// What squeue and sinfo would show, whatever their luck; nobody counts this look.
pub fn look(cluster: &mut Cluster<Rows>) -> Seen {
    let faults = std::mem::replace(&mut cluster.faults, babysit::sim::Faults::none());
    let calls = cluster.calls;
    let seen = cluster.door("alice").look(Scope::Everybody).unwrap_or_else(|_| {
        // The controller does not answer: a copy's does.
        let mut copy = cluster.clone();
        copy.controller(Controller::Up);
        copy.door("alice").look(Scope::Everybody).expect("a healthy cluster")
    });
    cluster.faults = faults;
    cluster.calls = calls;
    seen
}

/// Every spot of a configured tier, as it was before the cycle gave anything. Backfill is told by
/// its QOS only, and its requests are typed or on a node of one model: that is what the scenarios
/// and the random clusters are made of.
fn spots(policy: &Policy, state: &State, seen: &Seen, started: &Started) -> Vec<Spot> {
    let waiting =
        |i: usize| attempt_before_its_start(&state.shards[i]).filter(|_| !started.contains_key(&i));
    let yields = policy.backfill.as_ref().and_then(|rule| rule.qos.clone());
    let mut all = Vec::new();
    for node in &seen.nodes {
        let about = (0..policy.shards.len()).filter(|&i| {
            waiting(i).and_then(|a| a.pin.as_ref()).is_some_and(|pin| pin.node == node.name)
        });
        let cpus_promised: u32 = about.map(|i| policy.shards[i].cpus.unwrap_or(0)).sum();
        let groups = node.gpus.as_ref().expect("readable");
        for group in groups {
            let model = group.model.clone().expect("a model");
            let Some(tier) = policy.tiers.iter().find(|tier| tier.name == model) else { continue };
            let here = seen
                .jobs
                .iter()
                .filter(|job| job.state == JobState::Running && job.nodes.contains(&node.name));
            let backfill = here.filter(|job| yields.as_deref() == Some(&*job.qos)).map(|job| {
                let typed = |ask: &&babysit::model::cluster::GpuCount| {
                    ask.model.as_deref().unwrap_or(&model) == model
                };
                job.asked.iter().filter(typed).map(|ask| ask.count).sum::<u32>()
            });
            let backfill: u32 = backfill.sum();
            let pin = Pin { node: node.name.clone(), tier: tier.name.clone() };
            let here = |i: usize| waiting(i).filter(|a| a.pin.as_ref() == Some(&pin));
            let promised: u32 = (0..policy.shards.len()).filter_map(here).map(|a| a.gpus).sum();
            let running = group.used - backfill;
            all.push(Spot {
                idle: (group.capacity - running).saturating_sub(promised),
                pin,
                rank: tier.rank,
                capacity: group.capacity,
                running,
                cpus_idle: node.cpus_idle.unwrap_or(u32::MAX).saturating_sub(cpus_promised),
                up: node.usable == babysit::model::cluster::Usable::Yes,
                there: node.usable != babysit::model::cluster::Usable::No,
            });
        }
    }
    all
}

fn attempt_before_its_start(record: &ShardRecord) -> Option<&Attempt> {
    match &record.slot {
        Slot::Submitting(intent) => Some(&intent.attempt),
        Slot::Live(live) if live.started.is_none() => Some(&live.attempt),
        _ => None,
    }
}

/// Waits in babysit's own queue.
pub fn waits(shard: &Shard, record: &ShardRecord) -> bool {
    shard.submit == SubmitMode::Placed
        && record.slot == Slot::Free
        && record.gate == Gate::Open
        && record.over_cap.is_none()
        && record.finished.is_none()
        && record.progress.measured_at.is_some()
}

fn could_ever(shard: &Shard, record: &ShardRecord, spot: &Spot) -> bool {
    let min = record.min_tier.or(shard.min_tier).unwrap_or(0);
    spot.rank >= min && spot.capacity >= shard.gpus
}

/// Everything that holds whatever went wrong, also after a cycle that was cut.
pub fn always(world: &mut World) {
    no_overlaps(world);
    let World { policy, state, cluster, .. } = world;
    cluster.check().expect("the simulated cluster is consistent");
    bills::money(policy, state);
    bills::runs(policy, state, cluster);
}

/// No shard has two live jobs, ever.
pub fn no_overlaps(world: &World) {
    let overlaps = world.cluster.overlaps();
    assert!(overlaps.is_empty(), "two live jobs of one shard: {overlaps:?}");
}

/// After a cycle that went to its end: the queue rule, reservations, reasons. `before` is what Slurm
/// showed to it.
pub fn after_tick(world: &World, before: &Seen, report: &Report) {
    let mut started = Started::new();
    for action in &report.plan.actions {
        if let Action::Submit(submit) = action
            && let Some(pin) = &submit.attempt.pin
        {
            started.insert(submit.shard, pin.clone());
        }
    }
    let spots = spots(&world.policy, &world.state, before, &started);
    reservations(world, &spots, &started, cut(report));
    // With shadows an idle GPU may be left to somebody ahead: `shadows.rs` says when.
    let marks = world.policy.rules.place.reserve == Reserve::Mark;
    if !cut(report) && marks && !reorders(world, report) {
        queue_rule(world, &spots, &started);
    }
    reasons(&world.policy, &world.state);
}

/// A submission was not taken as it was planned.
pub fn cut(report: &Report) -> bool {
    report.events.iter().any(|event| {
        matches!(
            event.what,
            What::OutcomeUnknown { .. } | What::SubmitPaused { .. } | What::SubmitRefused { .. }
        )
    })
}

/// Rank 1 drew the last GPU of a soft reservation, which was charged in the middle of the dispatch: the
/// order of the labs is another one now than that which the cycle went by.
pub fn reorders(world: &World, report: &Report) -> bool {
    let released =
        |event: &Event| matches!(event.what, What::ReservationReleased { gpu_seconds: 1.., .. });
    world.policy.rules.place.r3 == R3::Soft && report.events.iter().any(released)
}

/// Its submission, or the end of its job, is not known yet, or its log is read in the next cycle.
pub fn is_looked_for(record: &ShardRecord) -> bool {
    match &record.slot {
        Slot::Submitting(_) | Slot::Settling(_) => true,
        Slot::Live(live) => live.absent.is_some(),
        Slot::Free => false,
    }
}

/// An action in one line.
pub fn in_short(action: &Action) -> String {
    match action {
        Action::Submit(submit) => format!("submit {} {:?}", submit.id, submit.attempt.pin),
        other => format!("{other:?}"),
    }
}

fn standing(state: &State, lab: &str) -> u64 {
    state.labs.get(lab).map_or(0, |has| has.usage.0 + has.floor.0)
}

/// Nobody waits for GPUs that he, in his turn, could have had: not those that are idle now, and
/// not those that a later rank was given in this very cycle.
fn queue_rule(world: &World, spots: &[Spot], started: &Started) {
    let World { policy, state, .. } = world;
    let in_queue =
        |i: &usize| started.contains_key(i) || waits(&policy.shards[*i], &state.shards[*i]);
    let mut order: Vec<usize> = (0..policy.shards.len()).filter(in_queue).collect();
    order.sort_by_key(|&i| {
        let shard = &policy.shards[i];
        (standing(state, &shard.lab), state.shards[i].queued_since, shard.id.clone())
    });
    for (place, &i) in order.iter().enumerate() {
        let (shard, record) = (&policy.shards[i], &state.shards[i]);
        let put_off = matches!(
            record.why,
            Reason::SubmitBudget { .. } | Reason::SlurmBusy { .. } | Reason::BreakerOpen { .. }
        );
        if started.contains_key(&i) || put_off {
            continue;
        }
        // A node on which jobs died is left alone for a while.
        let died_there = |spot: &&Spot| {
            state.caution.nodes.get(&spot.pin.node).is_some_and(|marks| {
                marks.out_until.is_some() || marks.deaths.iter().any(|d| d.shard == shard.id)
            })
        };
        let could = spots.iter().filter(|s| s.up && could_ever(shard, record, s));
        for spot in could.filter(|spot| !died_there(spot)) {
            let (mut gpus_given, mut cpus_given) = (0, 0);
            for j in order[..place].iter().filter(|j| started.contains_key(j)) {
                let given = &policy.shards[*j];
                let here = started[j].node == spot.pin.node;
                cpus_given += if here { given.cpus.unwrap_or(0) } else { 0 };
                gpus_given += if started[j] == spot.pin { given.gpus } else { 0 };
            }
            let kept: u32 = (0..policy.shards.len())
                .filter(|j| *j != i)
                .filter_map(|j| state.shards[j].reservation.as_ref())
                .filter(|reservation| reservation.pin == spot.pin)
                .map(|reservation| reservation.gpus)
                .sum();
            // A soft reservation outlasts its holder's rank: who came later has started on his own.
            let soft = policy.rules.place.r3 == R3::Soft;
            let later = order[place + 1..].iter().filter(|j| soft && started.contains_key(j));
            let owed = later.flat_map(|j| &state.shards[*j].owed).filter(|owed| owed.started);
            let own = owed.filter(|owed| owed.reservation.pin == spot.pin);
            let kept = kept + own.map(|owed| owed.reservation.gpus).sum::<u32>();
            let could_have = spot.idle.saturating_sub(gpus_given + kept);
            let cpus = shard.cpus.is_none_or(|want| spot.cpus_idle >= want + cpus_given);
            assert!(
                could_have < shard.gpus || !cpus,
                "{} (place {}) waits for {} GPUs while {:?} had {could_have} for it: {:?} {:?} {:?}",
                shard.id,
                place + 1,
                shard.gpus,
                spot.pin,
                record.why,
                shard.cpus,
                spot
            );
        }
    }
}

fn reservations(world: &World, spots: &[Spot], started: &Started, cut: bool) {
    let World { policy, state, .. } = world;
    let held: Vec<(usize, &Reservation)> = state
        .shards
        .iter()
        .enumerate()
        .filter_map(|(i, record)| Some((i, record.reservation.as_ref()?)))
        .collect();
    // R3 and what follows from it; a soft one outlasts its holder's rank.
    let soft = policy.rules.place.r3 == R3::Soft;
    assert!(soft || held.len() <= 1, "more than one reservation: {held:?}");
    for (i, reservation) in held {
        let (shard, record) = (&policy.shards[i], &state.shards[i]);
        assert!(waits(shard, record), "{}: a reservation, and it does not wait", shard.id);
        assert!(shard.gpus >= 2, "R2: {} has a reservation", shard.id);
        assert!(reservation.gpus >= 1, "{}: a reservation of nothing", shard.id);
        assert!(reservation.gpus <= shard.gpus, "{}: more than it needs", shard.id);
        let me = (standing(state, &shard.lab), record.queued_since, &shard.id);
        for (other, has) in policy.shards.iter().zip(&state.shards) {
            let fits = spots.iter().any(|spot| could_ever(other, has, spot));
            // One whose submission was not taken is back in the queue only now.
            if !cut && !soft && fits && waits(other, has) {
                let it = (standing(state, &other.lab), has.queued_since, &other.id);
                assert!(me <= it, "{} holds a reservation, {} is before it", shard.id, other.id);
            }
        }
        let spot = spots.iter().find(|spot| spot.pin == reservation.pin && spot.there);
        let spot = spot.unwrap_or_else(|| panic!("{}: its placement is gone", shard.id));
        let here = started.iter().filter(|(_, pin)| **pin == spot.pin);
        let given: u32 = here.map(|(i, _)| policy.shards[*i].gpus).sum();
        assert!(
            reservation.gpus + given <= spot.idle,
            "reserved GPUs were given away: {reservation:?} {given} of {spot:?}"
        );
        assert!(spot.running + spot.idle <= spot.capacity, "{spot:?}");
    }
}

/// The reason agrees with what the shard is doing.
fn reasons(policy: &Policy, state: &State) {
    for (shard, record) in policy.shards.iter().zip(&state.shards) {
        let why = &record.why;
        assert!(*why != Reason::NotLookedYet, "{}: no reason", shard.id);
        let agrees = match &record.slot {
            Slot::Live(live) if live.state == JobState::Running && live.absent.is_none() => {
                matches!(
                    why,
                    Reason::Running { .. }
                        | Reason::Stopping { .. }
                        | Reason::Stalled { .. }
                        | Reason::AllRows { .. }
                        | Reason::RunsHeld { .. }
                )
            }
            Slot::Live(_) => !matches!(
                why,
                Reason::Running { .. }
                    | Reason::Done
                    | Reason::QueueWait { .. }
                    | Reason::Collecting { .. }
            ),
            Slot::Submitting(_) => {
                matches!(why, Reason::OutcomeUnknown { .. } | Reason::Submitted)
            }
            // Late files change nothing about a cap or about what a person asked for.
            Slot::Settling(_) => matches!(
                why,
                Reason::Settling { .. }
                    | Reason::OverCap { .. }
                    | Reason::HeldByPerson { .. }
                    | Reason::Cancelled { .. }
            ),
            Slot::Free if record.finished.is_some() => *why == Reason::Done,
            Slot::Free => !matches!(why, Reason::Running { .. } | Reason::PendingInSlurm { .. }),
        };
        assert!(agrees, "{}: {:?} with {why:?}", shard.id, record.slot);
        if record.reservation.is_some() {
            let says = matches!(
                why,
                Reason::Collecting { .. }
                    | Reason::NoCpusOrMemory
                    | Reason::SubmitBudget { .. }
                    | Reason::SlurmBusy { .. }
            );
            assert!(says, "{}: holds a reservation and says {why:?}", shard.id);
        }
    }
}
