//! Version 1 of the state file: one JSON document, one shard a line.
//!
//! Nothing here touches a file. The disk types are apart from the model's, so that the model may
//! change without the file changing, and the file's change is a decision of its own: a field or
//! word that is added and may be left out keeps version 1 readable and raises `MINOR`; anything else needs a version 2 beside
//! this folder, and `upgrade` from here to there.

mod asked;
pub(super) mod cycle;
mod form;
mod notice;
pub(super) mod pilot;
mod reason;
mod record;
mod seen;
mod text;

#[cfg(test)]
pub(super) mod dice;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use self::form::{Blank, Form, disk_enum, disk_struct};
use crate::model::caution::{Breaker, Caution, Death, NodeMarks, Overload};
use crate::model::id::{ShardId, is_name};
use crate::model::notice::Notices;
use crate::model::state::{
    Alike, CapSet, CapTarget, LabRecord, Learned, OwnLane, ShardRecord, State, TakesBoth,
    TickOutcome, TickRecord,
};
use crate::model::units::{Money, Secs, Time, Usage};

pub(super) use self::text::Moment;

/// The version that this build writes.
pub(super) const VERSION: u64 = 1;

/// Counts the fields and words that were added to version 1 since the first release. Whoever adds one
/// adds one here: a build that does not know it then says "newer", where it would say "damaged" and
/// send people to the backup. 0 is not written.
pub(super) const MINOR: u64 = 0;

disk_struct!(DiskTick for TickRecord {
    at: Time,
    outcome: TickOutcome;
    skipped_in_a_row: u32,
    last_ok: Option<Time>
});

disk_enum!(DiskOutcome for TickOutcome { Ok, Skipped(why: String), Failed(why: String) });

disk_struct!(DiskLearned for Learned {
    ;
    own_gpus: Option<(Option<u32>, Time)>,
    accounting_off: bool,
    gpus_at_hand: u32,
    own_lane: Option<OwnLane>,
    placements: Vec<Alike>,
    own_starts: u32,
    extra_starts: u32,
    tick_every: Option<Secs>,
    takes_both: Option<TakesBoth>
});

disk_struct!(DiskTakesBoth for TakesBoth { yes: bool, said: String, at: Time; asked: String });

disk_struct!(DiskOwnLane for OwnLane {
    ;
    size: Option<u32>,
    running_ours: u32,
    running_others: u32,
    pending_others: u32,
    pending_pinned: u32,
    others_until: Option<Time>
});

disk_struct!(DiskAlike for Alike {
    tier: String,
    capacity: u32,
    up: bool,
    reachable: bool,
    nodes: Vec<String>;
    idle: u32,
    reserved: u32,
    held_by_backfill: u32,
    more: u32
});

// In thousandths of a TFLOP-second, whole, as the model counts them.
disk_struct!(DiskLab for LabRecord { usage: Usage, floor: Usage; });

disk_struct!(#[derive(Default)] DiskCaution for Caution {
    ;
    breakers: BTreeMap<String, Breaker>,
    nodes: BTreeMap<String, NodeMarks>,
    overload: Option<Overload>
});
disk_struct!(DiskBreaker for Breaker { refused: u32, said: String; open_since: Option<Time> });
disk_struct!(DiskNodeMarks for NodeMarks { deaths: Vec<Death>; out_until: Option<Time> });
disk_struct!(DiskDeath for Death { shard: ShardId, attempt: u32, at: Time; sure: bool });
disk_struct!(DiskOverload for Overload { in_a_row: u32, until: Time, said: String; });

/// One entry of `caps`, by name or by `family/shard`, as a person would say it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DiskCap<'a> {
    target: String,
    amount: <Money as Form>::Disk<'a>,
    by: <String as Form>::Disk<'a>,
    at: <Time as Form>::Disk<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    version: u64,
    #[serde(default)]
    minor: u64,
    project: String,
    instance: String,
    generation: u64,
    last_tick: Option<<TickRecord as Form>::Disk<'a>>,
    learned: <Learned as Form>::Disk<'a>,
    #[serde(default)]
    caution: <Caution as Form>::Disk<'a>,
    #[serde(default)]
    notices: <Notices as Form>::Disk<'a>,
    #[serde(default)]
    host: String,
    labs: BTreeMap<String, <LabRecord as Form>::Disk<'a>>,
    caps: Vec<DiskCap<'a>>,
    #[serde(deserialize_with = "records")]
    shards: Vec<ShardRecord>,
    #[serde(deserialize_with = "records")]
    orphans: Vec<ShardRecord>,
}

