//! What one cycle saw, with its gaps: the planner never guesses over one.

use std::fmt;

use super::cluster::{EndWord, Node, QueueJob};
use super::id::JobId;
use super::pilot::Claims;
use super::rows::RowClaims;
use super::state::TakesBoth;
use super::units::{Money, Time};

/// A reading, or why there is none.
pub type Seen<T> = Result<T, Gap>;

/// Why something could not be read: the command, what came back, what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub kind: GapKind,
    /// The command line or path.
    pub source: String,
    /// One sentence with exit code and first stderr line.
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GapKind {
    /// The command could not be started (not installed, not executable).
    NotFound,
    /// It did not answer in time and was ended.
    TimedOut,
    /// It answered with an error of its own.
    Failed,
    /// It answered something that cannot be an answer: no header, torn row.
    Unreadable,
    /// It says that this cluster keeps no accounting at all.
    Off,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.detail)
    }
}

/// What the two probes gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    pub jobs: Vec<QueueJob>,
    pub nodes: Vec<Node>,
    /// The user that this babysitter runs as.
    pub me: u32,
}

/// One row of sacct, of a job that left the queue or was never seen in it.
#[derive(Debug, Clone, PartialEq)]
pub struct PastJob {
    pub id: JobId,
    pub uid: u32,
    pub name: String,
    /// Empty unless the site stores comments.
    pub comment: String,
    pub qos: String,
    /// `None`: accounting believes that it is still there, or its word is none for an end: see
    /// [`PastJob::is_over`].
    pub end: Option<EndWord>,
    pub submitted: Option<Time>,
    pub started: Option<Time>,
    pub ended: Option<Time>,
    pub nodes: Vec<String>,
    /// `code:signal`.
    pub exit: String,
    /// uid that cancelled it, where the state says `CANCELLED by`.
    pub cancelled_by: Option<u32>,
}

impl PastJob {
    /// A run that was requeued is over as well, and REQUEUED is its word for ever.
    pub fn is_over(&self) -> bool {
        self.end.is_some() || self.ended.is_some()
    }
}

/// What a shard's files say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Measured {
    /// Distinct finished rows.
    pub rows: u32,
    /// Sum of the ledger; `None` where there is no ledger to read.
    pub spent: Option<Money>,
    /// Ledger lines that are no JSON or hold no readable amount.
    pub bad_lines: u64,
    /// Of a shard whose rows several jobs share.
    pub claims: Option<Box<RowClaims>>,
}

/// Everything the planner is given beside policy, state and the time.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    pub cluster: Cluster,
    /// `None`: nothing was asked. Else every row found, or why none could be read.
    pub accounting: Option<Seen<Vec<PastJob>>>,
    /// By shard index; `None`: not measured in this cycle.
    pub progress: Vec<Option<Seen<Measured>>>,
    /// Last lines of the logs of jobs that ended, by shard index, in order.
    pub logs: Vec<(usize, String)>,
    /// GPUs of the own QOS as Slurm has them, where that was asked in this cycle.
    pub own_gpus: Option<Seen<Option<u32>>>,
    /// Whether Slurm takes a job with two QOS, where that was asked in this cycle.
    pub takes_both: Option<TakesBoth>,
    /// What pilots claimed; `None`: there are no pilots.
    pub claims: Option<Seen<Claims>>,
}

impl Observation {
    /// What the log of a shard's ended job says; empty where there is none.
    pub fn log_of(&self, shard: usize) -> &str {
        let at = self.logs.binary_search_by_key(&shard, |(at, _)| *at);
        at.ok().and_then(|at| self.logs.get(at)).map_or("", |(_, text)| text.as_str())
    }
}
