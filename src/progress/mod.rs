//! ADAPTER: counting rows and money in the user's files.
//!
//! Reads only, and only regular files. What could not be read is a gap of that shard, and of no
//! other.

mod cache;
mod glob;
mod hash;
mod ledger;
mod log;
mod open;
mod pattern;
mod row;
mod row_claims;
mod timely;

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use self::cache::{Ledgers, Source};
use self::glob::Reader;
use self::ledger::{Count, Ledger};
pub use self::log::log_since;
use self::pattern::Pattern;
use self::timely::Watch;
pub use self::timely::{Behind, Timely};
use crate::model::id::JobId;
use crate::model::observation::{Gap, GapKind, Measured, Seen};
use crate::model::policy::{CostIn, RowsIn, Shard};
use crate::model::units::Money;

/// Reads the files of the shards it is given.
pub trait Progress {
    /// One answer per shard, in order. `turn`, another number in each cycle, says where the reading
    /// begins: what there is no time for is then not always the same.
    fn measure(&mut self, shards: &[&Shard], turn: u64) -> Vec<Seen<Measured>>;
    /// The last lines of a job's output, at most `lines`, cleaned of control characters; empty where
    /// there is no such file.
    fn log_tail(&mut self, shard: &Shard, job: JobId, lines: usize) -> Seen<Vec<String>>;
}

/// Bytes of ledgers that one cycle reads at most, some seconds' worth: the lock is held meanwhile.
/// What is left over is a gap, and is read in the cycles after.
const BUDGET: u64 = 2 << 30;

/// Bytes between two looks at the time.
const SLICE: u64 = 32 << 20;

/// The user's files, and what is remembered of those read before.
#[derive(Debug, Default)]
pub struct Files {
    ledgers: Ledgers,
    changed: bool,
}

impl Files {
    /// `cache` is what `cache_if_changed` gave in an earlier cycle. One that cannot be read is as
    /// good as none: all is read anew.
    pub fn new(cache: Option<&[u8]>) -> Files {
        Files { ledgers: cache.and_then(cache::decode).unwrap_or_default(), changed: false }
    }

    /// What to keep for the next cycle; `None` where nothing new was read.
    pub fn cache_if_changed(&self) -> Option<Vec<u8>> {
        self.changed.then(|| cache::encode(&self.ledgers))
    }

    /// Rows by pattern were counted before, since that goes by folder.
    fn measure_one(
        &mut self,
        shard: &Shard,
        globbed: Option<Seen<u32>>,
        watch: &Watch,
        budget: &mut u64,
    ) -> Seen<Measured> {
        let cost = match &shard.cost {
            Some(CostIn::Jsonl { path, field }) => Some((path, field)),
            Some(CostIn::GpuHour(_)) | None => None,
        };
        let (rows, cost) = match &shard.done {
            RowsIn::Glob(_) => {
                let rows = globbed.transpose()?.unwrap_or_default();
                (Reading { rows: rows.into(), ..Reading::default() }, cost)
            }
            // Rows and money in one file: it is read once.
            RowsIn::Jsonl { path, key } => {
                let (here, elsewhere) = match cost {
                    Some((ledger, field)) if ledger == path => (Some(field.clone()), None),
                    elsewhere => (None, elsewhere),
                };
                (
                    self.read(path, Count { rows: Some(key.clone()), field: here }, watch, budget)?,
                    elsewhere,
                )
            }
        };
        let money = match cost {
            Some((path, field)) => {
                self.read(path, Count { rows: None, field: Some(field.clone()) }, watch, budget)?
            }
            None => Reading::default(),
        };
        let claims = match &shard.split {
            Some(split) => Some(Box::new(row_claims::read(&split.claims, shard.rows)?)),
            None => None,
        };
        Ok(Measured {
            claims,
            rows: u32::try_from(rows.rows).unwrap_or(u32::MAX),
            spent: money.spent.or(rows.spent),
            bad_lines: rows.bad.saturating_add(money.bad),
        })
    }

    /// All of them, folder by folder, until there is no time left for more.
    fn each(
        &mut self,
        shards: &[&Shard],
        turn: u64,
        watch: &Watch,
        tell: &mut dyn FnMut(usize, Seen<Measured>),
    ) {
        let mut budget = BUDGET;
        let mut reader = Reader::default();
        for Errand { place, shard, pattern } in in_turn(shards, turn) {
            watch.at.store(place, Ordering::Relaxed);
            // Looked at before the folder is: that is what takes the time.
            let reading = match pattern {
                _ if watch.hurry.load(Ordering::Relaxed) => Err(too_slow(shard)),
                Err(gap) => Err(gap),
                Ok(pattern) => {
                    let globbed = pattern.map(|pattern| reader.count(&pattern));
                    self.measure_one(shard, globbed, watch, &mut budget)
                }
            };
            tell(place, reading);
        }
    }

    fn read(
        &mut self,
        path: &Path,
        count: Count,
        watch: &Watch,
        budget: &mut u64,
    ) -> Seen<Reading> {
        let source = Source { path: path.as_os_str().to_owned(), count: count.clone() };
        let ledger = self.ledgers.entry(source).or_default();
        let mark = |l: &Ledger| (l.inode, l.length, l.modified, l.offset);
        let before = mark(ledger);
        let read = loop {
            let mut slice = SLICE.min(*budget);
            *budget -= slice;
            let read = ledger.refresh(path, &count, &mut slice);
            *budget += slice;
            // Not at its end, and there is room for more.
            let more = slice == 0 && *budget > 0 && !watch.hurry.load(Ordering::Relaxed);
            match read {
                Err(gap) if more && gap.kind == GapKind::TimedOut => {}
                read => break read,
            }
        };
        self.changed |= before != mark(ledger);
        let spent = count.field.as_ref().map(|_| ledger.spent);
        read.map(|()| Reading { rows: ledger.rows(&count), spent, bad: ledger.bad })
    }
}

