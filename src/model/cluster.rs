//! What Slurm shows of jobs and nodes, in our nouns.

use std::sync::Arc;

use super::id::JobId;
use super::units::{Secs, Time};

/// One line of squeue.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueJob {
    pub id: JobId,
    pub uid: u32,
    /// Shared with the jobs beside it that have the same, as the other short words are: there may be
    /// tens of thousands.
    pub user: Arc<str>,
    pub state: JobState,
    pub qos: Arc<str>,
    pub partition: Arc<str>,
    pub account: Arc<str>,
    /// GPUs it asked for or holds; `None` where Slurm did not say it readably.
    pub gpus: Option<u32>,
    /// The same by model, as it was asked (an untyped request has no model).
    pub asked: Vec<GpuCount>,
    pub cpus: Option<u32>,
    pub submitted: Option<Time>,
    /// Of a PENDING job: Slurm's own guess, if any.
    pub started: Option<Time>,
    /// Of a finished job: its end. Of a running one: start + time limit.
    pub ends: Option<Time>,
    pub time_limit: Option<Secs>,
    pub priority: Option<u64>,
    pub nice: i64,
    pub nodes: Vec<String>,
    /// `None`: this release's squeue cannot show it (22.05), so what was asked has to be believed.
    pub excluded: Option<Vec<String>>,
    pub restarts: u32,
    /// Slurm may start this id again by itself.
    pub requeue: bool,
    pub reason: Arc<str>,
    /// Empty where it holds bytes that no job of ours has.
    pub name: String,
    pub comment: String,
}

/// GPUs of one model; `model` is `None` for an untyped request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuCount {
    pub model: Option<String>,
    pub count: u32,
}

/// Slurm's job states are an open list: a word nobody knows is alive, never over.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum JobState {
    #[default]
    Pending,
    Running,
    /// On its way in or out, suspended, or a word not known: still there.
    Alive(String),
    Over(EndWord),
}

impl JobState {
    pub fn is_over(&self) -> bool {
        matches!(self, JobState::Over(_))
    }
    /// Holds GPUs now.
    pub fn holds_gpus(&self) -> bool {
        match self {
            JobState::Pending | JobState::Over(_) => false,
            JobState::Running => true,
            JobState::Alive(word) => !matches!(
                word.as_str(),
                "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "RESV_DEL_HOLD" | "SPECIAL_EXIT"
            ),
        }
    }
}

/// How Slurm says that a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndWord {
    Completed,
    Failed,
    Timeout,
    Deadline,
    OutOfMemory,
    Cancelled,
    Preempted,
    NodeFail,
    BootFail,
    LaunchFailed,
    ReconfigFail,
    Revoked,
}

impl EndWord {
    pub const ALL: [EndWord; 12] = [
        EndWord::Completed,
        EndWord::Failed,
        EndWord::Timeout,
        EndWord::Deadline,
        EndWord::OutOfMemory,
        EndWord::Cancelled,
        EndWord::Preempted,
        EndWord::NodeFail,
        EndWord::BootFail,
        EndWord::LaunchFailed,
        EndWord::ReconfigFail,
        EndWord::Revoked,
    ];

    /// Slurm's word.
    pub fn word(self) -> &'static str {
        match self {
            EndWord::Completed => "COMPLETED",
            EndWord::Failed => "FAILED",
            EndWord::Timeout => "TIMEOUT",
            EndWord::Deadline => "DEADLINE",
            EndWord::OutOfMemory => "OUT_OF_MEMORY",
            EndWord::Cancelled => "CANCELLED",
            EndWord::Preempted => "PREEMPTED",
            EndWord::NodeFail => "NODE_FAIL",
            EndWord::BootFail => "BOOT_FAIL",
            EndWord::LaunchFailed => "LAUNCH_FAILED",
            EndWord::ReconfigFail => "RECONFIG_FAIL",
            EndWord::Revoked => "REVOKED",
        }
    }

    /// Slurm may put the same id back in the queue after this word (slurm.md, "States").
    pub fn may_return(self) -> bool {
        matches!(
            self,
            EndWord::Preempted
                | EndWord::NodeFail
                | EndWord::BootFail
                | EndWord::LaunchFailed
                | EndWord::ReconfigFail
                | EndWord::Revoked
        )
    }
}

/// One node, once, however many partitions it is in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Node {
    pub name: String,
    pub partitions: Vec<String>,
    pub usable: Usable,
    /// The state as Slurm printed it, for `why`.
    pub state: String,
    /// GPUs there and in use, by model; `None`: what Slurm printed could not be read, so nothing
    /// of this node may be counted as free.
    pub gpus: Option<Vec<NodeGpus>>,
    pub cpus_idle: Option<u32>,
    /// MiB not given to any job.
    pub mem_idle: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGpus {
    /// `None` where the site's GRES has no type.
    pub model: Option<String>,
    pub capacity: u32,
    pub used: u32,
}

/// May a job be placed on the node now?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Usable {
    Yes,
    /// Up, but with nothing left to give (all CPUs taken, or completing).
    Full,
    /// Planned for another job by Slurm's backfill: short jobs only.
    Backfill,
    /// Under a Slurm reservation.
    Reserved,
    /// Down, drained, failing, not responding, or a word not known.
    #[default]
    No,
}
