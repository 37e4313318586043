//! The part of `babysit check` that compares shards.toml with the cluster.

use std::collections::BTreeSet;

use crate::model::observation::Cluster;
use crate::model::policy::{Lane, Policy, Tier};
use crate::model::reason::Reason;
use crate::model::state::State;
use crate::output::check::{Finding, Weight};
use crate::planning::fit::{LeftOut, left_out, unfit, unknown_models};
use crate::slurm::Slurm;
use crate::slurm::real::RealSlurm;

use super::context::Campaign;
use super::target::did_you_mean;

/// Does Slurm know the lanes' QOS, and may this user use them?
pub fn lanes(
    policy: &Policy,
    slurm: &mut RealSlurm,
    user: Option<&str>,
    findings: &mut Vec<Finding>,
) {
    let Some(lanes) = &policy.lanes else { return };
    // Where that cannot be learned, or the associations leave it open, sbatch has the last word.
    let allowed = user.and_then(|user| slurm.allowed_qos(user).ok()).unwrap_or_default();
    for lane in [Lane::Own, Lane::Extra] {
        let Some(qos) = &lanes.spec(lane).qos else { continue };
        match slurm.qos_gpus(qos) {
            _ if !allowed.is_empty() && !allowed.contains(qos) => {
                let near = did_you_mean(qos, allowed.iter().map(String::as_str));
                let text = format!(
                    "[{}]: QOS `{qos}` is none that you may use; yours are: {}{}",
                    lane.word(),
                    allowed.join(", "),
                    near.map_or(String::new(), |near| format!("; {near}"))
                );
                findings.push(Finding::new(Weight::Person, text));
            }
            Ok(None) if lane == Lane::Own && lanes.own_gpus.is_none() => {
                let text = format!(
                    "[own]: Slurm sets no GPU limit on QOS `{qos}`, so every shard goes to own; \
                     set `gpus` to your share of it"
                );
                findings.push(Finding::new(Weight::Warning, text));
            }
            Ok(_) => {}
            Err(gap) => {
                let text = format!("[{}]: QOS `{qos}` could not be looked up: {gap}", lane.word());
                findings.push(Finding::new(Weight::Person, text));
            }
        }
    }
}

/// Is each partition that shards.toml names one of this cluster?
pub fn partitions(policy: &Policy, cluster: &Cluster, findings: &mut Vec<Finding>) {
    let known: BTreeSet<&str> =
        cluster.nodes.iter().flat_map(|node| &node.partitions).map(String::as_str).collect();
    if known.is_empty() {
        return;
    }
    let mut named = vec![("slurm".to_owned(), policy.slurm.partition.as_ref())];
    if let Some(lanes) = &policy.lanes {
        named.push(("own".to_owned(), lanes.own.partition.as_ref()));
        named.push(("extra".to_owned(), lanes.extra.partition.as_ref()));
    }
    let of_tier = |tier: &'_ Tier| format!("tiers.{}", tier.name);
    named.extend(policy.tiers.iter().map(|tier| (of_tier(tier), tier.partition.as_ref())));
    for (section, partition) in named {
        // Slurm takes several, with commas between them.
        let words = partition.into_iter().flat_map(|text| text.split(','));
        for word in words.filter(|word| !known.contains(*word)) {
            let all: Vec<&str> = known.iter().copied().collect();
            let hint = did_you_mean(word, all.iter().copied())
                .unwrap_or_else(|| format!("those with nodes are: {}", all.join(", ")));
            let text = format!("[{section}]: there is no partition `{word}`; {hint}");
            findings.push(Finding::new(Weight::Partition, text));
        }
    }
}

/// Shards that shards.toml names no more, with a job in Slurm: renamed, they would be worked on twice.
pub fn left_over(state: &State, findings: &mut Vec<Finding>) {
    for record in &state.orphans {
        let Some(live) = record.live() else { continue };
        let text = format!(
            "{} is not in shards.toml any more, but its job {} is still in Slurm; if it was renamed, a \
             second job would work on the same files: wait for it, or `scancel {}`, before the next tick",
            record.id, live.job, live.job
        );
        findings.push(Finding::new(Weight::Warning, text));
    }
}

/// Models without a tier, and shards that no placement can hold.
pub fn placements(
    campaign: &Campaign,
    state: &State,
    cluster: &Cluster,
    findings: &mut Vec<Finding>,
) {
    let policy = &campaign.loaded.policy;
    if !policy.tiers.is_empty() {
        for model in unknown_models(policy, cluster) {
            let text = format!("GPU model `{model}` is in no tier; add it under [tiers] to use it");
            findings.push(Finding::new(Weight::Warning, text));
        }
    }
    for class in left_out(policy, state, cluster) {
        findings.push(Finding::new(Weight::Warning, left_out_text(campaign, &class)));
    }
    for (shard, reason) in policy.shards.iter().zip(unfit(policy, state, cluster)) {
        if let Some(Reason::NoFit { asked, largest }) = reason {
            let (key, line) = campaign.loaded.shard_key(&shard.id, "gpus");
            let place = line.map_or(String::new(), |line| {
                format!("{}:{line}: {key}: ", campaign.loaded.path.display())
            });
            let text = format!(
                "{place}NO_FIT_PLACEMENT: {} asks for {}; the largest there is: {}",
                shard.id, asked, largest
            );
            findings.push(Finding::new(Weight::NoFit, text));
        }
    }
}

/// `shards.toml:12: families.find.min_tier: ...`
fn left_out_text(campaign: &Campaign, class: &LeftOut) -> String {
    let LeftOut { shards, ask, gpus, nodes } = class;
    let first = shards.iter().find_map(|i| campaign.loaded.policy.shards.get(*i));
    let (place, name) = first.map_or((String::new(), String::new()), |shard| {
        let (key, line) = campaign.loaded.shard_key(&shard.id, "min_tier");
        let line = line.map_or(String::new(), |line| format!(":{line}"));
        (format!("{}{line}: {key}: ", campaign.loaded.path.display()), shard.id.to_string())
    });
    let more = match shards.len().saturating_sub(1) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let kinds: Vec<String> = gpus.iter().map(|(model, n)| format!("{n}x {model}")).collect();
    let named: Vec<&str> = nodes.iter().take(4).map(String::as_str).collect();
    let rest = nodes.len().saturating_sub(named.len());
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let why = if ask.exclude.is_empty() {
        format!("they ask Slurm for {}", ask.gres)
    } else {
        "these nodes also hold a lower model, which Slurm could give".to_owned()
    };
    format!(
        "{place}jobs of {name}{more} never get {} on {}{rest}, though they are good enough: {why}; \
         `submit = \"placed\"` uses them",
        kinds.join(", "),
        named.join(", ")
    )
}
