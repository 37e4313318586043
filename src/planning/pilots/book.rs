//! What pilots claimed, taken into the records. Pure, and done before Slurm's word on any job is: a
//! job's end concerns the shard that it claimed last.
//!
//! - A pilot that had claimed nothing gives its place: the claimed shard's own pending job, if it has
//!   one, becomes the job of the shard that the pilot was submitted for.
//! - A pilot that goes on to another shard ends its attempt of the one before at the moment of the
//!   claim, counted from the run's start as Slurm has it. So the attempts of one run add up to it.
//!   That shard's own pending job goes to one without, or is cancelled: until it is gone, the claim
//!   waits.
//! - A job that Slurm started anew changes hands once that is in its record, and its earlier runs are
//!   paid for there.
//! - A claim of a job that is not ours, or is over, is refused: the next one carries a higher number.

mod job;
mod over;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::mem;

use crate::model::cluster::JobState;
use crate::model::id::{JobId, ShardId};
use crate::model::observation::Observation;
use crate::model::pilot::{Claim, Claims, Turn};
use crate::model::policy::{Policy, Shard};
use crate::model::state::{Attempt, LabRecord, Live, ShardRecord, Slot, State};
use crate::model::units::{Secs, Time};

use super::super::event::{Event, What};
use super::super::measure::rows_left;
use super::super::past::Past;
use super::super::plan::Target;
use super::super::quick::QuickMap;
use super::super::roster::Roster;
use super::strays::{is_wanted, strays};
use super::{group, next_fence};

/// What came of the claims.
#[derive(Debug, Default)]
pub struct Booked {
    /// Records hold other jobs than before: a roster made of them is out of date.
    pub changed: bool,
    /// Pilots with a claim that cannot be booked yet. What became of them is looked at after that.
    pub wait: HashSet<JobId>,
    /// Shards of those claims: there is a job for each, so none is submitted.
    pub claimed: HashSet<usize>,
    /// Pilots that no record holds and none takes up: they claim a shard, or end.
    pub aside: HashSet<JobId>,
    /// Pilots that pend and are left over.
    pub surplus: Vec<Target>,
}

/// Books every claim that is there to be booked. The same claims booked again change nothing.
pub fn book(
    policy: &Policy,
    state: &mut State,
    seen: &Observation,
    roster: &Roster<'_>,
    now: Time,
    events: &mut Vec<Event>,
) -> Booked {
    let mut booked = Booked::default();
    let Some(claims) = &seen.claims else { return booked };
    // What is not read is not decided on: the pilots stay as they are.
    let Ok(claims) = claims else {
        let pilots = state.shards.iter().filter_map(ShardRecord::live);
        booked.wait.extend(pilots.filter(|live| live.attempt.pilot).map(|live| live.job));
        return booked;
    };
    let fresh = fresh(policy, state, claims, now, events);
    if !fresh.is_empty() {
        let holders = holders(state);
        let past = Past::new(state, seen);
        let State { shards, orphans, labs, instance, .. } = state;
        let mut desk =
            Desk { policy, seen, roster, past, shards, orphans, labs, instance, holders, now };
        for (shard, claim) in fresh {
            desk.take(shard, claim, &mut booked, events);
        }
        booked.changed = true;
    }
    strays(policy, state, seen, roster, now, &mut booked);
    booked
}

