//! The plan as data: complete, so that whoever carries it out decides nothing.

use std::path::PathBuf;

use crate::model::id::{JobId, ShardId};
use crate::model::policy::Lane;
use crate::model::request::{Change, Request};
use crate::model::rows::RowClaim;
use crate::model::state::{Attempt, Stop};

use super::event::{Event, What};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// In the order in which they are to be carried out.
    pub actions: Vec<Action>,
    pub events: Vec<Event>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Cancel {
        why: Stop,
        jobs: Vec<Target>,
    },
    /// One scontrol for all jobs that go the same way.
    Update {
        purpose: Purpose,
        change: Change,
        jobs: Vec<Target>,
    },
    /// Backfill is told to give way; the start follows at once (policy.md section 6).
    StopBackfill {
        node: String,
        gpus: u32,
        jobs: Vec<JobId>,
        command: Option<String>,
    },
    /// Rows of a split shard whose owners are over may be taken again.
    FreeRows(Box<FreeRows>),
    Submit(Box<Submit>),
}

/// What an update is for; tells the verification which column to read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    Move(Lane),
    /// Out of a list of QOS, before the move proper: nothing is read again after it.
    Detour(Lane),
    /// LPT order among our own pending jobs of a lane.
    Order,
    /// Nodes of reserved placements that these jobs are kept off from now on.
    KeepOff(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Index of the shard in the policy.
    pub shard: usize,
    pub id: ShardId,
    pub job: JobId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeRows {
    pub id: ShardId,
    /// The folder of the claims.
    pub claims: PathBuf,
    pub rows: Vec<RowClaim>,
    /// Those that are marked as done as well.
    pub all: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Submit {
    pub shard: usize,
    pub id: ShardId,
    pub attempt: Attempt,
    pub request: Request,
    /// Nodes it is kept off because of a reservation.
    pub kept_off: Vec<String>,
}

impl Plan {
    /// Every field of it, line by line, the same for equal plans: to be compared, not to be read
    /// back.
    pub fn spelled_out(&self) -> String {
        format!("{self:#?}\n")
    }

    /// Nothing is asked of Slurm, and nothing happened.
    pub fn is_quiet(&self) -> bool {
        let happened = |event: &Event| !matches!(event.what, What::Totals { .. });
        self.actions.is_empty() && !self.events.iter().any(happened)
    }
}

impl Action {
    pub fn kind(&self) -> &'static str {
        match self {
            Action::Submit(_) => "submit",
            Action::Update { purpose: Purpose::Move(Lane::Own), .. } => "move-to-own",
            Action::Update { purpose: Purpose::Move(Lane::Extra), .. } => "move-to-extra",
            Action::Update { purpose: Purpose::Move(Lane::Both), .. } => "move-to-both",
            Action::Update { purpose: Purpose::Detour(_), .. } => "detour",
            Action::Update { purpose: Purpose::Order, .. } => "order",
            Action::Update { purpose: Purpose::KeepOff(_), .. } => "keep-off",
            Action::StopBackfill { .. } => "stop-backfill",
            Action::Cancel { .. } => "cancel",
            Action::FreeRows(_) => "free-rows",
        }
    }
}

impl Target {
    pub fn new(shard: usize, id: &ShardId, job: JobId) -> Target {
        Target { shard, id: id.clone(), job }
    }
}
