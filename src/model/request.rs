//! What Slurm is asked to do, and what came back. The plan fills these in completely, so that the
//! adapter only has to spell them.

use std::path::PathBuf;
use std::sync::Arc;

use super::id::{JobId, Token};
use super::pilot::Pilot;
use super::policy::Launch;

/// One sbatch, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub token: Token,
    pub qos: Option<String>,
    pub partition: Option<String>,
    pub account: Option<String>,
    /// As `--gres` takes it: `gpu:1`, `gpu:rtx4090:2`.
    pub gres: String,
    /// Pinned to this node.
    pub node: Option<String>,
    /// Nodes kept out, the user's own `--exclude` not among them.
    pub exclude: Vec<String>,
    pub nice: i64,
    pub cpus: Option<u32>,
    pub mem: Option<String>,
    pub time: Option<String>,
    pub workdir: PathBuf,
    /// Folder of the job's output; made before sbatch.
    pub log_dir: PathBuf,
    /// The BABYSIT_* variables of the contract, in order. Shared: a simulated cluster keeps those of
    /// every job.
    pub env: Arc<[(String, String)]>,
    /// The user's own sbatch options.
    pub args: Vec<String>,
    pub launch: Launch,
    /// The job is a pilot; `launch` is then what it falls back on.
    pub pilot: Option<Pilot>,
}

/// What became of one sbatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// rc 0 and an id: the job exists.
    Accepted(JobId),
    /// The job may exist or not: only its token can tell.
    Unknown(String),
    Refused(Refusal),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub class: RefusalClass,
    /// First stderr line that says why.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalClass {
    /// A limit of the lane: wait, no blame, no further submission to this lane in this cycle.
    Limit,
    /// Slurm cannot take anything now: no further submission in this cycle.
    Overload,
    /// This request is wrong: this shard is refused, the others go on.
    Request,
}

/// One scontrol update for jobs that all go the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Each set part of the lane.
    Lane {
        qos: Option<String>,
        partition: Option<String>,
        account: Option<String>,
    },
    Nice(i64),
    /// The complete new list; empty clears it.
    Exclude(Vec<String>),
}

/// What scontrol or scancel said. Whatever it said, only a re-read queue counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Done,
    /// First stderr line, exit code, or the time-out.
    Failed(String),
}
