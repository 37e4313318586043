//! Helpers of split shards: when idle GPUs may take rows from a long shard, and when they give way.
//!
//! Where a job waits in one lane, or where there are none, a helper is wanted only while no shard
//! waits that nobody works on: then GPUs that come have nothing better to do. Where jobs wait in
//! both lanes at once, helpers stand in the queue all along: Slurm goes by age there, and one that
//! came when it was needed would come behind everybody else who waits for own. Its shard decides
//! everything else about a helper.

mod alone;
mod demand;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::model::cluster::JobState;
use crate::model::observation::{Cluster, Measured, Observation, Seen};
use crate::model::policy::{LaneMode, Policy, Shard};
use crate::model::rows::RowClaims;
use crate::model::state::{Attempt, End, Gate, ShardRecord, Slot, State};
use crate::model::units::{Secs, Time};

use super::both;
use super::census::Census;
use super::lpt::Lpt;
use super::measure::{is_done, rows_left};
use super::plan::Target;

pub use demand::{Demand, demand, demands};

/// A helper is asked for where so many rows that nobody has begun are there for each worker: a start
/// has to pay, and no one may come too late.
const ROWS_TO_JOIN: u32 = 2;
/// One that pends is called back where there are fewer: less than it takes to join, so that a row
/// that is given back does not call the same helper twice.
const ROWS_TO_STAY: u32 = 1;

/// GPUs for which helpers stand in the queue while shards wait: those of some twenty shards. A
/// campaign of more than that has work for every GPU until its end, and each pending job costs the
/// whole site's scheduler.
const MOST_STANDING: u32 = 100;

/// What this cycle does about helpers.
#[derive(Debug, Default)]
pub struct Review {
    /// Pending jobs that would find no row, or would be in the way.
    pub unwanted: Vec<Target>,
    /// Shards that are not submitted, since running helpers have all that is left of them, and how
    /// many rows that is.
    pub in_hand: Vec<(usize, u32)>,
}

/// A split shard and its helpers, by index in the policy.
#[derive(Debug, Clone)]
pub struct Team {
    pub shard: usize,
    pub helpers: Range<usize>,
}

impl Team {
    pub fn members(&self) -> impl Iterator<Item = usize> + use<> {
        std::iter::once(self.shard).chain(self.helpers.clone())
    }
}

/// All of them; none where the policy is without helpers.
pub fn teams(policy: &Policy) -> Vec<Team> {
    let named = policy.named();
    if named == policy.shards.len() {
        return Vec::new();
    }
    let mut at = named;
    let mut teams = Vec::with_capacity(named);
    for (i, shard) in policy.shards.iter().take(named).enumerate() {
        let helpers = at..at + shard.helpers();
        at = helpers.end;
        if !helpers.is_empty() {
            teams.push(Team { shard: i, helpers });
        }
    }
    teams
}

/// Strikes helpers from those that may be submitted, but for those that are wanted.
pub fn review(
    policy: &Policy,
    state: &State,
    census: &mut Census,
    lpt: &Lpt,
    cluster: &Cluster,
) -> Review {
    let teams = teams(policy);
    let mut review = Review::default();
    if teams.is_empty() {
        return review;
    }
    let mut struck = BTreeSet::new();
    for team in &teams {
        own_job(policy, state, census, team, &mut review);
    }
    struck.extend(review.in_hand.iter().map(|(shard, _)| *shard));
    let mut wanted: Vec<usize> = Vec::new();
    let mut kept: Vec<usize> = Vec::with_capacity(teams.len());
    // Those that run count too: one that has just started makes no room for another.
    let (mut all, mut running) = (0u32, 0u32);
    for team in &teams {
        let asked = asked(policy, state, census, team);
        let gpus = policy.shards[team.shard].gpus;
        running += asked.running * gpus;
        all += (asked.running + asked.kept as u32) * gpus;
        wanted.extend(asked.new);
        kept.push(asked.kept);
        review.unwanted.extend(asked.unwanted);
    }
    let stand = policy.rules.lanes.mode == LaneMode::Both && both::works(policy, state);
    let most = if stand {
        MOST_STANDING
    } else if alone::somebody_waits(policy, state, census, &teams, &struck) {
        for (team, kept) in teams.iter().zip(kept) {
            let kept = waiting(state, team).take(kept);
            review.unwanted.extend(kept.filter_map(|i| target(state, i)));
        }
        all = running;
        0
    } else {
        let nodes = cluster.nodes.iter().flat_map(|node| node.gpus.iter().flatten());
        nodes.map(|gpus| gpus.capacity).sum()
    };
    if stand {
        let longest = alone::longest(policy, state, census, lpt);
        wanted.retain(|&i| lpt.remaining[i] >= longest);
    }
    // Those of the longest shards first.
    lpt.sort(policy, &mut wanted, |i| *i);
    wanted.retain(|&i| {
        let with = all.saturating_add(policy.shards[i].gpus);
        all = if with <= most { with } else { all };
        with <= most
    });
    let wanted: BTreeSet<usize> = wanted.into_iter().collect();
    let stays = |i: &usize| {
        let helper = policy.shards[*i].helps.is_some();
        (!helper || wanted.contains(i)) && !struck.contains(i)
    };
    census.queued.retain(stays);
    review
}

/// The shard's own job, where nothing is left to take: running helpers have it all.
fn own_job(policy: &Policy, state: &State, census: &Census, team: &Team, review: &mut Review) {
    let (shard, record) = (&policy.shards[team.shard], &state.shards[team.shard]);
    let helped = team.helpers.clone().any(|i| runs(&state.shards[i]));
    let left = rows_left(shard, record);
    let all_begun = left > 0 && not_begun(shard, record) == 0 && helped;
    if all_begun && census.queued.binary_search(&team.shard).is_ok() {
        review.in_hand.push((team.shard, left));
    }
    if (all_begun || is_done(shard, record)) && pends(record) {
        review.unwanted.extend(target(state, team.shard));
    }
}

