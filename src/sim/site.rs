//! How the site has set up its Slurm, and in what mood its daemons are.

use crate::model::units::Secs;

/// How the site has set up its Slurm. May be changed at any moment of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// From a change to the scheduler's acting on it; measured 0.1-4 s (facts, section 6 i).
    /// With 0 a submit on an idle node is RUNNING at once.
    pub sched_delay: Secs,
    /// How long a job that is over stays in squeue (MinJobAge).
    pub min_job_age: Secs,
    /// From an event to accounting's knowing of it.
    pub accounting_lag: Secs,
    pub accounting: Accounting,
    /// AccountingStoreFlags=job_comment: comments appear in accounting, at the end of a job.
    pub stores_comments: bool,
    /// Lower jobs start wherever they fit (what sched and bf together do for a small queue of jobs
    /// without time limits). Else no job starts on a node that a higher, waiting one could use.
    pub backfill: bool,
    /// Priority points that a job has gained after `age_max` in the queue.
    pub age_weight: u64,
    pub age_max: Secs,
    /// Most jobs of one user that are pending or running in one QOS.
    pub max_submit: Option<usize>,
    /// A job may name several QOS (24.11 and later, facts, section 9).
    pub lists_of_qos: bool,
}

impl Default for Site {
    fn default() -> Site {
        Site {
            sched_delay: Secs(1),
            min_job_age: Secs(300),
            accounting_lag: Secs(0),
            accounting: Accounting::On,
            stores_comments: false,
            backfill: true,
            age_weight: 100,
            age_max: Secs(7 * 86_400),
            max_submit: None,
            lists_of_qos: true,
        }
    }
}

/// slurmdbd, as sacct meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accounting {
    On,
    /// Should be there and does not answer.
    Down,
    /// accounting_storage/none.
    Off,
}

/// slurmctld, as all other commands meet it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controller {
    Up,
    Down,
    /// Takes requests, answers none, and does what it was asked once it goes on (section 3).
    Stalled,
}

/// What becomes of a job of this QOS that is preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreemptMode {
    /// Comes back under its id after two minutes, unless it was submitted with --no-requeue.
    Requeue,
    Cancel,
}
