//! Families and their overrides, merged into shards: placeholders filled in, paths absolute,
//! defaults applied, and the checks that need more than one key.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::document::{Field, Sink, dotted};
use super::family::{RawCost, RawFamily, RawRows, Settings};
use super::layers::Layers;
use super::near::did_you_mean;
use super::sections::path_in;
use super::template::{Fill, Template};
use crate::model::id::ShardId;
use crate::model::policy::{CostIn, Kin, Launch, RowsIn, Shard, SubmitMode, Tier};
use crate::model::split::Split;
use crate::model::units::{Money, Secs};

/// The first guess of a row's length where the file gives none; measured as soon as rows finish.
const ROW_TIME: Secs = Secs::minutes(10);
/// The lab of families that name none.
const LAB: &str = "default";

/// What the families are resolved against.
pub(super) struct Context<'a> {
    pub project: &'a str,
    /// Folder of shards.toml, where most shards work.
    pub base: &'a Arc<Path>,
    /// The same, escaped for patterns and plain as `pattern_in` makes it.
    pub base_pattern: &'a str,
    pub logs: &'a Path,
    pub slurm_args: &'a [String],
    pub tiers: &'a [Tier],
    pub labs: Option<&'a BTreeSet<String>>,
    /// What `[policy]` says for all.
    pub restart_stalled: bool,
}

/// Layers with every check done: what is left is filling in a shard's name.
struct Ready<'a> {
    layers: Layers<'a>,
    launch: RawLaunch<'a>,
    lab: Arc<str>,
    gpus: u32,
    min_tier: Option<u32>,
    submit: SubmitMode,
    pilot: Option<Kin>,
    args: Vec<String>,
    oom: Vec<String>,
    restart_stalled: bool,
    workers: u32,
    rows: u32,
    done: &'a RawRows,
}

enum RawLaunch<'a> {
    Command(&'a Template),
    Script(&'a Path),
}

pub(super) fn resolve(families: &[RawFamily], ctx: &Context<'_>, sink: &mut Sink) -> Vec<Shard> {
    let mut shards = Vec::new();
    for family in families {
        let names: &[String] = family.shards.get().map_or(&[], Vec::as_slice);
        let overrides = overrides(family, names, sink);
        one_place_each(family, names.len(), sink);
        let plain = Layers { family: &family.settings, shard: None };
        let is_plain =
            names.is_empty() || names.iter().any(|n| !overrides.contains_key(n.as_str()));
        let usual = if is_plain { ready(plain, ctx, sink) } else { None };
        let own: HashMap<&str, Option<Ready<'_>>> = names
            .iter()
            .filter_map(|name| {
                let settings = overrides.get(name.as_str())?;
                let layers = Layers { shard: Some(settings), ..plain };
                Some((name.as_str(), ready(layers, ctx, sink)))
            })
            .collect();
        shards.reserve(names.len());
        let ready_of = |name: &str| own.get(name).unwrap_or(&usual).as_ref();
        let made = (0..).zip(names);
        let made =
            made.filter_map(|(i, name)| Some(ready_of(name)?.shard(&family.name, name, i, ctx)));
        shards.extend(made);
    }
    shards
}

fn overrides<'a>(
    family: &'a RawFamily,
    names: &[String],
    sink: &mut Sink,
) -> HashMap<&'a str, &'a Settings> {
    if !family.overrides.is_empty() && family.shards.get().is_some() {
        let known: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        for (name, settings) in family.overrides.iter().filter(|(n, _)| !known.contains(n.as_str()))
        {
            let hint = did_you_mean(name, known.iter().copied()).unwrap_or_else(|| {
                match (names.first(), names.last()) {
                    (Some(first), Some(last)) if names.len() > 1 => {
                        format!("its {} shards are {first} to {last}", names.len())
                    }
                    (Some(only), _) => format!("its only shard is {only}"),
                    _ => "see `shards`".to_owned(),
                }
            });
            let text = format!("family {} has no shard {name:?}", family.name);
            sink.fault(&settings.key, text, hint);
        }
    }
    family.overrides.iter().map(|(name, settings)| (name.as_str(), settings)).collect()
}

/// A family's pattern serves all its shards, so it has to come out differently for each.
fn one_place_each(family: &RawFamily, shards: usize, sink: &mut Sink) {
    let s = &family.settings;
    let done = s.done.get().map(|done| match done {
        RawRows::Glob(t) | RawRows::Jsonl { path: t, .. } => t,
    });
    let cost = s.cost.get().and_then(|cost| match cost {
        RawCost::Jsonl { path, .. } => Some(path),
        RawCost::GpuHour(_) => None,
    });
    let own_done = family.overrides.iter().filter(|(_, o)| !o.done.is_absent()).count();
    let own_cost = family.overrides.iter().filter(|(_, o)| !o.cost.is_absent()).count();
    for (key, template, own, what) in
        [("done", done, own_done, "rows"), ("cost", cost, own_cost, "money")]
    {
        let users = shards.saturating_sub(own);
        if users > 1 && template.is_some_and(|t| !t.tells_shards_apart()) {
            sink.fault(
                &dotted(&family.key, key),
                format!("holds neither {{shard}} nor {{index}}: all {users} shards would count the same {what}"),
                "put {shard} in the path",
            );
        }
    }
}

