//! `babysit init`: a first shards.toml with comments, for the cluster that was found.

use serde_json::{Value, json};

use crate::model::survey::{Qos, Survey};
use crate::planning::draft::{Draft, Model};

use super::format::{count, one_line};

pub const SCHEMA: &str = "babysit/init/v1";

/// What the file says beside the cluster's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About<'a> {
    pub project: &'a str,
    /// Slurm's folder, where cron would not find it.
    pub bin_dir: Option<&'a str>,
}

/// The whole file. It holds one fault, the empty `command`.
pub fn toml(about: &About, survey: &Survey, draft: &Draft) -> String {
    let project = about.project;
    let mut out = format!(
        "# {project}, begun by `babysit init`. What is left to do:\n\
         #   1. fill in `command`, at the end; make `rows`, `done` and `shards` fit your program\n\
         #   2. babysit check              is this file right, and can the cluster do it?\n\
         #   3. babysit tick --dry-run     the very commands that a first tick would run\n\
         # All keys: docs/shards-toml.md (scripts/install puts it under share/doc/babysit).\n"
    );
    for gap in not_learned(survey) {
        out.push_str(&format!("# Not learned: {gap}\n"));
    }
    out.push_str(&format!(
        "\nproject = {}\n\
         # state = \"/shared/lab/{project}.json\"  # where several people work on it: a path all can write\n\n",
        text(project)
    ));
    slurm(&mut out, about, survey, draft);
    lanes(&mut out, draft);
    tiers(&mut out, survey, draft);
    out.push_str(PRESET);
    out.push_str(FAMILY);
    out
}

const PRESET: &str = r#"# What was measured to be better than the default. Before you take it, see what it would save you:
# babysit simulate --compare field,best
# [policy]
# preset = "best"

"#;

const FAMILY: &str = r#"# Shards that run one program. Started again, it must skip the rows that are done.
[families.work]
command = ""                    # fill in what one shard runs: "python run.py --part {shard}"
gpus = 1
rows = 10                       # of each shard; it is done when so many are finished
row_time = "15m"                # a first guess, measured as soon as rows are finished
done = { glob = "runs/{shard}/row_*.json" }     # each file that matches is one finished row
shards = 4                      # s0 to s3; or a list of names
# time = "1-00:00:00"           # else the partition's own limit
# cost = { gpu_hour = 1.20 }    # or { jsonl = "runs/{shard}.jsonl", field = "cost_usd" }
# cap = 25.0                    # most dollars of one shard; only a person lets it go on
"#;

/// What could not be asked, with the reason; what has the same reason is one line.
pub fn not_learned(survey: &Survey) -> Vec<String> {
    let Survey { nodes, default_partition: _, qos, allowed, accounts } = survey;
    let gaps = [
        ("GPU models", nodes.as_ref().err()),
        ("QOS", qos.as_ref().err()),
        ("which of them you may use", allowed.as_ref().err()),
        ("your accounts", accounts.as_ref().err()),
    ];
    let mut told: Vec<(String, &str)> = Vec::new();
    for (what, gap) in gaps {
        let Some(gap) = gap else { continue };
        match told.iter_mut().find(|(_, detail)| *detail == gap.detail) {
            Some((whats, _)) => whats.push_str(&format!(", {what}")),
            None => told.push((what.to_owned(), &gap.detail)),
        }
    }
    told.iter().map(|(what, detail)| format!("{what}: {}", one_line(detail))).collect()
}

fn slurm(out: &mut String, about: &About, survey: &Survey, draft: &Draft) {
    let mut lines = Vec::new();
    if let Some(folder) = about.bin_dir {
        lines.push(format!("bin_dir = {}    # cron's PATH does not have it", text(folder)));
    }
    match (&draft.partition, &survey.default_partition) {
        (Some(name), Some(default)) => lines.push(format!(
            "partition = {}    # the default one, {}, has no GPUs",
            text(name),
            one_line(default)
        )),
        (Some(name), None) => {
            lines.push(format!("partition = {}    # no partition is the default one", text(name)));
        }
        (None, _) => {}
    }
    if draft.partitions.len() > 1 {
        lines.push(format!("# Partitions with GPUs: {}.", list(&draft.partitions)));
    }
    if let Ok([one, other, ..]) = survey.accounts.as_deref() {
        let accounts = survey.accounts.as_deref().unwrap_or_default();
        lines.push(format!(
            "# account = {}    # you have {}, and {} is taken unless Slurm's default says otherwise",
            text(other),
            list(accounts),
            one_line(one)
        ));
    }
    if !lines.is_empty() {
        out.push_str(&format!("[slurm]\n{}\n\n", lines.join("\n")));
    }
}