/// Turns each record into the model's as it is read: ten thousand of them in both forms at once
/// would be most of the memory of a cycle, and of the time to read them.
fn records<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<ShardRecord>, D::Error> {
    struct Records;
    impl<'de> Visitor<'de> for Records {
        type Value = Vec<ShardRecord>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of shards")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut records = Vec::new();
            while let Some(disk) = list.next_element()? {
                records.push(ShardRecord::from_disk(disk));
            }
            Ok(records)
        }
    }
    json.deserialize_seq(Records)
}

/// Why bytes are no state of this build.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// Version and minor number.
    Newer(u64, u64),
    Damaged(String),
}

/// The document of `state`, under the generation that the store gives it.
pub(super) fn encode(state: &State, numbered: u64) -> Result<Vec<u8>, serde_json::Error> {
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
    let mut out = Vec::with_capacity(4096 + BYTES_EACH * (shards.len() + orphans.len()));
    out.extend_from_slice(b"{\n");
    line(&mut out, "version", &VERSION)?;
    if MINOR != 0 {
        line(&mut out, "minor", &MINOR)?;
    }
    line(&mut out, "project", project)?;
    line(&mut out, "instance", instance)?;
    line(&mut out, "generation", &numbered)?;
    line(&mut out, "last_tick", &last_tick.to_disk())?;
    line(&mut out, "learned", &learned.to_disk())?;
    // Left out where there is nothing to say: older builds of this version read the file too.
    if *caution != Caution::default() {
        line(&mut out, "caution", &caution.to_disk())?;
    }
    if *notices != Notices::default() {
        line(&mut out, "notices", &notices.to_disk())?;
    }
    if !host.is_empty() {
        line(&mut out, "host", host)?;
    }
    let labs: BTreeMap<_, _> = labs.iter().map(|(name, lab)| (name, lab.to_disk())).collect();
    line(&mut out, "labs", &labs)?;
    list(&mut out, "caps", caps.iter().map(cap_to_disk))?;
    out.extend_from_slice(b",\n");
    side_by_side(&mut out, "shards", shards)?;
    out.extend_from_slice(b",\n");
    list(&mut out, "orphans", orphans.iter().map(Form::to_disk))?;
    out.extend_from_slice(b"\n}\n");
    Ok(out)
}

fn line(out: &mut Vec<u8>, key: &str, value: &impl Serialize) -> Result<(), serde_json::Error> {
    serde_json::to_writer(&mut *out, key)?;
    out.extend_from_slice(b": ");
    serde_json::to_writer(&mut *out, value)?;
    out.extend_from_slice(b",\n");
    Ok(())
}

/// Usual length of a shard's line, so that a buffer grows once at most.
const BYTES_EACH: usize = 600;

/// Fewer records than this are spelled before a second thread has begun.
const WORTH_A_THREAD: usize = 500;