/// Checks what takes more than one key. `None` where something needed is wrong or missing; it has
/// been told then.
fn ready<'a>(layers: Layers<'a>, ctx: &Context<'_>, sink: &mut Sink) -> Option<Ready<'a>> {
    let home = layers.family.key.as_str();
    let launching = layers.launching();
    let launch = match (&launching.command, &launching.script) {
        (Field::Set(command), Field::Absent) => Some(RawLaunch::Command(command)),
        (Field::Absent, Field::Set(script)) => Some(RawLaunch::Script(script)),
        (Field::Absent, Field::Absent) => {
            let hint = "write `command = \"...\"` or `script = \"job.sbatch\"`";
            sink.fault(home, "has neither `command` nor `script`", hint);
            None
        }
        _ => None,
    };
    missing(layers.field(|s| &s.rows), home, "rows", "write how many rows each shard has", sink);
    let hint =
        "write `done = { glob = \"runs/{shard}/row_*.json\" }`: how finished rows are counted";
    missing(layers.field(|s| &s.done), home, "done", hint, sink);
    let min_tier = min_tier(layers, ctx, sink);
    let lab = lab(layers, ctx, sink);
    if layers.field(|s| &s.cost).is_absent() && !layers.field(|s| &s.cap).is_absent() {
        sink.fault(
            &dotted(&layers.deciding(|s| &s.cap).key, "cap"),
            "a cap needs a cost: without one nothing is known to be spent",
            "add `cost = { jsonl = \"...\", field = \"...\" }` or `{ gpu_hour = 1.20 }`",
        );
    }
    let gpus = match layers.field(|s| &s.gpus) {
        Field::Set(gpus) => *gpus,
        Field::Absent => 1,
        Field::Bad => return None,
    };
    let submit = layers.submit();
    if submit == SubmitMode::Placed && ctx.tiers.is_empty() {
        sink.warn(
            &dotted(&layers.deciding(|s| &s.submit).key, "submit"),
            "is \"placed\" (the default from 2 GPUs on), but there is no [tiers.NAME] to place on",
            "describe the GPU models in [tiers.NAME], or write submit = \"queued\"",
        );
    }
    let pilot = pilot(layers, submit, launch.as_ref(), sink);
    let workers = *layers.get(|s| &s.split).unwrap_or(&1);
    if workers > 1 && submit == SubmitMode::Placed {
        sink.fault(
            &dotted(&layers.deciding(|s| &s.split).key, "split"),
            "helpers wait in Slurm's queue, and this shard in babysit's (submit = \"placed\", the default from 2 GPUs on)",
            "write submit = \"queued\" beside it, or leave `split` out",
        );
    }
    if workers > 1 && pilot.is_some() {
        let pilot = dotted(&layers.deciding(|s| &s.pilot).key, "pilot");
        sink.fault(
            &dotted(&layers.deciding(|s| &s.split).key, "split"),
            format!("stands beside {pilot}: a job either shares the rows of its shard or goes on to another shard"),
            "keep `split` where the program takes its rows by `babysit row take`, else `pilot`; leave the other out, or write it as false here",
        );
    }
    let mut args = ctx.slurm_args.to_vec();
    args.extend(layers.both(|s| &s.args));
    Some(Ready {
        layers,
        launch: launch?,
        lab: lab.into(),
        gpus,
        min_tier,
        submit,
        pilot,
        args,
        oom: layers.both(|s| &s.oom),
        restart_stalled: *layers.get(|s| &s.restart_stalled).unwrap_or(&ctx.restart_stalled),
        workers,
        rows: *layers.get(|s| &s.rows)?,
        done: layers.get(|s| &s.done)?,
    })
}

/// A pilot decides at its start what it works on: Slurm picks its node, and babysit starts the program.
fn pilot(
    layers: Layers<'_>,
    submit: SubmitMode,
    launch: Option<&RawLaunch<'_>>,
    sink: &mut Sink,
) -> Option<Kin> {
    let kin = layers.get(|s| &s.pilot).copied().flatten()?;
    let key = dotted(&layers.deciding(|s| &s.pilot).key, "pilot");
    if submit == SubmitMode::Placed {
        let text = "stands beside submit = \"placed\" (the default from 2 GPUs on)";
        sink.fault(&key, text, "write submit = \"queued\", or leave `pilot` out");
    }
    if matches!(launch, Some(RawLaunch::Script(_))) {
        let text = "stands beside `script`: a pilot starts one program after the other itself";
        sink.fault(&key, text, "write what the script runs as `command`, or leave `pilot` out");
    }
    Some(kin)
}

fn missing<T>(field: &Field<T>, home: &str, key: &str, hint: &str, sink: &mut Sink) {
    if field.is_absent() {
        sink.fault(&dotted(home, key), "is missing", hint);
    }
}

