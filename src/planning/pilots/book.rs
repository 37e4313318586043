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

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;

use crate::model::cluster::{EndWord, JobState, QueueJob};
use crate::model::id::{JobId, ShardId};
use crate::model::observation::Observation;
use crate::model::pilot::{Claim, Claims, Turn};
use crate::model::policy::{Policy, Shard};
use crate::model::state::{Attempt, End, EndHow, LabRecord, Live, ShardRecord, Slot, State, Stop};
use crate::model::units::{Secs, Time};

use super::super::account::{self, Run};
use super::super::event::{Event, What};
use super::super::measure::rows_left;
use super::super::past::Past;
use super::super::plan::Target;
use super::super::reconcile::{VANISH_AFTER, tier_of_run};
use super::super::roster::Roster;
use super::strays::{is_wanted, stray, strays};
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
    let index: HashMap<&ShardId, usize> =
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
pub(super) fn holders(state: &State) -> HashMap<JobId, usize> {
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
    holders: HashMap<JobId, usize>,
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

    /// The claim's job in the queue, if it is there: by id, user and comment.
    fn queued(&self, claim: &Claim) -> Option<&'_ QueueJob> {
        let job = self.roster.by_id(claim.job)?;
        (job.uid == claim.uid && job.comment == claim.token).then_some(job)
    }

    /// A job whose submission had no clear answer is its record's first, so that it is not found a second
    /// time when it is over.
    fn adopt(&mut self, claim: &Claim, events: &mut Vec<Event>) {
        if self.holders.contains_key(&claim.job) || self.queued(claim).is_none() {
            return;
        }
        let awaits = |record: &ShardRecord| match &record.slot {
            Slot::Submitting(intent) => intent.attempt.token.comment == claim.token,
            Slot::Free | Slot::Live(_) | Slot::Settling(_) => false,
        };
        let Some(i) = self.shards.iter().chain(self.orphans.iter()).position(awaits) else {
            return;
        };
        let now = self.now;
        let Some(record) = self.record(i) else { return };
        let Slot::Submitting(intent) = &record.slot else { return };
        let live = Live::new(intent.attempt.clone(), claim.job);
        let what = What::Adopted { job: claim.job, attempt: live.attempt.number };
        events.push(Event { at: now, shard: Some(record.id.clone()), what });
        record.slot = Slot::Live(Box::new(live));
        self.holders.insert(claim.job, i);
    }

    /// Some record has its end, and was charged for it.
    fn has_ended(&self, job: JobId) -> bool {
        let ended = |record: &ShardRecord| {
            let settling = match &record.slot {
                Slot::Settling(end) => Some(end),
                Slot::Free | Slot::Submitting(_) | Slot::Live(_) => None,
            };
            settling.into_iter().chain(&record.last_end).any(|end| end.job == job)
        };
        self.shards.iter().chain(self.orphans.iter()).any(ended)
    }

    /// The job behind a claim as a record has it, or as the queue shows it. `Err`: none of ours.
    fn pilot(&mut self, claim: &Claim) -> Result<Live, String> {
        if claim.instance != self.instance {
            return Err(format!("it is of another state, {}", claim.instance));
        }
        let queued = self.queued(claim).cloned();
        let (policy, instance, now) = (self.policy, self.instance, self.now);
        let held = self.holders.get(&claim.job).copied();
        let ended = held.is_none() && self.has_ended(claim.job);
        let held = held.and_then(|i| self.record(i)?.live());
        let live = match (held, &queued) {
            (Some(live), _) => {
                if live.attempt.token.comment != claim.token || live.attempt.uid != claim.uid {
                    return Err(format!("job {} is not its writer's", claim.job));
                }
                live.clone()
            }
            // Its submission was found to have come through after it was over, say.
            (None, Some(_)) if ended => {
                return Err(format!("job {} had ended before", claim.job));
            }
            (None, Some(job)) if is_of(instance, job) => stray(policy, job, now),
            (None, _) => return Err(format!("Slurm shows no job {} of ours", claim.job)),
        };
        let restarts = queued.map_or(live.restarts, |job| job.restarts.max(live.restarts));
        if claim.run < restarts {
            return Err(format!("job {} was started anew since", claim.job));
        }
        Ok(live)
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

    /// When the run that claimed began, as Slurm has it. `None`: that is to be learned yet.
    fn run_began(&self, claim: &Claim, pilot: &Live) -> Option<Time> {
        let shown = self.queued(claim).filter(|job| job.restarts == claim.run);
        if let Some(began) = shown.and_then(|job| job.started) {
            return Some(began);
        }
        let of_run = pilot.turn.filter(|turn| turn.run == claim.run);
        if let (Some(turn), Some(started)) = (of_run, pilot.started) {
            return Some(started - turn.after);
        }
        let rows = self.past.runs(&pilot.attempt, claim.job, claim.run);
        if let Some(began) = rows.first().and_then(|row| row.started) {
            return Some(began);
        }
        // Accounting is late, as it may be; or it has nothing, and only the claim's own clock tells.
        let late =
            self.past.gap.is_some() || (!self.past.off && self.now.since(claim.at) < VANISH_AFTER);
        (!late).then(|| (claim.at - claim.after).min(self.now))
    }

    /// Ends the attempt that the pilot leaves, and returns when: its part of the run is charged here.
    fn hand_over(
        &mut self,
        a: usize,
        claim: &Claim,
        base: Time,
        events: &mut Vec<Event>,
    ) -> Option<Time> {
        let (policy, now) = (self.policy, self.now);
        let shown = self.queued(claim).cloned();
        let live = match &self.record(a)?.slot {
            Slot::Live(live) => (**live).clone(),
            Slot::Free | Slot::Submitting(_) | Slot::Settling(_) => return None,
        };
        let rows = self.past.all(&live.attempt, live.job);
        let row = rows.iter().find(|row| row.started == Some(base));
        let over = row.and_then(|row| row.ended);
        let over =
            over.or(shown.as_ref().filter(|job| job.state.is_over()).and_then(|job| job.ends));
        let began = live.begun(base, claim.run);
        // No claim can be from after the run, or from the time to come.
        let latest = over.unwrap_or(now).min(now);
        let ended = (base + claim.after).min(latest).max(began);
        let nodes = [&live.nodes].into_iter().chain(shown.as_ref().map(|job| &job.nodes));
        let nodes = nodes.chain(row.map(|row| &row.nodes)).find(|nodes| !nodes.is_empty());
        let nodes = nodes.cloned().unwrap_or_default();
        let asked = shown.as_ref().map_or(&[][..], |job| job.asked.as_slice());
        let all = &self.seen.cluster.nodes;
        let min = policy.shards.get(a).and_then(|shard| shard.min_tier);
        // As `record`, which would keep `labs` out of reach.
        let (named, labs) = (self.shards.len(), &mut *self.labs);
        let record =
            if a < named { self.shards.get_mut(a) } else { self.orphans.get_mut(a - named) }?;
        let min = record.min_tier.or(min);
        let known = live.tier.clone().filter(|_| live.started.is_some());
        let tier = known.or_else(|| tier_of_run(policy, all, min, &live.attempt, &nodes, asked));
        let (number, gpus) = (live.attempt.number, live.attempt.gpus);
        let run = Run { attempt: number, gpus, started: began, ended, tier: tier.as_deref() };
        let lab = record.lab.clone();
        let new = account::charge_run(policy, &lab, record, labs, &run, now);
        account::charge_owed(policy, &lab, record, labs, now);
        record.ran += new;
        let tell = |what| Event { at: now, shard: Some(record.id.clone()), what };
        if new.0 > 0 {
            events.push(tell(What::Charged { attempt: number, gpu_seconds: new.0 }));
        }
        let returned = live.turn.is_some_and(|turn| turn.returned);
        let how = EndHow::Word(EndWord::Completed);
        record.slot = Slot::Settling(Box::new(End {
            started: Some(began),
            ended,
            exit: "0:0".to_owned(),
            nodes,
            tier,
            mark: live.mark,
            stop: live.stop.or(returned.then_some(Stop::Unclaimed)),
            ..End::new(&live.attempt, live.job, how, now)
        }));
        Some(ended)
    }
}

fn is_of(instance: &str, job: &QueueJob) -> bool {
    let rest = job.comment.strip_prefix("babysit:").and_then(|rest| rest.strip_prefix(instance));
    rest.is_some_and(|rest| rest.starts_with(':'))
}
