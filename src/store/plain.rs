//! Files that babysit writes for a person to go on with: shards.toml, man pages. Whole or not at all.

use std::io;
use std::path::{Path, PathBuf};

use super::error::StoreError;
use super::file::{self, Sync, beside};

/// Makes a file; false: there is something under that name, which stays as it is.
pub fn create(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let fresh = file::write_beside(path, bytes, Sync::Yes)?;
    // A link refuses a name that somebody took meanwhile; a rename would not.
    let linked = std::fs::hard_link(&fresh, path);
    match linked {
        Ok(()) => file::remove(&fresh)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            file::remove(&fresh)?;
            return Ok(false);
        }
        // No hard links on this file system.
        Err(_) => file::rename(&fresh, path)?,
    }
    file::sync_folder(path)?;
    Ok(true)
}

/// A file as a whole, whether there was one or not.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let fresh = file::write_beside(path, bytes, Sync::Yes)?;
    file::rename(&fresh, path)?;
    file::sync_folder(path)
}

/// Replaces a file, and keeps what was there as `<path>.old`, `.old2`, ...: the first name that is free.
pub fn replace_keeping(path: &Path, bytes: &[u8]) -> Result<Option<PathBuf>, StoreError> {
    let Some((before, _)) = file::read(path)? else {
        return create(path, bytes).map(|_| None);
    };
    let mut number = 1;
    let kept = loop {
        let suffix = if number == 1 { ".old".to_owned() } else { format!(".old{number}") };
        let kept = beside(path, &suffix);
        if create(&kept, &before)? {
            break kept;
        }
        number += 1;
    };
    replace(path, bytes)?;
    Ok(Some(kept))
}
