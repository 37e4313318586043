//! `babysit check`: shards.toml, the files it names, then the cluster; all faults at once.

use crate::config;
use crate::model::observation::Cluster;
use crate::model::policy::{Lane, Policy};
use crate::model::reason::Reason;
use crate::model::state::State;
use crate::output::check::{Finding, Weight, json, text};
use crate::planning::fit::{unfit, unknown_models};
use crate::slurm::real::RealSlurm;
use crate::slurm::{Scope, Slurm};

use super::context::{Campaign, Context};
use super::exit::{Exit, Stop};
use super::slurm;

pub fn run(cx: &Context) -> Result<Exit, Stop> {
    let campaign = cx.campaign()?;
    let mut findings = files(cx, &campaign);
    let policy = &campaign.loaded.policy;
    // A state that cannot be read is better known now than at the first tick.
    let state = cx.look(&campaign).or_else(|stop| {
        let Stop::Fault(_, fault) = stop else { return Err(stop) };
        findings.push(Finding::new(Weight::State, fault.message));
        Ok(cx.fresh(&campaign))
    })?;
    let mut slurm = slurm::real(policy, cx.surroundings, (cx.seed)());
    match slurm.look(Scope::Mine) {
        Ok(cluster) => {
            lanes(policy, &mut slurm, &mut findings);
            placements(&campaign, &state, &cluster, &mut findings);
        }
        Err(gap) => findings.push(Finding::new(Weight::Cluster, gap.to_string())),
    }
    let has = |weight| findings.iter().any(|finding| finding.weight == weight);
    let exit = if has(Weight::Config) {
        Exit::Usage
    } else if has(Weight::Cluster) || has(Weight::State) {
        Exit::Failed
    } else if has(Weight::NoFit) || has(Weight::Person) {
        Exit::Person
    } else {
        Exit::Done
    };
    if cx.talk.json {
        cx.talk.result_json(&json(policy, &findings))?;
    } else {
        cx.talk.result(&text(policy, &campaign.loaded.path, &findings))?;
    }
    Ok(exit)
}

fn files(cx: &Context, campaign: &Campaign) -> Vec<Finding> {
    let loaded = &campaign.loaded;
    let files = config::file_faults(loaded);
    let of = |weight, faults: &[config::Fault]| -> Vec<Finding> {
        faults.iter().map(|fault| Finding::new(weight, fault.shown(&loaded.path))).collect()
    };
    let mut findings = of(Weight::Config, &config::user_faults(loaded, cx.surroundings));
    findings.extend(of(Weight::Config, &files.faults));
    findings.extend(of(Weight::Warning, &loaded.warnings));
    findings.extend(of(Weight::Warning, &files.warnings));
    findings
}

/// Does Slurm know the lanes' QOS?
fn lanes(policy: &Policy, slurm: &mut RealSlurm, findings: &mut Vec<Finding>) {
    let Some(lanes) = &policy.lanes else { return };
    for lane in [Lane::Own, Lane::Extra] {
        let Some(qos) = &lanes.spec(lane).qos else { continue };
        match slurm.qos_gpus(qos) {
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

fn placements(campaign: &Campaign, state: &State, cluster: &Cluster, findings: &mut Vec<Finding>) {
    let policy = &campaign.loaded.policy;
    if !policy.tiers.is_empty() {
        for model in unknown_models(policy, cluster) {
            let text = format!("GPU model `{model}` is in no tier; add it under [tiers] to use it");
            findings.push(Finding::new(Weight::Warning, text));
        }
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
