//! What is remembered of ledgers between cycles, as bytes. A cache: whatever is wrong with it, it
//! is thrown away and made anew from the user's files.
//!
//! Binary, since it may hold a million hashes: magic, number of entries, entries, hash of it all.
//! Numbers are little-endian u64, texts have their length before them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::hash::Hash;
use super::ledger::{Count, Ledger};
use crate::model::units::Money;

const MAGIC: &[u8] = b"babysit progress 1\n";

/// One file, and what is counted in it. The path as bare text: a `Path` is compared name by name,
/// which among thousands of files with long paths is most of the work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    pub path: OsString,
    pub count: Count,
}

pub(super) type Ledgers = BTreeMap<Source, Ledger>;

pub(super) fn encode(ledgers: &Ledgers) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    number(&mut out, ledgers.len() as u64);
    for (source, ledger) in ledgers {
        let Source { path, count: Count { rows, field } } = source;
        text(&mut out, path.as_bytes());
        number(&mut out, u64::from(rows.is_some()));
        optional(&mut out, rows.as_ref().and_then(Option::as_deref));
        optional(&mut out, field.as_deref());
        let Ledger {
            inode,
            length,
            modified: (seconds, nanos),
            offset,
            print,
            skipping,
            lines,
            bad,
            spent: Money(spent),
            keys,
        } = ledger;
        let flag = u64::from(*skipping);
        for value in [*inode, *length, *offset, *print, flag, *lines, *bad] {
            number(&mut out, value);
        }
        for value in [*seconds, *nanos, *spent] {
            number(&mut out, value as u64);
        }
        number(&mut out, keys.len() as u64);
        keys.iter().for_each(|key| number(&mut out, *key));
    }
    let sum = Hash::new().add(&out).get();
    number(&mut out, sum);
    out
}

/// `None`: these bytes are no cache of this build.
pub(super) fn decode(bytes: &[u8]) -> Option<Ledgers> {
    let (body, sum) = bytes.split_last_chunk::<8>()?;
    if Hash::new().add(body).get() != u64::from_le_bytes(*sum) {
        return None;
    }
    let mut from = Bytes(body.strip_prefix(MAGIC)?);
    let entries = from.number()?;
    let mut ledgers = Vec::new();
    for _ in 0..entries {
        let path = OsString::from_vec(from.text()?.to_vec());
        let counts_rows = from.flag()?;
        let key = from.optional()?;
        let field = from.optional()?;
        let count = Count { rows: counts_rows.then_some(key), field };
        let ledger = Ledger {
            inode: from.number()?,
            length: from.number()?,
            offset: from.number()?,
            print: from.number()?,
            skipping: from.flag()?,
            lines: from.number()?,
            bad: from.number()?,
            modified: (from.number()? as i64, from.number()? as i64),
            spent: Money(from.number()? as i64),
            keys: from.numbers()?,
        };
        ledgers.push((Source { path, count }, ledger));
    }
    // They were written in order, of which the map makes use.
    from.0.is_empty().then(|| ledgers.into_iter().collect())
}

fn number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn optional(out: &mut Vec<u8>, value: Option<&str>) {
    number(out, u64::from(value.is_some()));
    text(out, value.unwrap_or_default().as_bytes());
}

struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }

    fn optional(&mut self) -> Option<Option<String>> {
        let there = self.flag()?;
        let text = String::from_utf8(self.text()?.to_vec()).ok()?;
        Some(there.then_some(text))
    }

    fn numbers(&mut self) -> Option<Vec<u64>> {
        let length = usize::try_from(self.number()?).ok()?.checked_mul(8)?;
        let (numbers, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        numbers.chunks_exact(8).map(|n| Some(u64::from_le_bytes(n.try_into().ok()?))).collect()
    }
}
