//! The disk form of everything that is remembered of a shard.

use serde::Deserialize;

use super::form::{Blank, Form, blank_by_default, disk_enum, disk_struct, disk_words};
use crate::model::cluster::{EndWord, JobState};
use crate::model::id::{JobId, ShardId, Token};
use crate::model::pilot::Turn;
use crate::model::policy::Lane;
use crate::model::reason::Reason;
use crate::model::state::{
    Absence, Attempt, Charge, ChargeKind, End, EndHow, Finished, Gate, HeldWhy, Intent, KeptOff,
    Live, Mark, MoveRefused, OverCap, Owed, Pace, Pin, Progress, Reservation, ShardRecord, Slot,
    Stop,
};
use crate::model::units::{GpuSeconds, Money, Secs, Tflops, Time};

disk_struct!(DiskShard for ShardRecord {
    id: ShardId,
    gate: Gate,
    slot: Slot,
    queued_since: Time;
    attempts: u32,
    failures: u32,
    preemptions: u32,
    progress: Progress,
    pace: Pace,
    ran: GpuSeconds,
    over_cap: Option<OverCap>,
    finished: Option<Finished>,
    last_end: Option<Box<End>>,
    min_tier: Option<u32>,
    reservation: Option<Reservation>,
    owed: Vec<Owed>,
    kept_off: KeptOff,
    move_refused: Option<MoveRefused>,
    charges: Vec<Charge>,
    why: Reason,
    lab: String,
    claims: u32
});

disk_enum!(DiskGate for Gate {
    Open,
    Backoff { until: Time },
    Held { why: HeldWhy, at: Time },
    Refused { text: String, at: Time },
    Cancelled { by: String, at: Time },
});

disk_enum!(DiskHeldWhy for HeldWhy {
    Person { by: String },
    JobCancelled { job: JobId, by: Option<u32> },
    Failures { count: u32, log: Vec<String> },
    TopTier,
    HostMemory,
});

disk_enum!(
    #[allow(clippy::large_enum_variant, reason = "it lives for one line of the file")]
    DiskSlot for Slot {
    Free,
    Submitting(intent: Box<Intent>),
    Live(live: Box<Live>),
    Settling(end: Box<End>),
});

disk_struct!(DiskAttempt for Attempt {
    number: u32,
    token: Token,
    asked_at: Time,
    gpus: u32,
    uid: u32;
    lane: Option<Lane>,
    pin: Option<Pin>,
    rows_before: u32,
    exclude: Vec<String>,
    pilot: bool
});

disk_struct!(DiskToken for Token { name: String, comment: String; });
disk_struct!(DiskPin for Pin { node: String, tier: String; });

disk_struct!(DiskIntent for Intent {
    attempt: Attempt;
    looks: u32,
    quiet_since: Option<Time>,
    said: String
});

disk_struct!(DiskLive for Live {
    attempt: Attempt,
    job: JobId,
    state: JobState;
    submitted: Option<Time>,
    lane: Option<Lane>,
    qos: String,
    nodes: Vec<String>,
    started: Option<Time>,
    tier: Option<String>,
    restarts: u32,
    reason: String,
    mark: Option<Mark>,
    absent: Option<Absence>,
    stalled: Option<Time>,
    twins: Vec<JobId>,
    stop: Option<Stop>,
    turn: Option<Turn>,
    paid: u32
});

disk_struct!(DiskTurn for Turn { fence: u32; run: u32, after: Secs, returned: bool });

disk_enum!(DiskJobState for JobState {
    Pending,
    Running,
    Alive(word: String),
    Over(word: EndWord),
});

disk_words!(DiskLane for Lane { Own, Extra, Both });
disk_words!(DiskStop for Stop { OverCap, Cancelled, Twin, Stalled, Stranded, Unwanted, Unclaimed });
disk_words!(DiskChargeKind for ChargeKind { Run, Reserved, Released });
disk_struct!(DiskMark for Mark { rows: u32, at: Time; });
disk_struct!(DiskAbsence for Absence { since: Time, looks: u32; });

disk_struct!(DiskEnd for End {
    attempt: u32,
    job: JobId,
    how: EndHow,
    ended: Time,
    seen_at: Time,
    gpus: u32;
    started: Option<Time>,
    rows_before: u32,
    exit: String,
    nodes: Vec<String>,
    tier: Option<String>,
    mark: Option<Mark>,
    stop: Option<Stop>,
    cancelled_by: Option<u32>
});

disk_enum!(DiskEndHow for EndHow { Word(word: EndWord), Vanished });

disk_struct!(#[derive(Default)] DiskProgress for Progress {
    ;
    rows: u32,
    spent: Option<Money>,
    bad_lines: u64,
    measured_at: Option<Time>,
    begun: u32,
    gap: Option<String>
});

disk_struct!(#[derive(Default)] DiskPace for Pace { ; rows: u32, time: Secs });
disk_struct!(DiskOverCap for OverCap { spent: Money, cap: Money, at: Time; });
disk_struct!(DiskFinished for Finished { at: Time, rows: u32; });

disk_struct!(DiskReservation for Reservation {
    pin: Pin,
    gpus: u32,
    since: Time,
    accrued_at: Time,
    gpu_seconds: GpuSeconds;
});

disk_struct!(DiskOwed for Owed { reservation: Reservation, started: bool; });
disk_struct!(#[derive(Default)] DiskKeptOff for KeptOff { ; nodes: Vec<String>, told: bool });
disk_struct!(DiskMoveRefused for MoveRefused { to: Lane, until: Time, said: String; });

disk_struct!(DiskCharge for Charge {
    kind: ChargeKind,
    lab: String,
    attempt: u32,
    from: Time,
    gpus: u32,
    gpu_seconds: GpuSeconds,
    weight: Tflops,
    at: Time;
    length: Secs,
    tier: Option<String>
});

blank_by_default!(Progress, KeptOff, Pace);
