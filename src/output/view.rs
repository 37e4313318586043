//! From policy and state to the values of the status contract, which table and JSON both show.

use std::collections::BTreeMap;

use crate::model::caution::NodeMarks;
use crate::model::cluster::JobState;
use crate::model::notice::{Delivery, DeliveryEnd};
use crate::model::policy::{Lane, Policy, Shard};
use crate::model::reason::Reason;
use crate::model::state::{Live, Reservation, ShardRecord, Slot, State, TickOutcome, TickRecord};
use crate::model::units::{Money, Time, Usage};
use crate::planning::eta::Eta;
use crate::planning::lpt::Lpt;
use crate::planning::queue;

pub use super::contract::*;
use super::format::{iso, secs, share};
use super::notify;
use super::why;
use super::word::{self, Word};

/// What was computed from policy and state, by shard index.
pub struct Figures {
    pub lpt: Lpt,
    pub etas: Vec<Option<Eta>>,
    pub reasons: Vec<Reason>,
    pub done: Vec<bool>,
}

/// The status of the shards that `wanted` keeps (by index); the labs are shown whole.
pub fn status(
    policy: &Policy,
    state: &State,
    figures: &Figures,
    now: Time,
    wanted: impl Fn(usize, Word) -> bool,
) -> Status {
    let prices = prices(policy, state);
    let helping = state.busy_helpers();
    let mut shards = Vec::new();
    let pairs = policy.shards.iter().take(policy.named()).zip(&state.shards);
    for (i, (shard, record)) in pairs.enumerate() {
        let helpers = helping.iter().filter(|r| r.id.helps(&shard.id)).map(|r| helper(r)).collect();
        let view = shard_view(policy, state, figures, i, (shard, record, helpers), prices[i], now);
        if wanted(i, view.state) {
            shards.push(view);
        }
    }
    Status {
        schema: SCHEMA,
        project: policy.project.clone(),
        generated_at: iso(now),
        last_tick: state.last_tick.as_ref().map(|tick| last_tick(tick, now)),
        totals: totals(&shards, now),
        shards,
        labs: labs(policy, state),
        kept_out: kept_out(state, now),
        history: Vec::new(),
        notify: policy.notify.as_ref().zip(state.notices.last.as_ref()).map(|(hook, last)| {
            let Delivery { at, events, end } = last;
            let (outcome, reason) = match end {
                DeliveryEnd::InHand => ("in-hand", None),
                DeliveryEnd::Delivered => ("delivered", None),
                DeliveryEnd::Failed(said) => ("failed", Some(said.clone())),
            };
            let trouble = notify::trouble(last, hook, now);
            Notified { at: iso(*at), events: *events, outcome, reason, trouble }
        }),
        left_over: state
            .orphans
            .iter()
            .filter(|record| {
                !record.id.is_helper()
                    || !policy.shards.iter().any(|shard| record.id.helps(&shard.id))
            })
            .filter_map(left_over)
            .collect(),
    }
}

fn kept_out(state: &State, now: Time) -> Vec<KeptOut> {
    let nodes = state.caution.nodes.iter();
    let out = nodes.filter_map(|(node, marks)| Some((node, marks, marks.out_until?)));
    let view = |(node, marks, until): (&String, &NodeMarks, Time)| KeptOut {
        node: node.clone(),
        deaths: marks.deaths.len() as u32,
        until: iso(until),
        seconds_left: until.since(now).as_f64(),
    };
    out.filter(|(.., until)| *until > now).map(view).collect()
}

fn left_over(record: &ShardRecord) -> Option<LeftOver> {
    let (gpus, job) = match &record.slot {
        Slot::Submitting(intent) => (intent.attempt.gpus, None),
        Slot::Live(live) => (live.attempt.gpus, Some(job(live))),
        Slot::Free | Slot::Settling(_) => return None,
    };
    Some(LeftOver { shard: record.id.to_string(), lab: record.lab.clone(), job, gpus })
}

fn last_tick(record: &TickRecord, now: Time) -> LastTick {
    let TickRecord { at, outcome, skipped_in_a_row, last_ok } = record;
    let (outcome, reason) = match outcome {
        TickOutcome::Ok => ("ok", None),
        TickOutcome::Skipped(why) => ("skipped", Some(why.clone())),
        TickOutcome::Failed(why) => ("failed", Some(why.clone())),
    };
    LastTick {
        at: iso(*at),
        outcome,
        reason,
        skipped_in_a_row: *skipped_in_a_row,
        last_ok: last_ok.map(iso),
        seconds_ago: now.since(*at).0,
        record: record.clone(),
    }
}

