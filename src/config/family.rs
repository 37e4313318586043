//! `[families.NAME]` and `[families.NAME.shard.NAME]` as they are written: each value checked, none
//! merged yet.

use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::document::{Field, Section, Sink, dotted};
use super::keys;
use super::sbatch_args::{self, Laned};
use super::sections::path_in;
use super::template::{Reader, Template};
use super::values::{self, whole};
use crate::model::policy::{Kin, SubmitMode};
use crate::model::units::{Money, Secs};

/// Most shards of a file: far beyond any real one, and soon enough to stop a slip of the hand from
/// filling the memory.
const SHARDS_MOST: u32 = 100_000;
/// Most GPUs of a shard (policy.md section 5).
const GPUS_MOST: u32 = 8;

/// Jobs that work on one shard at once where `split = true` says no number: about as many as the
/// GPUs of a small cluster, since more than are idle never run.
const WORKERS: u32 = 8;
/// Each has its record and, while GPUs are idle, its pending job.
const WORKERS_MOST: u32 = 64;

#[derive(Debug)]
pub(super) struct RawFamily {
    pub name: String,
    pub key: String,
    pub shards: Field<Vec<String>>,
    pub settings: Settings,
    /// In the order of the file.
    pub overrides: Vec<(String, Settings)>,
}

/// The keys that a family and one of its shards have in common.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub key: String,
    pub lab: Field<String>,
    pub command: Field<Template>,
    pub script: Field<PathBuf>,
    pub workdir: Field<Template>,
    pub gpus: Field<u32>,
    pub cpus: Field<u32>,
    pub mem: Field<String>,
    pub min_tier: Field<String>,
    pub submit: Field<SubmitMode>,
    /// `None`: its jobs are no pilots.
    pub pilot: Field<Option<Kin>>,
    pub args: Field<Vec<String>>,
    pub time: Field<String>,
    pub rows: Field<u32>,
    pub row_time: Field<Secs>,
    pub done: Field<RawRows>,
    pub cost: Field<RawCost>,
    pub cap: Field<Money>,
    pub oom: Field<Vec<String>>,
    pub restart_stalled: Field<bool>,
    /// Most jobs at once; 1: its rows are not shared.
    pub split: Field<u32>,
}

#[derive(Debug)]
pub(super) enum RawRows {
    Glob(Template),
    Jsonl { path: Template, key: Option<String> },
}

#[derive(Debug)]
pub(super) enum RawCost {
    Jsonl { path: Template, field: String },
    GpuHour(Money),
}

pub(super) fn families(
    top: &Section<'_>,
    sink: &mut Sink,
    base: &Path,
    laned: Laned,
) -> Vec<RawFamily> {
    let mut left = SHARDS_MOST;
    let found: Vec<RawFamily> = top
        .children(sink, "families")
        .into_iter()
        .map(|(name, value)| family(name, value, sink, base, laned, &mut left))
        .collect();
    let told = sink.faults.iter().any(|f| f.key == "families");
    if found.is_empty() && !told {
        let hint = "add a [families.NAME] with command, rows, done and shards";
        sink.fault("families", "there is no family, so nothing to run", hint);
    }
    found
}

fn family<'a>(
    name: String,
    value: &'a DeValue<'a>,
    sink: &mut Sink,
    base: &Path,
    laned: Laned,
    left: &mut u32,
) -> RawFamily {
    let s = Section::of(sink, dotted("families", &name), value, keys::FAMILY);
    let shards = shard_names(&s, sink, left);
    s.require(sink, "shards", &shards, "write `shards = 4` for s0 to s3, or a list of names");
    let settings = settings(&s, sink, base, laned);
    let overrides = s
        .children(sink, "shard")
        .into_iter()
        .map(|(shard, value)| {
            let key = dotted(&dotted(&s.key, "shard"), &shard);
            let own = Section::of(sink, key, value, keys::SHARD);
            (shard, self::settings(&own, sink, base, laned))
        })
        .collect();
    RawFamily { name, key: s.key, shards, settings, overrides }
}

/// `left`: how many more the file may have.
fn shard_names(s: &Section<'_>, sink: &mut Sink, left: &mut u32) -> Field<Vec<String>> {
    match s.value("shards").map(|v| v.get_ref()) {
        Some(DeValue::Array(_)) => {
            let names = s.read_list(sink, "shards", true, values::name);
            if names.get().is_some_and(Vec::is_empty) {
                sink.fault(&dotted(&s.key, "shards"), "is empty", "name at least one shard");
                return Field::Bad;
            }
            names
        }
        Some(DeValue::Integer(_)) => s.read(sink, "shards", |v| {
            let count = whole(v, 1, SHARDS_MOST)?;
            let Some(rest) = left.checked_sub(count) else {
                return values::wrong(
                    format!(
                        "makes more than {SHARDS_MOST} shards, with those of the families above"
                    ),
                    "correct the numbers, or make two projects of it",
                );
            };
            *left = rest;
            Ok((0..count).map(|i| format!("s{i}")).collect())
        }),
        Some(_) => s.read(sink, "shards", |v| {
            values::wrong_type(v, "a number or a list of names", "4 or [\"a\", \"b\"]")
        }),
        None => Field::Absent,
    }
}

