//! The lock: one babysit at a time on one state, on any host that shares the file system.
//!
//! The lock file is never removed: a second babysit could otherwise lock a file that has no name
//! any more. Its content is only what a person is told; the lock itself is the kernel's, and ends
//! with the process however that dies.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt as _, MetadataExt};
use std::path::Path;
use std::time::Duration;

use fs2::FileExt as _;
use rustix::io::Errno;

use super::error::StoreError;
use super::file::{must_be_a_file, options, share};
use super::v1::Moment;
use crate::model::units::Time;

/// Before the mark of one holder, in the line that it writes.
const MARK: &str = " mark ";
/// Bytes; a holder's line is much shorter.
const MOST_OF_A_LINE: u64 = 400;

/// Between two tries. A tick takes a second or more.
const STEP: Duration = Duration::from_millis(100);

/// How often a lock file may be swapped under our hands before that counts as an error.
const SWAPS: u32 = 20;

/// The lock while it is held, and what its holder wrote into it.
#[derive(Debug)]
pub(super) struct Held {
    file: File,
    line: String,
    pub host: String,
}

/// Takes the lock, waiting for it for about `wait` at most.
pub(super) fn take(path: &Path, wait: Duration) -> Result<Held, StoreError> {
    take_by(path, wait, |file| file.try_lock_exclusive())
}

/// `lock` asks the kernel, without waiting.
fn take_by(
    path: &Path,
    wait: Duration,
    lock: impl Fn(&File) -> io::Result<()>,
) -> Result<Held, StoreError> {
    let mut waited = Duration::ZERO;
    let mut swaps = 0;
    loop {
        let file = open(path)?;
        match lock(&file) {
            Ok(()) if is_still_named(&file, path)? => {
                let (line, host) =
                    sign(&file).map_err(StoreError::io("write who holds it", path))?;
                return Ok(Held { file, line, host });
            }
            Ok(()) if swaps < SWAPS => swaps += 1,
            Ok(()) => {
                let what = "the lock file is replaced again and again".to_owned();
                return Err(StoreError::Stolen { path: path.to_owned(), what });
            }
            Err(error) if is_contended(&error) => {
                if waited >= wait {
                    return Err(StoreError::Busy { lock: path.to_owned(), holder: holder(&file) });
                }
                std::thread::sleep(STEP);
                waited += STEP;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) if is_unsupported(&source) => {
                return Err(StoreError::LockingUnsupported { lock: path.to_owned(), source });
            }
            Err(error) => return Err(StoreError::io("lock it", path)(error)),
        }
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    if let Ok(meta) = path.symlink_metadata() {
        must_be_a_file(path, &meta)?;
    }
    let file = options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(StoreError::io("open the lock", path))?;
    let meta = file.metadata().map_err(StoreError::io("look at it", path))?;
    must_be_a_file(path, &meta)?;
    if meta.len() == 0 && meta.uid() == rustix::process::getuid().as_raw() {
        share(&file, path).map_err(StoreError::io("set its mode", path))?;
    }
    Ok(file)
}

/// Whoever removed the lock file by hand may have let another one in under the same name.
fn is_still_named(file: &File, path: &Path) -> Result<bool, StoreError> {
    let ours = file.metadata().map_err(StoreError::io("look at it", path))?;
    match path.symlink_metadata() {
        Ok(named) => Ok((ours.dev(), ours.ino()) == (named.dev(), named.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::io("look at it", path)(error)),
    }
}

impl Held {
    /// Is this still the only holder, as far as the file itself tells? Where locks do not reach
    /// across hosts, a second holder signs over the first, who sees it here.
    ///
    /// Opened anew each time: over NFS only that shows what another host has written.
    pub fn check(&self, path: &Path) -> Result<(), StoreError> {
        let stolen = |what: String| StoreError::Stolen { path: path.to_owned(), what };
        if !is_still_named(&self.file, path)? {
            return Err(stolen("the lock file was removed or replaced".to_owned()));
        }
        let now = open(path)?;
        let mut line = String::new();
        now.take(MOST_OF_A_LINE)
            .read_to_string(&mut line)
            .map_err(StoreError::io("read who holds it", path))?;
        if line == self.line {
            return Ok(());
        }
        Err(stolen(format!("the lock is held by another babysit too: {}", told(&line))))
    }
}

fn is_contended(error: &io::Error) -> bool {
    // Over NFS a lock of another host shows as EACCES on some servers.
    error.kind() == io::ErrorKind::WouldBlock
        || error.raw_os_error() == fs2::lock_contended_error().raw_os_error()
        || Errno::from_io_error(error) == Some(Errno::ACCESS)
}

fn is_unsupported(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP, Errno::STALE]
        .into_iter()
        .any(|e| errno == Some(e))
}

/// Since when it is held is the file's time of change: no clock is needed here.
fn sign(file: &File) -> io::Result<(String, String)> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.as_deref().map_or("an unknown host", str::trim).to_owned();
    let user = rustix::process::getuid().as_raw();
    let pid = std::process::id();
    // Containers may share a host's name and a process id; the mark tells even them apart.
    let mark = RandomState::new().hash_one(pid);
    let line = format!("pid {pid} on {host} (uid {user}){MARK}{mark:016x}\n");
    file.write_all_at(line.as_bytes(), 0)?;
    file.set_len(line.len() as u64)?;
    Ok((line, host))
}

