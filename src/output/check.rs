//! `babysit check`: what was found, the worst first.

use std::path::Path;

use serde_json::{Value, json};

use crate::model::policy::Policy;

use super::format::count;

pub const SCHEMA: &str = "babysit/check/v1";

/// How much a finding matters, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// shards.toml, or a file it names, is wrong.
    Config,
    State,
    /// Slurm could not be asked.
    Cluster,
    Partition,
    NoFit,
    /// The cluster does not have what is asked for.
    Person,
    Warning,
}

impl Weight {
    fn kind(self) -> &'static str {
        match self {
            Weight::Config => "config",
            Weight::State => "state",
            Weight::Cluster => "cluster",
            Weight::Partition => "partition",
            Weight::NoFit => "NO_FIT_PLACEMENT",
            Weight::Person => "qos",
            Weight::Warning => "warning",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub weight: Weight,
    /// With its place and the next step.
    pub text: String,
}

impl Finding {
    pub fn new(weight: Weight, text: String) -> Finding {
        Finding { weight, text }
    }
}

pub fn text(policy: &Policy, path: &Path, findings: &[Finding]) -> String {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| finding.weight);
    let mut out = String::new();
    for Finding { weight, text } in sorted {
        let label = if *weight == Weight::Warning { "warning" } else { "fault" };
        out.push_str(&format!("{label}: {text}\n"));
    }
    let faults = findings.iter().filter(|f| f.weight != Weight::Warning).count() as u64;
    let rows: u64 = policy.shards.iter().map(|shard| u64::from(shard.rows)).sum();
    let what = format!("{}, {}", count(policy.shards.len() as u64, "shard"), count(rows, "row"));
    match faults {
        0 => out.push_str(&format!("{}: fine ({what})\n", path.display())),
        n => out.push_str(&format!("{}: {} ({what})\n", path.display(), count(n, "fault"))),
    }
    out
}

pub fn json(policy: &Policy, findings: &[Finding]) -> Value {
    let of = |warnings: bool| -> Vec<Value> {
        findings
            .iter()
            .filter(|finding| (finding.weight == Weight::Warning) == warnings)
            .map(|finding| json!({ "kind": finding.weight.kind(), "text": finding.text }))
            .collect()
    };
    json!({
        "schema": SCHEMA,
        "project": policy.project,
        "shards": policy.shards.len(),
        "faults": of(false),
        "warnings": of(true),
    })
}
