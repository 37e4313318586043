//! Shards that would count each other's rows or take each other's name, and a backfill that would
//! stop babysit's own jobs.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::document::{Sink, line_in};
use super::fault::Fault;
use super::surroundings::Surroundings;
use super::{Loaded, key_of};
use crate::model::policy::{Backfill, CostIn, Lane, LaneSpec, Policy, RowsIn, Shard};

/// Two shards with one place for their rows or their money, or with one job name.
pub(super) fn between_shards(shards: &[Shard], sink: &mut Sink) {
    let told: HashSet<String> = sink.faults.iter().map(|f| f.key.clone()).collect();
    let done = shards.iter().map(|s| (s, Some(done_place(s))));
    each_its_own(done, "done", "count the same rows", &told, sink);
    let cost = shards.iter().map(|s| (s, cost_place(s)));
    each_its_own(cost, "cost", "count the same money", &told, sink);
    // Only a dot in a family's name can make two names one: `a.b` + `c` is `a` + `b.c`.
    if shards.iter().any(|s| s.id.family.contains('.')) {
        let name = |s: &Shard| format!("{}.{}", s.id.family, s.id.shard);
        let names: Vec<(&Shard, String)> = shards.iter().map(|s| (s, name(s))).collect();
        let names = names.iter().map(|(s, n)| (*s, Some(n.as_str())));
        each_its_own(names, "shards", "have the same job name", &told, sink);
    }
}

fn done_place(shard: &Shard) -> &str {
    match &shard.done {
        RowsIn::Glob(pattern) => pattern,
        RowsIn::Jsonl { path, .. } => path.to_str().unwrap_or_default(),
    }
}

fn cost_place(shard: &Shard) -> Option<&str> {
    match shard.cost.as_ref()? {
        CostIn::Jsonl { path, .. } => path.to_str(),
        CostIn::GpuHour(_) => None,
    }
}

fn each_its_own<'a>(
    places: impl Iterator<Item = (&'a Shard, Option<&'a str>)>,
    key: &str,
    clash: &str,
    told: &HashSet<String>,
    sink: &mut Sink,
) {
    let mut first: HashMap<&str, &Shard> = HashMap::with_capacity(places.size_hint().0);
    // One fault a key: two families of a thousand shards that clash make one slip, not a thousand.
    let mut clashes: BTreeMap<String, (&Shard, &Shard, usize)> = BTreeMap::new();
    for (shard, place) in places {
        let Some(place) = place else { continue };
        if let Some(other) = first.get(place) {
            let key = key_of(&sink.lines, &shard.id, key);
            clashes.entry(key).or_insert((other, shard, 0)).2 += 1;
        } else {
            first.insert(place, shard);
        }
    }
    for (key, (one, other, pairs)) in clashes {
        if !told.contains(&key) {
            let more = match pairs {
                1 => String::new(),
                pairs => format!(", and so would {} more", pairs - 1),
            };
            let text = format!("{} and {} would {clash}{more}", one.id, other.id);
            sink.fault(&key, text, "give each shard its own");
        }
    }
}

/// Backfill that would take our own jobs for some of its own (policy.md section 6).
pub(super) fn backfill(policy: &Policy, sink: &mut Sink) {
    if let Some(fault) = policy.backfill.as_ref().and_then(|b| stops_itself(b, policy, None)) {
        let (key, text) = fault;
        sink.fault(&key, text, BACKFILL_HINT);
    }
}

const BACKFILL_HINT: &str =
    "add or change a criterion (qos, name, partition, user) so that only the other jobs match";

/// Faults that depend on who runs babysit: backfill given by this user's own name.
pub fn user_faults(loaded: &Loaded, s: &Surroundings) -> Vec<Fault> {
    let Some(me) = s.var("USER").or_else(|| s.var("LOGNAME")) else { return Vec::new() };
    let policy = &loaded.policy;
    let found = policy.backfill.as_ref().and_then(|b| stops_itself(b, policy, Some(me)));
    let fault = found.map(|(key, text)| Fault {
        line: line_in(&loaded.lines, &key),
        key,
        text,
        hint: Some(BACKFILL_HINT.to_owned()),
    });
    fault.into_iter().collect()
}

/// Key and text, where every criterion holds for some job of ours. What cannot be known (the
/// cluster's default QOS and partition, and the user without `me`) is taken for different.
fn stops_itself(b: &Backfill, policy: &Policy, me: Option<&str>) -> Option<(String, String)> {
    let mut why = Vec::new();
    if let Some(qos) = &b.qos {
        why.push(("qos", laned(policy, qos, "qos", |s| &s.qos, ["--qos=", "-q"])?));
    }
    if let Some(partition) = &b.partition {
        why.push(("partition", ours_partition(policy, partition)?));
    }
    if let Some(name) = &b.name {
        let regex = regex::Regex::new(name).ok()?;
        let job = policy.shards.iter().find_map(|s| {
            let job = format!("{}.{}.{}.a1", policy.project, s.id.family, s.id.shard);
            regex.is_match(&job).then_some(job)
        })?;
        why.push(("name", format!("name {name:?} matches our job {job}")));
    }
    if let Some(user) = &b.user {
        why.push(("user", (me? == user).then(|| format!("user {user:?} is you"))?));
    }
    let (key, _) = *why.first().as_ref()?;
    let all: Vec<&str> = why.iter().map(|(_, text)| text.as_str()).collect();
    let text = format!("matches our own jobs, it would stop them: {}", all.join(", and "));
    Some((format!("backfill.{key}"), text))
}

fn ours_partition(policy: &Policy, name: &str) -> Option<String> {
    let tier = policy.tiers.iter().find(|t| t.partition.as_deref() == Some(name));
    if let Some(tier) = tier {
        return Some(format!("partition {name:?} is tier {}'s", tier.name));
    }
    if policy.slurm.partition.as_deref() == Some(name) {
        return Some(format!("partition {name:?} is that of [slurm]"));
    }
    laned(policy, name, "partition", |s| &s.partition, ["--partition=", "-p"])
}

fn laned(
    policy: &Policy,
    value: &str,
    what: &str,
    of: impl Fn(&LaneSpec) -> &Option<String>,
    options: [&str; 2],
) -> Option<String> {
    let same = |other: &str| other.eq_ignore_ascii_case(value);
    let lane = policy.lanes.as_ref().and_then(|lanes| {
        let uses = |lane: &Lane| of(&lanes.spec(*lane)).as_deref().is_some_and(same);
        [Lane::Own, Lane::Extra].into_iter().find(uses)
    });
    if let Some(lane) = lane {
        return Some(format!("{what} {value:?} is the {} lane's", lane.word()));
    }
    let asks = |arg: &String| options.iter().any(|o| arg.strip_prefix(o).is_some_and(same));
    let shard = policy.shards.iter().find(|s| s.args.iter().any(asks))?;
    Some(format!("{what} {value:?} is in the args of {}", shard.id))
}
