//! Version 1 of the state file: one JSON document, one shard a line.
//!
//! Nothing here touches a file. The disk types are apart from the model's, so that the model may
//! change without the file changing, and the file's change is a decision of its own: a field or
//! word that is added and may be left out keeps version 1 readable and raises `MINOR`; anything else needs a version 2 beside
//! this folder, and `upgrade` from here to there.

mod asked;
pub(super) mod clock;
pub(super) mod cycle;
mod form;
mod json;
mod notice;
mod nouns;
pub(super) mod pilot;
mod reason;
mod record;
mod seen;
mod spell;
mod text;

#[cfg(test)]
pub(super) mod dice;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use self::form::{Blank, Form, disk_enum, disk_struct};
use crate::model::caution::{Breaker, Caution, Death, NodeMarks, Overload};
use crate::model::id::{ShardId, is_name};
use crate::model::notice::Notices;
use crate::model::state::{
    Alike, CapSet, CapTarget, LabRecord, Learned, OthersInOwn, OwnLane, ShardRecord, State,
    TakesBoth, TickOutcome, TickRecord,
};
use crate::model::units::{GpuSeconds, Money, Secs, Time, Usage};

pub(super) use self::spell::{encode, encode_to};
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
    takes_both: Option<TakesBoth>,
    others_in_own: Option<OthersInOwn>
});

disk_struct!(DiskOthersInOwn for OthersInOwn { gpu_seconds: GpuSeconds, over: Secs, until: Time; });

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
#[derive(Deserialize)]
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

/// Reads a document of this version or one before it.
pub(super) fn decode(bytes: &[u8]) -> Result<State, Unreadable> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Unreadable::Damaged("it is empty".to_owned()));
    }
    // The version alone is looked for only where the document is no version 1: the common case
    // goes over the bytes once. Texts known to be UTF-8 as a whole are not checked one by one.
    let read = match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(bytes),
    };
    let document: Document<'_> = match read {
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
