//! The part of `babysit doctor` that asks Slurm.

use crate::model::observation::{Gap, GapKind};
use crate::model::policy::{Lane, LaneMode};
use crate::model::state::TakesBoth;
use crate::model::units::Secs;
use crate::output::doctor::{Check, Health};
use crate::output::format::span;
use crate::slurm::health::{NEEDED, USEFUL};
use crate::slurm::real::RealSlurm;
use crate::slurm::{PastAsk, Scope, Slurm};

use super::context::{Campaign, Context};
use super::doctor::{fine, wrong};
use super::slurm;

/// Waits and back-offs are in minutes: a clock that is off by less than this does no harm.
const SKEW: Secs = Secs::minutes(1);

pub fn checks(cx: &Context, campaign: &Campaign, slurm: &RealSlurm) -> Vec<Check> {
    let mut checks = programs(slurm);
    if checks.iter().any(|check| check.health == Health::Broken) {
        return checks;
    }
    checks.push(match slurm.version() {
        Ok(version) => fine("version", version),
        Err(gap) => unreached(cx, "version", &gap),
    });
    // A controller that cannot be asked fails every further question after its own long wait.
    let mut asking = slurm::real(&campaign.loaded.policy, cx.surroundings, (cx.seed)());
    match asking.look(Scope::Mine) {
        Ok(seen) => checks.push(fine(
            "cluster",
            format!("{} nodes, {} jobs of yours", seen.nodes.len(), seen.jobs.len()),
        )),
        Err(gap) => {
            checks.push(unreached(cx, "cluster", &gap));
            return checks;
        }
    }
    checks.push(clock(cx, slurm));
    checks.push(accounting(cx, &mut asking));
    checks.extend(lanes(cx, campaign, slurm, &mut asking));
    checks
}

fn programs(slurm: &RealSlurm) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut found = Vec::new();
    for name in NEEDED.into_iter().chain(USEFUL) {
        match slurm.path_of(name) {
            Ok(path) => found.push(path),
            Err(error) if NEEDED.contains(&name) => checks.push(wrong(
                "programs",
                Health::Broken,
                error.0,
                "in your own shell: dirname $(command -v squeue); put it into the crontab as \
                 PATH=/usr/bin:/bin:THAT, or into shards.toml as bin_dir under [slurm]",
            )),
            Err(error) => checks.push(wrong(
                "programs",
                Health::Look,
                error.0,
                "without it, ends that the queue no longer shows take longer to settle",
            )),
        }
    }
    if checks.is_empty() {
        let first = found.first().cloned().unwrap_or_default();
        checks.push(fine("programs", format!("all of them, as {first}")));
    }
    checks
}

/// Slurm could not be asked: because of cron's poverty, or because it is down.
fn unreached(cx: &Context, name: &'static str, gap: &Gap) -> Check {
    let lacks_conf = ["configuration", "cannot stat file", "resolve_ctls", "SLURM_CONF"]
        .iter()
        .any(|word| gap.detail.contains(word));
    let next = match (lacks_conf, cx.surroundings.var("SLURM_CONF")) {
        (true, None) => {
            "in your own shell: echo $SLURM_CONF; put it into the crontab as SLURM_CONF=THAT"
        }
        (true, Some(_)) => "correct SLURM_CONF: it names no usable slurm.conf",
        (false, _) => "ticks are skipped until Slurm answers; try `scontrol ping`",
    };
    wrong(name, Health::Broken, gap.to_string(), next)
}

fn clock(cx: &Context, slurm: &RealSlurm) -> Check {
    match slurm.controller_time() {
        Ok(theirs) => {
            let ours = (cx.clock)();
            let off = ours.since(theirs).max(theirs.since(ours));
            let text = format!("{} between the controller and this host", span(off));
            if off > SKEW {
                let next = "set one of the clocks right; ends and waits are off by as much";
                return wrong("clock", Health::Look, text, next);
            }
            fine("clock", text)
        }
        Err(gap) => wrong("clock", Health::Look, gap.to_string(), "compare the clocks by hand"),
    }
}

fn accounting(cx: &Context, asking: &mut RealSlurm) -> Check {
    let since = (cx.clock)() - Secs::hours(1);
    let ask = PastAsk { names: vec!["babysit-doctor".to_owned()], since };
    match asking.past(&ask) {
        Ok(_) => fine("accounting", "answers".to_owned()),
        Err(gap) if gap.kind == GapKind::Off => {
            fine("accounting", "off on this cluster: ends are told by the queue alone".to_owned())
        }
        Err(gap) => wrong(
            "accounting",
            Health::Look,
            gap.to_string(),
            "shards whose job left the queue wait until it answers",
        ),
    }
}

fn lanes(
    cx: &Context,
    campaign: &Campaign,
    slurm: &RealSlurm,
    asking: &mut RealSlurm,
) -> Vec<Check> {
    let Some(lanes) = &campaign.loaded.policy.lanes else { return Vec::new() };
    let allowed = super::slurm::user(cx.surroundings).and_then(|user| slurm.allowed_qos(user).ok());
    let mut checks = Vec::new();
    for lane in [Lane::Own, Lane::Extra] {
        let Some(qos) = &lanes.spec(lane).qos else { continue };
        let name = lane.word();
        // An empty list is an association that takes its QOS from elsewhere.
        let barred = allowed.as_ref().is_some_and(|all| !all.is_empty() && !all.contains(qos));
        checks.push(match asking.qos_gpus(qos) {
            _ if barred => wrong(
                "QOS",
                Health::Look,
                format!("[{name}] {qos}: not among those that you may use"),
                "ask the cluster's admins for it, or name another one in shards.toml",
            ),
            Ok(Some(gpus)) => fine("QOS", format!("[{name}] {qos}: {gpus} GPUs")),
            Ok(None) => fine("QOS", format!("[{name}] {qos}: no limit of GPUs")),
            Err(gap) if gap.kind == GapKind::Off => {
                fine("QOS", format!("[{name}] {qos}: cannot be looked up without accounting"))
            }
            Err(gap) => wrong(
                "QOS",
                Health::Look,
                format!("[{name}] {qos}: {gap}"),
                "correct it in shards.toml, or ask the cluster's admins",
            ),
        });
    }
    if campaign.loaded.policy.rules.lanes.mode == LaneMode::Both {
        let state = campaign.store.read().ok().flatten();
        checks.push(both(state.and_then(|state| state.learned.takes_both)));
    }
    checks
}

/// As the last tick that asked found it: asking may use up a job id.
fn both(known: Option<TakesBoth>) -> Check {
    match known {
        None => fine("both lanes", "not asked yet, the first tick does".to_owned()),
        Some(TakesBoth { yes: true, said, .. }) => {
            fine("both lanes", format!("{said} takes one job in both"))
        }
        Some(TakesBoth { yes: false, said, .. }) => wrong(
            "both lanes",
            Health::Look,
            format!("no job can be in both: {said}"),
            "it works as `lanes = \"adaptive\"`; asked again after a day",
        ),
    }
}
