//! The one pass over all records that a cycle begins with: the rules that look at one shard at a
//! time, in their order, and what the rules after them need to know of each.
//!
//! In a campaign of ten thousand shards the records are larger than what a processor keeps near:
//! most of a pass is waiting for memory, so there is one and not one for each rule.

use std::collections::HashSet;

use crate::model::id::JobId;
use crate::model::observation::Observation;
use crate::model::policy::Policy;
use crate::model::state::{ShardRecord, State, cap_among};
use crate::model::units::Time;

use super::bad_nodes;
use super::caps;
use super::census::Census;
use super::event::Event;
use super::helpers;
use super::lpt::{Lpt, Work};
use super::measure;
use super::plan::Target;
use super::reconcile::Shown;
use super::retry;
use super::roster::Roster;
use super::stall;
use super::totals;

/// What came of it: jobs that must end, by the rule that says so, and the lists for what follows.
#[derive(Debug)]
pub struct Records {
    pub twins: Vec<Target>,
    pub over_cap: Vec<Target>,
    pub cancelled: Vec<Target>,
    pub stalled: Vec<Target>,
    pub census: Census,
    pub lpt: Lpt,
}

/// Brings every record up to what was seen. Events are told rule by rule.
pub fn bring_up(
    policy: &Policy,
    state: &mut State,
    seen: &Observation,
    roster: &Roster<'_>,
    wait: &HashSet<JobId>,
    now: Time,
    events: &mut Vec<Event>,
) -> Records {
    let shown = Shown::new(policy, state, seen, roster, wait, now);
    let (mut twins, mut over_cap, mut cancelled) = (Vec::new(), Vec::new(), Vec::new());
    let (mut measured, mut judged, mut capped) = (Vec::new(), Vec::new(), Vec::new());
    let mut running = Vec::new();
    let mut census = Census::default();
    let mut work = Work::of(policy);
    let State { shards, labs, caps, caution, .. } = state;
    let named = policy.named();
    let at = named.min(shards.len());
    let (own, helping) = shards.split_at_mut(at);
    // First, since what their jobs did is in the pace and the money of the shards they help.
    for (i, record) in (named..).zip(&mut *helping) {
        shown.bring_up(i, record, labs, events, &mut twins);
    }
    let mut rest: &[ShardRecord] = helping;
    for (i, (shard, record)) in policy.shards.iter().zip(&mut *own).enumerate() {
        shown.bring_up(i, record, labs, events, &mut twins);
        let reading = seen.progress.get(i).and_then(Option::as_ref);
        let helpers;
        (helpers, rest) = rest.split_at(shard.helpers().min(rest.len()));
        measure::measure_one(shard, record, helpers, reading, now, &mut measured);
        retry::judge(policy, seen, i, record, &mut caution.nodes, now, &mut judged);
        let cap = cap_among(caps, &shard.id, shard.cap);
        over_cap.extend(caps::cap_one(i, shard, record, cap, now, &mut capped));
        cancelled.extend(retry::cancelled_but_live(i, record));
        if stall::may_stall(record) {
            running.push(i);
        }
        census.add(i, shard, record, caution);
        work.add(shard, record);
    }
    for (i, record) in (named..).zip(&mut *helping) {
        let shard = &policy.shards[i];
        let Some(helped) = shard.helps.and_then(|helped| own.get(helped)) else { continue };
        helpers::follow(record, helped, seen.progress.get(i).and_then(Option::as_ref));
        retry::judge(policy, seen, i, record, &mut caution.nodes, now, &mut judged);
        if let (Some(live), Some(_)) = (record.live(), record.over_cap) {
            over_cap.push(Target::new(i, &record.id, live.job));
        }
        cancelled.extend(retry::cancelled_but_live(i, record));
        census.add(i, shard, record, caution);
        work.add(shard, record);
    }
    events.append(&mut measured);
    events.extend(totals::totals(policy, state, seen, now));
    events.append(&mut judged);
    bad_nodes::review(policy, state, &seen.cluster, now, events);
    events.append(&mut capped);
    let lpt = work.order(policy);
    let stalled = stall::stalls(policy, state, &running, &lpt, now, events);
    Records { twins, over_cap, cancelled, stalled, census, lpt }
}