/// What is asked for one team.
struct Asked {
    new: Vec<usize>,
    /// Helpers that wait and may go on waiting: the first so many.
    kept: usize,
    unwanted: Vec<Target>,
    /// Of its helpers.
    running: u32,
}

fn asked(policy: &Policy, state: &State, census: &Census, team: &Team) -> Asked {
    let (shard, record) = (&policy.shards[team.shard], &state.shards[team.shard]);
    let (mut running, mut kept) = (0u32, 0);
    for helper in &state.shards[team.helpers.clone()] {
        match &helper.slot {
            Slot::Live(live) if live.started.is_some() => running += 1,
            Slot::Free | Slot::Settling(_) => {}
            Slot::Live(_) | Slot::Submitting(_) => kept += usize::from(waits(helper)),
        }
    }
    let active = match record.slot {
        Slot::Live(ref live) => live.stop.is_none(),
        Slot::Submitting(_) => true,
        Slot::Free | Slot::Settling(_) => {
            census.queued.binary_search(&team.shard).is_ok() || running > 0
        }
    };
    let open = !is_done(shard, record) && record.gate == Gate::Open && record.over_cap.is_none();
    let workers = shard.split.as_ref().map_or(1, |split| split.workers);
    // Its own job counts, also while it waits: it is the first to get a GPU.
    let room = |each: u32| {
        let most = (not_begun(shard, record) / each).min(workers);
        let room = most.saturating_sub(1 + running) as usize;
        if active && open { room } else { 0 }
    };
    let stay = kept.min(room(ROWS_TO_STAY));
    let mut unwanted = Vec::new();
    if stay < kept {
        unwanted.extend(waiting(state, team).skip(stay).filter_map(|i| target(state, i)));
    }
    let mut new = Vec::new();
    let missing = room(ROWS_TO_JOIN).saturating_sub(stay);
    if missing > 0 {
        let free = team.helpers.clone().filter(|i| census.queued.binary_search(i).is_ok());
        new.extend(free.take(missing));
    }
    Asked { new, kept: stay, unwanted, running }
}

/// Helpers of a team that have a job which waits, or may have one.
fn waiting(state: &State, team: &Team) -> impl Iterator<Item = usize> {
    team.helpers.clone().filter(|&i| waits(&state.shards[i]))
}

fn waits(record: &ShardRecord) -> bool {
    matches!(record.slot, Slot::Submitting(_)) || pends(record)
}

/// Rows that no job has begun.
pub fn not_begun(shard: &Shard, record: &ShardRecord) -> u32 {
    rows_left(shard, record).saturating_sub(record.progress.begun)
}

fn runs(record: &ShardRecord) -> bool {
    record.live().is_some_and(|live| live.started.is_some())
}

fn pends(record: &ShardRecord) -> bool {
    record.live().is_some_and(|live| {
        live.state == JobState::Pending && live.started.is_none() && live.absent.is_none()
    })
}

fn target(state: &State, shard: usize) -> Option<Target> {
    let record = &state.shards[shard];
    let live = record.live().filter(|_| pends(record))?;
    Some(Target::new(shard, &record.id, live.job))
}

/// Everything about a helper's work is its shard's.
pub fn follow(record: &mut ShardRecord, helped: &ShardRecord, log: Option<&Seen<Measured>>) {
    record.progress.clone_from(&helped.progress);
    if let Some(Err(gap)) = log {
        record.progress.gap = Some(gap.to_string());
    }
    record.finished = helped.finished;
    record.over_cap = helped.over_cap;
    if matches!(helped.gate, Gate::Cancelled { .. }) {
        record.gate.clone_from(&helped.gate);
    }
}

/// Rows that a job which ended finished itself, by its marks; `None`: the shard is not split, or its
/// program marks nothing, and the shard's rows have to tell.
pub fn own_rows(seen: &Observation, shard: &Shard, i: usize, end: &End) -> Option<u32> {
    let reading = seen.progress.get(shard.helps.unwrap_or(i))?.as_ref()?.as_ref().ok()?;
    let claims = reading.claims.as_ref()?;
    let own = claims.done_by(&shard.id, end.attempt);
    (own > 0 || nobody_unnamed(claims)).then_some(own)
}

fn nobody_unnamed(claims: &RowClaims) -> bool {
    claims.done > 0 && claims.done_by_nobody() == 0
}

/// Running time of helpers between two moments: what a shard's pace counts beside its own job's.
pub fn worked(helpers: &[ShardRecord], from: Time, until: Time) -> Secs {
    let span = |started: Time, ended: Time| ended.min(until).since(started.max(from)).0.max(0);
    let of_end = |end: &End| end.started.map_or(0, |started| span(started, end.ended));
    let each = |record: &ShardRecord| {
        let now = match &record.slot {
            Slot::Live(live) => live.started.map_or(0, |started| span(started, until)),
            Slot::Settling(end) => of_end(end),
            Slot::Free | Slot::Submitting(_) => 0,
        };
        now + record.last_end.as_deref().map_or(0, of_end)
    };
    Secs(helpers.iter().map(each).sum())
}

/// The attempt that a record has with Slurm, known there or not.
pub fn present(record: &ShardRecord) -> Option<&Attempt> {
    match &record.slot {
        Slot::Submitting(intent) => Some(&intent.attempt),
        Slot::Live(live) => Some(&live.attempt),
        Slot::Free | Slot::Settling(_) => None,
    }
}
