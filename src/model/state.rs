//! What babysit remembers between cycles. The disk form is store's business.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

pub use super::account::{Charge, ChargeKind, LabRecord, Owed, Reservation};
pub use super::attempt::{Absence, Attempt, End, EndHow, Intent, Live, Mark, Pin, Slot, Stop};
use super::caution::Caution;
use super::id::{JobId, ShardId};
use super::notice::Notices;
use super::policy::{Lane, Policy};
use super::reason::Reason;
use super::units::{GpuSeconds, Money, Secs, Time};

/// One state per project and state file.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    pub project: String,
    /// Random id made with the file; part of every job's comment.
    pub instance: String,
    /// Counts the saves; a second owner of the file is noticed by it.
    pub generation: u64,
    /// In the order of the policy's shards once `align` ran.
    pub shards: Vec<ShardRecord>,
    /// Records of shards that shards.toml no longer names; kept, never acted on.
    pub orphans: Vec<ShardRecord>,
    pub labs: BTreeMap<String, LabRecord>,
    /// Caps that a person set, by family and by shard; they win over shards.toml.
    pub caps: BTreeMap<CapTarget, CapSet>,
    pub last_tick: Option<TickRecord>,
    pub learned: Learned,
    pub caution: Caution,
    pub notices: Notices,
    /// The host whose babysit saved it last; empty before the first save.
    pub host: String,
}

/// `family` or `family/shard`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CapTarget {
    Family(String),
    Shard(ShardId),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CapSet {
    pub amount: Money,
    pub by: String,
    pub at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TickRecord {
    pub at: Time,
    pub outcome: TickOutcome,
    pub skipped_in_a_row: u32,
    /// The last cycle that was not skipped.
    pub last_ok: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TickOutcome {
    Ok,
    /// A probe failed: nothing was decided.
    Skipped(String),
    Failed(String),
}

/// What was found out about the cluster and is not asked anew in every cycle.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Learned {
    /// GPUs of the own QOS as Slurm said (`None` inside: no limit there), and when.
    pub own_gpus: Option<(Option<u32>, Time)>,
    /// Accounting is off on this cluster.
    pub accounting_off: bool,
    /// GPUs that shards could run on side by side when last seen: what ETAs divide by.
    pub gpus_at_hand: u32,
    /// Who was in the own lane; `None` where there are no lanes.
    pub own_lane: Option<OwnLane>,
    /// What the last cycle left on the placements; empty where no placed shard waits.
    pub placements: Vec<Alike>,
    /// Starts of ours in each lane, as cycles saw them.
    pub own_starts: u32,
    pub extra_starts: u32,
    /// From one tick to the next.
    pub tick_every: Option<Secs>,
    /// May one job wait in both lanes?
    pub takes_both: Option<TakesBoth>,
    /// What others held of own so far.
    pub others_in_own: Option<OthersInOwn>,
}

/// What others' jobs ran on in own, over the time in which somebody looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OthersInOwn {
    pub gpu_seconds: GpuSeconds,
    pub over: Secs,
    /// Counted until then.
    pub until: Time,
}

/// Whether this cluster's Slurm takes a job with two QOS.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TakesBoth {
    pub yes: bool,
    /// Its version, or the words with which it refused.
    pub said: String,
    pub at: Time,
    /// The list of QOS that it is about, as `--qos` has it.
    pub asked: String,
}

/// GPUs of the own lane: who runs on them or waits for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct OwnLane {
    /// `None`: not known, or no limit.
    pub size: Option<u32>,
    pub running_ours: u32,
    pub running_others: u32,
    pub pending_others: u32,
    pub pending_pinned: u32,
    /// By its time limit, the first of the others' running jobs ends no later than this.
    pub others_until: Option<Time>,
}

