//! What the notify hook is to be told, and what is known of the last message.

use std::collections::BTreeMap;

use super::id::{JobId, ShardId};
use super::units::{Money, Time};

#[derive(Debug, Clone, PartialEq, Hash, Default)]
pub struct Notices {
    /// Not told yet, oldest first; bounded, the rest is in `left_out`.
    pub waiting: Vec<Notice>,
    /// By kind: how many more there were than are kept.
    pub left_out: BTreeMap<String, u32>,
    /// That probes fail was told; a cycle that goes through clears it.
    pub probe_told: bool,
    /// Nothing moves by itself any more, and that was told.
    pub rests: bool,
    /// Of the last message; no two have one number.
    pub number: u64,
    pub last: Option<Delivery>,
}

#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Notice {
    pub at: Time,
    pub shard: Option<ShardId>,
    pub matter: Matter,
}

#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Matter {
    Done {
        rows: u32,
    },
    OverCap {
        spent: Money,
        cap: Money,
    },
    Held {
        why: String,
    },
    Refused {
        said: String,
    },
    NoFit {
        asked: String,
        largest: String,
    },
    Breaker {
        family: String,
        refused: u32,
        said: String,
    },
    Stalled {
        job: JobId,
        since: Time,
        restarted: bool,
    },
    Lingers {
        job: JobId,
        since: Time,
        ended: bool,
    },
    BadNode {
        node: String,
        deaths: u32,
        until: Time,
    },
    /// So many cycles in a row were skipped, the last one for this reason.
    ProbeFailing {
        skipped: u32,
        why: String,
    },
    /// Nothing moves by itself any more.
    Finished {
        done: u32,
        not_done: u32,
    },
}

/// One message to the hook, made of one notice or of many.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub number: u64,
    pub at: Time,
    pub notices: Vec<Notice>,
    pub left_out: BTreeMap<String, u32>,
}

/// What became of a message. It is noted as in hand, and saved, before the hook is started.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Delivery {
    pub at: Time,
    pub events: u32,
    pub end: DeliveryEnd,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DeliveryEnd {
    /// The hook runs; or babysit was ended meanwhile, and how far it came is not known.
    InHand,
    Delivered,
    Failed(String),
}

impl Message {
    pub fn events(&self) -> u32 {
        let kept = u32::try_from(self.notices.len()).unwrap_or(u32::MAX);
        self.left_out.values().fold(kept, |sum, n| sum.saturating_add(*n))
    }
}

impl Matter {
    /// The `kind` of the message, for scripts.
    pub fn kind(&self) -> &'static str {
        match self {
            Matter::Done { .. } => "done",
            Matter::OverCap { .. } => "over-cap",
            Matter::Held { .. } => "held",
            Matter::Refused { .. } | Matter::NoFit { .. } => "refused",
            Matter::Breaker { .. } => "breaker",
            Matter::Stalled { .. } => "stalled",
            Matter::Lingers { .. } => "lingers",
            Matter::BadNode { .. } => "bad-node",
            Matter::ProbeFailing { .. } => "probe-failing",
            Matter::Finished { .. } => "finished",
        }
    }
}
