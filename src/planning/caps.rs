//! Cost caps (policy.md section 4): a safety brake that only a person releases.

use crate::model::policy::{Policy, Shard};
use crate::model::state::{OverCap, ShardRecord, State, cap_among};
use crate::model::units::{Money, Time};

use super::event::{Event, What};
use super::measure::is_done;
use super::plan::Target;

/// Sets and clears OVER_COST_CAP; returns the jobs that must stop because of it.
///
/// It is cleared by a cap above the one that was reached and above what is spent, by nothing else:
/// a ledger that shrank does not bring a shard back.
pub fn caps(policy: &Policy, state: &mut State, now: Time, events: &mut Vec<Event>) -> Vec<Target> {
    let State { shards, caps, .. } = state;
    let of = |(i, (shard, record)): (usize, (&Shard, &mut ShardRecord))| {
        cap_one(i, shard, record, cap_among(caps, &shard.id, shard.cap), now, events)
    };
    policy.shards.iter().zip(shards).enumerate().filter_map(of).collect()
}

/// The same for one shard, and the cap in force for it.
pub fn cap_one(
    i: usize,
    shard: &Shard,
    record: &mut ShardRecord,
    cap: Option<Money>,
    now: Time,
    events: &mut Vec<Event>,
) -> Option<Target> {
    let spent = record.progress.spent.unwrap_or_default();
    match (record.over_cap, cap) {
        (Some(over), cap) if cap.is_none_or(|cap| cap > over.cap && spent < cap) => {
            record.over_cap = None;
            record.queued_since = now;
            if let Some(cap) = cap {
                let what = What::CapRaised { cap };
                events.push(Event { at: now, shard: Some(record.id.clone()), what });
            }
        }
        (None, Some(cap)) if spent >= cap && !is_done(shard, record) => {
            record.over_cap = Some(OverCap { spent, cap, at: now });
            let what = What::OverCap { spent, cap };
            events.push(Event { at: now, shard: Some(record.id.clone()), what });
        }
        _ => {}
    }
    record.over_cap?;
    Some(Target::new(i, &record.id, record.live()?.job))
}