/// Placements that differ in nothing but their node. Kept so, a cluster of thousands of nodes is a
/// few lines of the state, and whoever asks why a shard waits needs no answer from Slurm.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Alike {
    pub tier: String,
    pub capacity: u32,
    /// Free for babysit to give, those of backfill and those reserved included.
    pub idle: u32,
    pub reserved: u32,
    pub held_by_backfill: u32,
    /// Jobs may be placed there.
    pub up: bool,
    /// In the partition that jobs for it are sent to.
    pub reachable: bool,
    /// The first few by name, and how many there are beside them.
    pub nodes: Vec<String>,
    pub more: u32,
}

/// All that is known of one shard.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct ShardRecord {
    pub id: ShardId,
    /// As shards.toml last had it: whom its runs are charged to once it is no longer named there.
    pub lab: String,
    pub gate: Gate,
    pub slot: Slot,
    /// Since when it waits for a job; the tie-break of every order.
    pub queued_since: Time,
    /// Attempts begun; the number of the last one.
    pub attempts: u32,
    /// Failures in a row without a new row.
    pub failures: u32,
    pub preemptions: u32,
    pub progress: Progress,
    pub pace: Pace,
    /// GPU-seconds of ended runs.
    pub ran: GpuSeconds,
    /// Set when spent reached the cap; only a raised cap clears it.
    pub over_cap: Option<OverCap>,
    /// All rows were there once; files that vanish later do not undo it.
    pub finished: Option<Finished>,
    pub last_end: Option<Box<End>>,
    /// Rank of the lowest tier, raised after GPU out-of-memory.
    pub min_tier: Option<u32>,
    pub reservation: Option<Reservation>,
    /// Reservations that ended and are charged when its job ends.
    pub owed: Vec<Owed>,
    /// Nodes that babysit keeps its pending job off because of a reservation.
    pub kept_off: KeptOff,
    /// A move that Slurm refused: not tried again before `until`.
    pub move_refused: Option<MoveRefused>,
    pub charges: Vec<Charge>,
    /// Claims of it by pilots that were booked or refused; the next one carries the number after it.
    pub claims: u32,
    /// Why it is (not) running, as the last cycle saw it.
    pub why: Reason,
}

/// May a new job be submitted for it?
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Gate {
    Open,
    /// After a failure; opens by itself.
    Backoff {
        until: Time,
    },
    /// No further submissions until a person releases or retries it.
    Held {
        why: HeldWhy,
        at: Time,
    },
    /// Not possible as asked (NO_FIT_PLACEMENT, or rejected by Slurm).
    Refused {
        text: String,
        at: Time,
    },
    Cancelled {
        by: String,
        at: Time,
    },
}

#[derive(Debug, Clone, PartialEq, Hash)]
pub enum HeldWhy {
    /// `babysit hold`.
    Person { by: String },
    /// Its job was cancelled by somebody else than babysit.
    JobCancelled { job: JobId, by: Option<u32> },
    /// As many failures in a row as max_failures, with the last log lines.
    Failures { count: u32, log: Vec<String> },
    /// Out of memory on the highest tier there is.
    TopTier,
    /// The node's memory, not the GPU's, ran out: `mem` must be raised.
    HostMemory,
}

/// Rows and money as last read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    pub rows: u32,
    pub spent: Option<Money>,
    pub bad_lines: u64,
    pub measured_at: Option<Time>,
    /// Of a split shard: rows that jobs have begun and not finished.
    pub begun: u32,
    /// Why the last reading failed; the numbers are then older.
    pub gap: Option<String>,
}

/// Two readings that differ only in when they were made have one hash: it is what tells whether
/// there is anything new. Whoever needs the moment too adds it.
impl Hash for Progress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Progress { rows, spent, bad_lines, measured_at: _, begun, gap } = self;
        (rows, spent, bad_lines, begun, gap).hash(state);
    }
}

/// Rows finished while running, and the running time they took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Pace {
    pub rows: u32,
    pub time: Secs,
}

