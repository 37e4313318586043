//! The claims on the rows of a split shard, as jobs left them in its folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::open::{failed, open};
use crate::model::observation::Seen;
use crate::model::rows::{ClaimFile, RowClaim, RowClaims, RowsBy, claim_file};

/// A claim's first line is some 200 bytes at most.
const LINE_MOST: u64 = 1024;

/// Only of rows that are begun and not done the claim itself is read; the rest is in the names.
pub(super) fn read(folder: &Path, rows: u32) -> Seen<RowClaims> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(RowClaims::default()),
        entries => entries.map_err(|error| failed(folder, &error))?,
    };
    let (mut claimed, mut done, mut by) =
        (BTreeSet::new(), BTreeSet::new(), BTreeMap::<String, u32>::new());
    for entry in entries {
        let name = entry.map_err(|error| failed(folder, &error))?.file_name();
        match name.to_str().map_or(ClaimFile::Other, claim_file) {
            ClaimFile::Claim(row) if row < rows => {
                claimed.insert(row);
            }
            ClaimFile::Done(row, worker) if row < rows => {
                if done.insert(row) && !worker.is_empty() {
                    *by.entry(worker.to_owned()).or_default() += 1;
                }
            }
            ClaimFile::Claim(_) | ClaimFile::Done(..) | ClaimFile::Other => {}
        }
    }
    let begun = claimed
        .difference(&done)
        .map(|&row| RowClaim { row, claimant: claimant(&folder.join(row.to_string())).into() });
    Ok(RowClaims {
        begun: begun.collect(),
        done: done.len() as u32,
        by: by.into_iter().map(|(worker, rows)| RowsBy { worker: worker.into(), rows }).collect(),
    })
}

/// Nobody's where it cannot be read: such a claim is void only once no job of the shard is left.
fn claimant(path: &Path) -> String {
    let Ok(Some((file, _))) = open(path) else { return String::new() };
    let mut bytes = Vec::new();
    match file.take(LINE_MOST).read_to_end(&mut bytes) {
        Ok(_) => {
            let text = String::from_utf8(bytes).unwrap_or_default();
            text.lines().next().unwrap_or_default().trim().to_owned()
        }
        Err(_) => String::new(),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests play the jobs that claim rows")]
mod tests {
    use super::*;

    #[test]
    fn begun_and_done_rows_are_told_apart_and_strangers_left_out() {
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: &str| place.path().join(name);
        assert_eq!(read(&at("none"), 9), Ok(RowClaims::default()));
        let token = "babysit:0af:find/s1:a2:00ff 17";
        for row in ["0", "1", "2", "8", "30"] {
            fs::write(at(row), format!("{token}\n")).expect("a claim");
        }
        for mark in ["0.done-s1.a1", "1.done-s1.a2", "0.done-s1.a2", "5.done", "31.done-s1.a2"] {
            fs::write(at(mark), "").expect("a mark");
        }
        fs::write(at("4"), b"\xff").expect("no text");
        fs::create_dir(at("6")).expect("a folder");
        fs::write(at(".new-17-x-1"), token).expect("unfinished");
        let found = read(place.path(), 9).expect("reads");
        let claim = |row, claimant: &str| RowClaim { row, claimant: claimant.into() };
        assert_eq!(found.begun, [claim(2, token), claim(4, ""), claim(6, ""), claim(8, token)]);
        assert_eq!((found.done, found.done_by_nobody()), (3, 1));
    }
}
