//! The files of a recording: which one is written on, when the next begins, which are given up.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::file::{self, options, share};
use super::super::v1::{Moment, cycle};
use super::patch::{Head, Writer};
use super::{FORM, Given, bad};
use crate::model::units::Time;

/// The bounds of a recording, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// A segment of this size is followed by the next one, which begins with a whole cycle.
    pub segment: u64,
    /// All segments together: the oldest are removed so that the newest fits.
    pub all: u64,
}

/// 4 MiB are some thousand cycles of a dozen shards, and some ten busy ones of 10 000.
const BOUNDS: Bounds = Bounds { segment: 4 << 20, all: 64 << 20 };

/// Where the last cycle ended, and the hashes of its lines (8 bytes each, after this line).
#[derive(Serialize, Deserialize)]
struct Tip {
    at: Moment,
    segment: u64,
    length: u64,
    lines: usize,
}

/// Bytes of the tip's first line, at most.
const TIP_LINE: u64 = 200;

fn tip_path(folder: &Path) -> PathBuf {
    folder.join("tip")
}

/// When the last cycle was recorded; `None`: none, or that cannot be read.
pub(in crate::store) fn last(folder: &Path) -> Option<Time> {
    let file = options().read(true).open(tip_path(folder)).ok()?;
    let mut line = Vec::new();
    file.take(TIP_LINE).read_to_end(&mut line).ok()?;
    let tip: Tip = serde_json::from_slice(line.split(|byte| *byte == b'\n').next()?).ok()?;
    Some(tip.at.0)
}

/// The tip, where it and the segment it speaks of are as the last cycle left them. Everything else
/// (a crash, a full disk, a file removed by hand) makes the next cycle a whole one.
fn tip(folder: &Path, bounds: Bounds) -> Option<(Tip, Vec<u64>)> {
    let (bytes, _) = file::read(&tip_path(folder)).ok()??;
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (line, rest) = bytes.split_at(end);
    let tip: Tip = serde_json::from_slice(line).ok()?;
    let rest = rest.get(1..)?;
    let hashes = rest.chunks_exact(8).map(|eight| eight.try_into().map(u64::from_le_bytes));
    let hashes: Vec<u64> = hashes.collect::<Result<_, _>>().ok()?;
    let length = path_of(folder, tip.segment).symlink_metadata().ok()?.len();
    let good = length == tip.length && length < bounds.segment && hashes.len() == tip.lines;
    good.then_some((tip, hashes))
}

fn path_of(folder: &Path, segment: u64) -> PathBuf {
    folder.join(format!("{segment:06}.gz"))
}

/// Segments by number and size, oldest first.
pub(super) fn segments(folder: &Path) -> io::Result<Vec<(u64, PathBuf, u64)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let number =
            path.file_name().and_then(|name| name.to_str()?.strip_suffix(".gz")?.parse().ok());
        if let (Some(number), Ok(meta)) = (number, path.symlink_metadata())
            && meta.is_file()
        {
            found.push((number, path, meta.len()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The segments that are there, oldest first; the tip only matters to who writes on.
pub(in crate::store) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match segments(folder) {
        Ok(found) => Ok(found.into_iter().map(|(_, path, _)| path).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Writes one cycle. After an error the recording is as it was, or goes on with a new segment.
pub(in crate::store) fn append(folder: &Path, given: &Given<'_>) -> io::Result<()> {
    append_within(folder, given, BOUNDS)
}

pub(super) fn append_within(folder: &Path, given: &Given<'_>, bounds: Bounds) -> io::Result<()> {
    file::make_folder(folder).map_err(io::Error::other)?;
    let tip = tip(folder, bounds);
    let found = segments(folder)?;
    let (segment, length, base) = match tip {
        Some((tip, hashes)) => (tip.segment, tip.length, hashes),
        None => (found.last().map_or(0, |(number, ..)| *number) + 1, 0, Vec::new()),
    };
    let head = Head {
        recording: FORM,
        babysit: env!("CARGO_PKG_VERSION").to_owned(),
        at: Moment(given.now),
        seed: given.seed,
        whole: length == 0,
    };
    let mut writer = Writer::new(&head, &base)?;
    cycle::write(given, &mut |line| writer.line(line))?;
    let (member, hashes) = writer.finish()?;
    make_room(&found, segment, member.len() as u64, bounds)?;
    let path = path_of(folder, segment);
    let mut file = options().append(true).create_new(length == 0).open(&path)?;
    if length == 0 {
        share(&file, &path)?;
    }
    if let Err(error) = file.write_all(&member) {
        // Half a cycle would be told as damage; where it cannot be cut off either, that is so.
        file.set_len(length).unwrap_or_default();
        return Err(error);
    }
    let tip =
        Tip { at: head.at, segment, length: length + member.len() as u64, lines: hashes.len() };
    let mut bytes = serde_json::to_vec(&tip)?;
    bytes.push(b'\n');
    bytes.extend(hashes.iter().flat_map(|hash| hash.to_le_bytes()));
    file::replace_cache(&tip_path(folder), &bytes).map_err(io::Error::other)
}

/// Removes the oldest segments but the one that is written on.
fn make_room(
    found: &[(u64, PathBuf, u64)],
    current: u64,
    more: u64,
    bounds: Bounds,
) -> io::Result<()> {
    let mut all = found.iter().map(|(_, _, length)| length).sum::<u64>() + more;
    for (_, path, length) in found.iter().filter(|(number, ..)| *number != current) {
        if all <= bounds.all {
            break;
        }
        std::fs::remove_file(path)?;
        all -= length;
    }
    if all > bounds.all {
        return Err(bad(format_args!("one cycle alone takes {more} bytes, more than is kept")));
    }
    Ok(())
}
