//! `babysit usage`: every charge, what they add up to for each lab, and how its reservations fared
//! (policy.md section 7, "to be watched in operation"). The JSON is `babysit/usage/v1`.
//!
//! What counts as what:
//! - begun: every reservation there was: charged, owed, or standing now;
//! - started: it led to a start (charged as such, or owed with the run in hand);
//! - failed: it ended without one (charged as released, or owed until the shard's next job ends);
//! - the mean length is that of those that ended.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::model::policy::Policy;
use crate::model::state::{Charge, ChargeKind, ShardRecord, State};
use crate::model::units::{Secs, Time, Usage};

use super::format::{count, iso, secs, share, span, usage};
use super::layout::{Cell, Columns, Side};
use super::paint::{Paint, Tone};
use super::view::labs;

pub const SCHEMA: &str = "babysit/usage/v1";

/// Usage and amounts in TFLOP-seconds, lengths in seconds, times ISO-8601 UTC.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsageView {
    pub schema: &'static str,
    pub project: String,
    pub generated_at: String,
    /// Next in turn first.
    pub labs: Vec<LabUsage>,
    /// By lab in that order, then in the order in which they were charged.
    pub charges: Vec<ChargeView>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabUsage {
    pub name: String,
    pub rank: u32,
    pub usage: f64,
    /// Sum of its charges; `sum_is_usage` says that it is the usage to the last digit.
    pub charged: f64,
    pub sum_is_usage: bool,
    /// Given to it when it joined late (`newcomer = "floor"`); counts for its rank only.
    pub floor: f64,
    /// Of the usage of all labs, 0 to 1.
    pub share: f64,
    pub charges: u32,
    pub reservations: Reservations,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reservations {
    pub begun: u32,
    pub started: u32,
    pub failed: u32,
    /// Standing now.
    pub open: u32,
    /// `null`: none has ended yet.
    pub mean_seconds: Option<f64>,
    /// What was charged for them, and its part of the lab's usage, 0 to 1.
    pub cost: f64,
    pub cost_share: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChargeView {
    pub shard: String,
    pub lab: String,
    pub attempt: u32,
    /// `run`, `reserved` (it led to that attempt) or `released` (without a start).
    pub kind: &'static str,
    /// Of a reservation: what it held last.
    pub gpus: u32,
    pub seconds: i64,
    /// What is charged; a reservation grows and shrinks, so it need not be gpus x seconds.
    pub gpu_seconds: u64,
    pub tier: Option<String>,
    /// TFLOP/s of one GPU.
    pub weight: f64,
    pub amount: f64,
    pub from: String,
    pub charged_at: String,
}

/// Of all labs, or of one.
pub fn view(policy: &Policy, state: &State, only: Option<&str>, now: Time) -> UsageView {
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut charges: Vec<(&str, Time, ChargeView)> = Vec::new();
    let lab_of: BTreeMap<_, &str> =
        policy.shards.iter().map(|shard| (&shard.id, &*shard.lab)).collect();
    for record in state.shards.iter().chain(&state.orphans) {
        for charge in &record.charges {
            tallies.entry(&charge.lab).or_default().charge(charge);
            charges.push((&charge.lab, charge.at, charge_view(record, charge)));
        }
        // A shard that shards.toml no longer names belongs to no lab any more; it holds nothing.
        if let Some(lab) = lab_of.get(&record.id) {
            tallies.entry(lab).or_default().uncharged(record);
        }
    }
    let labs: Vec<LabUsage> = labs(policy, state)
        .into_iter()
        .map(|lab| {
            let has = state.labs.get(&lab.name).cloned().unwrap_or_default();
            let tally = tallies.remove(lab.name.as_str()).unwrap_or_default();
            LabUsage {
                rank: lab.rank,
                usage: lab.usage,
                charged: tally.sum.tflop_seconds(),
                sum_is_usage: tally.sum == has.usage,
                floor: has.floor.tflop_seconds(),
                share: lab.share,
                charges: tally.charges,
                reservations: tally.reservations(),
                name: lab.name,
            }
        })
        .filter(|lab| only.is_none_or(|name| name == lab.name))
        .collect();
    let place = |name: &str| labs.iter().position(|lab| lab.name == name);
    charges.retain(|(lab, ..)| place(lab).is_some());
    charges.sort_by_key(|(lab, at, _)| (place(lab), *at));
    UsageView {
        schema: SCHEMA,
        project: policy.project.clone(),
        generated_at: iso(now),
        labs,
        charges: charges.into_iter().map(|(.., view)| view).collect(),
    }
}

/// Names that `babysit usage LAB` takes.
pub fn lab_names(policy: &Policy, state: &State) -> BTreeSet<String> {
    labs(policy, state).into_iter().map(|lab| lab.name).collect()
}

#[derive(Default)]
struct Tally {
    sum: Usage,
    charges: u32,
    started: u32,
    failed: u32,
    open: u32,
    ended: u32,
    length: Secs,
    cost: Usage,
}

impl Tally {
    fn charge(&mut self, charge: &Charge) {
        let amount = charge.gpu_seconds.weighted(charge.weight);
        self.sum += amount;
        self.charges += 1;
        match charge.kind {
            ChargeKind::Run => return,
            ChargeKind::Reserved => self.started += 1,
            ChargeKind::Released => self.failed += 1,
        }
        self.cost += amount;
        self.ended(charge.length);
    }

    fn uncharged(&mut self, record: &ShardRecord) {
        self.open += u32::from(record.reservation.is_some());
        for owed in &record.owed {
            self.started += u32::from(owed.started);
            self.failed += u32::from(!owed.started);
            self.ended(owed.reservation.accrued_at.since(owed.reservation.since));
        }
    }

    fn ended(&mut self, length: Secs) {
        self.ended += 1;
        self.length = Secs(self.length.0.saturating_add(length.0));
    }

    fn reservations(&self) -> Reservations {
        Reservations {
            begun: self.started + self.failed + self.open,
            started: self.started,
            failed: self.failed,
            open: self.open,
            mean_seconds: (self.ended > 0).then(|| self.length.as_f64() / f64::from(self.ended)),
            cost: self.cost.tflop_seconds(),
            cost_share: share(self.cost, self.sum),
        }
    }
}

fn charge_view(record: &ShardRecord, charge: &Charge) -> ChargeView {
    let Charge { kind, lab, attempt, from, length, gpus, gpu_seconds, tier, weight, at } = charge;
    ChargeView {
        shard: record.id.to_string(),
        lab: lab.clone(),
        attempt: *attempt,
        kind: match kind {
            ChargeKind::Run => "run",
            ChargeKind::Reserved => "reserved",
            ChargeKind::Released => "released",
        },
        gpus: *gpus,
        seconds: length.0,
        gpu_seconds: gpu_seconds.0,
        tier: tier.clone(),
        weight: weight.as_f64(),
        amount: gpu_seconds.weighted(*weight).tflop_seconds(),
        from: iso(*from),
        charged_at: iso(*at),
    }
}

/// For a person: the labs, then the charges, then what does not add up.
pub fn text(view: &UsageView, width: Option<usize>, paint: Paint) -> String {
    if view.labs.is_empty() {
        return "no lab has any shard\n".to_owned();
    }
    let mut out = lab_table(&view.labs).render(width, paint);
    if view.charges.is_empty() {
        out.push_str("\nnothing is charged yet: a run is charged when it ends\n");
        return out;
    }
    out.push('\n');
    out.push_str(&charge_table(&view.charges).render(width, paint));
    out.push('\n');
    for lab in &view.labs {
        let sum = format!(
            "{}: {}, {} TFLOP-s in all",
            lab.name,
            count(lab.charges, "charge"),
            usage(lab.charged)
        );
        if lab.sum_is_usage {
            out.push_str(&format!("{sum}: its usage\n"));
        } else {
            let text = format!(
                "{sum}, but its usage is {}: the state file was changed by hand?",
                usage(lab.usage)
            );
            out.push_str(&format!("{}\n", paint.put(Tone::Bad, &text)));
        }
    }
    out
}

fn lab_table(labs: &[LabUsage]) -> Columns {
    use Side::{Left, Right};
    let row = |lab: &LabUsage| {
        let held = &lab.reservations;
        let mean = held.mean_seconds.map_or("-".to_owned(), |mean| span(secs(mean)));
        [
            lab.rank.to_string(),
            lab.name.clone(),
            usage(lab.usage),
            percent(lab.share),
            held.begun.to_string(),
            held.failed.to_string(),
            held.open.to_string(),
            mean,
            percent(held.cost_share),
        ]
        .map(Cell::new)
        .to_vec()
    };
    Columns {
        heads: vec![
            ("RANK", Right),
            ("LAB", Left),
            ("USAGE (TFLOP-s)", Right),
            ("SHARE", Right),
            ("RESERVATIONS", Right),
            ("FAILED", Right),
            ("OPEN", Right),
            ("MEAN LENGTH", Right),
            ("THEIR COST", Right),
        ],
        rows: labs.iter().map(row).collect(),
    }
}

fn charge_table(charges: &[ChargeView]) -> Columns {
    use Side::{Left, Right};
    let row = |charge: &ChargeView| {
        [
            charge.lab.clone(),
            charge.shard.clone(),
            charge.attempt.to_string(),
            charge.kind.to_owned(),
            charge.gpus.to_string(),
            charge.seconds.to_string(),
            charge.gpu_seconds.to_string(),
            charge.tier.clone().unwrap_or_else(|| "-".to_owned()),
            usage(charge.weight),
            usage(charge.amount),
            charge.from.clone(),
        ]
        .map(Cell::new)
        .to_vec()
    };
    Columns {
        heads: vec![
            ("LAB", Left),
            ("SHARD", Left),
            ("TRY", Right),
            ("WHAT", Left),
            ("GPU", Right),
            ("SECONDS", Right),
            ("GPU-S", Right),
            ("TIER", Left),
            ("TFLOPS", Right),
            ("AMOUNT", Right),
            ("FROM", Left),
        ],
        rows: charges.iter().map(row).collect(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}
