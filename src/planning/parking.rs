//! Which lane each waiting shard belongs in (policy.md section 3), and the moves that bring the
//! pending ones there. A RUNNING job is never touched.

use crate::model::cluster::JobState;
use crate::model::id::JobId;
use crate::model::observation::Cluster;
use crate::model::policy::{Lane, LaneMode, LaneRules, Lanes, Park, Policy};
use crate::model::request::Change;
use crate::model::state::{OwnLane, State};
use crate::model::units::{Secs, Time};

use super::both;
use super::census::Census;
use super::lpt::Lpt;
use super::own_share;
use super::placement::about_to_start;
use super::plan::{Action, Purpose, Target};
use super::roster::{Roster, lane_of};
use super::turnover::Turnover;

/// GPUs of the own lane that nobody runs on or waits for, our own pending jobs not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// The lane's size cannot be known.
    Unknown,
    /// Slurm sets no limit.
    Unlimited,
    Gpus {
        free: u32,
        size: u32,
    },
}

impl Room {
    /// The lane for a job that starts now: own if it has room, else extra. Where own's size cannot
    /// be known, extra: a pinned job must start now, not wait in a full lane.
    pub fn take(&mut self, gpus: u32) -> Lane {
        match self {
            Room::Unlimited => Lane::Own,
            Room::Gpus { free, .. } if *free >= gpus => {
                *free -= gpus;
                Lane::Own
            }
            Room::Gpus { .. } | Room::Unknown => Lane::Extra,
        }
    }
}

/// What is left of own once everything that waits in it, parked jobs included, is counted.
pub fn room_left(policy: &Policy, room: Room, seats: &[Seat]) -> Room {
    let Room::Gpus { free, size } = room else { return room };
    let own = seats.iter().filter(|seat| seat.lane != Lane::Extra);
    let waits: u32 = own.map(|seat| policy.shards[seat.shard].gpus).sum();
    Room::Gpus { free: free.saturating_sub(waits), size }
}

/// Who is in the own lane now.
pub fn own_lane(
    lanes: &Lanes,
    cluster: &Cluster,
    roster: &Roster<'_>,
    state: &State,
    census: &Census,
) -> OwnLane {
    let learned = state.learned.own_gpus.and_then(|(limit, _)| limit);
    let mut lane = OwnLane { size: lanes.own_gpus.or(learned), ..OwnLane::default() };
    for (job, ours) in cluster.jobs.iter().zip(roster.is_ours()) {
        // Those of ours that pend take nothing of it yet.
        let out = job.state.is_over() || (*ours && !job.state.holds_gpus());
        if out || !matches!(lane_of(Some(lanes), job), Some(Lane::Own | Lane::Both)) {
            continue;
        }
        // A job whose request cannot be read holds at least one GPU.
        let gpus = job.gpus.unwrap_or(1);
        if !job.state.holds_gpus() {
            // Anybody may wait for any number.
            lane.pending_others = lane.pending_others.saturating_add(gpus);
        } else if *ours {
            lane.running_ours = lane.running_ours.saturating_add(gpus);
        } else {
            lane.running_others = lane.running_others.saturating_add(gpus);
            lane.others_until = [lane.others_until, job.ends].into_iter().flatten().min();
        }
    }
    // Pinned jobs of ours that were just submitted are not moved any more: they count as taken.
    let pinned = census.pinned.iter().filter_map(|&i| about_to_start(&state.shards[i]));
    let own = pinned.filter(|attempt| attempt.lane == Some(Lane::Own));
    lane.pending_pinned = own.map(|attempt| attempt.gpus).sum();
    lane
}

pub fn room(policy: &Policy, state: &State, lane: &OwnLane) -> Room {
    if !policy.rules.lanes.straight {
        return Room::Unknown;
    }
    let share = own_share::left(policy.rules.lanes.own_share, state, lane);
    let Some(size) = lane.size else {
        // Slurm was asked, and sets no limit; or it could not be asked yet.
        let no_limit = state.learned.own_gpus.is_some();
        return match (no_limit, share) {
            (false, _) => Room::Unknown,
            (true, None) => Room::Unlimited,
            (true, Some(free)) => Room::Gpus { free, size: u32::MAX },
        };
    };
    let others = lane.running_others.saturating_add(lane.pending_others);
    let ours = lane.running_ours.saturating_add(lane.pending_pinned);
    let free = size.saturating_sub(others).saturating_sub(ours);
    Room::Gpus { free: share.map_or(free, |share| free.min(share)), size }
}

/// The place of one waiting shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    pub shard: usize,
    pub lane: Lane,
    /// Among the K that wait in own beyond its room.
    pub parked: bool,
}

