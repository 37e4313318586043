//! Opening the user's files: regular ones only, and never one that could make a cycle wait.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::model::observation::{Gap, GapKind, Seen};

/// `None`: there is no such file. Symlinks are followed: people put their runs on scratch disks.
pub(super) fn open(path: &Path) -> Seen<Option<(File, Metadata)>> {
    // Asked before opening: to open a device or a FIFO may do something by itself.
    match path.metadata() {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => return Err(not_regular(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, &error)),
    }
    // And asked again after it, without waiting: the name may be another's by now. On NFS only
    // the opening brings what another host has just written.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    match opened.and_then(|file| file.metadata().map(|meta| (file, meta))) {
        Ok((file, meta)) if meta.is_file() => Ok(Some((file, meta))),
        Ok(_) => Err(not_regular(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, &error)),
    }
}

fn not_regular(path: &Path) -> Gap {
    gap(GapKind::Unreadable, path, "is no regular file, so it was not opened".to_owned())
}

pub(super) fn failed(path: &Path, error: &io::Error) -> Gap {
    let kind = match error.kind() {
        // Asking again changes nothing.
        io::ErrorKind::PermissionDenied => GapKind::Unreadable,
        _ => GapKind::Failed,
    };
    gap(kind, path, format!("cannot be read: {error}"))
}

pub(super) fn gap(kind: GapKind, path: &Path, detail: String) -> Gap {
    Gap { kind, source: path.display().to_string(), detail }
}
