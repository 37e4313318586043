//! One verified copy: written beside its place, read back, renamed.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use super::Failed;
use super::folder::options;
use super::manifest::Entry;

/// A source that changes under each of so many copies is being written; a later run gets it.
const TRIES: u32 = 3;

const CHUNK: usize = 1 << 20;

pub(super) enum Copied {
    Yes {
        entry: Entry,
        tries: u32,
    },
    /// This file cannot be had; the others can.
    No(String),
}

/// An error is one of the archive's side, and ends the run.
pub(super) fn copy(source: &Path, to: &str, dest: &Path) -> Result<Copied, Failed> {
    let folder = dest.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(Failed::io("make the folder", folder))?;
    for tries in 1..=TRIES {
        let (file, before) = match open(source) {
            Ok(opened) => opened,
            Err(error) => return Ok(Copied::No(error.to_string())),
        };
        let part = part(dest);
        let (size, sha256) = match write(file, &part)? {
            Ok(written) => written,
            Err(error) => return Ok(Copied::No(error.to_string())),
        };
        // By its name: it may have been replaced as a whole.
        let after = source.metadata();
        if size != before.len() || !after.is_ok_and(|after| same(&before, &after)) {
            remove(&part)?;
            continue;
        }
        if !verify(&part, &sha256)? {
            return Err(Failed::other(&part, "what was written does not come back as it was"));
        }
        // Only a nicety: an archive on a file system without times is one, too.
        let time = before.modified();
        File::open(&part).and_then(|file| file.set_modified(time?)).unwrap_or_default();
        rename(&part, dest)?;
        let entry = Entry {
            path: to.to_owned(),
            size,
            sha256,
            source: source.to_owned(),
            modified: (before.mtime(), before.mtime_nsec()),
        };
        return Ok(Copied::Yes { entry, tries });
    }
    Ok(Copied::No(format!("it changed while it was copied, {TRIES} times; run again later")))
}

fn same(a: &Metadata, b: &Metadata) -> bool {
    let mark = |m: &Metadata| (m.dev(), m.ino(), m.len(), m.mtime(), m.mtime_nsec());
    mark(a) == mark(b)
}

/// Regular files only, and none that could make us wait.
fn open(source: &Path) -> io::Result<(File, Metadata)> {
    let regular = |meta: &Metadata| match meta.is_file() {
        true => Ok(()),
        false => Err(io::Error::other("it is no regular file")),
    };
    regular(&source.metadata()?)?;
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(source)?;
    let meta = file.metadata()?;
    regular(&meta)?;
    Ok((file, meta))
}

/// Size and hash of what was written. The inner error is the source's, the outer one ours.
fn write(mut source: File, part: &Path) -> Result<io::Result<(u64, String)>, Failed> {
    remove(part)?;
    let opened = options().write(true).create_new(true).open(part);
    let mut to = opened.map_err(Failed::io("create it", part))?;
    let mut hash = Sha256::new();
    let mut size = 0;
    let mut chunk = vec![0; CHUNK];
    loop {
        let bytes = match source.read(&mut chunk) {
            Ok(0) => return Ok(Ok((size, hex(hash)))),
            Ok(length) => chunk.get(..length).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                remove(part)?;
                return Ok(Err(error));
            }
        };
        hash.update(bytes);
        size += bytes.len() as u64;
        if let Err(error) = to.write_all(bytes) {
            // Half a copy would only take room; that it cannot be removed is the lesser trouble.
            remove(part).unwrap_or_default();
            return Err(Failed::io("write it", part)(error));
        }
    }
}

/// Is this what a file holds?
pub(super) fn verify(path: &Path, sha256: &str) -> Result<bool, Failed> {
    let mut hash = Sha256::new();
    let opened = options().read(true).open(path);
    let copied = opened.and_then(|mut file| io::copy(&mut file, &mut Hashing(&mut hash)));
    copied.map_err(Failed::io("read it back", path))?;
    Ok(hex(hash) == sha256)
}

struct Hashing<'a>(&'a mut Sha256);

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `.<name>.part`: no pattern of results matches a leading dot.
fn part(dest: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(dest.file_name().unwrap_or_default());
    name.push(".part");
    dest.with_file_name(name)
}

fn remove(path: &Path) -> Result<(), Failed> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failed::io("remove what an earlier run left there", path)(error))
        }
        _ => Ok(()),
    }
}

#[allow(clippy::disallowed_methods, reason = "the archive's own folder, a verified copy")]
fn rename(part: &Path, dest: &Path) -> Result<(), Failed> {
    std::fs::rename(part, dest).map_err(Failed::io("put the copy in its place", dest))
}