/// Own for as many as it has room for now, plus K parked; extra for the rest. `waiting` is in LPT
/// order and holds both pending jobs and shards about to be submitted.
pub fn seats(
    policy: &Policy,
    room: Room,
    waiting: &[Waiting],
    Own { park, both, whole, mut share }: Own,
) -> Vec<Seat> {
    let mut free = match room {
        Room::Unknown => 0,
        Room::Unlimited => u32::MAX,
        Room::Gpus { free, .. } => free,
    };
    let mut parked = 0;
    let mut is_alone = false;
    let mut seats = Vec::with_capacity(waiting.len());
    for shard in waiting {
        let gpus = policy.shards[shard.shard].gpus;
        let never_fits = matches!(room, Room::Gpus { size, .. } if gpus > size);
        let stays = policy.rules.lanes.park == Park::Oldest && shard.lane == Some(Lane::Extra);
        // Wider than all of our share it would never have a turn: one such shard stands in own all the
        // same, and nobody behind it.
        let alone = gpus > whole && !std::mem::replace(&mut is_alone, true);
        let (lane, is_parked) = if never_fits || stays || (gpus > share && !alone) {
            (Lane::Extra, false)
        } else if both {
            (Lane::Both, false)
        } else if gpus <= free {
            free -= gpus;
            (Lane::Own, false)
        } else if parked < park {
            parked += 1;
            (Lane::Own, true)
        } else if room == Room::Unknown && !shard.still_pends {
            // The field's way: in own first; the next cycle promotes what still pends.
            (Lane::Own, false)
        } else {
            (Lane::Extra, false)
        };
        if lane != Lane::Extra {
            share = share.saturating_sub(gpus);
        }
        seats.push(Seat { shard: shard.shard, lane, parked: is_parked });
    }
    seats
}

/// What of own is there for those that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own {
    /// K: how many stay in it beyond its room.
    pub park: usize,
    /// Each waits in both lanes at once, and K is without meaning.
    pub both: bool,
    /// GPUs that we may have of it, and what of them is left for those that wait.
    pub whole: u32,
    pub share: u32,
}

/// By the rules in force and by who is there now.
pub fn own(policy: &Policy, state: &State, lane: &OwnLane, turnover: &Turnover<'_>) -> Own {
    let rules = &policy.rules.lanes;
    let no_limit = u32::MAX;
    let whole = own_share::whole(rules.own_share, state, lane).unwrap_or(no_limit);
    let share = own_share::left(rules.own_share, state, lane).unwrap_or(no_limit);
    let both = rules.mode == LaneMode::Both && both::works(policy, state);
    let park = match rules.mode {
        LaneMode::Fixed => policy.lanes.as_ref().map_or(0, |lanes| lanes.park),
        LaneMode::Adaptive | LaneMode::Both => turnover.park(state),
    };
    Own { park, both, whole, share }
}

/// A shard that waits: pending in Slurm (with its job), or about to be submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    pub shard: usize,
    pub job: Option<JobId>,
    /// Where that job pends.
    pub lane: Option<Lane>,
    pub submitted: Option<Time>,
    /// Slurm has had the time to start it, and did not.
    pub still_pends: bool,
}

impl Waiting {
    /// About to be submitted.
    pub fn new(shard: usize) -> Waiting {
        Waiting { shard, job: None, lane: None, submitted: None, still_pends: false }
    }
}

/// Puts those who wait in the order in which they are parked.
pub fn sort(policy: &Policy, lpt: &Lpt, waiting: &mut [Waiting]) {
    // What of own there is to give is for shards first.
    let helps = |w: &Waiting| policy.shards[w.shard].helps.is_some();
    let shards = if policy.named() < policy.shards.len() {
        waiting.sort_by_key(helps);
        waiting.partition_point(|w| !helps(w))
    } else {
        waiting.len()
    };
    let (shards, helpers) = waiting.split_at_mut(shards);
    lpt.sort(policy, shards, |w| w.shard);
    lpt.sort(policy, helpers, |w| w.shard);
    if policy.rules.lanes.park == Park::Oldest {
        // A stable sort: what nobody has submitted yet comes last, in the order above.
        waiting.sort_by_key(|w| (w.job.is_none(), w.submitted, w.job));
    }
}

/// Are they in that order, at a glance? No says nothing.
pub fn is_sorted(policy: &Policy, lpt: &Lpt, waiting: &[Waiting]) -> bool {
    let shards = waiting.partition_point(|w| policy.shards[w.shard].helps.is_none());
    policy.rules.lanes.park == Park::Longest
        && shards == waiting.len()
        && lpt.is_sorted(policy, waiting, |w| w.shard)
}

/// Slurm starts a job that can start within 0.1-4 s (slurm-facts.md section 6 i).
const START_TIME: Secs = Secs(5);

/// Our pending jobs that Slurm could start in either lane: not held, not waiting for something
/// else than GPUs, not being stopped, and ours to change.
pub fn movable(state: &State, pending: &[usize], me: u32, now: Time) -> Vec<Waiting> {
    let waiting_one = |&shard: &usize| {
        let live = state.shards[shard].live()?;
        let can = live.state == JobState::Pending
            && live.absent.is_none()
            && live.lane.is_some()
            && live.stop.is_none()
            && live.attempt.uid == me
            && live.attempt.pin.is_none()
            && !is_stuck(&live.reason);
        let still_pends = now.since(live.attempt.asked_at) >= START_TIME;
        can.then_some(Waiting {
            shard,
            job: Some(live.job),
            lane: live.lane,
            submitted: live.submitted,
            still_pends,
        })
    };
    let mut waiting = Vec::with_capacity(pending.len());
    waiting.extend(pending.iter().filter_map(waiting_one));
    waiting
}