/// Who holds it, as it told; only ever shown.
fn holder(file: &File) -> String {
    let mut line = Vec::new();
    if file.take(MOST_OF_A_LINE).read_to_end(&mut line).is_err() {
        return "it did not say who".to_owned();
    }
    let shown = told(&String::from_utf8_lossy(&line));
    let since = file.metadata().map(|meta| Moment(Time(meta.mtime())).to_string());
    match (shown.is_empty(), since) {
        (true, _) => "it did not say who".to_owned(),
        (false, Ok(since)) => format!("{shown}, since {since}"),
        (false, Err(_)) => shown,
    }
}

/// The part of the line that says something to a person.
fn told(line: &str) -> String {
    let line = line.split_once(MARK).map_or(line, |(front, _)| front);
    line.chars().take_while(|c| *c != '\n').filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_file_systems_without_locks_fail_closed() {
        for errno in [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP, Errno::STALE] {
            let error = io::Error::from(errno);
            assert!(is_unsupported(&error) && !is_contended(&error), "{error}");
        }
        for errno in [Errno::WOULDBLOCK, Errno::ACCESS] {
            let error = io::Error::from(errno);
            assert!(is_contended(&error) && !is_unsupported(&error), "{error}");
        }
    }

    #[test]
    fn where_nothing_can_be_locked_nobody_holds_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        for errno in [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP, Errno::STALE] {
            let error = take_by(&path, Duration::ZERO, |_| Err(io::Error::from(errno)));
            let error = error.expect_err("no lock");
            assert!(matches!(error, StoreError::LockingUnsupported { .. }), "{error}");
        }
        // Nor on any other error of it.
        let error = take_by(&path, Duration::ZERO, |_| Err(io::Error::from(Errno::IO)));
        assert!(matches!(error, Err(StoreError::Io { .. })), "{error:?}");
        let error = take_by(&path, Duration::ZERO, |_| Err(io::Error::from(Errno::WOULDBLOCK)));
        assert!(matches!(error, Err(StoreError::Busy { .. })), "{error:?}");
        assert_eq!(std::fs::read(&path).expect("a file"), b"", "nobody has signed");
    }

    #[test]
    fn a_program_that_a_tick_starts_does_not_inherit_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let lock = take(&folder.path().join("lock"), Duration::ZERO).expect("free");
        let flags = rustix::io::fcntl_getfd(&lock.file).expect("flags");
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
}