/// Claims that no cycle has looked at: first claims first, so that pilots that start side by side
/// change places before one of them goes on.
fn fresh<'c>(
    policy: &Policy,
    state: &mut State,
    claims: &'c Claims,
    now: Time,
    events: &mut Vec<Event>,
) -> Vec<(usize, &'c Claim)> {
    if claims.claims.is_empty() && claims.bad.is_empty() {
        return Vec::new();
    }
    let index: QuickMap<&ShardId, usize> =
        policy.shards.iter().enumerate().map(|(i, shard)| (&shard.id, i)).collect();
    let mut fresh = Vec::new();
    for claim in &claims.claims {
        let Some(&i) = index.get(&claim.shard) else { continue };
        let Some(record) = state.shards.get_mut(i) else { continue };
        if claim.fence == next_fence(record) {
            fresh.push((i, claim));
        } else if claim.returned
            && let Slot::Live(live) = &mut record.slot
            && live.job == claim.job
            && let Some(turn) = live.turn.as_mut().filter(|turn| turn.fence == claim.fence)
        {
            turn.returned = true;
        }
    }
    for bad in &claims.bad {
        let Some(&i) = index.get(&bad.shard) else { continue };
        let Some(record) = state.shards.get_mut(i) else { continue };
        if bad.fence == next_fence(record) {
            refuse(record, None, bad.why.clone(), now, events);
        }
    }
    fresh.sort_by_key(|(i, claim)| (claim.run, claim.place, claim.job, *i));
    fresh
}

fn refuse(
    record: &mut ShardRecord,
    job: Option<JobId>,
    why: String,
    now: Time,
    events: &mut Vec<Event>,
) {
    record.claims = next_fence(record);
    let what = What::ClaimRefused { job, fence: record.claims, why };
    events.push(Event { at: now, shard: Some(record.id.clone()), what });
}

/// Which record holds a job; the shards that shards.toml no longer names come after the others.
pub(super) fn holders(state: &State) -> QuickMap<JobId, usize> {
    let all = state.shards.iter().chain(&state.orphans).enumerate();
    all.filter_map(|(i, record)| Some((record.live()?.job, i))).collect()
}

/// Where claims are booked one after the other.
struct Desk<'d> {
    policy: &'d Policy,
    seen: &'d Observation,
    roster: &'d Roster<'d>,
    past: Past<'d>,
    shards: &'d mut Vec<ShardRecord>,
    orphans: &'d mut Vec<ShardRecord>,
    labs: &'d mut BTreeMap<String, LabRecord>,
    instance: &'d str,
    holders: QuickMap<JobId, usize>,
    now: Time,
}

