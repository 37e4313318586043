//! Where a page goes: a file, replaced as a whole, or stdout.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::store::{self, StoreError};

use super::context::Context;
use super::exit::Stop;

/// How every page of ours begins.
const BEGINNING: &[u8] = b"<!DOCTYPE html>";

/// Is it stdout that was asked for?
pub fn is_stdout(out: &Path) -> bool {
    out == Path::new("-")
}

/// Refuses to replace a file that is no page: a slip of the fingers must not cost a shards.toml.
/// Asked before the work, so that nobody waits for a refusal.
pub fn may_write(out: &Path) -> Result<(), Stop> {
    if is_stdout(out) || !out.exists() {
        return Ok(());
    }
    if !out.is_file() {
        let text = format!("{} is there and is no file", out.display());
        return Err(Stop::usage(text, "name a file with -o"));
    }
    let fault = |what: String| Stop::failed("page", format!("{}: {what}", out.display()));
    let mut begins = Vec::new();
    let file = File::open(out).map_err(|error| fault(format!("it cannot be read: {error}")))?;
    let read = file.take(BEGINNING.len() as u64).read_to_end(&mut begins);
    read.map_err(|error| fault(format!("it cannot be read: {error}")))?;
    if begins.is_empty() || begins == BEGINNING {
        return Ok(());
    }
    let text = format!("{} is there and is no page of babysit's; it stays as it is", out.display());
    Err(Stop::usage(text, "name another file with -o"))
}

/// Writes it, and says where to whoever looks on.
pub fn put(cx: &Context, out: &Path, page: &str) -> Result<(), Stop> {
    if is_stdout(out) {
        return cx.talk.result(page);
    }
    // A link to where a web server looks stays a link.
    let place = out.canonicalize().unwrap_or_else(|_| out.to_owned());
    store::publish(&place, page.as_bytes()).map_err(|error| match error {
        StoreError::Io { doing, path, source } => {
            Stop::failed("page", format!("{}: cannot {doing}: {source}", path.display()))
        }
        other => other.into(),
    })?;
    cx.talk.aside(&format!("babysit: {} is written; open it in a browser", out.display()));
    Ok(())
}
