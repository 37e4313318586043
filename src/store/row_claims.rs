//! Claims on the rows of a shard that several jobs work on: one file a row, made exclusively.
//!
//! A file under a row's number is the row's owner, and only its making decides: what a listing
//! says may be old (NFS). Jobs take and mark rows; a tick, which holds the lock, frees the rows of
//! jobs that Slurm says are over. Nothing here knows who is alive.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::StoreError;
use super::file;
use crate::model::rows::{ClaimFile, claim_file, done_mark};

/// Longest first line of a claim that is read: a token and a job id are some 200 bytes at most.
const LINE_MOST: u64 = 1024;
/// Files of ours in the folder that are no claims; none is a row's.
const FRESH: &str = ".new-";
const FREED: &str = ".freed-";

/// Whose row a claim or a mark is about.
#[derive(Debug, Clone, Copy)]
pub struct Taker<'a> {
    /// What is written into the claim: the comment of the job's token, then its id.
    pub claimant: &'a str,
    /// Its name in done marks.
    pub worker: &'a str,
    /// Names its unfinished files apart from everybody else's: job, host, process.
    pub unique: &'a str,
}

/// Takes the first row that nobody has: its number, or `None` where none is left. `has`: rows that
/// are finished by other signs, which are not given out.
///
/// # Errors
/// The folder cannot be made, listed or written.
pub fn take_row(
    folder: &Path,
    taker: &Taker<'_>,
    rows: u32,
    has: impl Fn(u32) -> bool,
) -> Result<Option<u32>, StoreError> {
    file::make_folder(folder)?;
    let gone = taken(folder)?;
    let mut fresh = None;
    let mut found = None;
    for row in (0..rows).filter(|row| !gone.contains(row)) {
        if has(row) {
            continue;
        }
        let from = match &fresh {
            Some(path) => path,
            None => fresh.insert(write_fresh(folder, taker)?),
        };
        if link(from, &folder.join(row.to_string()), taker.claimant)? {
            found = Some(row);
            break;
        }
    }
    if let Some(path) = fresh {
        file::remove(&path)?;
    }
    Ok(found)
}

/// What came of marking a row as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marked {
    Done,
    /// The row is not this job's, or not any more.
    NotYours,
}

/// Marks a row of this job as done. Twice is once.
///
/// # Errors
/// The mark cannot be made.
pub fn mark_row(folder: &Path, taker: &Taker<'_>, row: u32) -> Result<Marked, StoreError> {
    let claim = folder.join(row.to_string());
    if first_line(&claim)?.as_deref() != Some(taker.claimant) {
        return Ok(Marked::NotYours);
    }
    let mark = folder.join(done_mark(row, taker.worker));
    let made = file::options().write(true).create_new(true).open(&mark);
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(StoreError::io("mark a row as done", &mark)(error))
        }
        _ => Ok(Marked::Done),
    }
}

/// Gives a row back whose owner is over: only where the claim is still the one that was judged.
/// True: it was, and is gone.
///
/// # Errors
/// The claim can be neither removed nor put back.
pub fn free_row(folder: &Path, row: u32, claimant: &str) -> Result<bool, StoreError> {
    let claim = folder.join(row.to_string());
    let aside = folder.join(format!("{FREED}{row}"));
    if first_line(&claim)?.as_deref() != Some(claimant) {
        return Ok(false);
    }
    file::remove(&aside)?;
    match file::rename(&claim, &aside) {
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(false);
        }
        renamed => renamed?,
    }
    // Between the look and the move somebody else may have freed it, and a third have taken it.
    let is_it = first_line(&aside)?.as_deref() == Some(claimant);
    if !is_it && !hard_link(&aside, &claim)? {
        // Taken once more meanwhile: that one has it, and the one moved aside learns it at its mark.
        return Ok(false);
    }
    file::remove(&aside)?;
    Ok(is_it)
}

/// Every claim and every mark of the folder; what is not of ours stays.
///
/// # Errors
/// One cannot be removed.
pub fn free_all_rows(folder: &Path) -> Result<(), StoreError> {
    for name in names(folder)? {
        // Marks first: a claim that is left without one is nobody's finished row.
        if matches!(claim_file(&name), ClaimFile::Done(..)) {
            file::remove(&folder.join(&name))?;
        }
    }
    for name in names(folder)? {
        if matches!(claim_file(&name), ClaimFile::Claim(_)) {
            file::remove(&folder.join(&name))?;
        }
    }
    Ok(())
}

/// Rows with a claim or a mark, by a listing.
fn taken(folder: &Path) -> Result<HashSet<u32>, StoreError> {
    let row = |name: &String| match claim_file(name) {
        ClaimFile::Claim(row) | ClaimFile::Done(row, _) => Some(row),
        ClaimFile::Other => None,
    };
    Ok(names(folder)?.iter().filter_map(row).collect())
}