fn settings(s: &Section<'_>, sink: &mut Sink, base: &Path, laned: Laned) -> Settings {
    let template =
        |v: &DeValue<'_>, reader| values::text(v).and_then(|text| Template::parse(&text, reader));
    let settings = Settings {
        key: s.key.clone(),
        lab: s.read(sink, "lab", values::name_value),
        command: s.read(sink, "command", |v| template(v, Reader::Shell)),
        script: s.read(sink, "script", |v| values::text(v).map(|t| path_in(base, &t))),
        workdir: s.read(sink, "workdir", |v| template(v, Reader::Path)),
        gpus: s.read(sink, "gpus", |v| whole(v, 1, GPUS_MOST)),
        cpus: s.read(sink, "cpus", |v| whole(v, 1, u32::MAX)),
        mem: s.read(sink, "mem", values::memory),
        min_tier: s.read(sink, "min_tier", values::text),
        submit: s.read(sink, "submit", |v| {
            let modes = [("queued", SubmitMode::Queued), ("placed", SubmitMode::Placed)];
            values::one_of(v, &modes)
        }),
        pilot: s.read(sink, "pilot", values::pilot),
        args: s.read_list(sink, "args", false, |a| sbatch_args::check(a, laned)),
        time: s.read(sink, "time", values::time_limit),
        rows: s.read(sink, "rows", |v| whole(v, 1, u32::MAX)),
        row_time: s.read(sink, "row_time", values::duration),
        done: rows_in(s, sink),
        cost: cost_in(s, sink),
        cap: s.read(sink, "cap", values::cap),
        oom: s.read_list(sink, "oom", false, values::regex),
        restart_stalled: s.read(sink, "restart_stalled", values::yes_or_no),
        split: s.read(sink, "split", |v| match v {
            DeValue::Boolean(yes) => Ok(if *yes { WORKERS } else { 1 }),
            DeValue::Integer(_) => whole(v, 2, WORKERS_MOST),
            other => values::wrong_type(other, "true, or the most jobs at once", "true"),
        }),
    };
    if !settings.command.is_absent() && !settings.script.is_absent() {
        let hint = "keep the one that starts the shard";
        sink.fault(&dotted(&s.key, "script"), "stands beside `command`", hint);
    }
    settings
}

const DONE_FORMS: &str = "write { glob = \"...\" } or { jsonl = \"...\", key = \"...\" }";
const COST_FORMS: &str = "write { jsonl = \"...\", field = \"...\" } or { gpu_hour = 1.20 }";

fn rows_in(s: &Section<'_>, sink: &mut Sink) -> Field<RawRows> {
    let t = s.section(sink, "done", keys::DONE);
    if !t.present {
        return Field::Absent;
    }
    let glob = t.read(sink, "glob", |v| {
        let text = values::text(v)?;
        check_glob(&text)?;
        Template::parse(&text, Reader::Path)
    });
    let jsonl = t.read(sink, "jsonl", path_template);
    let key = t.read(sink, "key", values::text);
    match (glob, jsonl, key) {
        (Field::Set(glob), Field::Absent, Field::Absent) => Field::Set(RawRows::Glob(glob)),
        (Field::Absent, Field::Set(path), key @ (Field::Absent | Field::Set(_))) => {
            Field::Set(RawRows::Jsonl { path, key: key.optional() })
        }
        (Field::Bad, ..) | (_, Field::Bad, _) | (.., Field::Bad) => Field::Bad,
        (Field::Set(_), Field::Set(_), _) => {
            refuse(&t, sink, "has both glob and jsonl", DONE_FORMS)
        }
        (Field::Set(_), _, Field::Set(_)) => {
            refuse(&t, sink, "has a key, but a glob counts files", DONE_FORMS)
        }
        (Field::Absent, Field::Absent, _) => {
            refuse(&t, sink, "has neither glob nor jsonl", DONE_FORMS)
        }
    }
}

fn cost_in(s: &Section<'_>, sink: &mut Sink) -> Field<RawCost> {
    let t = s.section(sink, "cost", keys::COST);
    if !t.present {
        return Field::Absent;
    }
    let jsonl = t.read(sink, "jsonl", path_template);
    let field = t.read(sink, "field", values::text);
    let gpu_hour = t.read(sink, "gpu_hour", values::money);
    match (jsonl, field, gpu_hour) {
        (Field::Set(path), Field::Set(field), Field::Absent) => {
            Field::Set(RawCost::Jsonl { path, field })
        }
        (Field::Absent, Field::Absent, Field::Set(price)) => Field::Set(RawCost::GpuHour(price)),
        (Field::Bad, ..) | (_, Field::Bad, _) | (.., Field::Bad) => Field::Bad,
        (Field::Set(_), Field::Absent, Field::Absent) => {
            refuse(&t, sink, "has no field: where in a line is the amount?", COST_FORMS)
        }
        (Field::Absent, Field::Set(_), Field::Absent) => {
            refuse(&t, sink, "has a field, but no jsonl that holds it", COST_FORMS)
        }
        (Field::Absent, Field::Absent, Field::Absent) => {
            refuse(&t, sink, "has neither jsonl nor gpu_hour", COST_FORMS)
        }
        (.., Field::Set(_)) => refuse(&t, sink, "has both a ledger and a price", COST_FORMS),
    }
}

/// What is under a form's key is neither of its forms. A table that is none was told already, and
/// so was one whose keys are all unknown.
fn refuse<T>(t: &Section<'_>, sink: &mut Sink, text: &str, hint: &str) -> Field<T> {
    let inside = format!("{}.", t.key);
    let told = sink.faults.iter().any(|f| f.key.starts_with(&inside));
    if !t.is_broken() && !told {
        sink.fault(&t.key, text, hint);
    }
    Field::Bad
}

fn path_template(value: &DeValue<'_>) -> values::Parsed<Template> {
    values::text(value).and_then(|text| Template::parse(&text, Reader::Path))
}

fn check_glob(text: &str) -> values::Parsed<()> {
    match globset::GlobBuilder::new(text).literal_separator(true).build() {
        Ok(_) => Ok(()),
        Err(e) => values::wrong(
            format!("{text:?} is not a pattern: {}", e.kind()),
            "a shell pattern is meant, like \"runs/{shard}/row_*.json\"",
        ),
    }
}