/// As `list`, by two threads where that helps: spelling the records is most of a save.
fn side_by_side(
    out: &mut Vec<u8>,
    key: &str,
    all: &[ShardRecord],
) -> Result<(), serde_json::Error> {
    if all.len() < WORTH_A_THREAD {
        return list(out, key, all.iter().map(Form::to_disk));
    }
    let (front, back) = all.split_at(all.len() / 2);
    let rest = std::thread::scope(|scope| {
        let rest = scope.spawn(|| {
            let mut rest = Vec::with_capacity(BYTES_EACH * back.len());
            back.iter().try_for_each(|record| {
                rest.extend_from_slice(b",\n");
                serde_json::to_writer(&mut rest, &record.to_disk())
            })?;
            Ok::<_, serde_json::Error>(rest)
        });
        let begun = list(out, key, front.iter().map(Form::to_disk));
        begun.and(rest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    // `list` has closed its bracket; it is closed again behind the rest.
    out.truncate(out.len() - END_OF_LIST.len());
    out.extend_from_slice(&rest);
    out.extend_from_slice(END_OF_LIST);
    Ok(())
}

/// What a list that is not empty ends with.
const END_OF_LIST: &[u8] = b"\n]";

fn list<T: Serialize>(
    out: &mut Vec<u8>,
    key: &str,
    values: impl Iterator<Item = T>,
) -> Result<(), serde_json::Error> {
    serde_json::to_writer(&mut *out, key)?;
    out.extend_from_slice(b": [");
    let mut separator: &[u8] = b"\n";
    let mut any = false;
    for value in values {
        out.extend_from_slice(separator);
        serde_json::to_writer(&mut *out, &value)?;
        separator = b",\n";
        any = true;
    }
    out.extend_from_slice(if any { END_OF_LIST } else { b"]" });
    Ok(())
}

/// Reads a document of this version or one before it.
pub(super) fn decode(bytes: &[u8]) -> Result<State, Unreadable> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Unreadable::Damaged("it is empty".to_owned()));
    }
    // The version alone is looked for only where the document is no version 1: the common case
    // goes over the bytes once.
    let document: Document<'_> = match serde_json::from_slice(bytes) {
        Ok(document) => document,
        Err(fault) => {
            return Err(match version_of(bytes) {
                Some((version, minor)) if (version, minor) > (VERSION, MINOR) => {
                    Unreadable::Newer(version, minor)
                }
                _ => Unreadable::Damaged(fault.to_string()),
            });
        }
    };
    upgrade(document)
}

fn version_of(bytes: &[u8]) -> Option<(u64, u64)> {
    #[derive(Deserialize)]
    struct Head {
        version: u64,
        #[serde(default)]
        minor: u64,
    }
    serde_json::from_slice::<Head>(bytes).ok().map(|head| (head.version, head.minor))
}

/// From the oldest form that is still read to the model; each later version is one more step.
fn upgrade(document: Document<'_>) -> Result<State, Unreadable> {
    match document.version {
        version if (version, document.minor) > (VERSION, MINOR) => {
            Err(Unreadable::Newer(version, document.minor))
        }
        VERSION => into_model(document).map_err(Unreadable::Damaged),
        version => Err(Unreadable::Damaged(format!("there is no version {version}"))),
    }
}

fn into_model(document: Document<'_>) -> Result<State, String> {
    let Document {
        version: _,
        minor: _,
        project,
        instance,
        generation,
        last_tick,
        learned,
        caution,
        notices,
        host,
        labs,
        caps,
        shards,
        orphans,
    } = document;
    let state = State {
        project,
        instance,
        generation,
        shards,
        orphans,
        labs: labs.into_iter().map(|(name, lab)| (name, Form::from_disk(lab))).collect(),
        caps: caps.into_iter().map(cap_from_disk).collect::<Result<_, String>>()?,
        last_tick: Form::from_disk(last_tick),
        learned: Form::from_disk(learned),
        caution: Form::from_disk(caution),
        notices: Form::from_disk(notices),
        host,
    };
    // A shard that is there twice could have a job under each record, of which one would be lost.
    let mut seen = HashSet::new();
    match state.shards.iter().chain(&state.orphans).find(|record| !seen.insert(&record.id)) {
        Some(twice) => Err(format!("shard {} is in it twice", twice.id)),
        None => Ok(state),
    }
}

fn cap_to_disk<'a>((target, set): (&CapTarget, &'a CapSet)) -> DiskCap<'a> {
    let CapSet { amount, by, at } = set;
    let target = match target {
        CapTarget::Family(family) => family.clone(),
        CapTarget::Shard(id) => id.to_string(),
    };
    DiskCap { target, amount: amount.to_disk(), by: by.to_disk(), at: at.to_disk() }
}

fn cap_from_disk(disk: DiskCap<'_>) -> Result<(CapTarget, CapSet), String> {
    let DiskCap { target, amount, by, at } = disk;
    let set = CapSet {
        amount: Form::from_disk(amount),
        by: Form::from_disk(by),
        at: Form::from_disk(at),
    };
    if is_name(&target) {
        return Ok((CapTarget::Family(target), set));
    }
    match ShardId::parse(&target) {
        Some(id) => Ok((CapTarget::Shard(id), set)),
        None => Err(format!("caps: {target:?} is neither family nor family/shard")),
    }
}
