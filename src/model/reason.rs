//! Why a shard is (not) running: exactly one reason each, typed; every reader renders this value.

use std::sync::Arc;

use super::id::JobId;
use super::policy::Lane;
use super::units::{Money, Time};

#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Reason {
    /// No cycle has looked at it yet.
    NotLookedYet,
    Running {
        node: String,
    },
    Done,
    OverCap {
        spent: Money,
        cap: Money,
    },
    HeldByPerson {
        by: String,
    },
    JobCancelled {
        job: JobId,
        by: Option<u32>,
    },
    TooManyFailures {
        count: u32,
        last: String,
    },
    TopTierOutOfMemory,
    HostOutOfMemory,
    Refused {
        text: String,
    },
    NoFit {
        asked: String,
        largest: String,
    },
    Cancelled {
        by: String,
    },
    Backoff {
        until: Time,
        failures: u32,
    },
    /// Its job ended; late files are waited for.
    Settling {
        until: Time,
    },
    /// sbatch was called, its outcome is not known yet.
    OutcomeUnknown {
        since: Time,
        said: String,
    },
    /// Its job left the queue and accounting cannot say yet what became of it.
    EndUnknown {
        since: Time,
        said: String,
    },
    /// PENDING in Slurm: lane, place in LPT order among the pending, parked or not, Slurm's word.
    PendingInSlurm {
        lane: Option<Lane>,
        parked: bool,
        rank: u32,
        of: u32,
        slurm: String,
    },
    /// Its pending job is held in Slurm, or waits for something that never comes.
    StuckInSlurm {
        slurm: String,
    },
    /// In Slurm, neither pending nor running: the word says which.
    InSlurm {
        word: String,
    },
    /// babysit asked Slurm to end its job, and waits for that.
    Stopping {
        job: JobId,
    },
    /// This cycle's share of submissions was used up; its turn comes.
    SubmitBudget {
        rank: u32,
    },
    /// Slurm refused to take more for now (a limit, an overload).
    SlurmBusy {
        said: String,
    },
    /// Rank 1, collecting GPUs on a placement.
    Collecting {
        node: String,
        tier: String,
        have: u32,
        need: u32,
    },
    /// All fit placements are full; the shard ahead of it, if any.
    QueueWait {
        rank: u32,
        ahead: Option<Arc<str>>,
        idle_but_reserved: u32,
    },
    /// Every node that could hold it is down or drained.
    FitNodesDown,
    /// A fit placement has the GPUs, but its node lacks CPUs or memory now.
    NoCpusOrMemory,
    /// Its helpers have all of its last rows in hand.
    RowsInHand {
        rows: u32,
    },
    /// A helper, and no GPU would be idle without it.
    NoHelpNeeded,
    /// It is submitted in this cycle.
    Submitted,
    /// Slurm refused so many of its family in a row that no more are tried.
    BreakerOpen {
        refused: u32,
        said: String,
    },
    /// So many jobs in a row ended well, and none of them finished a row that counts.
    NothingFinished {
        count: u32,
        looked_for: String,
    },
    /// All rows are there, and its job runs on; `since`: for so long that it is worth a look.
    AllRows {
        node: String,
        since: Option<Time>,
    },
    /// Runs, and a person wants no job after this one.
    RunsHeld {
        node: String,
        by: String,
    },
    /// Running, and without a new row for far too long.
    Stalled {
        node: String,
        since: Time,
    },
}