/// A name that is no UTF-8 is no row's.
fn names(folder: &Path) -> Result<Vec<String>, StoreError> {
    let wrong = |error| StoreError::io("list the claims on rows", folder)(error);
    let entries = match folder.read_dir() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(wrong)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(wrong)?.file_name().into_string().ok());
    }
    Ok(names)
}

/// The claim as it will be, under a name that is no row's: no claim is ever half written.
fn write_fresh(folder: &Path, taker: &Taker<'_>) -> Result<PathBuf, StoreError> {
    let path = folder.join(format!("{FRESH}{}", taker.unique));
    file::remove(&path)?;
    let made = file::options().write(true).create_new(true).open(&path);
    let written = made.and_then(|made| write_line(made, &path, taker.claimant));
    written.map_err(StoreError::io("write a claim on a row", &path))?;
    Ok(path)
}

fn write_line(mut made: File, path: &Path, line: &str) -> io::Result<()> {
    file::share(&made, path)?;
    made.write_all(format!("{line}\n").as_bytes())?;
    made.sync_all()
}

/// Makes `claim` another name of `fresh`; false: somebody has it.
fn link(fresh: &Path, claim: &Path, line: &str) -> Result<bool, StoreError> {
    if hard_link(fresh, claim)? {
        return Ok(true);
    }
    if claim.symlink_metadata().is_ok() {
        return Ok(false);
    }
    // No hard links on this file system. Killed between making and writing, the claim says nobody's
    // name, and is freed once no job of the shard is left.
    match file::options().write(true).create_new(true).open(claim) {
        Ok(made) => write_line(made, claim, line)
            .map(|()| true)
            .map_err(StoreError::io("write a claim on a row", claim)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(StoreError::io("claim a row", claim)(error)),
    }
}

/// True: `to` is another name of `from` now. What link(2) said does not decide: over NFS an answer
/// may be lost, and the repeated request finds its own first.
fn hard_link(from: &Path, to: &Path) -> Result<bool, StoreError> {
    if std::fs::hard_link(from, to).is_ok() {
        return Ok(true);
    }
    let meta = from.symlink_metadata().map_err(StoreError::io("look at a claim on a row", from))?;
    let same = to.symlink_metadata().is_ok_and(|to| to.ino() == meta.ino());
    Ok(same && meta.nlink() > 1)
}

/// `None`: there is no such file. A claim that cannot be read, or is none of ours, says nothing.
fn first_line(path: &Path) -> Result<Option<String>, StoreError> {
    let opened = match file::options().read(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(StoreError::io("read a claim on a row", path)(error));
        }
        Err(_) => return Ok(Some(String::new())),
        Ok(opened) => opened,
    };
    let mut bytes = Vec::new();
    if opened.take(LINE_MOST).read_to_end(&mut bytes).is_err() {
        // A folder, say: nobody's claim.
        return Ok(Some(String::new()));
    }
    let text = String::from_utf8(bytes).unwrap_or_default();
    Ok(Some(text.lines().next().unwrap_or_default().trim().to_owned()))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests play programs and hostile hands")]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::symlink;
    use std::sync::{Mutex, mpsc};
    use std::thread;

    const ME: Taker<'static> =
        Taker { claimant: "babysit:0af:find/s1:a1:00ff 7", worker: "s1.a1", unique: "7-host-1" };

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    fn take(folder: &Path, taker: &Taker<'_>, rows: u32) -> Option<u32> {
        take_row(folder, taker, rows, |_| false).expect("takes or not")
    }

    #[test]
    fn rows_are_given_in_order_once_and_then_none() {
        let place = folder();
        let claims = place.path().join("rows");
        assert_eq!(take(&claims, &ME, 3), Some(0));
        assert_eq!(take_row(&claims, &ME, 3, |row| row == 1).expect("takes"), Some(2));
        assert_eq!(take(&claims, &ME, 3), Some(1));
        assert_eq!(take(&claims, &ME, 3), None);
        let left = names(&claims).expect("a listing");
        assert_eq!(left.len(), 3, "nothing unfinished stays behind: {left:?}");
    }

    #[test]
    fn a_row_is_marked_by_its_owner_only() {
        let place = folder();
        let claims = place.path();
        let other = Taker { claimant: "babysit:0af:find/s1~2:a1:0001 8", ..ME };
        assert_eq!(take(claims, &ME, 2), Some(0));
        assert_eq!(mark_row(claims, &other, 0).expect("looks"), Marked::NotYours);
        assert_eq!(mark_row(claims, &ME, 1).expect("looks"), Marked::NotYours);
        for _ in 0..2 {
            assert_eq!(mark_row(claims, &ME, 0).expect("marks"), Marked::Done);
        }
        assert!(claims.join("0.done-s1.a1").is_file());
    }

    #[test]
    fn a_freed_row_is_given_again_and_a_marked_one_is_not() {
        let place = folder();
        let claims = place.path();
        assert_eq!((take(claims, &ME, 2), take(claims, &ME, 2)), (Some(0), Some(1)));
        mark_row(claims, &ME, 0).expect("marks");
        assert!(!free_row(claims, 1, "babysit:0af:find/s1:a2:00ff 9").expect("looks"));
        assert!(free_row(claims, 1, ME.claimant).expect("frees"));
        assert!(!free_row(claims, 1, ME.claimant).expect("it is gone"));
        assert_eq!(mark_row(claims, &ME, 1).expect("looks"), Marked::NotYours);
        let other = Taker { claimant: "babysit:0af:find/s1~2:a1:0001 8", ..ME };
        assert_eq!(take(claims, &other, 2), Some(1));
        assert_eq!(take(claims, &other, 2), None);
        free_all_rows(claims).expect("frees");
        assert_eq!(take(claims, &other, 2), Some(0));
    }

    #[test]
    fn what_others_put_there_is_harmless() {
        let place = folder();
        let claims = place.path();
        std::fs::create_dir(claims.join("0")).expect("a folder");
        symlink("/etc/passwd", claims.join("1")).expect("a link");
        symlink(claims.join("nowhere"), claims.join("2")).expect("a link");
        std::fs::write(claims.join("3"), b"\xff\xfe\0").expect("a file");
        std::fs::write(claims.join("03"), b"no row's").expect("a file");
        std::fs::write(claims.join("notes.txt"), b"no row's").expect("a file");
        std::fs::write(claims.join("5.done"), b"").expect("a mark");
        assert_eq!(take(claims, &ME, 6), Some(4));
        assert_eq!(take(claims, &ME, 6), None);
        for row in 0..4 {
            assert!(!free_row(claims, row, ME.claimant).expect("looks"), "{row}");
        }
        assert!(free_row(claims, 3, "").expect("nobody's is freed by that name"));
        assert!(claims.join("notes.txt").is_file() && claims.join("03").is_file());
    }

    /// Many takers at once, owners that die with a row in hand, and one hand that frees the rows of
    /// the dead: each row is finished once, whatever the order.
    #[test]
    fn many_at_once_finish_each_row_once() {
        const ROWS: u32 = 120;
        for round in 0..3u32 {
            let place = folder();
            let claims = place.path();
            let done: Mutex<BTreeMap<u32, u32>> = Mutex::new(BTreeMap::new());
            let (dead, judged) = mpsc::channel::<(u32, String)>();
            thread::scope(|scope| {
                for worker in 0..6u32 {
                    let (done, dead) = (&done, dead.clone());
                    scope.spawn(move || work(claims, worker, round, ROWS, done, &dead));
                }
                drop(dead);
                scope.spawn(move || {
                    for (row, claimant) in judged {
                        // Told twice, as by two ticks: the second must not hit the next owner.
                        let first = free_row(claims, row, &claimant).expect("frees");
                        assert!(first, "row {row} of {claimant}");
                        assert!(!free_row(claims, row, &claimant).expect("looks"));
                    }
                });
            });
            // What died last was freed after everybody had left.
            let last = Taker { claimant: "babysit:0af:find/s1:a999:00ff 1", ..ME };
            while let Some(row) = take(claims, &last, ROWS) {
                mark_row(claims, &last, row).expect("marks");
                *done.lock().expect("sound").entry(row).or_default() += 1;
            }
            let done = done.into_inner().expect("sound");
            let once = (0..ROWS).all(|row| done.get(&row) == Some(&1));
            assert!(once && done.len() == ROWS as usize, "{done:?}");
        }
    }

    /// A worker that dies at every seventh row, and comes back as another attempt.
    fn work(
        claims: &Path,
        worker: u32,
        round: u32,
        rows: u32,
        done: &Mutex<BTreeMap<u32, u32>>,
        dead: &mpsc::Sender<(u32, String)>,
    ) {
        let mut attempt = 1;
        let mut taken = worker + round;
        loop {
            let claimant = format!("babysit:0af:find/s1~{worker}:a{attempt}:00ff {taken}");
            let unique = format!("{worker}-{attempt}-{taken}");
            let name = format!("s1~{worker}.a{attempt}");
            let taker = Taker { claimant: &claimant, worker: &name, unique: &unique };
            let Some(row) = take(claims, &taker, rows) else { return };
            taken += 1;
            if taken.is_multiple_of(7) {
                dead.send((row, claimant)).expect("somebody judges");
                attempt += 1;
                continue;
            }
            *done.lock().expect("sound").entry(row).or_default() += 1;
            assert_eq!(mark_row(claims, &taker, row).expect("marks"), Marked::Done);
        }
    }
}
