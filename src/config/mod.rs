//! shards.toml -> [`Policy`]: read with lines, every fault at once, paths absolute, defaults filled
//! in. The one place that reads the environment ([`Surroundings`]).
//!
//! Nothing here asks Slurm anything, and nothing is written.

mod clashes;
mod document;
mod draft;
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

use toml::Spanned;
use toml::de::DeTable;

use crate::model::id::ShardId;
use crate::model::policy::Policy;
use document::{MOST_FAULTS, Sink, line_in};

pub use clashes::user_faults;
pub use draft::{Draft, draft};
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
    draft(path)?.finish()
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

/// What `read` makes of the document, and the faults it found; an error where it is no TOML.
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
