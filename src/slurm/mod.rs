//! ADAPTER: Slurm by its shell commands, behind one trait in our own nouns.
//!
//! Batch-shaped: a cycle asks once for all, whatever the number of shards. What a command is asked and
//! how its answer is read stand side by side in one file per command, without any IO; `real` puts them
//! to work. Nothing here decides anything.

pub mod command;
pub mod environment;
pub mod error;
pub mod gres;
pub mod health;
pub mod hostlist;
pub mod program;
pub mod real;
pub mod rows;
pub mod sacct;
pub mod sbatch;
pub mod scancel;
pub mod scontrol;
pub mod sinfo;
pub mod squeue;
pub mod state;
pub mod survey;
pub mod time;

use crate::model::cluster::QueueJob;
use crate::model::id::JobId;
use crate::model::observation::{Cluster, PastJob, Seen};
use crate::model::request::{Asked, Change, Request, Submitted};
use crate::model::units::Time;

/// Whose jobs squeue is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Everybody's: own-lane room, backfill and placements need the strangers too.
    Everybody,
    Mine,
}

/// What accounting is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastAsk {
    /// Exact job names.
    pub names: Vec<String>,
    /// Submitted no earlier than this.
    pub since: Time,
}

/// A Slurm, real or simulated.
pub trait Slurm {
    /// squeue and sinfo, side by side. One gap is enough to skip the cycle.
    fn look(&mut self, scope: Scope) -> Seen<Cluster>;
    /// squeue alone, for what must be read again after an effect.
    fn jobs(&mut self, scope: Scope) -> Seen<Vec<QueueJob>>;
    /// What `jobs` gave, read by now: whoever made it may write the next answer over it.
    fn take_back(&mut self, _jobs: Vec<QueueJob>) {}
    /// One batched sacct.
    fn past(&mut self, ask: &PastAsk) -> Seen<Vec<PastJob>>;
    /// GPUs that a QOS may use in all; `None`: Slurm has no such limit.
    fn qos_gpus(&mut self, qos: &str) -> Seen<Option<u32>>;
    /// Whether a job may be in both lanes: this one, with a list of QOS, which is not submitted; and
    /// the version, or the words of the refusal. May use up a job id.
    fn takes_both(&mut self, request: &Request) -> Seen<(bool, String)>;
    fn submit(&mut self, request: &Request) -> Submitted;
    /// One scontrol for all jobs that go the same way.
    fn update(&mut self, jobs: &[JobId], change: &Change) -> Asked;
    fn cancel(&mut self, jobs: &[JobId]) -> Asked;
    /// A command line of the user's, by a shell (backfill's stop command), with a time limit.
    fn run(&mut self, line: &str) -> Asked;
}
