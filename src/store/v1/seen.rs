//! The form of what a cycle saw, as recordings of cycles keep it.

use std::sync::Arc;

use serde::Deserialize;

use super::form::{Blank, Form, disk_struct, disk_words, fields, variant};
use super::json;
use crate::model::cluster::{EndWord, GpuCount, JobState, Node, NodeGpus, QueueJob, Usable};
use crate::model::id::JobId;
use crate::model::observation::{Cluster, Gap, GapKind, Measured, Observation, PastJob, Seen};
use crate::model::pilot::Claims;
use crate::model::rows::{RowClaim, RowClaims, RowsBy};
use crate::model::state::TakesBoth;
use crate::model::units::{Money, Secs, Time};

disk_struct!(DiskQueueJob for QueueJob {
    id: JobId,
    state: JobState;
    uid: u32,
    user: String,
    qos: String,
    partition: String,
    account: String,
    gpus: Option<u32>,
    asked: Vec<GpuCount>,
    cpus: Option<u32>,
    submitted: Option<Time>,
    started: Option<Time>,
    ends: Option<Time>,
    time_limit: Option<Secs>,
    priority: Option<u64>,
    nice: i64,
    nodes: Vec<String>,
    excluded: Option<Vec<String>>,
    restarts: u32,
    requeue: bool,
    reason: String,
    name: String,
    comment: String
});
disk_struct!(DiskGpuCount for GpuCount { count: u32; model: Option<String> });

disk_struct!(DiskNode for Node {
    name: String,
    usable: Usable;
    partitions: Vec<String>,
    state: String,
    gpus: Option<Vec<NodeGpus>>,
    cpus_idle: Option<u32>,
    mem_idle: Option<u64>
});
disk_struct!(DiskNodeGpus for NodeGpus { capacity: u32, used: u32; model: Option<String> });
disk_words!(DiskUsable for Usable { Yes, Full, Backfill, Reserved, No });

disk_struct!(DiskPastJob for PastJob {
    id: JobId;
    uid: u32,
    name: String,
    comment: String,
    qos: String,
    end: Option<EndWord>,
    submitted: Option<Time>,
    started: Option<Time>,
    ended: Option<Time>,
    nodes: Vec<String>,
    exit: String,
    cancelled_by: Option<u32>
});

disk_struct!(DiskMeasured for Measured {
    rows: u32;
    spent: Option<Money>,
    bad_lines: u64,
    claims: Option<Box<RowClaims>>
});
disk_struct!(DiskRowClaims for RowClaims { ; begun: Vec<RowClaim>, done: u32, by: Vec<RowsBy> });
disk_struct!(DiskRowClaim for RowClaim { row: u32, claimant: Arc<str>; });
disk_struct!(DiskRowsBy for RowsBy { worker: Arc<str>, rows: u32; });
disk_struct!(DiskGap for Gap { kind: GapKind, source: String, detail: String; });
disk_words!(DiskGapKind for GapKind { NotFound, TimedOut, Failed, Unreadable, Off });

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DiskSeen<'a, T> {
    Yes(T),
    No(DiskGap<'a>),
}

impl<T: Form> Form for Seen<T> {
    type Disk<'a> = DiskSeen<'a, T::Disk<'a>>;
    fn spell(&self, out: &mut Vec<u8>) {
        match self {
            Ok(value) => variant!(out, Yes(value)),
            Err(gap) => variant!(out, No(gap)),
        }
    }
    fn from_disk(disk: Self::Disk<'_>) -> Self {
        match disk {
            DiskSeen::Yes(value) => Ok(T::from_disk(value)),
            DiskSeen::No(gap) => Err(Gap::from_disk(gap)),
        }
    }
}

/// An answer whose rows stand elsewhere.
impl Form for () {
    type Disk<'a> = ();
    fn spell(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"null");
    }
    fn from_disk((): ()) {}
}

/// `[shard, what was read]`
impl<T: Form> Form for (usize, T) {
    type Disk<'a> = (usize, T::Disk<'a>);
    fn spell(&self, out: &mut Vec<u8>) {
        let (shard, value) = self;
        json::list(*b"[]", out, |out| {
            shard.spell(out);
            out.push(b',');
            value.spell(out);
        });
    }
    fn from_disk((shard, value): Self::Disk<'_>) -> Self {
        (shard, T::from_disk(value))
    }
}

/// All of an observation but its lists that grow with shards, jobs and nodes, which are a line
/// each.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeenHead<'a> {
    me: u32,
    /// Shards there are, measured or not.
    shards: usize,
    /// Accounting was asked; its rows follow where there is no gap.
    #[serde(default)]
    accounting: <Option<Seen<()>> as Form>::Disk<'a>,
    #[serde(default)]
    own_gpus: <Option<Seen<Option<u32>>> as Form>::Disk<'a>,
    #[serde(default)]
    takes_both: <Option<TakesBoth> as Form>::Disk<'a>,
    #[serde(default)]
    claims: <Option<Seen<Claims>> as Form>::Disk<'a>,
}

/// The lists beside the head.
#[derive(Default)]
pub(super) struct Lists {
    pub jobs: Vec<QueueJob>,
    pub nodes: Vec<Node>,
    pub past: Vec<PastJob>,
    pub progress: Vec<(usize, Seen<Measured>)>,
    pub logs: Vec<(usize, String)>,
}

impl SeenHead<'_> {
    pub(super) fn spell(seen: &Observation, out: &mut Vec<u8>) {
        let Observation { cluster, accounting, progress, logs: _, own_gpus, takes_both, claims } =
            seen;
        let Cluster { jobs: _, nodes: _, me } = cluster;
        let shards = &progress.len();
        let accounting =
            &accounting.as_ref().map(|answer| answer.as_ref().map(|_| ()).map_err(Gap::clone));
        fields!(out; me, shards ; accounting, own_gpus, takes_both, claims);
    }

    /// What was seen of a policy of `of` shards.
    ///
    /// # Errors
    /// It was of another number of shards.
    pub(super) fn with(self, lists: Lists, of: usize) -> Result<Observation, String> {
        let SeenHead { me, shards, accounting, own_gpus, takes_both, claims } = self;
        if shards != of {
            return Err(format!("it saw {shards} shards, and the policy has {of}"));
        }
        let Lists { jobs, nodes, past, progress: read, logs } = lists;
        let mut progress: Vec<Option<Seen<Measured>>> = vec![None; shards];
        for (shard, reading) in read {
            let place = progress.get_mut(shard);
            *place.ok_or_else(|| format!("it measured shard {shard} of {shards}"))? = Some(reading);
        }
        Ok(Observation {
            cluster: Cluster { jobs, nodes, me },
            accounting: accounting.map(|answer| match answer {
                DiskSeen::Yes(()) => Ok(past),
                DiskSeen::No(gap) => Err(Gap::from_disk(gap)),
            }),
            progress,
            logs,
            own_gpus: Form::from_disk(own_gpus),
            takes_both: Form::from_disk(takes_both),
            claims: Form::from_disk(claims),
        })
    }
}
