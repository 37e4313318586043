//! The disk form of the typed reasons.

use std::sync::Arc;

use serde::Deserialize;

use super::form::{Blank, Form, disk_enum};
use crate::model::id::JobId;
use crate::model::policy::Lane;
use crate::model::reason::Reason;
use crate::model::units::{Money, Time};

disk_enum!(#[derive(Default)] DiskReason for Reason {
    #[default]
    NotLookedYet,
    Running { node: String },
    Done,
    OverCap { spent: Money, cap: Money },
    HeldByPerson { by: String },
    JobCancelled { job: JobId, by: Option<u32> },
    TooManyFailures { count: u32, last: String },
    TopTierOutOfMemory,
    HostOutOfMemory,
    Refused { text: String },
    NoFit { asked: String, largest: String },
    Cancelled { by: String },
    Backoff { until: Time, failures: u32 },
    Settling { until: Time },
    OutcomeUnknown { since: Time, said: String },
    EndUnknown { since: Time, said: String },
    PendingInSlurm { lane: Option<Lane>, parked: bool, rank: u32, of: u32, slurm: String },
    StuckInSlurm { slurm: String },
    InSlurm { word: String },
    Stopping { job: JobId },
    SubmitBudget { rank: u32 },
    SlurmBusy { said: String },
    Collecting { node: String, tier: String, have: u32, need: u32 },
    QueueWait { rank: u32, ahead: Option<Arc<str>>, idle_but_reserved: u32 },
    FitNodesDown,
    NoCpusOrMemory,
    RowsInHand { rows: u32 },
    NoHelpNeeded,
    Submitted,
    BreakerOpen { refused: u32, said: String },
    Stalled { node: String, since: Time },
    NothingFinished { count: u32, looked_for: String },
    AllRows { node: String, since: Option<Time> },
    RunsHeld { node: String, by: String },
});

impl Blank for Reason {
    fn is_blank(&self) -> bool {
        matches!(self, Reason::NotLookedYet)
    }
}