fn min_tier(layers: Layers<'_>, ctx: &Context<'_>, sink: &mut Sink) -> Option<u32> {
    let name = layers.get(|s| &s.min_tier)?;
    let found = ctx.tiers.iter().find(|t| t.name == *name);
    if found.is_none() {
        let key = dotted(&layers.deciding(|s| &s.min_tier).key, "min_tier");
        let tiers = || ctx.tiers.iter().map(|t| t.name.as_str());
        let hint = did_you_mean(name, tiers()).unwrap_or_else(|| match ctx.tiers {
            [] => format!("there is no tier yet: add [tiers.{name}] with rank and tflops"),
            _ => format!("tiers are {}", tiers().collect::<Vec<_>>().join(", ")),
        });
        sink.fault(&key, format!("there is no tier {name:?}"), hint);
    }
    found.map(|t| t.rank)
}

fn lab<'a>(layers: Layers<'a>, ctx: &Context<'_>, sink: &mut Sink) -> &'a str {
    let named = layers.get(|s| &s.lab).map(String::as_str);
    let Some(labs) = ctx.labs else { return named.unwrap_or(LAB) };
    let list = || labs.iter().map(String::as_str);
    let key = dotted(&layers.deciding(|s| &s.lab).key, "lab");
    match named {
        Some(name) if !labs.contains(name) => {
            let hint = did_you_mean(name, list())
                .unwrap_or_else(|| format!("add [labs.{name}], or leave every [labs.*] out"));
            sink.fault(&key, format!("there is no lab {name:?}"), hint);
        }
        None if !labs.contains(LAB) && layers.field(|s| &s.lab).is_absent() => {
            let all: Vec<&str> = list().collect();
            sink.fault(&key, "is missing", format!("write one of: {}", all.join(", ")));
        }
        _ => {}
    }
    named.unwrap_or(LAB)
}

impl Ready<'_> {
    fn shard(&self, family: &str, name: &str, index: u32, ctx: &Context<'_>) -> Shard {
        let l = self.layers;
        let fill = Fill {
            project: ctx.project,
            family,
            shard: name,
            index,
            rows: self.rows,
            gpus: self.gpus,
        };
        let path = |t: &Template| path_in(ctx.base, &t.fill(&fill));
        let log_dir = log_dir(ctx.logs, family, name);
        Shard {
            id: ShardId::new(family, name),
            index,
            lab: self.lab.clone(),
            launch: match self.launch {
                RawLaunch::Command(t) => Launch::Command(t.fill(&fill)),
                RawLaunch::Script(path) => Launch::Script(path.to_owned()),
            },
            workdir: l.get(|s| &s.workdir).map_or_else(|| ctx.base.clone(), |own| path(own).into()),
            gpus: self.gpus,
            cpus: l.get(|s| &s.cpus).copied(),
            mem: l.get(|s| &s.mem).cloned(),
            min_tier: self.min_tier,
            submit: self.submit,
            pilot: self.pilot.is_some(),
            kin: self.pilot.unwrap_or_default(),
            args: self.args.clone(),
            time: l.get(|s| &s.time).cloned(),
            rows: self.rows,
            row_time: l.get(|s| &s.row_time).copied().unwrap_or(ROW_TIME),
            done: match self.done {
                RawRows::Glob(t) => RowsIn::Glob(pattern_in(ctx.base_pattern, &t.fill(&fill))),
                RawRows::Jsonl { path: t, key } => {
                    RowsIn::Jsonl { path: path(t), key: key.clone() }
                }
            },
            cost: l.get(|s| &s.cost).map(|cost| match cost {
                RawCost::Jsonl { path: t, field } => {
                    CostIn::Jsonl { path: path(t), field: field.clone() }
                }
                RawCost::GpuHour(price) => CostIn::GpuHour(*price),
            }),
            cap: l.get(|s| &s.cap).copied().filter(|cap| *cap > Money::ZERO),
            oom: self.oom.clone(),
            restart_stalled: self.restart_stalled,
            split: (self.workers > 1)
                .then(|| Split { workers: self.workers, claims: log_dir.join("rows") }),
            helps: None,
            log_dir,
        }
    }
}

fn log_dir(logs: &Path, family: &str, name: &str) -> PathBuf {
    let mut path = PathBuf::with_capacity(logs.as_os_str().len() + family.len() + name.len() + 2);
    [logs, Path::new(family), Path::new(name)].iter().for_each(|part| path.push(part));
    path
}

/// An absolute pattern without `.` and empty parts, which no path that is compared with it has. The
/// pattern of the folder is such a one already.
pub(super) fn pattern_in(base_pattern: &str, text: &str) -> String {
    let base = if text.starts_with('/') { "" } else { base_pattern };
    let mut out = String::with_capacity(base.len() + text.len() + 2);
    out.push_str(base);
    for part in text.split('/').filter(|part| !part.is_empty() && *part != ".") {
        out.push('/');
        out.push_str(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_absolute_and_plain() {
        assert_eq!(pattern_in("/a/[[]b[]]", "./runs//*.json"), "/a/[[]b[]]/runs/*.json");
        assert_eq!(pattern_in("/a", "/data/./x/*"), "/data/x/*");
        assert_eq!(pattern_in("/a", "../x/*"), "/a/../x/*");
    }
}