fn lanes(out: &mut String, draft: &Draft) {
    out.push_str(
        "# Two lanes: own is guaranteed and limited in GPUs, extra is what is free and may be preempted.\n\
         # Without such a pair leave both sections out.\n",
    );
    if !draft.usable.is_empty() {
        let known: Vec<String> = draft.usable.iter().map(qos).collect();
        out.push_str(&format!("# QOS here: {}.\n", known.join("; ")));
    }
    let Some((own, extra)) = draft.lanes.first() else {
        out.push_str(
            "# [own]\n# qos = \"own\"\n# gpus = 8\n# park = 2\n# [extra]\n# qos = \"extra\"\n\n",
        );
        return;
    };
    if draft.lanes.len() > 1 {
        out.push_str("# More than one pair would do; this is a guess.\n");
    }
    out.push_str(&format!("[own]\nqos = {}\n", text(&own.name)));
    match (own.gpus, own.gpus_per_user) {
        (Some(gpus), _) => {
            out.push_str(&format!(
                "# gpus = {gpus}                     # its size, read from Slurm\n"
            ));
        }
        (None, Some(gpus)) => out.push_str(&format!("gpus = {gpus}    # for one user\n")),
        (None, None) => {}
    }
    out.push_str(&format!(
        "park = 2                        # so many waiting jobs stay here, the others try extra\n\
         [extra]\nqos = {}\n\n",
        text(&extra.name)
    ));
}

/// `own (4 GPUs, before extra)`
fn qos(qos: &Qos) -> String {
    let Qos { name, gpus, gpus_per_user, preempts } = qos;
    let mut about = Vec::new();
    about.extend(gpus.map(|gpus| count(gpus, "GPU")));
    about.extend(gpus_per_user.map(|gpus| format!("{} for one user", count(gpus, "GPU"))));
    if !preempts.is_empty() {
        about.push(format!("preempts {}", list(preempts)));
    }
    match about.is_empty() {
        true => one_line(name),
        false => format!("{} ({})", one_line(name), about.join(", ")),
    }
}

fn tiers(out: &mut String, survey: &Survey, draft: &Draft) {
    out.push_str(
        "# GPU models, weakest first. tflops weighs a lab's GPU hours: half precision, as published.\n",
    );
    if draft.untyped > 0 {
        let gpus = count(draft.untyped, "GPU");
        out.push_str(&format!("# Slurm names no model for {gpus}: no tier can mean those.\n"));
    }
    for (rank, (model, tflops)) in draft.tiers.iter().enumerate() {
        out.push_str(&tier(model, &(rank + 1).to_string(), &tflops.to_string(), ""));
    }
    for model in &draft.unknown {
        out.push_str(
            "# babysit does not know this model. Fill in rank (no two alike) and tflops to use it:\n",
        );
        out.push_str(&tier(model, "", "", "# "));
    }
    if draft.tiers.is_empty() && draft.unknown.is_empty() {
        if survey.nodes.is_ok() && draft.untyped == 0 {
            out.push_str("# Slurm shows no node with GPUs here.\n");
        }
        out.push_str("# [tiers.a100]\n# rank = 1\n# tflops = 312\n");
    }
    out.push('\n');
}

fn tier(model: &Model, rank: &str, tflops: &str, comment: &str) -> String {
    let Model { name, gpus, nodes, partition } = model;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    // A name that is none here becomes one; `gres` then says how Slurm spells it.
    let key: String = name.chars().map(|c| if plain(c) { c } else { '-' }).take(64).collect();
    let mut lines = vec![
        format!("[tiers.{key}]    # {} on {}", count(*gpus, "GPU"), count(*nodes, "node")),
        format!("rank = {rank}"),
        format!("tflops = {tflops}"),
    ];
    if key != *name {
        lines.push(format!("gres = [{}]", text(name)));
    }
    lines.extend(partition.as_ref().map(|name| format!("partition = {}", text(name))));
    lines.iter().map(|line| format!("{comment}{}\n", line.trim_end())).collect()
}

/// A string of TOML, which takes JSON's.
fn text(value: &str) -> String {
    Value::from(value).to_string()
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| one_line(name)).collect::<Vec<_>>().join(", ")
}

/// What was written, as sentences.
pub fn written(path: &str, kept: Option<&str>, survey: &Survey, draft: &Draft) -> String {
    let models: Vec<String> =
        draft.tiers.iter().map(|(model, _)| model.name.clone()).chain(untold(draft)).collect();
    let lanes = draft.lanes.first().map_or("no lanes".to_owned(), |(own, extra)| {
        format!("lanes {} and {}", own.name, extra.name)
    });
    let models = match models.is_empty() {
        true => "no GPU models".to_owned(),
        false => format!("GPU models {}", list(&models)),
    };
    let mut out = format!("wrote {path}: {models}; {lanes}\n");
    if let Some(kept) = kept {
        out.push_str(&format!("the one before is kept as {kept}\n"));
    }
    for gap in not_learned(survey) {
        out.push_str(&format!("not learned: {gap}\n"));
    }
    out.push_str("next: fill in `command` in it, then `babysit check`\n");
    out
}

fn untold(draft: &Draft) -> impl Iterator<Item = String> + '_ {
    draft.unknown.iter().map(|model| format!("{} (to be ranked)", model.name))
}

pub fn json(path: &str, kept: Option<&str>, survey: &Survey, draft: &Draft) -> Value {
    json!({
        "schema": SCHEMA,
        "path": path,
        "kept": kept,
        "tiers": draft.tiers.iter().map(|(model, _)| &model.name).collect::<Vec<_>>(),
        "unknown": draft.unknown.iter().map(|model| &model.name).collect::<Vec<_>>(),
        "lanes": draft.lanes.first().map(|(own, extra)| [&own.name, &extra.name]),
        "not_learned": not_learned(survey),
    })
}