impl Pace {
    pub fn seconds_per_row(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.time.as_f64() / f64::from(self.rows))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OverCap {
    pub spent: Money,
    pub cap: Money,
    pub at: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Finished {
    pub at: Time,
    /// Rows asked for then; more rows in shards.toml open it again.
    pub rows: u32,
}

/// Nodes excluded for a pending job beside the user's own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct KeptOff {
    pub nodes: Vec<String>,
    /// Slurm was told, and its answer was not lost; else it is told again.
    pub told: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MoveRefused {
    pub to: Lane,
    pub until: Time,
    pub said: String,
}

impl State {
    /// A new, empty state; `instance` is random and made by the caller.
    pub fn new(project: &str, instance: &str) -> State {
        State {
            project: project.to_owned(),
            instance: instance.to_owned(),
            generation: 0,
            shards: Vec::new(),
            orphans: Vec::new(),
            labs: BTreeMap::new(),
            caps: BTreeMap::new(),
            last_tick: None,
            learned: Learned::default(),
            caution: Caution::default(),
            notices: Notices::default(),
            host: String::new(),
        }
    }

    /// Puts the records in the policy's order: new shards get a fresh record, those that
    /// shards.toml no longer names are kept as orphans, and come back with all they had.
    pub fn align(&mut self, policy: &Policy, now: Time) {
        let same = self.shards.len() == policy.shards.len()
            && self.shards.iter().zip(&policy.shards).all(|(r, s)| r.id == s.id);
        if !same {
            self.rearrange(policy, now);
        }
        for (record, shard) in self.shards.iter_mut().zip(&policy.shards) {
            if *record.lab != *shard.lab {
                shard.lab.as_ref().clone_into(&mut record.lab);
            }
        }
    }

    fn rearrange(&mut self, policy: &Policy, now: Time) {
        let mut known: BTreeMap<ShardId, ShardRecord> = self
            .shards
            .drain(..)
            .chain(self.orphans.drain(..))
            .map(|record| (record.id.clone(), record))
            .collect();
        self.shards = policy
            .shards
            .iter()
            .map(|s| known.remove(&s.id).unwrap_or_else(|| ShardRecord::new(s.id.clone(), now)))
            .collect();
        self.orphans = known.into_values().collect();
    }

    /// Helpers that Slurm has, or may have, a job of, wherever their records are.
    pub fn busy_helpers(&self) -> Vec<&ShardRecord> {
        let all = self.shards.iter().chain(&self.orphans);
        all.filter(|r| matches!(r.slot, Slot::Live(_) | Slot::Submitting(_)) && r.id.is_helper())
            .collect()
    }

    /// The cap in force: the shard's own, else its family's, else shards.toml's.
    pub fn cap_of(&self, id: &ShardId, configured: Option<Money>) -> Option<Money> {
        cap_among(&self.caps, id, configured)
    }
}

/// `State::cap_of`, for whoever changes the records meanwhile.
pub fn cap_among(
    caps: &BTreeMap<CapTarget, CapSet>,
    id: &ShardId,
    configured: Option<Money>,
) -> Option<Money> {
    if caps.is_empty() {
        return configured;
    }
    let own = caps.get(&CapTarget::Shard(id.clone()));
    let set = own.or_else(|| caps.get(&CapTarget::Family(id.family.to_string())));
    set.map(|cap| cap.amount).or(configured)
}

impl ShardRecord {
    pub fn new(id: ShardId, now: Time) -> ShardRecord {
        ShardRecord {
            id,
            lab: String::new(),
            gate: Gate::Open,
            slot: Slot::Free,
            queued_since: now,
            attempts: 0,
            failures: 0,
            preemptions: 0,
            progress: Progress::default(),
            pace: Pace::default(),
            ran: GpuSeconds::default(),
            over_cap: None,
            finished: None,
            last_end: None,
            min_tier: None,
            reservation: None,
            owed: Vec::new(),
            kept_off: KeptOff::default(),
            move_refused: None,
            charges: Vec::new(),
            claims: 0,
            why: Reason::NotLookedYet,
        }
    }

    pub fn live(&self) -> Option<&Live> {
        match &self.slot {
            Slot::Live(live) => Some(live),
            Slot::Free | Slot::Submitting(_) | Slot::Settling(_) => None,
        }
    }
}
