//! The form of a policy, as recordings of cycles keep it. What the user asked for lives in
//! shards.toml; this is only so that a cycle can be planned again elsewhere and later.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::form::{Blank, Form, blank_by_default, disk_enum, disk_struct, disk_words, fields};
use super::json;
use crate::model::id::ShardId;
use crate::model::policy::{
    Backfill, CostIn, Hook, Kin, LaneMode, LaneRules, LaneSpec, Lanes, Launch, OwnShare, Park,
    PlaceOrder, PlaceRules, Policy, R3, ReservationCharge, Reserve, ReserveAt, RowsIn, Rules,
    Shard, SlurmSettings, SubmitMode, Tier,
};
use crate::model::split::Split;
use crate::model::units::{Money, Secs, Tflops};

disk_struct!(DiskPolicyShard for Shard {
    id: ShardId,
    lab: Arc<str>,
    launch: Launch,
    workdir: Arc<Path>,
    gpus: u32,
    submit: SubmitMode,
    rows: u32,
    row_time: Secs,
    done: RowsIn,
    log_dir: PathBuf;
    index: u32,
    cpus: Option<u32>,
    mem: Option<String>,
    min_tier: Option<u32>,
    args: Vec<String>,
    time: Option<String>,
    cost: Option<CostIn>,
    cap: Option<Money>,
    oom: Vec<String>,
    restart_stalled: bool,
    split: Option<Split>,
    helps: Option<usize>,
    pilot: bool,
    kin: Kin
});
disk_words!(#[derive(Default)] DiskKin for Kin { #[default] Family, Any });
blank_by_default!(Kin);

disk_struct!(DiskSplit for Split { workers: u32, claims: PathBuf; });

disk_enum!(DiskLaunch for Launch { Command(line: String), Script(path: PathBuf) });
disk_enum!(DiskRowsIn for RowsIn {
    Glob(pattern: String),
    Jsonl { path: PathBuf, key: Option<String> },
});
disk_enum!(DiskCostIn for CostIn {
    Jsonl { path: PathBuf, field: String },
    GpuHour(price: Money),
});
disk_words!(DiskSubmitMode for SubmitMode { Queued, Placed });

disk_struct!(DiskTier for Tier {
    name: String,
    gres: Vec<String>,
    rank: u32,
    tflops: Tflops;
    partition: Option<String>,
    max_gpus: Option<u32>
});

disk_struct!(DiskLanes for Lanes { own: LaneSpec, extra: LaneSpec, park: usize; own_gpus: Option<u32> });
disk_struct!(DiskLaneSpec for LaneSpec {
    ;
    qos: Option<String>,
    partition: Option<String>,
    account: Option<String>
});

disk_struct!(DiskBackfill for Backfill {
    ;
    qos: Option<String>,
    name: Option<String>,
    partition: Option<String>,
    user: Option<String>,
    stop: Option<String>
});

disk_struct!(DiskHook for Hook { command: String, timeout: Secs; });

disk_struct!(DiskRules for Rules {
    reservation_charge: ReservationCharge,
    max_failures: u32,
    backoff: Secs,
    settle: Secs,
    submit_settle: Secs,
    max_submits_per_tick: usize,
    breaker: u32,
    node_deaths: u32,
    node_rest: Secs,
    tick_budget: Secs,
    place: PlaceRules,
    lanes: LaneRules;
    newcomer_floor: bool,
    restart_stalled: bool,
    journal_observations: bool
});
disk_words!(DiskReservationCharge for ReservationCharge { Release, JobEnd });
disk_struct!(DiskPlaceRules for PlaceRules {
    reserve: Reserve,
    order: PlaceOrder,
    r3: R3,
    reserve_at: ReserveAt;
});
disk_words!(DiskR3 for R3 { Release, Soft });
disk_words!(DiskReserveAt for ReserveAt { Best, Earliest });
disk_words!(DiskReserve for Reserve { Mark, Shadow, Never });
disk_words!(DiskPlaceOrder for PlaceOrder { Tier, Guard });
disk_struct!(DiskLaneRules for LaneRules {
    park: Park,
    straight: bool,
    longest_first: bool,
    mode: LaneMode,
    own_share: OwnShare;
});
disk_enum!(DiskOwnShare for OwnShare { All, Gpus(gpus: u32), Average });
disk_words!(DiskLaneMode for LaneMode { Fixed, Adaptive, Both });
disk_words!(DiskPark for Park { Longest, Oldest });

disk_struct!(DiskSlurmSettings for SlurmSettings {
    timeout: Secs;
    bin_dir: Option<PathBuf>,
    partition: Option<String>,
    account: Option<String>,
    args: Vec<String>,
    babysit: Option<PathBuf>,
    pilots: Option<PathBuf>
});

/// Paths of a policy are made from the text of shards.toml, so no byte is lost.
impl Form for PathBuf {
    type Disk<'a> = Cow<'a, str>;
    fn spell(&self, out: &mut Vec<u8>) {
        json::text(&self.to_string_lossy(), out);
    }
    fn from_disk(disk: Cow<'_, str>) -> PathBuf {
        PathBuf::from(disk.into_owned())
    }
}

/// All of a policy but its shards, which are a line each.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyHead<'a> {
    project: <String as Form>::Disk<'a>,
    tiers: <Vec<Tier> as Form>::Disk<'a>,
    lanes: <Option<Lanes> as Form>::Disk<'a>,
    backfill: <Option<Backfill> as Form>::Disk<'a>,
    rules: <Rules as Form>::Disk<'a>,
    slurm: <SlurmSettings as Form>::Disk<'a>,
    logs: <PathBuf as Form>::Disk<'a>,
    notify: <Option<Hook> as Form>::Disk<'a>,
}

impl PolicyHead<'_> {
    pub(super) fn spell(policy: &Policy, out: &mut Vec<u8>) {
        let Policy { project, shards: _, tiers, lanes, backfill, rules, slurm, logs, notify } =
            policy;
        fields!(out; project, tiers, lanes, backfill, rules, slurm, logs, notify);
    }

    pub(super) fn with(self, shards: Vec<Shard>) -> Policy {
        let PolicyHead { project, tiers, lanes, backfill, rules, slurm, logs, notify } = self;
        Policy {
            project: Form::from_disk(project),
            shards: shards.into(),
            tiers: Form::from_disk(tiers),
            lanes: Form::from_disk(lanes),
            backfill: Form::from_disk(backfill),
            rules: Form::from_disk(rules),
            slurm: Form::from_disk(slurm),
            logs: Form::from_disk(logs),
            notify: Form::from_disk(notify),
        }
    }
}
