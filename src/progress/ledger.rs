//! A JSONL file that grows: rows and money of its whole lines, reading only what is new.
//!
//! Must not: count a line before its newline is there, hold more of a line than `MAX_LINE`, or
//! take a file that was rewritten for one that grew.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::hash::Hash;
use super::open::{failed, gap, open};
use super::row::{self, Want};
use crate::model::observation::{GapKind, Seen};
use crate::model::units::Money;

/// Longer lines are no rows; they are passed over without being held.
const MAX_LINE: u64 = 1 << 20;

/// Bytes at the beginning and before the place read to that must be the same next time.
const PRINT: u64 = 512;

/// What was counted in a file so far, and how to know it again.
///
/// The device is not among it: an NFS mount has another number on every host, and the hosts that
/// take turns share what is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Ledger {
    pub inode: u64,
    /// Length and time of change when it was last looked at.
    pub length: u64,
    pub modified: (i64, i64),
    /// Everything before this is counted.
    pub offset: u64,
    /// Hash of the bytes at the beginning and before `offset`.
    pub print: u64,
    /// `offset` is within a line that is too long.
    pub skipping: bool,
    /// Rows without a key.
    pub lines: u64,
    pub bad: u64,
    pub spent: Money,
    /// Hashes of the keys, sorted.
    pub keys: Vec<u64>,
}

/// What is counted in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Count {
    /// `None`: no rows are counted here. `Some(None)`: each line is one.
    pub rows: Option<Option<String>>,
    pub field: Option<String>,
}

impl Ledger {
    pub(super) fn rows(&self, count: &Count) -> u64 {
        match count.rows {
            None => 0,
            Some(None) => self.lines,
            Some(Some(_)) => self.keys.len() as u64,
        }
    }

    /// Reads what is new, `budget` bytes at most. A file that is not there is an empty one.
    pub(super) fn refresh(&mut self, path: &Path, count: &Count, budget: &mut u64) -> Seen<()> {
        let Some((file, meta)) = open(path)? else {
            *self = Ledger::default();
            return Ok(());
        };
        if self.is_unchanged(&meta) {
            return Ok(());
        }
        let read = self.read_on(file, &meta, count, budget);
        if let Err(error) = read {
            // Half a reading is not kept: the next one begins anew.
            *self = Ledger::default();
            return Err(failed(path, &error));
        }
        if *budget == 0 && self.offset < meta.len() {
            self.modified = (0, 0);
            let percent = self.offset * 100 / meta.len();
            let detail =
                format!("is large: {percent} % of it is read, the next cycle goes on from there");
            return Err(gap(GapKind::TimedOut, path, detail));
        }
        Ok(())
    }

    fn is_unchanged(&self, meta: &Metadata) -> bool {
        let modified = (meta.mtime(), meta.mtime_nsec());
        (self.inode, self.length, self.modified) == (meta.ino(), meta.len(), modified)
    }

    fn read_on(
        &mut self,
        file: File,
        meta: &Metadata,
        count: &Count,
        budget: &mut u64,
    ) -> io::Result<()> {
        let same = self.inode == meta.ino()
            && self.offset <= meta.len()
            && self.print == print(&file, self.offset)?;
        if !same {
            *self = Ledger::default();
        }
        self.inode = meta.ino();
        self.length = meta.len();
        self.modified = (meta.mtime(), meta.mtime_nsec());
        let mut reader = BufReader::with_capacity(64 << 10, file);
        reader.seek(SeekFrom::Start(self.offset))?;
        let mut fresh = Vec::new();
        self.read_lines(&mut reader, count, budget, &mut fresh)?;
        if !fresh.is_empty() {
            self.keys.append(&mut fresh);
            self.keys.sort_unstable();
            self.keys.dedup();
        }
        self.print = print(reader.get_ref(), self.offset)?;
        Ok(())
    }

    fn read_lines(
        &mut self,
        reader: &mut impl BufRead,
        count: &Count,
        budget: &mut u64,
        fresh: &mut Vec<u64>,
    ) -> io::Result<()> {
        let mut line = Vec::new();
        while *budget > 0 {
            line.clear();
            let read = reader.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line)? as u64;
            *budget = budget.saturating_sub(read);
            if line.last() == Some(&b'\n') {
                if std::mem::take(&mut self.skipping) {
                    self.bad += 1;
                } else {
                    self.take_line(&line, count, fresh);
                }
                self.offset += read;
            } else if read > MAX_LINE || (self.skipping && read > 0) {
                self.skipping = true;
                self.offset += read;
            } else {
                // The end, perhaps with a line that is still being written.
                return Ok(());
            }
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], count: &Count, fresh: &mut Vec<u64>) {
        let line = match line.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) if self.offset == 0 => rest,
            _ => line,
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let key = count.rows.as_ref().and_then(Option::as_deref);
        let Some(row) = row::read(line, Want { key, field: count.field.as_deref() }) else {
            self.bad += 1;
            return;
        };
        self.lines += 1;
        fresh.extend(row.key);
        self.spent += row.amount.unwrap_or(Money::ZERO);
        let no_key = key.is_some() && row.key.is_none();
        let no_amount = count.field.is_some() && row.amount.is_none();
        self.bad += u64::from(no_key || no_amount);
    }
}

/// Hash of the first bytes and of those before `offset`; of a shorter file, of what there is.
fn print(file: &File, offset: u64) -> io::Result<u64> {
    let length = offset.min(PRINT) as usize;
    let mut hash = Hash::new().add(&offset.to_le_bytes());
    let mut bytes = [0; PRINT as usize];
    for start in [0, offset - length as u64] {
        let Some(part) = bytes.get_mut(..length) else { continue };
        match file.read_exact_at(part, start) {
            Ok(()) => hash = hash.add(part),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => hash = hash.add(b"end"),
            Err(error) => return Err(error),
        }
    }
    Ok(hash.get())
}
