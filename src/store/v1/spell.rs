//! The document as text, one shard a line, handed on piece by piece: the text of ten thousand shards as
//! a whole would be a tenth of a cycle's memory.

use std::io;

use super::form::{Form, fields};
use super::{MINOR, VERSION, json};
use crate::model::caution::Caution;
use crate::model::notice::Notices;
use crate::model::state::{CapSet, CapTarget, ShardRecord, State};

/// Is given a document piece by piece, in order.
pub(in crate::store) type Write<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

/// The document of `state`, under the generation that the store gives it.
pub(in crate::store) fn encode(state: &State, numbered: u64) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    encode_to(state, numbered, &mut |piece| {
        all.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(all)
}

/// The same for whoever needs no more than a piece at a time.
///
/// # Errors
/// Those of `write`; serialization has none that a state could cause.
pub(in crate::store) fn encode_to(
    state: &State,
    numbered: u64,
    write: Write<'_>,
) -> io::Result<()> {
    let State {
        project,
        instance,
        // The store counts.
        generation: _,
        shards,
        orphans,
        labs,
        caps,
        last_tick,
        learned,
        caution,
        notices,
        host,
    } = state;
    let mut out = Vec::with_capacity(4096);
    out.extend_from_slice(b"{\n");
    line(&mut out, "version", &VERSION);
    if MINOR != 0 {
        line(&mut out, "minor", &MINOR);
    }
    line(&mut out, "project", project);
    line(&mut out, "instance", instance);
    line(&mut out, "generation", &numbered);
    line(&mut out, "last_tick", last_tick);
    line(&mut out, "learned", learned);
    // Left out where there is nothing to say: older builds of this version read the file too.
    if *caution != Caution::default() {
        line(&mut out, "caution", caution);
    }
    if *notices != Notices::default() {
        line(&mut out, "notices", notices);
    }
    if !host.is_empty() {
        line(&mut out, "host", host);
    }
    line(&mut out, "labs", labs);
    list(&mut out, "caps", caps.iter(), cap);
    out.extend_from_slice(b",\n\"shards\": [");
    write(&out)?;
    records(shards, write)?;
    out.clear();
    out.extend_from_slice(if shards.is_empty() { b"],\n" } else { b"\n],\n" });
    list(&mut out, "orphans", orphans.iter(), Form::spell);
    out.extend_from_slice(b"\n}\n");
    write(&out)
}

fn line(out: &mut Vec<u8>, key: &str, value: &impl Form) {
    json::text(key, out);
    out.extend_from_slice(b": ");
    value.spell(out);
    out.extend_from_slice(b",\n");
}

fn list<T>(
    out: &mut Vec<u8>,
    key: &str,
    values: impl Iterator<Item = T>,
    spell: impl Fn(T, &mut Vec<u8>),
) {
    json::text(key, out);
    out.extend_from_slice(b": [");
    let mut separator: &[u8] = b"\n";
    let mut any = false;
    for value in values {
        out.extend_from_slice(separator);
        spell(value, out);
        separator = b",\n";
        any = true;
    }
    out.extend_from_slice(if any { b"\n]" } else { b"]" });
}

/// By name or by `family/shard`, as a person would say it.
fn cap((target, CapSet { amount, by, at }): (&CapTarget, &CapSet), out: &mut Vec<u8>) {
    let target = &match target {
        CapTarget::Family(family) => family.clone(),
        CapTarget::Shard(id) => id.to_string(),
    };
    fields!(out; target, amount, by, at);
}

/// Shards that are spelled and handed on at once; fewer in all are spelled before a thread has begun.
pub(super) const PIECE: usize = 500;

/// Usual length of a shard's line, so that a piece grows once at most.
const BYTES_EACH: usize = 600;

/// The lines of all shards, half of them spelled by a second thread where that helps: it is most of a
/// save. Neither waits for the other before its half is done: on a machine with much to do every wait
/// may be a long one.
fn records(all: &[ShardRecord], write: Write<'_>) -> io::Result<()> {
    let Some(first) = all.first() else { return Ok(()) };
    // The one line without a comma before it is that of the first shard.
    let mut out = vec![b'\n'];
    first.spell(&mut out);
    write(&out)?;
    let rest = all.get(1..).unwrap_or_default();
    if rest.len() < PIECE {
        return write(&spelled(rest));
    }
    let (front, back) = rest.split_at(rest.len() / 2);
    std::thread::scope(|scope| {
        let back = scope.spawn(|| spelled(back));
        front.chunks(PIECE).try_for_each(|piece| write(&spelled(piece)))?;
        write(&back.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn spelled(records: &[ShardRecord]) -> Vec<u8> {
    let mut out = Vec::with_capacity(BYTES_EACH * records.len());
    for record in records {
        out.extend_from_slice(b",\n");
        record.spell(&mut out);
    }
    out
}
