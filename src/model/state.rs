//! What babysit remembers between cycles. The disk form is store's business.

use std::collections::BTreeMap;

use super::caution::Caution;
use super::cluster::{EndWord, JobState};
use super::id::{JobId, ShardId, Token};
use super::policy::{Lane, Policy};
use super::reason::Reason;
use super::units::{GpuSeconds, Money, Secs, Tflops, Time, Usage};

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
    /// The host whose babysit saved it last; empty before the first save.
    pub host: String,
}

/// `family` or `family/shard`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CapTarget {
    Family(String),
    Shard(ShardId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapSet {
    pub amount: Money,
    pub by: String,
    pub at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TickRecord {
    pub at: Time,
    pub outcome: TickOutcome,
    pub skipped_in_a_row: u32,
    /// The last cycle that was not skipped.
    pub last_ok: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TickOutcome {
    Ok,
    /// A probe failed: nothing was decided.
    Skipped(String),
    Failed(String),
}

/// What was found out about the cluster and is not asked anew in every cycle.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
}

/// GPUs of the own lane: who runs on them or waits for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnLane {
    /// `None`: not known, or no limit.
    pub size: Option<u32>,
    pub running_ours: u32,
    pub running_others: u32,
    pub pending_others: u32,
    pub pending_pinned: u32,
}

/// Placements that differ in nothing but their node. Kept so, a cluster of thousands of nodes is a
/// few lines of the state, and whoever asks why a shard waits needs no answer from Slurm.
#[derive(Debug, Clone, PartialEq, Eq)]
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

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabRecord {
    pub usage: Usage,
    /// Usage it was given at its start (newcomer = "floor"), not charged for anything.
    pub floor: Usage,
}

/// All that is known of one shard.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardRecord {
    pub id: ShardId,
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
    /// Why it is (not) running, as the last cycle saw it.
    pub why: Reason,
}

/// May a new job be submitted for it?
#[derive(Debug, Clone, PartialEq)]
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

#[derive(Debug, Clone, PartialEq)]
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

/// What Slurm has of this shard. Boxed, so that the many records that every rule of a cycle goes
/// over stay small.
#[derive(Debug, Clone, PartialEq)]
pub enum Slot {
    Free,
    /// sbatch was (or is about to be) called and its outcome is not known.
    Submitting(Box<Intent>),
    Live(Box<Live>),
    /// Its job ended short of rows; late files are waited for.
    Settling(Box<End>),
}

/// One try at a shard: all that was decided when it was submitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub number: u32,
    pub token: Token,
    pub lane: Option<Lane>,
    pub gpus: u32,
    pub pin: Option<Pin>,
    /// Finished rows when it was submitted.
    pub rows_before: u32,
    /// By our clock, before sbatch was called.
    pub asked_at: Time,
    /// The user whose babysitter submitted it (a lab may share one state).
    pub uid: u32,
    /// Nodes kept out for good: the user's own, and those with an unfit model (policy.md 6.1).
    pub exclude: Vec<String>,
}

/// A placement chosen for a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pin {
    pub node: String,
    pub tier: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    pub attempt: Attempt,
    /// Cycles since then in which Slurm answered and did not know the token.
    pub looks: u32,
    /// The first of them.
    pub quiet_since: Option<Time>,
    /// What the last sbatch said.
    pub said: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    pub attempt: Attempt,
    pub job: JobId,
    /// Slurm's own submit time; part of its identity where comments are lost.
    pub submitted: Option<Time>,
    pub state: JobState,
    pub lane: Option<Lane>,
    pub qos: String,
    pub nodes: Vec<String>,
    pub started: Option<Time>,
    /// The tier it runs on, as far as Slurm shows it.
    pub tier: Option<String>,
    /// How often Slurm itself started it again.
    pub restarts: u32,
    /// Slurm's words for why it is pending.
    pub reason: String,
    /// Rows and moment of the last new row, for seconds per row.
    pub mark: Option<Mark>,
    /// Not in a healthy squeue since, and in how many of them.
    pub absent: Option<Absence>,
    /// No new row for far too long since then; told once, cleared by the next row.
    pub stalled: Option<Time>,
    /// babysit asked for its end, and why.
    pub stop: Option<Stop>,
}

