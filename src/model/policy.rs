//! What the user asked for: shards.toml, resolved. Paths are absolute, defaults filled in.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::id::ShardId;
use super::shards::Shards;
use super::split::Split;
use super::units::{Money, Secs, Tflops};

pub use super::rules::{
    LaneMode, LaneRules, OwnShare, Park, PlaceOrder, PlaceRules, R3, ReservationCharge, Reserve,
    ReserveAt, Rules,
};

/// Everything that shards.toml decides.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    pub project: String,
    /// In the order of shards.toml; a shard's place here is its index everywhere in a cycle.
    pub shards: Shards,
    /// By rank, lowest first.
    pub tiers: Vec<Tier>,
    pub lanes: Option<Lanes>,
    pub backfill: Option<Backfill>,
    pub rules: Rules,
    pub slurm: SlurmSettings,
    /// Folder of the jobs' output: `<logs>/<family>/<shard>/<jobid>.out`.
    pub logs: PathBuf,
    pub notify: Option<Hook>,
}

/// `[hooks] notify`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub command: String,
    /// Longer it may not take.
    pub timeout: Secs,
}

impl Hook {
    /// Mail and web hooks answer within seconds; one that hangs costs a `loop` this much.
    pub const TIMEOUT: Secs = Secs(20);
}

/// How Slurm is reached.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SlurmSettings {
    pub bin_dir: Option<PathBuf>,
    /// Per Slurm command; sbatch gets at least 180 s.
    pub timeout: Secs,
    pub partition: Option<String>,
    pub account: Option<String>,
    /// More sbatch options for every shard.
    pub args: Vec<String>,
    /// babysit as the nodes have it, for pilots; `None`: not known.
    pub babysit: Option<PathBuf>,
    /// Where pilots find their offers and leave their claims; `None`: there is no such place.
    pub pilots: Option<PathBuf>,
}

/// The two lanes (policy.md sections 1 and 3).
#[derive(Debug, Clone, PartialEq)]
pub struct Lanes {
    pub own: LaneSpec,
    pub extra: LaneSpec,
    /// GPUs of the own lane as configured; else read from Slurm.
    pub own_gpus: Option<u32>,
    /// K: how many PENDING jobs stay parked in own.
    pub park: usize,
}

/// What makes a job one of this lane; at least one of the three is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaneSpec {
    pub qos: Option<String>,
    pub partition: Option<String>,
    pub account: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    Own,
    Extra,
    /// PENDING in own and extra at once; once it runs it is in one of them.
    Both,
}

impl Lane {
    pub fn word(self) -> &'static str {
        match self {
            Lane::Own => "own",
            Lane::Extra => "extra",
            Lane::Both => "both",
        }
    }
}

impl Lanes {
    /// What a job of this lane is given. Both lanes at once: own's QOS first, so that Slurm looks
    /// for room there first; partition and account are own's (slurm-facts.md section 9).
    pub fn spec(&self, lane: Lane) -> Cow<'_, LaneSpec> {
        match lane {
            Lane::Own => Cow::Borrowed(&self.own),
            Lane::Extra => Cow::Borrowed(&self.extra),
            Lane::Both => {
                let qos: Vec<&str> =
                    [&self.own, &self.extra].into_iter().filter_map(|l| l.qos.as_deref()).collect();
                Cow::Owned(LaneSpec { qos: Some(qos.join(",")), ..self.own.clone() })
            }
        }
    }

    /// Can one job be in both at all? Only where the lanes differ in their QOS and nothing else.
    pub fn differ_by_qos_alone(&self) -> bool {
        let (own, extra) = (&self.own, &self.extra);
        let named = own.qos.is_some() && extra.qos.is_some() && own.qos != extra.qos;
        named && own.partition == extra.partition && own.account == extra.account
    }
}

/// A GPU model with a rank and a weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Tier {
    pub name: String,
    /// The model as Slurm's GRES spells it; more than one spelling is allowed.
    pub gres: Vec<String>,
    /// Higher is better; no two tiers share one.
    pub rank: u32,
    pub tflops: Tflops,
    pub partition: Option<String>,
    /// Most GPUs that one shard may ask of this tier.
    pub max_gpus: Option<u32>,
}

/// Jobs that give way (policy.md section 6). At least one criterion is set; all set ones must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Backfill {
    pub qos: Option<String>,
    /// A regular expression, already checked.
    pub name: Option<String>,
    pub partition: Option<String>,
    pub user: Option<String>,
    /// Command line with `{jobid} {jobids} {node} {gpus}`; `None` is scancel.
    pub stop: Option<String>,
}

