//! Pilots (issue 7 item 5): jobs that decide at their start, and again after each shard, which shard of
//! their family they work on. What they are offered, and what they claim. docs/pilots.md has the rules.

use std::path::PathBuf;

use super::id::{JobId, ShardId};
use super::units::{Secs, Time};

/// How a pilot is started in place of its shard's command; all that its job script must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pilot {
    /// babysit, as the nodes have it.
    pub program: PathBuf,
    /// Where offers and claims are.
    pub folder: PathBuf,
    pub shard: ShardId,
    /// Shards of other groups it leaves alone.
    pub group: String,
    /// What a claim of its own shard carries, where no offer can be read.
    pub fence: u32,
}

/// The shards that a pilot may take, as the last tick saw them: longest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offer {
    /// The state's; an offer of another one is none.
    pub instance: String,
    pub shards: Vec<Offered>,
    /// Claims that are booked: shard, number and job.
    pub taken: Vec<(ShardId, u32, JobId)>,
}

/// One shard of an offer, with all that it takes to run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    pub shard: ShardId,
    pub group: String,
    /// A claim must carry this number. It grows with each claim that a tick has booked or refused.
    pub fence: u32,
    /// A shell command line.
    pub command: String,
    pub workdir: PathBuf,
    pub log_dir: PathBuf,
    /// The BABYSIT_* variables of the contract.
    pub env: Vec<(String, String)>,
    /// Work left, and that of one row, as measured or as configured.
    pub remaining: Secs,
    pub row: Secs,
}

/// A pilot's word that it works on a shard from now on. Whose file it is, is the file's owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub shard: ShardId,
    pub fence: u32,
    pub instance: String,
    pub job: JobId,
    /// The job's comment: what Slurm shows of it too.
    pub token: String,
    /// How often Slurm had started the job again: a claim dies with the run that made it.
    pub run: u32,
    /// Place among the claims of this run, from 0.
    pub place: u32,
    /// Whole seconds from the start of this run to this claim, by one clock; 0 for the first, so
    /// that what a run takes to get there is the first shard's.
    pub after: Secs,
    pub host: String,
    /// By that host's clock: for people.
    pub at: Time,
    /// Who wrote it, as the file system says.
    pub uid: u32,
    /// Not begun: the shard was taken off the offer in the same moment.
    pub returned: bool,
}

/// The claims that lie there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    pub claims: Vec<Claim>,
    pub bad: Vec<BadClaim>,
}

/// Under the name of a claim, and none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadClaim {
    pub shard: ShardId,
    pub fence: u32,
    pub why: String,
}

/// A live job's claim of the shard whose record holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Turn {
    pub fence: u32,
    /// The job's run that made it.
    pub run: u32,
    /// From that run's start to the claim.
    pub after: Secs,
    /// Given back before anything was begun.
    pub returned: bool,
}