impl Desk<'_> {
    fn record(&mut self, i: usize) -> Option<&mut ShardRecord> {
        let named = self.shards.len();
        if i < named { self.shards.get_mut(i) } else { self.orphans.get_mut(i - named) }
    }

    fn take(&mut self, b: usize, claim: &Claim, booked: &mut Booked, events: &mut Vec<Event>) {
        if booked.wait.contains(&claim.job) {
            booked.claimed.insert(b);
            return;
        }
        self.adopt(claim, events);
        let pilot = match self.pilot(claim) {
            Ok(pilot) => pilot,
            Err(why) => {
                if let Some(record) = self.shards.get_mut(b) {
                    refuse(record, Some(claim.job), why, self.now, events);
                }
                return;
            }
        };
        if claim.returned {
            if let Some(record) = self.shards.get_mut(b) {
                record.claims = claim.fence;
            }
            return;
        }
        let shown = self.queued(claim).map_or(claim.run, |job| job.restarts.max(claim.run));
        if pilot.owes() || shown > pilot.restarts {
            // Not among those that wait: what became of it is looked at in this very cycle.
            booked.claimed.insert(b);
            return;
        }
        if self.hand_on(b, claim, pilot, booked, events).is_none() {
            booked.wait.insert(claim.job);
            booked.claimed.insert(b);
        }
    }

    /// Makes the pilot the claimed shard's. `None`: not yet, and nothing was changed.
    fn hand_on(
        &mut self,
        b: usize,
        claim: &Claim,
        pilot: Live,
        booked: &mut Booked,
        events: &mut Vec<Event>,
    ) -> Option<()> {
        let from = self.holders.get(&claim.job).copied();
        let goes_on = !pilot.is_unclaimed();
        let displaced = match &self.shards.get(b)?.slot {
            Slot::Free => None,
            // Its own: nothing changes hands.
            Slot::Live(live) if live.job == claim.job && !goes_on => None,
            Slot::Live(other)
                if other.is_unclaimed() && other.job != claim.job && !other.owes() =>
            {
                Some((**other).clone())
            }
            Slot::Live(_) | Slot::Submitting(_) | Slot::Settling(_) => return None,
        };
        // Who goes on leaves no place behind: the other's is with a shard that has no job. Else it has
        // to end first, so that no job is ever without a record that sees to its charges.
        let mut home = from.filter(|_| !goes_on);
        if let (Some(other), None) = (&displaced, home) {
            let queued = self.roster.by_id(other.job);
            if !queued.is_some_and(|job| job.state == JobState::Pending) {
                return None;
            }
            home = self.home(b);
            if home.is_none() {
                let id = &self.shards.get(b)?.id;
                booked.surplus.push(Target::new(b, id, other.job));
                return None;
            }
        }
        let base = if goes_on { Some(self.run_began(claim, &pilot)?) } else { None };
        let mut after = Secs(0);
        let mut before = None;
        if let (Some(base), Some(a)) = (base, from) {
            let handed = self.hand_over(a, claim, base, events)?;
            after = handed.since(base);
            before = Some(a);
        }
        let turn = Turn { fence: claim.fence, run: claim.run, after, returned: false };
        let record = self.shards.get_mut(b)?;
        record.claims = claim.fence;
        if from == Some(b) && before.is_none() {
            if let Slot::Live(live) = &mut record.slot {
                live.turn = Some(turn);
            }
            return Some(());
        }
        // The two jobs of a swap change numbers too.
        let swap = displaced.as_ref().filter(|_| from.is_some() && !goes_on);
        let number = swap.map_or(record.attempts.saturating_add(1), |other| other.attempt.number);
        let lent = swap.map(|_| pilot.attempt.number);
        record.attempts = record.attempts.max(number);
        let attempt = Attempt { number, rows_before: record.progress.rows, ..pilot.attempt };
        let began = base.map(|base| base + after).or(pilot.started);
        record.slot = Slot::Live(Box::new(Live {
            attempt,
            started: began,
            mark: None,
            stalled: None,
            stop: None,
            turn: Some(turn),
            ..pilot
        }));
        let kept_off = mem::take(&mut record.kept_off);
        let refused = record.move_refused.take();
        let shard = record.id.clone();
        self.holders.insert(claim.job, b);
        if let Some(other) = &displaced {
            self.holders.remove(&other.job);
        }
        // The shard that it was submitted for has it no more.
        if let (Some(a), None) = (from, before)
            && let Some(record) = self.record(a)
        {
            record.slot = Slot::Free;
        }
        if let Some(other) = displaced
            && let Some(j) = home
            && let Some(record) = self.record(j)
        {
            let number = lent.unwrap_or(record.attempts.saturating_add(1));
            record.attempts = record.attempts.max(number);
            let attempt =
                Attempt { number, rows_before: record.progress.rows, ..other.attempt.clone() };
            let job = other.job;
            record.slot = Slot::Live(Box::new(Live { attempt, ..other }));
            (record.kept_off, record.move_refused) = (kept_off, refused);
            self.holders.insert(job, j);
        }
        let name = |i: Option<usize>, desk: &mut Self| Some(desk.record(i?)?.id.clone());
        let what = What::Took {
            job: claim.job,
            after: name(before, self),
            instead: if before.is_none() { name(from, self) } else { None },
        };
        events.push(Event { at: self.now, shard: Some(shard), what });
        Some(())
    }

    /// A shard without a job that waits for one, and may have that of shard `b`: the longest.
    fn home(&self, b: usize) -> Option<usize> {
        let kin = group(self.policy.shards.get(b)?, self.shards.get(b)?.min_tier);
        let all = self.policy.shards.iter().zip(self.shards.iter()).enumerate();
        let fits = all.filter(|(_, (shard, record))| {
            shard.pilot
                && record.slot == Slot::Free
                && is_wanted(shard.rows, record)
                && group(shard, record.min_tier) == kin
        });
        let left = |shard: &Shard, record: &ShardRecord| {
            i64::from(rows_left(shard, record)).saturating_mul(shard.row_time.0)
        };
        fits.max_by_key(|(i, (shard, record))| (left(shard, record), Reverse(*i))).map(|(i, _)| i)
    }
}