#[allow(clippy::too_many_arguments, reason = "one caller; a struct would only rename them")]
fn shard_view(
    policy: &Policy,
    state: &State,
    figures: &Figures,
    i: usize,
    (shard, record, helpers): (&Shard, &ShardRecord, Vec<Helper>),
    price: Option<f64>,
    now: Time,
) -> ShardView {
    let reason = figures.reasons[i].clone();
    let state_word = word::of(record, figures.done[i], &reason);
    let running = record.live().is_some_and(|live| live.state == JobState::Running);
    let at_work = |helper: &&Helper| helper.job.as_ref().is_some_and(|j| j.started_at.is_some());
    let workers = usize::from(running) + helpers.iter().filter(at_work).count();
    let seconds_per_row = figures.lpt.seconds_per_row[i];
    let eta = figures.etas[i];
    ShardView {
        id: shard.id.to_string(),
        family: shard.id.family.to_string(),
        shard: shard.id.shard.to_string(),
        lab: shard.lab.to_string(),
        state: state_word,
        why: why::sentence(&reason, now),
        why_code: why::code(&reason),
        needs_person: word::needs_person(state_word, record, &reason),
        gpus: shard.gpus,
        rows: Rows { done: record.progress.rows.min(shard.rows), total: shard.rows },
        rows_per_hour: if workers > 0 && seconds_per_row > 0.0 {
            workers as f64 * 3600.0 / seconds_per_row
        } else {
            0.0
        },
        seconds_per_row,
        rate_is_configured: !figures.lpt.measured[i],
        remaining_seconds: figures.lpt.remaining[i],
        eta: eta.map(|eta| iso(now + secs(eta.seconds))),
        cost: cost(record, price, state.cap_of(&shard.id, shard.cap), figures.done[i], shard.rows),
        job: record.live().map(job),
        helpers,
        reservation: record.reservation.as_ref().map(reserved),
        attempts: record.attempts,
        failures: record.failures,
        preemptions: record.preemptions,
        min_tier: record
            .min_tier
            .or(shard.min_tier)
            .and_then(|rank| policy.tier_by_rank(rank))
            .map(|tier| tier.name.clone()),
        reason,
        eta_seconds: eta.map(|eta| eta.seconds),
    }
}

/// Dollars per row of each shard: its own so far, else its family's.
fn prices(policy: &Policy, state: &State) -> Vec<Option<f64>> {
    let of = |records: &mut dyn Iterator<Item = &ShardRecord>| {
        let (mut spent, mut rows) = (Money::ZERO, 0u64);
        for record in records {
            if let Some(money) = record.progress.spent.filter(|_| record.progress.rows > 0) {
                spent += money;
                rows += u64::from(record.progress.rows);
            }
        }
        (rows > 0).then(|| spent.dollars() / rows as f64)
    };
    let mut families: Vec<(&str, Option<f64>)> = Vec::new();
    let mut family_price = |family: &'_ str| match families.iter().find(|(f, _)| *f == family) {
        Some((_, price)) => *price,
        None => {
            let mut members = state.shards.iter().filter(|r| r.id.family == family);
            let price = of(&mut members);
            if let Some(shard) = policy.shards.iter().find(|s| s.id.family == family) {
                families.push((shard.id.family.as_str(), price));
            }
            price
        }
    };
    policy
        .shards
        .iter()
        .zip(&state.shards)
        .map(|(shard, record)| {
            shard.cost.as_ref()?;
            of(&mut std::iter::once(record)).or_else(|| family_price(&shard.id.family))
        })
        .collect()
}

fn cost(
    record: &ShardRecord,
    price: Option<f64>,
    cap: Option<Money>,
    done: bool,
    rows: u32,
) -> Cost {
    let spent = record.progress.spent.unwrap_or_default().dollars();
    let left = if done { 0 } else { rows.saturating_sub(record.progress.rows) };
    let projected = match price {
        Some(price) => Some(spent + f64::from(left) * price),
        None => (left == 0).then_some(spent),
    };
    let cap = cap.map(Money::dollars);
    let will_pass_cap = !done && matches!((projected, cap), (Some(p), Some(cap)) if p > cap);
    Cost { spent, cap, per_row: price, projected, will_pass_cap }
}

fn job(live: &Live) -> Job {
    let Live { attempt, job, submitted, state, qos, nodes, started, tier, .. } = live;
    let word = match state {
        JobState::Pending => "PENDING".to_owned(),
        JobState::Running => "RUNNING".to_owned(),
        JobState::Alive(word) => word.clone(),
        JobState::Over(word) => word.word().to_owned(),
    };
    Job {
        id: job.0,
        qos: qos.clone(),
        state: word,
        node: (!nodes.is_empty()).then(|| nodes.join(",")),
        tier: tier.clone().or_else(|| attempt.pin.as_ref().map(|pin| pin.tier.clone())),
        submitted_at: Some(iso(submitted.unwrap_or(attempt.asked_at))),
        started_at: started.map(iso),
    }
}

