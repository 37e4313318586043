//! One cycle as a gzip member: a first line that says what it is, then what of the cycle before
//! stays and what is new, line by line, then how many lines that makes and their checksum.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::rc::Rc;

use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use serde::{Deserialize, Serialize};

use super::super::v1::Moment;
use super::bad;

/// Most bytes and lines of one cycle that are read: ten times what 100 000 shards make.
const MOST_BYTES: u64 = 2 << 30;
const MOST_LINES: usize = 10_000_000;

/// The first line of a member.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    /// The form.
    pub recording: u64,
    pub babysit: String,
    pub at: Moment,
    pub seed: u64,
    /// It needs no cycle before it.
    pub whole: bool,
}

/// The last line.
#[derive(Serialize, Deserialize)]
struct Foot {
    lines: u64,
    sum: u32,
}

/// Lines of a document as the next one needs them: their hashes, in order. Another release of the
/// standard library may hash otherwise; all lines are new to it then, which is well, too.
pub(super) fn hash(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(line);
    hasher.finish()
}

/// Writes a document against the one before it.
pub(super) struct Writer<'a> {
    out: GzEncoder<Vec<u8>>,
    base: &'a [u64],
    places: HashMap<u64, usize>,
    /// Lines of the base that stay, not written yet.
    run: (usize, usize),
    sum: Crc,
    pub hashes: Vec<u64>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(head: &Head, base: &'a [u64]) -> io::Result<Writer<'a>> {
        let mut out = GzEncoder::new(Vec::new(), Compression::fast());
        serde_json::to_writer(&mut out, head)?;
        out.write_all(b"\n")?;
        let places = base.iter().enumerate().rev().map(|(i, hash)| (*hash, i)).collect();
        let hashes = Vec::with_capacity(base.len());
        Ok(Writer { out, base, places, run: (0, 0), sum: Crc::new(), hashes })
    }

    pub(super) fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let hash = hash(line);
        self.hashes.push(hash);
        add(&mut self.sum, line);
        let (from, count) = self.run;
        if self.base.get(from + count) == Some(&hash) {
            self.run = (from, count + 1);
            return Ok(());
        }
        self.end_run()?;
        match self.places.get(&hash) {
            Some(place) => self.run = (*place, 1),
            None => {
                self.run = (from + count, 0);
                self.out.write_all(b"+")?;
                self.out.write_all(line)?;
                self.out.write_all(b"\n")?;
            }
        }
        Ok(())
    }

    fn end_run(&mut self) -> io::Result<()> {
        let (from, count) = self.run;
        if count > 0 {
            writeln!(self.out, "={from} {count}")?;
        }
        Ok(())
    }

    /// The member, and the hashes that the next document is written against.
    pub(super) fn finish(mut self) -> io::Result<(Vec<u8>, Vec<u64>)> {
        self.end_run()?;
        let foot = Foot { lines: self.hashes.len() as u64, sum: self.sum.sum() };
        self.out.write_all(b".")?;
        serde_json::to_writer(&mut self.out, &foot)?;
        self.out.write_all(b"\n")?;
        Ok((self.out.finish()?, self.hashes))
    }
}

fn add(sum: &mut Crc, line: &[u8]) {
    sum.update(line);
    sum.update(b"\n");
}

/// Reads the member at the beginning of `bytes`, of which it takes it away. `base` becomes its
/// document.
pub(super) fn read(bytes: &mut &[u8], base: &mut Vec<Rc<[u8]>>) -> io::Result<Head> {
    let unpacked = GzDecoder::new(bytes).take(MOST_BYTES);
    let mut lines = BufReader::new(unpacked).split(b'\n');
    let mut next = || lines.next().transpose();
    let head = next()?.ok_or_else(|| bad("it is empty"))?;
    let head: Head = serde_json::from_slice(&head)
        .map_err(|error| bad(format_args!("it does not begin as a recording: {error}")))?;
    if head.recording != super::FORM {
        let (form, version) = (head.recording, &head.babysit);
        return Err(bad(format_args!("it is of form {form}, of babysit {version}")));
    }
    if head.whole {
        base.clear();
    } else if base.is_empty() {
        return Err(bad("the cycle before it is missing"));
    }
    let mut document: Vec<Rc<[u8]>> = Vec::with_capacity(base.len());
    let mut sum = Crc::new();
    let foot: Foot = loop {
        let line = next()?.ok_or_else(|| bad("its end is missing"))?;
        let (kind, rest) = line.split_first().ok_or_else(|| bad("an empty line"))?;
        match kind {
            b'+' => document.push(rest.into()),
            b'=' => document.extend_from_slice(stays(rest, base)?),
            b'.' => break serde_json::from_slice(rest)?,
            other => return Err(bad(format_args!("a line that begins with byte {other}"))),
        }
        if document.len() > MOST_LINES {
            return Err(bad("more lines than any cycle has"));
        }
    };
    if next()?.is_some() {
        return Err(bad("something follows after its end"));
    }
    document.iter().for_each(|line| add(&mut sum, line));
    if (foot.lines, foot.sum) != (document.len() as u64, sum.sum()) {
        return Err(bad("its checksum is wrong"));
    }
    *base = document;
    Ok(head)
}

/// `FROM COUNT` of the base.
fn stays<'b>(range: &[u8], base: &'b [Rc<[u8]>]) -> io::Result<&'b [Rc<[u8]>]> {
    let range = String::from_utf8_lossy(range);
    let numbers = range.split_once(' ').and_then(|(from, count)| {
        let from: usize = from.parse().ok()?;
        let to = from.checked_add(count.parse().ok()?)?;
        base.get(from..to)
    });
    numbers.ok_or_else(|| bad(format_args!("`={range}` is not in the cycle before it")))
}