/// Which shards a pilot may claim beside the one that its job was submitted for, of those that ask the
/// same of Slurm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kin {
    /// Those of its family.
    #[default]
    Family,
    /// Those of every family that says the same.
    Any,
}

/// The unit of work, with every setting of its family and its own already merged.
#[derive(Debug, Clone, PartialEq)]
pub struct Shard {
    pub id: ShardId,
    /// Place within the family, from 0.
    pub index: u32,
    /// Shared by the shards of a family, as the next one: there may be ten thousand.
    pub lab: Arc<str>,
    pub launch: Launch,
    pub workdir: Arc<Path>,
    /// 1..=8.
    pub gpus: u32,
    pub cpus: Option<u32>,
    pub mem: Option<String>,
    /// Rank of the lowest tier it may run on; `None`: any GPU.
    pub min_tier: Option<u32>,
    pub submit: SubmitMode,
    /// `[slurm] args`, then the family's, then its own.
    pub args: Vec<String>,
    /// As sbatch --time takes it.
    pub time: Option<String>,
    pub rows: u32,
    /// The configured first guess of seconds per row.
    pub row_time: Secs,
    pub done: RowsIn,
    pub cost: Option<CostIn>,
    pub cap: Option<Money>,
    /// More patterns (regular expressions, checked) for GPU out-of-memory in the job's log.
    pub oom: Vec<String>,
    /// A job without a new row for far too long is ended and started again.
    pub restart_stalled: bool,
    /// Several jobs may share its rows.
    pub split: Option<Split>,
    /// It is a helper of the shard with this index.
    pub helps: Option<usize>,
    /// Its jobs are pilots: each works on the shards that it claims.
    pub pilot: bool,
    /// Of a pilot: which shards it may claim.
    pub kin: Kin,
    /// Folder of this shard's job output.
    pub log_dir: PathBuf,
}

impl Shard {
    /// One GPU, queued, one row of a minute, nothing else asked for: for a shard that no shards.toml has,
    /// of which whoever makes it changes what it is about.
    pub fn plain(id: ShardId) -> Shard {
        Shard {
            id,
            index: 0,
            lab: "lab".into(),
            launch: Launch::Command("true".to_owned()),
            workdir: Path::new("/").into(),
            gpus: 1,
            cpus: None,
            mem: None,
            min_tier: None,
            submit: SubmitMode::Queued,
            args: Vec::new(),
            time: None,
            rows: 1,
            row_time: Secs::minutes(1),
            done: RowsIn::Glob("/rows/*".to_owned()),
            cost: None,
            cap: None,
            oom: Vec::new(),
            restart_stalled: false,
            split: None,
            helps: None,
            pilot: false,
            kin: Kin::Family,
            log_dir: "/logs".into(),
        }
    }
}

/// How a shard reaches Slurm (policy.md section 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitMode {
    Queued,
    Placed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// A shell command line, placeholders filled in and quoted.
    Command(String),
    /// A batch script of the user's.
    Script(PathBuf),
}

/// Where finished rows are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowsIn {
    /// Absolute pattern; each match is one finished row.
    Glob(String),
    /// Each distinct value of `key`, or each line where there is no key.
    Jsonl { path: PathBuf, key: Option<String> },
}

/// Where money is counted.
#[derive(Debug, Clone, PartialEq)]
pub enum CostIn {
    Jsonl {
        path: PathBuf,
        field: String,
    },
    /// Price of one GPU for one hour.
    GpuHour(Money),
}

impl Policy {
    /// The tier of a GRES model name; Slurm's spelling counts, letter case does not.
    pub fn tier_of(&self, model: &str) -> Option<&Tier> {
        self.tiers.iter().find(|t| t.gres.iter().any(|g| g.eq_ignore_ascii_case(model)))
    }

    /// Does any job of it claim its shards?
    pub fn has_pilots(&self) -> bool {
        self.shards.iter().any(|shard| shard.pilot)
    }

    /// Whether babysit itself looks for places for any of its shards.
    pub fn places(&self) -> bool {
        self.shards.iter().any(|shard| shard.submit == SubmitMode::Placed)
    }

    pub fn tier_by_rank(&self, rank: u32) -> Option<&Tier> {
        self.tiers.iter().find(|t| t.rank == rank)
    }
}