/// Pending reasons of Slurm that no lane helps with: a person's hold, a dependency.
pub fn is_stuck(reason: &str) -> bool {
    // Most by far wait for nothing but GPUs: their words begin otherwise.
    matches!(reason.as_bytes(), [b'J' | b'D' | b'B' | b'P', ..])
        && ["JobHeld", "Dependency", "BadConstraints", "PartitionConfig"]
            .iter()
            .any(|word| reason.starts_with(word))
}

/// The moves that bring pending jobs where they belong: one update per direction.
///
/// Slurm 24.11 says yes to a job of a list of QOS that is to have the one in which it was last looked
/// at, and leaves it the list (measured). So such a job goes by way of the lane where it will not be.
pub fn moves(lanes: &Lanes, state: &State, seats: &[Seat], now: Time) -> Vec<Action> {
    let mut out = Vec::new();
    for to in [Lane::Own, Lane::Extra, Lane::Both] {
        let (mut jobs, mut of_lists) = (Vec::new(), Vec::new());
        for seat in seats.iter().filter(|seat| seat.lane == to) {
            let record = &state.shards[seat.shard];
            let Some(live) = record.live().filter(|live| live.lane != Some(to)) else { continue };
            if record.move_refused.as_ref().is_some_and(|r| r.to == to && r.until > now) {
                continue;
            }
            let target = Target::new(seat.shard, &record.id, live.job);
            if live.lane == Some(Lane::Both) {
                of_lists.push(target.clone());
            }
            jobs.push(target);
        }
        let by_way_of = if to == Lane::Own { Lane::Extra } else { Lane::Own };
        for (purpose, lane, jobs) in
            [(Purpose::Detour(by_way_of), by_way_of, of_lists), (Purpose::Move(to), to, jobs)]
        {
            if !jobs.is_empty() {
                out.push(Action::Update { purpose, change: change_to(lanes, lane), jobs });
            }
        }
    }
    out
}

fn change_to(lanes: &Lanes, lane: Lane) -> Change {
    let spec = lanes.spec(lane).into_owned();
    Change::Lane { qos: spec.qos, partition: spec.partition, account: spec.account }
}

/// Lanes in which our pending jobs are put in order. Where K is fixed, those in extra keep theirs:
/// as the field's rule has it, they go as Slurm likes.
pub fn ordered(rules: &LaneRules) -> &'static [Lane] {
    match (rules.longest_first, rules.mode) {
        (false, _) => &[],
        (true, LaneMode::Fixed) => &[Lane::Own],
        (true, LaneMode::Adaptive | LaneMode::Both) => &[Lane::Own, Lane::Both, Lane::Extra],
    }
}

/// Slurm starts the oldest of equals; the policy wants the longest. Nice may be raised by the
/// owner, so a shorter job that Slurm would start first is put just behind the longer one.
///
/// Only jobs that pend in this lane and stay there are ordered, and only where Slurm's own priority
/// order is not LPT already: a nice value also puts a job behind other people's.
pub fn order(
    state: &State,
    roster: &Roster<'_>,
    seats: &[Seat],
    lpt: &Lpt,
    lane: Lane,
) -> Vec<Action> {
    /// More than the age factor moves between two cycles of one lane's jobs.
    const MARGIN: u64 = 10;
    let mut wanted: Vec<(i64, Target)> = Vec::new();
    let mut above: Option<(u64, JobId, f64)> = None;
    // A nice value is for good, so helpers have none: it would put them behind everybody who comes.
    let named = |seat: &&Seat| seat.lane == lane && !state.shards[seat.shard].id.is_helper();
    for seat in seats.iter().filter(named) {
        let record = &state.shards[seat.shard];
        let Some(live) = record.live().filter(|live| live.lane == Some(lane)) else {
            continue;
        };
        let Some(job) = roster.by_id(live.job) else { continue };
        // Priority 0 is a held job, or one that Slurm has not weighed yet.
        let Some(priority) = job.priority.filter(|p| *p > 0) else { continue };
        let left = lpt.remaining[seat.shard];
        let mut now = priority;
        if let Some((bound, older, longer)) = above {
            let right = priority < bound || (priority == bound && job.id > older) || left == longer;
            if !right {
                let down = priority - bound + MARGIN;
                wanted.push((job.nice + down as i64, Target::new(seat.shard, &record.id, job.id)));
                now = priority.saturating_sub(down).max(1);
            }
        }
        above = Some((above.map_or(now, |(bound, ..)| bound.min(now)), job.id, left));
    }
    wanted.sort_by_key(|(nice, target)| (*nice, target.job));
    let mut out: Vec<Action> = Vec::new();
    for (nice, job) in wanted {
        match out.last_mut() {
            Some(Action::Update { change: Change::Nice(same), jobs, .. }) if *same == nice => {
                jobs.push(job);
            }
            _ => out.push(Action::Update {
                purpose: Purpose::Order,
                change: Change::Nice(nice),
                jobs: vec![job],
            }),
        }
    }
    out
}