/// What one file says.
#[derive(Debug, Default)]
struct Reading {
    rows: u64,
    spent: Option<Money>,
    bad: u64,
}

impl Progress for Files {
    fn measure(&mut self, shards: &[&Shard], turn: u64) -> Vec<Seen<Measured>> {
        let mut readings: Vec<_> = shards.iter().map(|shard| Err(too_slow(shard))).collect();
        self.each(shards, turn, &Watch::default(), &mut |place, reading| {
            if let Some(at) = readings.get_mut(place) {
                *at = reading;
            }
        });
        readings
    }

    fn log_tail(&mut self, shard: &Shard, job: JobId, lines: usize) -> Seen<Vec<String>> {
        log::tail(&shard.log_dir.join(format!("{job}.out")), lines)
    }
}

/// The files in which rows and money of one shard are counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources {
    /// Each with the folder that shards.toml names itself; what lies below was found there.
    pub files: Vec<(PathBuf, PathBuf)>,
}

/// Those that are there now.
pub fn sources(shard: &Shard) -> Seen<Sources> {
    let mut found = Sources::default();
    let ledger = |path: &Path, found: &mut Sources| {
        if path.is_file() {
            let folder = path.parent().unwrap_or(Path::new("/"));
            found.files.push((path.to_owned(), folder.to_owned()));
        }
    };
    match &shard.done {
        RowsIn::Glob(text) => {
            let pattern = Pattern::parse(text)?;
            let mut hit = |folder: &Path, name: &OsStr| {
                found.files.push((folder.join(name), pattern.folder.clone()));
            };
            Reader::default().each(&pattern, &mut hit)?;
        }
        RowsIn::Jsonl { path, key: _ } => ledger(path, &mut found),
    }
    if let Some(CostIn::Jsonl { path, field: _ }) = &shard.cost {
        ledger(path, &mut found);
    }
    Ok(found)
}

impl timely::Reader for Files {
    fn each(
        &mut self,
        shards: &[Shard],
        turn: u64,
        watch: &Watch,
        tell: &mut dyn FnMut(usize, Seen<Measured>),
    ) {
        Files::each(self, &shards.iter().collect::<Vec<_>>(), turn, watch, tell);
    }

    fn log_tail(&mut self, shard: &Shard, job: JobId, lines: usize) -> Seen<Vec<String>> {
        Progress::log_tail(self, shard, job, lines)
    }

    fn keep(&self) -> Option<Vec<u8>> {
        self.cache_if_changed()
    }
}

fn too_slow(shard: &Shard) -> Gap {
    Gap {
        kind: GapKind::TimedOut,
        source: format!("files of {}", shard.id),
        detail: "no time was left for them in this tick: their file system is slow; the next one \
                 tries again"
            .to_owned(),
    }
}

/// One shard that is to be read.
struct Errand<'a> {
    place: usize,
    shard: &'a Shard,
    /// `None`: its rows are in a ledger.
    pattern: Seen<Option<Pattern>>,
}

impl Errand<'_> {
    /// Where its rows are.
    fn folder(&self) -> &Path {
        match (&self.pattern, &self.shard.done) {
            (Ok(Some(pattern)), _) => &pattern.folder,
            (Ok(None) | Err(_), _) => folder_of(self.shard),
        }
    }
}

/// The folder that names where the rows of a shard are, its pattern's wildcards and all.
fn folder_of(shard: &Shard) -> &Path {
    let path = match &shard.done {
        RowsIn::Jsonl { path, .. } => path,
        RowsIn::Glob(text) => Path::new(text),
    };
    path.parent().unwrap_or(path)
}

/// The order of reading: folder by folder, so that one that many shards share is read once.
///
/// Where only some are read in time, those are not the same ones in every cycle: `turn` chooses the
/// first folder and the way it goes on from there. Both ways, since behind a folder that never answers
/// nothing is read: each of the others is before it in half of all turns, also its neighbours.
fn in_turn<'a>(shards: &[&'a Shard], turn: u64) -> Vec<Errand<'a>> {
    let errand = |(place, shard): (usize, &&'a Shard)| {
        let pattern = match &shard.done {
            RowsIn::Glob(text) => Pattern::parse(text).map(Some),
            RowsIn::Jsonl { .. } => Ok(None),
        };
        Errand { place, shard, pattern }
    };
    let mut errands: Vec<Errand<'_>> = shards.iter().enumerate().map(errand).collect();
    errands.sort_by(|a, b| a.folder().cmp(b.folder()));
    let mut firsts = vec![0];
    let mut at = 0;
    for folder in errands.chunk_by(|a, b| a.folder() == b.folder()) {
        at += folder.len();
        firsts.push(at);
    }
    let folders = firsts.len() as u64 - 1;
    let first = (turn / 2).checked_rem(folders).and_then(|n| usize::try_from(n).ok());
    errands.rotate_left(first.and_then(|n| firsts.get(n)).copied().unwrap_or(0));
    if turn % 2 == 1 {
        errands.reverse();
    }
    errands
}
