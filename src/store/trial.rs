//! Tries out beside a state file what a tick needs of its file system (`babysit doctor`), on files
//! of its own that are removed again.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use super::error::StoreError;
use super::file::{self, beside, folder_of};
use super::lock;

/// What was found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// A second open of a locked file was refused, as it must be.
    pub locks_hold: bool,
    /// The file system is one that several hosts share.
    pub is_shared: bool,
    /// Bytes that this user may still write there.
    pub room: u64,
}

/// NFS, SMB, CIFS, Lustre, GPFS, BeeGFS, CephFS, FUSE: statfs(2) and the file systems' own headers.
const SHARED: [u32; 8] = [
    0x6969,
    0xfe53_4d42,
    0xff53_4d42,
    0x0bd0_0bd0,
    0x4750_4653,
    0x1983_0326,
    0x00c3_6400,
    0x6573_5546,
];

/// Makes the state's folder where there is none, as the first tick would.
///
/// # Errors
/// What a tick would meet: no locks, no room, read-only, not this user's to write.
pub(super) fn trial(state: &Path) -> Result<Trial, StoreError> {
    let folder = folder_of(state);
    file::make_folder(folder)?;
    let (path, bak) = (beside(state, ".trial"), beside(state, ".trial.bak"));
    let lock_path = beside(state, ".trial.lock");
    let tried = try_out(&path, &bak, &lock_path);
    for made in [&path, &bak, &lock_path, &beside(&path, ".tmp"), &beside(&bak, ".tmp")] {
        // What was never made cannot be removed; what cannot be removed was told by the trial.
        std::fs::remove_file(made).unwrap_or_default();
    }
    let locks_hold = tried?;
    let space = rustix::fs::statvfs(folder);
    let kind = rustix::fs::statfs(folder).map(|found| found.f_type as u32);
    Ok(Trial {
        locks_hold,
        is_shared: kind.is_ok_and(|kind| SHARED.contains(&kind)),
        room: space.map_or(u64::MAX, |space| space.f_bavail.saturating_mul(space.f_frsize)),
    })
}

fn try_out(path: &Path, bak: &Path, lock_path: &Path) -> Result<bool, StoreError> {
    let held = lock::take(lock_path, Duration::ZERO)?;
    let second = lock::take(lock_path, Duration::ZERO);
    let locks_hold =
        matches!(second, Err(StoreError::Busy { .. })) && held.check(lock_path).is_ok();
    // Twice, since the second time has something to keep as a backup.
    for text in ["first", "second"] {
        file::replace(path, bak, |file| file.write_all(text.as_bytes()))?;
    }
    let read = File::open(path).and_then(std::io::read_to_string);
    let read = read.map_err(StoreError::io("read it back", path))?;
    if read != "second" {
        let what = "what was written there does not come back".to_owned();
        return Err(StoreError::Stolen { path: path.to_owned(), what });
    }
    Ok(locks_hold)
}
