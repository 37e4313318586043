//! One try at a shard: its intent, its life in Slurm, its end.

use super::cluster::{EndWord, JobState};
use super::id::{JobId, Token};
use super::pilot::Turn;
use super::policy::Lane;
use super::units::{Secs, Time};

/// What Slurm has of this shard. Boxed, so that the many records that every rule of a cycle goes
/// over stay small.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Slot {
    Free,
    /// sbatch was (or is about to be) called and its outcome is not known.
    Submitting(Box<Intent>),
    Live(Box<Live>),
    /// Its job ended short of rows; late files are waited for.
    Settling(Box<End>),
}

/// One try at a shard: all that was decided when it was submitted.
#[derive(Debug, Clone, PartialEq, Hash)]
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
    /// Its job is a pilot: it works on the shards that it claims.
    pub pilot: bool,
}

/// A placement chosen for a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pin {
    pub node: String,
    pub tier: String,
}

#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Intent {
    pub attempt: Attempt,
    /// Cycles since then in which Slurm answered and did not know the token.
    pub looks: u32,
    /// The first of them.
    pub quiet_since: Option<Time>,
    /// What the last sbatch said.
    pub said: String,
}

#[derive(Debug, Clone, PartialEq, Hash)]
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
    /// Other running jobs of the same shard that were told; each is told once.
    pub twins: Vec<JobId>,
    /// babysit asked for its end, and why.
    pub stop: Option<Stop>,
    /// A pilot's claim of this shard.
    pub turn: Option<Turn>,
    /// Runs of a pilot's job, from its first on, that are paid for, by this record or by others that
    /// had it before.
    pub paid: u32,
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
            twins: Vec::new(),
            stop: None,
            turn: None,
            paid: 0,
        }
    }

    /// A pilot that has claimed no shard in its present run: the record that holds it only lent its
    /// name.
    pub fn is_unclaimed(&self) -> bool {
        self.attempt.pilot && self.turn.is_none_or(|turn| turn.run != self.restarts)
    }

    /// When this attempt began in a run that began then.
    pub fn begun(&self, run: Time, restarts: u32) -> Time {
        run + self.after(restarts)
    }

    /// How long after the start of a run this attempt began.
    pub fn after(&self, restarts: u32) -> Secs {
        let turn = self.turn.filter(|turn| turn.run == restarts);
        turn.map_or(Secs(0), |turn| turn.after)
    }

    /// Runs of the job that were over when this record got it: they are another's to pay.
    pub fn runs_before(&self) -> u32 {
        self.paid.max(self.turn.map_or(0, |turn| turn.run))
    }

    /// A pilot with runs that are over and not paid for: it stays with its record until they are.
    pub fn owes(&self) -> bool {
        self.attempt.pilot && self.paid < self.restarts
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mark {
    pub rows: u32,
    pub at: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// A pending job of a split shard that would find no row to do.
    Unwanted,
    /// A pilot that took no shard, or gave this one back before it began.
    Unclaimed,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Hash)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndHow {
    Word(EndWord),
    /// It left the queue and accounting cannot say how.
    Vanished,
}
