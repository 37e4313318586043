//! The evidence of `babysit why` that lies around the shard: its turn among the labs, the placements
//! that could hold it, the own lane. All of it as the last cycle saw it.

use crate::model::policy::{Policy, Shard};
use crate::model::reason::Reason;
use crate::model::state::{Alike, OwnLane, ShardRecord, Slot, State};
use crate::model::units::Time;
use crate::planning::alike;

use super::evidence::Evidence;
use super::format::{ago, clock, count, ordinal, span, usage};
use super::view::{LabView, labs};

pub fn evidence(
    policy: &Policy,
    state: &State,
    shard: &Shard,
    record: &ShardRecord,
    reason: &Reason,
    now: Time,
) -> Vec<Evidence> {
    let mut found = Vec::new();
    let mut tell = |label, text: String| found.push(Evidence { label, text });
    match reason {
        Reason::QueueWait { rank, .. } | Reason::SubmitBudget { rank } if *rank > 0 => {
            tell("rank", format!("{} in babysit's queue", ordinal(*rank)));
        }
        Reason::Collecting { .. } => tell("rank", "1st in babysit's queue".to_owned()),
        _ => {}
    }
    let labs = labs(policy, state);
    if labs.len() > 1 {
        tell("labs", turns(&labs, &shard.lab));
    }
    if let Some(held) = &record.reservation {
        let text = format!(
            "{} of {} on {}, begun {}; {} so far, charged when it ends",
            count(held.gpus, "GPU"),
            held.pin.tier,
            held.pin.node,
            ago(held.since, now),
            count(held.gpu_seconds.0, "GPU-second"),
        );
        tell("reserved", text);
    }
    if waits(&record.slot) {
        for group in alike::fit(policy, shard, record.min_tier, &state.learned.placements) {
            tell("fits on", placement(group));
        }
    }
    if let Some(own) = state.learned.own_lane.as_ref().filter(|_| waits(&record.slot)) {
        tell("own lane", own_lane(own, now));
    }
    found
}

fn waits(slot: &Slot) -> bool {
    match slot {
        Slot::Free => true,
        Slot::Live(live) => live.started.is_none(),
        Slot::Submitting(_) | Slot::Settling(_) => false,
    }
}

/// `KDG 28000, BCG 56780 TFLOP-s: BCG is 2nd of 2`.
fn turns(labs: &[LabView], own: &str) -> String {
    let each: Vec<String> =
        labs.iter().map(|lab| format!("{} {}", lab.name, usage(lab.standing))).collect();
    let rank = labs.iter().find(|lab| lab.name == own).map_or(0, |lab| lab.rank);
    let of = labs.len();
    format!("{own} is {} of {of}, least usage first: {} TFLOP-s", ordinal(rank), each.join(", "))
}

/// `rtx4090: 1 of 4 idle, 1 of them reserved, on n1, n2 and 7 more`.
pub(super) fn placement(group: &Alike) -> String {
    let Alike { tier, capacity, idle, reserved, held_by_backfill, up, nodes, more, .. } = group;
    let mut text = format!("{tier}: ");
    if *up {
        text.push_str(&format!("{idle} of {capacity} idle"));
        if *held_by_backfill > 0 {
            text.push_str(&format!(", {held_by_backfill} of them used by backfill"));
        }
        if *reserved > 0 {
            text.push_str(&format!(", {reserved} of them reserved"));
        }
    } else {
        text.push_str(&format!("{capacity}, down or drained"));
    }
    text.push_str(&format!(", on {}", nodes.join(", ")));
    if *more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// `8 GPUs: 2 used by this project, 6 by others (the first of them until 14:20 UTC at most, in
/// 2 h 5 min)`.
pub(super) fn own_lane(own: &OwnLane, now: Time) -> String {
    let OwnLane {
        size,
        running_ours,
        running_others,
        pending_others,
        pending_pinned,
        others_until,
    } = own;
    let size = size.map_or("size not known or not limited".to_owned(), |n| count(n, "GPU"));
    let mut text =
        format!("{size}: {running_ours} used by this project, {running_others} by others");
    if let Some(until) = others_until.filter(|until| *until > now) {
        let left = span(until.since(now));
        text.push_str(&format!(
            " (the first of them until {} at most, in {left})",
            clock(until, now)
        ));
    }
    if *pending_others > 0 {
        text.push_str(&format!(", others wait for {pending_others}"));
    }
    if *pending_pinned > 0 {
        text.push_str(&format!(", {pending_pinned} about to be used by this project"));
    }
    text
}