fn helper(record: &ShardRecord) -> Helper {
    let lane = match &record.slot {
        Slot::Live(live) => live.lane,
        Slot::Submitting(intent) => intent.attempt.lane,
        Slot::Free | Slot::Settling(_) => None,
    };
    let job = record.live().map(job);
    Helper { id: record.id.to_string(), job, lane: lane.map(Lane::word) }
}

fn reserved(reservation: &Reservation) -> Reserved {
    let Reservation { pin, gpus, since, accrued_at: _, gpu_seconds: _ } = reservation;
    Reserved { node: pin.node.clone(), tier: pin.tier.clone(), gpus: *gpus, since: iso(*since) }
}

/// Next in turn first. Labs that shards.toml no longer has are listed as long as they have usage.
pub(super) fn labs(policy: &Policy, state: &State) -> Vec<LabView> {
    let mut running: BTreeMap<&str, u32> = BTreeMap::new();
    for (shard, record) in policy.shards.iter().zip(&state.shards) {
        let gpus = running.entry(&shard.lab).or_default();
        if let Some(live) = record.live().filter(|live| live.state.holds_gpus()) {
            *gpus += live.attempt.gpus;
        }
    }
    // Those of helpers are their lab's too, wherever their records are.
    for record in state.busy_helpers() {
        let counted = policy.shards.iter().any(|shard| shard.id == record.id);
        let live = record.live().filter(|live| live.state.holds_gpus() && !counted);
        let gpus = running.get_mut(record.lab.as_str());
        if let (Some(live), Some(gpus)) = (live, gpus) {
            *gpus += live.attempt.gpus;
        }
    }
    for (name, _) in state.labs.iter().filter(|(_, lab)| lab.usage > Usage::default()) {
        running.entry(name).or_default();
    }
    let all: Usage = state.labs.values().map(|lab| lab.usage).sum();
    let mut labs: Vec<(Usage, LabView)> = Vec::new();
    for (name, running_gpus) in running {
        let usage = state.labs.get(name).map(|lab| lab.usage).unwrap_or_default();
        let standing = queue::standing(state, name);
        let view = LabView {
            name: name.to_owned(),
            usage: usage.tflop_seconds(),
            share: share(usage, all),
            running_gpus,
            rank: 0,
            standing: standing.tflop_seconds(),
        };
        labs.push((standing, view));
    }
    // By name among equals: that is the order of the map.
    labs.sort_by_key(|(standing, _)| *standing);
    let ranked = labs.into_iter().zip(1..);
    ranked.map(|((_, lab), rank)| LabView { rank, ..lab }).collect()
}

fn totals(shards: &[ShardView], now: Time) -> Totals {
    let count = |words: &[Word]| shards.iter().filter(|s| words.contains(&s.state)).count() as u32;
    let sum = |of: fn(&ShardView) -> f64| shards.iter().map(of).sum::<f64>();
    let etas = || shards.iter().filter_map(|s| s.eta_seconds);
    let eta_seconds = etas().reduce(f64::max);
    let caps: Option<Vec<f64>> = shards
        .iter()
        .filter(|s| s.cost.cap.is_some() || s.cost.per_row.is_some() || s.cost.spent > 0.0)
        .map(|s| s.cost.cap)
        .collect();
    Totals {
        shards: shards.len() as u32,
        done: count(&[Word::Done]),
        running: count(&[Word::Running]),
        pending: count(&[Word::Pending]),
        waiting: count(&[Word::Waiting, Word::Reserving, Word::Submitting, Word::Backoff]),
        needs_person: shards.iter().filter(|s| s.needs_person).count() as u32,
        rows_done: shards.iter().map(|s| u64::from(s.rows.done)).sum(),
        rows_total: shards.iter().map(|s| u64::from(s.rows.total)).sum(),
        rows_per_hour: sum(|s| s.rows_per_hour),
        eta: eta_seconds.map(|seconds| iso(now + secs(seconds))),
        spent: sum(|s| s.cost.spent),
        projected: sum(|s| s.cost.projected.unwrap_or(s.cost.spent)),
        ceiling: caps.filter(|caps| !caps.is_empty()).map(|caps| caps.iter().sum()),
        eta_seconds,
        eta_is_guess: shards.iter().any(|s| s.eta_seconds.is_some() && s.rate_is_configured),
    }
}
