//! shards.toml -> [`Policy`]: read with lines, every fault at once, paths absolute, defaults filled
//! in. The one place that reads the environment ([`Surroundings`]).
//!
//! Nothing here asks Slurm anything, and nothing is written.

mod clashes;
mod document;
mod family;
mod fault;
mod files;
mod keys;
mod layers;
mod near;
mod sbatch_args;
mod scenario;
mod sections;
mod shards;
mod size;
mod surroundings;
mod template;
mod values;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::DeTable;

use crate::model::id::ShardId;
use crate::model::policy::{Lanes, Policy};
use document::{MOST_FAULTS, Section, Sink, dotted, line_in};
use sbatch_args::Laned;

pub use clashes::user_faults;
pub use fault::{Fault, Faults};
pub use files::{FileFaults, file_faults};
pub use keys::{SCENARIO_SECTIONS, SECTIONS};
pub use near::nearest;
pub use scenario::{ScenarioFile, scenario};
pub use surroundings::{FILE_NAME, PlaceError, Surroundings, find, state_path};
pub use values::units as length;

/// A shards.toml without a fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub policy: Policy,
    /// Absolute.
    pub path: PathBuf,
    /// The key `state`, absolute.
    pub state: Option<PathBuf>,
    /// Odd, but no reason to stop.
    pub warnings: Vec<Fault>,
    lines: BTreeMap<String, usize>,
}

impl Loaded {
    /// The line of a dotted key, or of the nearest table around it.
    pub fn line_of(&self, key: &str) -> Option<usize> {
        line_in(&self.lines, key)
    }

    /// The dotted key that decides `name` for a shard (its own, else its family's), with its line.
    pub fn shard_key(&self, id: &ShardId, name: &str) -> (String, Option<usize>) {
        let key = key_of(&self.lines, id, name);
        let line = self.line_of(&key);
        (key, line)
    }
}

/// Where a shard has `name` from: its own table where that has it, else its family.
fn key_of(lines: &BTreeMap<String, usize>, id: &ShardId, name: &str) -> String {
    let own = format!("families.{}.shard.{}.{name}", id.family, id.shard);
    if lines.contains_key(&own) { own } else { format!("families.{}.{name}", id.family) }
}

/// Bytes of dotted keys whose lines are remembered: where each shard has a section of its own they are
/// some four times the file, as `families.find.shard.s00001.` stands before each key.
const FACTOR: usize = 4;
const INDEX: usize = 256 << 10;

/// Reads and checks a shards.toml.
///
/// # Errors
/// Everything that is wrong with it, by line.
pub fn load(path: &Path) -> Result<Loaded, Faults> {
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
    let ((policy, state), sink) =
        parsed(path, &text, |table, sink| resolve(table, base, &base_pattern, sink))?;
    let mut warnings = sink.warnings;
    fault::in_order(&mut warnings);
    Ok(Loaded { policy, path: absolute, state, warnings, lines: sink.lines })
}

/// A fault of the file as a whole.
fn whole(path: &Path, text: String, hint: &str) -> Faults {
    let fault = Fault { line: None, key: String::new(), text, hint: Some(hint.to_owned()) };
    Faults::new(path, vec![fault])
}

fn absolute(path: &Path) -> Result<PathBuf, Faults> {
    std::path::absolute(path).map_err(|e| {
        whole(path, format!("has no absolute path: {e}"), "name the file by its full path")
    })
}

fn text_of(path: &Path) -> Result<String, Faults> {
    let bytes = read(&absolute(path)?).map_err(|e| {
        whole(path, format!("cannot be read: {e}"), "correct the path or its permissions")
    })?;
    if bytes.len() as u64 > size::MOST_BYTES {
        return Err(size::too_large(path));
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        let before = e.as_bytes().get(..e.utf8_error().valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let mut faults = whole(path, "is not UTF-8 here".to_owned(), "save the file as UTF-8");
        faults.faults.iter_mut().for_each(|f| f.line = Some(line));
        faults
    })?;
    size::fits(path, &text)?;
    Ok(text)
}

/// What `read` makes of the document, or every fault of it.
fn parsed<T>(
    path: &Path,
    text: &str,
    read: impl FnOnce(&DeTable<'_>, &mut Sink) -> T,
) -> Result<(T, Sink), Faults> {
    let mut sink = Sink::new(text);
    let (table, errors) = match size::is_small(text) {
        true => DeTable::parse_recoverable(text),
        // Its faults may be as many as its bytes; the first has to do.
        false => match DeTable::parse(text) {
            Ok(table) => (table, Vec::new()),
            Err(first) => (Spanned::new(0..0, DeTable::new()), vec![first]),
        },
    };
    if !errors.is_empty() {
        return Err(Faults::new(path, syntax(text, &sink, &errors)));
    }
    sink.index(table.get_ref(), INDEX + FACTOR * text.len());
    let value = read(table.get_ref(), &mut sink);
    if !sink.faults.is_empty() {
        return Err(Faults::new(path, sink.all_faults()));
    }
    Ok((value, sink))
}

/// One byte more than there may be at most, whatever is under that name: a log, a device.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = std::fs::File::open(path)?;
    // A buffer that grows by doubling could be twice the file.
    let length = file.metadata()?.len().min(size::MOST_BYTES);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    file.take(size::MOST_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The first error of each line; what follows it on the line is mostly its echo.
fn syntax(text: &str, sink: &Sink, errors: &[toml::de::Error]) -> Vec<Fault> {
    let mut by_line = BTreeMap::new();
    for error in errors {
        if by_line.len() == MOST_FAULTS {
            break;
        }
        let at = error.span().map(|span| span.start);
        let line = at.map(|at| sink.line_at(at));
        by_line.entry(line).or_insert_with(|| Fault {
            line,
            key: at.map_or(String::new(), |at| format!("column {}", sink.column_at(text, at))),
            text: error.message().replace('\n', ", "),
            hint: None,
        });
    }
    let is_full = by_line.len() == MOST_FAULTS;
    by_line.into_values().chain(is_full.then(document::too_many)).collect()
}

/// The order matters where one section is checked against another; it does not show in the
/// faults, which are sorted by line.
fn resolve(
    table: &DeTable<'_>,
    base: &Path,
    base_pattern: &str,
    sink: &mut Sink,
) -> (Policy, Option<PathBuf>) {
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
    let context = shards::Context {
        project: &project,
        base: &Arc::from(base),
        base_pattern,
        logs: &logs,
        slurm_args: &slurm.args,
        tiers: &tiers,
        labs: labs.as_ref(),
        restart_stalled: rules.restart_stalled,
    };
    let shards = shards::resolve(&families, &context, sink);
    clashes::between_shards(&shards, sink);
    let shards = shards.into();
    let policy = Policy { project, shards, tiers, lanes, backfill, rules, slurm, logs, notify };
    park_fits(&policy, sink);
    clashes::backfill(&policy, sink);
    (policy, state)
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