impl Live {
    /// A job that Slurm took, before it was seen in any queue.
    pub fn new(attempt: Attempt, job: JobId) -> Live {
        Live {
            lane: attempt.lane,
            attempt,
            job,
            submitted: None,
            state: JobState::Pending,
            qos: String::new(),
            nodes: Vec::new(),
            started: None,
            tier: None,
            restarts: 0,
            reason: String::new(),
            mark: None,
            absent: None,
            stalled: None,
            stop: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub rows: u32,
    pub at: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absence {
    pub since: Time,
    pub looks: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    OverCap,
    Cancelled,
    /// A second job with the same token.
    Twin,
    /// No new row for far too long, and `restart_stalled` is set.
    Stalled,
    /// A pinned job that cannot start where it was sent.
    Stranded,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    pub attempt: u32,
    pub job: JobId,
    pub how: EndHow,
    pub started: Option<Time>,
    /// Slurm's end time, else when we learned of it.
    pub ended: Time,
    pub seen_at: Time,
    pub rows_before: u32,
    pub gpus: u32,
    pub exit: String,
    pub nodes: Vec<String>,
    pub tier: Option<String>,
    /// The last new row before it ended; cleared once the pace has been taken from it.
    pub mark: Option<Mark>,
    /// babysit asked for this end.
    pub stop: Option<Stop>,
    /// Who cancelled it, where accounting says so.
    pub cancelled_by: Option<u32>,
}

impl End {
    /// All that the attempt itself tells; times, nodes and causes are for the caller to add.
    pub fn new(attempt: &Attempt, job: JobId, how: EndHow, now: Time) -> End {
        End {
            attempt: attempt.number,
            job,
            how,
            started: None,
            ended: now,
            seen_at: now,
            rows_before: attempt.rows_before,
            gpus: attempt.gpus,
            exit: String::new(),
            nodes: Vec::new(),
            tier: attempt.pin.as_ref().map(|pin| pin.tier.clone()),
            mark: None,
            stop: None,
            cancelled_by: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndHow {
    Word(EndWord),
    /// It left the queue and accounting cannot say how.
    Vanished,
}

/// Rows and money as last read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    pub rows: u32,
    pub spent: Option<Money>,
    pub bad_lines: u64,
    pub measured_at: Option<Time>,
    /// Why the last reading failed; the numbers are then older.
    pub gap: Option<String>,
}

/// Rows finished while running, and the running time they took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    pub rows: u32,
    pub time: Secs,
}

impl Pace {
    pub fn seconds_per_row(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.time.as_f64() / f64::from(self.rows))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverCap {
    pub spent: Money,
    pub cap: Money,
    pub at: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    pub at: Time,
    /// Rows asked for then; more rows in shards.toml open it again.
    pub rows: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Reservation {
    pub pin: Pin,
    pub gpus: u32,
    pub since: Time,
    pub accrued_at: Time,
    /// Raw; weighted when charged.
    pub gpu_seconds: GpuSeconds,
}

/// Nodes excluded for a pending job beside the user's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptOff {
    pub nodes: Vec<String>,
    /// Slurm was told, and its answer was not lost; else it is told again.
    pub told: bool,
}

/// A reservation that ended without having been charged yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Owed {
    pub reservation: Reservation,
    /// It led to a start.
    pub started: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveRefused {
    pub to: Lane,
    pub until: Time,
    pub said: String,
}

/// One line of `babysit usage`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    pub kind: ChargeKind,
    pub lab: String,
    pub attempt: u32,
    /// Of a run: its start; of a reservation: its beginning. With `attempt` and `kind` the
    /// identity that keeps it from being charged twice.
    pub from: Time,
    /// From there to the end of the run or reservation.
    pub length: Secs,
    /// Of a reservation: what it held last; it may have grown and shrunk before.
    pub gpus: u32,
    pub gpu_seconds: GpuSeconds,
    pub tier: Option<String>,
    pub weight: Tflops,
    pub at: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChargeKind {
    Run,
    /// A reservation that led to its start.
    Reserved,
    /// A reservation that was released without one.
    Released,
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
            host: String::new(),
        }
    }

    /// Puts the records in the policy's order: new shards get a fresh record, those that
    /// shards.toml no longer names are kept as orphans, and come back with all they had.
    pub fn align(&mut self, policy: &Policy, now: Time) {
        let same = self.shards.len() == policy.shards.len()
            && self.shards.iter().zip(&policy.shards).all(|(r, s)| r.id == s.id);
        if same {
            return;
        }
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

    /// The cap in force: the shard's own, else its family's, else shards.toml's.
    pub fn cap_of(&self, id: &ShardId, configured: Option<Money>) -> Option<Money> {
        if self.caps.is_empty() {
            return configured;
        }
        let own = self.caps.get(&CapTarget::Shard(id.clone()));
        let set = own.or_else(|| self.caps.get(&CapTarget::Family(id.family.clone())));
        set.map(|cap| cap.amount).or(configured)
    }
}

impl ShardRecord {
    pub fn new(id: ShardId, now: Time) -> ShardRecord {
        ShardRecord {
            id,
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
