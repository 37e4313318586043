//! `babysit check`: shards.toml, the files it names, then the cluster; all faults at once.

use crate::config;
use crate::output::check::{Finding, Weight, json, text};
use crate::slurm::{Scope, Slurm};

use super::check_cluster::{lanes, left_over, partitions, placements};
use super::check_rows;
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
            lanes(policy, &mut slurm, slurm::user(cx.surroundings), &mut findings);
            partitions(policy, &cluster, &mut findings);
            // Where the partition is wrong nothing fits, and that is all there is to it.
            if !findings.iter().any(|finding| finding.weight == Weight::Partition) {
                placements(&campaign, &state, &cluster, &mut findings);
            }
            left_over(&state, &mut findings);
        }
        Err(gap) => findings.push(Finding::new(Weight::Cluster, gap.to_string())),
    }
    let has = |weight| findings.iter().any(|finding| finding.weight == weight);
    let exit = if has(Weight::Config) {
        Exit::Usage
    } else if has(Weight::Cluster) || has(Weight::State) {
        Exit::Failed
    } else if [Weight::Partition, Weight::NoFit, Weight::Person].into_iter().any(has) {
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
    findings.extend(check_rows::rows(campaign));
    findings
}
