//! Usage: charged late, from Slurm's own times, and exactly once (policy.md section 7).

use std::collections::BTreeMap;

use crate::model::policy::{Policy, Tier};
use crate::model::state::{Charge, ChargeKind, LabRecord, Owed, Reservation, ShardRecord};
use crate::model::units::{GpuSeconds, Tflops, Time};

/// What a GPU of a model that no tier names weighs: one, so that usage is then in GPU-seconds.
pub const UNKNOWN_WEIGHT: Tflops = Tflops(1000);

/// A run that is over: from its start to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Run<'a> {
    pub attempt: u32,
    pub gpus: u32,
    pub started: Time,
    pub ended: Time,
    pub tier: Option<&'a str>,
}

pub fn weight(policy: &Policy, tier: Option<&str>) -> Tflops {
    let named = |name| policy.tiers.iter().find(|tier: &&Tier| tier.name == name);
    tier.and_then(named).map_or(UNKNOWN_WEIGHT, |tier| tier.tflops)
}

/// Charges a run to the shard's lab, unless that very run (attempt and start) was charged before.
/// Returns the GPU-seconds that were new.
pub fn charge_run(
    policy: &Policy,
    lab: &str,
    record: &mut ShardRecord,
    labs: &mut BTreeMap<String, LabRecord>,
    run: &Run<'_>,
    now: Time,
) -> GpuSeconds {
    let again = record.charges.iter().any(|charge| {
        charge.kind == ChargeKind::Run
            && charge.attempt == run.attempt
            && charge.from == run.started
    });
    if again {
        return GpuSeconds::default();
    }
    let length = run.ended.since(run.started);
    let gpu_seconds = GpuSeconds::of(run.gpus, length);
    let charge = Charge {
        kind: ChargeKind::Run,
        lab: lab.to_owned(),
        attempt: run.attempt,
        from: run.started,
        length,
        gpus: run.gpus,
        gpu_seconds,
        tier: run.tier.map(str::to_owned),
        weight: weight(policy, run.tier),
        at: now,
    };
    book(record, labs, charge);
    gpu_seconds
}

/// Charges what a job's end makes due: reservations that led to its start, and those that
/// `reservation_charge = "job-end"` put off.
pub fn charge_owed(
    policy: &Policy,
    lab: &str,
    record: &mut ShardRecord,
    labs: &mut BTreeMap<String, LabRecord>,
    now: Time,
) {
    for owed in std::mem::take(&mut record.owed) {
        charge_reservation(policy, lab, record, labs, &owed, now);
    }
}

pub fn charge_reservation(
    policy: &Policy,
    lab: &str,
    record: &mut ShardRecord,
    labs: &mut BTreeMap<String, LabRecord>,
    owed: &Owed,
    now: Time,
) {
    let Reservation { pin, gpus, since, accrued_at, gpu_seconds } = &owed.reservation;
    let charge = Charge {
        kind: if owed.started { ChargeKind::Reserved } else { ChargeKind::Released },
        lab: lab.to_owned(),
        attempt: record.attempts,
        from: *since,
        length: accrued_at.since(*since),
        gpus: *gpus,
        gpu_seconds: *gpu_seconds,
        tier: Some(pin.tier.clone()),
        weight: weight(policy, Some(&pin.tier)),
        at: now,
    };
    book(record, labs, charge);
}

/// The charge and the lab's usage change together, so that the one is always the sum of the other.
fn book(record: &mut ShardRecord, labs: &mut BTreeMap<String, LabRecord>, charge: Charge) {
    labs.entry(charge.lab.clone()).or_default().usage += charge.gpu_seconds.weighted(charge.weight);
    record.charges.push(charge);
}
