//! A shards.toml before its shards are made: every section read, every family checked as far as it
//! can be without them. A tick takes its lock and asks Slurm by what is here, and makes ten thousand
//! shards while it waits.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::de::DeTable;

use super::document::{Section, Sink, dotted};
use super::family::{self, RawFamily};
use super::fault::{self, Faults};
use super::layers::Layers;
use super::sbatch_args::Laned;
use super::{Loaded, absolute, clashes, key_of, keys, parsed, sections, shards, text_of, whole};
use crate::model::policy::{Lanes, Policy, Shard, SubmitMode};
use crate::model::shards::Shards;

/// So far without a fault.
pub struct Draft {
    /// As it was given, for faults.
    named: PathBuf,
    /// Absolute.
    path: PathBuf,
    /// The folder of shards.toml, escaped for patterns and plain as `pattern_in` makes it.
    base_pattern: String,
    raw: Raw,
    sink: Sink,
}

struct Raw {
    /// Without a shard.
    policy: Policy,
    state: Option<PathBuf>,
    labs: Option<BTreeSet<String>>,
    families: Vec<RawFamily>,
}

/// Reads a shards.toml as far as it goes without making its shards.
///
/// # Errors
/// Everything that is wrong with it, that of its shards too, by line.
pub fn draft(path: &Path) -> Result<Draft, Faults> {
    let text = text_of(path)?;
    let absolute = absolute(path)?;
    let base = absolute.parent().unwrap_or(Path::new("/"));
    // Patterns are text, so the folder in front of them has to be.
    let Some(base_text) = base.to_str() else {
        return Err(whole(
            path,
            "is in a folder whose name is not UTF-8".to_owned(),
            "rename the folder",
        ));
    };
    let base_pattern = shards::pattern_in("", &globset::escape(base_text));
    let (raw, sink) = parsed(path, &text, |table, sink| Raw::read(table, base, sink))?;
    let mut draft = Draft { named: path.to_owned(), path: absolute, base_pattern, raw, sink };
    if draft.sink.faults.is_empty() {
        return Ok(draft);
    }
    draft.make_shards();
    Err(draft.faults())
}

impl Draft {
    /// All of the policy but its shards.
    pub fn policy(&self) -> &Policy {
        &self.raw.policy
    }

    /// Absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The key `state`, absolute.
    pub fn state(&self) -> Option<&Path> {
        self.raw.state.as_deref()
    }

    /// Whether babysit itself looks for places for any of its shards. It may also say so of a family
    /// whose shards all say otherwise: squeue is asked for more than is needed then.
    pub fn places(&self) -> bool {
        self.raw.families.iter().any(|family| {
            let own = family.overrides.iter().map(|(_, settings)| Some(settings));
            own.chain([None]).any(|shard| {
                Layers { family: &family.settings, shard }.submit() == SubmitMode::Placed
            })
        })
    }

    /// With its shards.
    ///
    /// # Errors
    /// Everything that is wrong with them, by line.
    pub fn finish(mut self) -> Result<Loaded, Faults> {
        self.make_shards();
        if !self.sink.faults.is_empty() {
            return Err(self.faults());
        }
        let Draft { named: _, path, base_pattern: _, raw, sink } = self;
        let mut warnings = sink.warnings;
        fault::in_order(&mut warnings);
        Ok(Loaded { policy: raw.policy, path, state: raw.state, warnings, lines: sink.lines })
    }

    fn make_shards(&mut self) {
        let Draft { named: _, path, base_pattern, raw, sink } = self;
        let Raw { policy, state: _, labs, families } = raw;
        let context = shards::Context {
            project: &policy.project,
            base: &Arc::from(path.parent().unwrap_or(Path::new("/"))),
            base_pattern,
            logs: &policy.logs,
            slurm_args: &policy.slurm.args,
            tiers: &policy.tiers,
            labs: labs.as_ref(),
            restart_stalled: policy.rules.restart_stalled,
        };
        let shards = shards::resolve(families, &context, sink);
        clashes::between_shards(&shards, sink);
        if !helpers_fit(&shards, sink) {
            return;
        }
        policy.shards = shards.into();
        park_fits(policy, sink);
        clashes::backfill(policy, sink);
    }

    fn faults(self) -> Faults {
        Faults::new(&self.named, self.sink.all_faults())
    }
}

impl Raw {
    /// The order matters where one section is checked against another; it does not show in the
    /// faults, which are sorted by line.
    fn read(table: &DeTable<'_>, base: &Path, sink: &mut Sink) -> Raw {
        let top = Section::root(sink, table, keys::TOP);
        let project = sections::project(&top, sink);
        let state = sections::path(&top, sink, "state", base).optional();
        let logs = sections::path(&top, sink, "logs", base).or(base.join("logs"));
        let mut lanes = sections::lanes(&top, sink);
        let slurm = sections::slurm(&top, sink, base, laned(lanes.as_ref()));
        if let Some(lanes) = &mut lanes {
            sections::even_lanes(lanes, &slurm, sink);
        }
        let tiers = sections::tiers(&top, sink);
        let backfill = sections::backfill(&top, sink, base);
        let rules = sections::rules(&top, sink);
        sections::one_job_in_both(lanes.as_ref(), &rules.lanes, sink);
        let notify = sections::notify(&top, sink, base);
        let labs = sections::labs(&top, sink);
        let families = family::families(&top, sink, base, laned(lanes.as_ref()));
        let shards = Shards::default();
        let policy = Policy { project, shards, tiers, lanes, backfill, rules, slurm, logs, notify };
        Raw { policy, state, labs, families }
    }
}

/// Most helpers of a file: ten thousand shards with `split = true` have 70 000.
const HELPERS_MOST: usize = 200_000;

/// Each helper has its record in the state, whether it ever has a job or not.
fn helpers_fit(shards: &[Shard], sink: &mut Sink) -> bool {
    let all: usize = shards.iter().map(Shard::helpers).sum();
    let Some(most) = shards.iter().max_by_key(|shard| shard.helpers()) else { return true };
    if all > HELPERS_MOST {
        let key = key_of(&sink.lines, &most.id, "split");
        let text =
            format!("makes {all} helpers with those of all other shards, more than {HELPERS_MOST}");
        sink.fault(&key, text, "let fewer jobs share a shard: some 8 are usual");
    }
    all <= HELPERS_MOST
}

/// More parking places than shards do no harm: every PENDING job simply stays in own.
fn park_fits(policy: &Policy, sink: &mut Sink) {
    let shards = policy.shards.len();
    if let Some(lanes) = policy.lanes.as_ref().filter(|l| l.park > shards) {
        sink.warn(
            &dotted("own", "park"),
            format!(
                "is {}, but there are only {shards} shards: every one stays parked in own",
                lanes.park
            ),
            "at most the number of shards makes a difference; 2 is usual",
        );
    }
}

fn laned(lanes: Option<&Lanes>) -> Laned {
    let Some(lanes) = lanes else { return Laned::default() };
    Laned {
        qos: lanes.own.qos.is_some() || lanes.extra.qos.is_some(),
        partition: lanes.own.partition.is_some() || lanes.extra.partition.is_some(),
        account: lanes.own.account.is_some() || lanes.extra.account.is_some(),
    }
}
