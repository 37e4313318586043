//! What happened and what was decided: one line each in the journal.

use crate::model::id::{JobId, ShardId};
use crate::model::policy::Lane;
use crate::model::state::EndHow;
use crate::model::units::{Money, Time};

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub at: Time,
    pub shard: Option<ShardId>,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// The whole cycle was skipped (policy.md section 2.1).
    CycleSkipped {
        why: String,
    },
    Submitted {
        job: JobId,
        lane: Option<Lane>,
        attempt: u32,
    },
    /// sbatch gave no clear answer; the token will tell.
    OutcomeUnknown {
        attempt: u32,
        said: String,
    },
    /// A job with our token was found after an unknown outcome, or without a record.
    Adopted {
        job: JobId,
        attempt: u32,
    },
    /// A pilot works on it from now on: after another shard, or instead of the one that it was
    /// submitted for.
    Took {
        job: JobId,
        after: Option<ShardId>,
        instead: Option<ShardId>,
    },
    /// A claim that counts for nothing; the next one carries a higher number.
    ClaimRefused {
        job: Option<JobId>,
        fence: u32,
        why: String,
    },
    /// Looked for long enough with healthy answers: the submission never reached Slurm.
    SubmissionGivenUp {
        attempt: u32,
    },
    SubmitRefused {
        said: String,
    },
    SubmitPaused {
        said: String,
    },
    Started {
        job: JobId,
        lane: Option<Lane>,
        node: String,
    },
    Moved {
        job: JobId,
        to: Lane,
    },
    MoveRefused {
        job: JobId,
        to: Lane,
        said: String,
    },
    /// It did not take effect, and Slurm gave no reason against it: the next cycle tries again.
    MoveUnanswered {
        job: JobId,
        to: Lane,
        said: String,
    },
    /// Slurm printed an error, and the queue shows that the move was made (F5).
    MovedDespiteError {
        job: JobId,
        to: Lane,
        said: String,
    },
    Ended {
        job: JobId,
        how: EndHow,
        new_rows: u32,
    },
    /// Not in the queue, and accounting cannot say what became of it.
    EndPutOff {
        job: JobId,
        why: String,
    },
    Done {
        rows: u32,
    },
    BackedOff {
        until: Time,
        failures: u32,
    },
    Held {
        why: String,
    },
    OverCap {
        spent: Money,
        cap: Money,
    },
    CapRaised {
        cap: Money,
    },
    StopAsked {
        job: JobId,
        why: String,
    },
    StopFailed {
        job: JobId,
        said: String,
    },
    /// Two live jobs for one shard: the older is kept.
    Twin {
        kept: JobId,
        other: JobId,
        cancelled: bool,
    },
    RowsShrank {
        before: u32,
        now: u32,
    },
    MeasureFailed {
        why: String,
    },
    Reserved {
        node: String,
        tier: String,
        gpus: u32,
    },
    ReservationShrank {
        before: u32,
        now: u32,
    },
    ReservationReleased {
        node: String,
        tier: String,
        gpu_seconds: u64,
        why: String,
    },
    BackfillAsked {
        node: String,
        jobs: Vec<JobId>,
        gpus: u32,
    },
    BackfillStopFailed {
        node: String,
        said: String,
    },
    /// After GPU out-of-memory: only this tier or better from now on.
    MinTierRaised {
        tier: String,
    },
    NoFit {
        asked: String,
        largest: String,
    },
    /// A run was charged to the lab.
    Charged {
        attempt: u32,
        gpu_seconds: u64,
    },
    /// A pending job is kept off these nodes because of a reservation; none: let back.
    KeptOff {
        job: JobId,
        nodes: Vec<String>,
    },
    /// So many of a family's submissions were refused in a row that no more are tried.
    BreakerOpened {
        family: String,
        refused: u32,
        said: String,
    },
    /// It died there, and that is held against the node and not against the shard.
    NodeBlamed {
        job: JobId,
        node: String,
    },
    NodeKeptOut {
        node: String,
        deaths: u32,
        until: Time,
    },
    NodeLetBack {
        node: String,
    },
    /// No new row for far too long.
    Stalled {
        job: JobId,
        since: Time,
        restarted: bool,
    },
    /// All rows are there since then, and the job runs on.
    Lingers {
        job: JobId,
        since: Time,
        ended: bool,
    },
    /// Where the whole campaign stands, now and then; for pictures, not for readers of the journal.
    Totals {
        rows: u64,
        of: u64,
        spent: Money,
    },
    /// The notify hook took a message of so many events.
    Notified {
        events: u32,
    },
    NotifyFailed {
        events: u32,
        said: String,
    },
    /// Rows of a split shard that jobs had begun which are over: they are given out again. `all`:
    /// also those marked as done, whose files are gone.
    RowsFreed {
        rows: u32,
        all: bool,
    },
    /// What a person asked for by a command, and what was done about it.
    Person {
        by: String,
        did: String,
    },
}

impl What {
    /// Worth a person's attention in a terminal or a mail; the rest is for the journal only.
    pub fn is_news(&self) -> bool {
        !matches!(
            self,
            What::MeasureFailed { .. }
                | What::Charged { .. }
                | What::KeptOff { .. }
                | What::Totals { .. }
                | What::Notified { .. }
        )
    }
}
