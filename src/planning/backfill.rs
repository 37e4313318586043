//! Backfill gives way (policy.md sections 1 and 6): which jobs are backfill, the GPUs they hold of
//! each placement, and which of them must stop for a start.

use regex::Regex;

use crate::model::cluster::{JobState, Node, QueueJob};
use crate::model::id::JobId;
use crate::model::observation::Cluster;
use crate::model::policy::Policy;
use crate::model::state::{Pin, State};
use crate::model::units::Secs;

use super::census::Census;
use super::dispatch::Start;
use super::placement::Placement;
use super::plan::Action;
use super::submit::Moment;

/// Running jobs that give way. All criteria that are set must hold.
pub fn jobs<'a>(policy: &Policy, cluster: &'a Cluster) -> Vec<&'a QueueJob> {
    let Some(rule) = &policy.backfill else { return Vec::new() };
    // The pattern was checked when shards.toml was read; one that fails here matches nothing.
    let name = rule.name.as_deref().map(Regex::new);
    let is = |want: &Option<String>, have: &str| want.as_deref().is_none_or(|w| w == have);
    let yields = |job: &&QueueJob| {
        job.state.holds_gpus()
            && !job.comment.starts_with("babysit:")
            && is(&rule.qos, &job.qos)
            && is(&rule.partition, &job.partition)
            && is(&rule.user, &job.user)
            && name.as_ref().is_none_or(|n| n.as_ref().is_ok_and(|re| re.is_match(&job.name)))
    };
    cluster.jobs.iter().filter(yields).collect()
}

/// GPUs of this placement that backfill holds.
///
/// Slurm's queue shows what a job asked for, not what it got. A typed request is clear. Where
/// untyped jobs share a mixed node, only what no other job can hold is counted as backfill's.
pub fn held(at: &Placement, node: &Node, yielding: &[&QueueJob], cluster: &Cluster) -> u32 {
    let here = |job: &&QueueJob| job.state.holds_gpus() && job.nodes.contains(&node.name);
    let on_node: Vec<&QueueJob> = yielding.iter().copied().filter(here).collect();
    if on_node.is_empty() {
        return 0;
    }
    let typed: u32 = on_node.iter().map(|job| typed_here(job, &at.model)).sum();
    let untyped: u32 = on_node.iter().map(|job| untyped_here(job)).sum();
    if untyped == 0 {
        return typed;
    }
    let all: Vec<&QueueJob> = cluster.jobs.iter().filter(here).collect();
    let used = node.gpus.iter().flatten().filter(|g| g.model.as_deref() == Some(&at.model));
    let used: u32 = used.map(|g| g.used).sum();
    let typed_all: u32 = all.iter().map(|job| typed_here(job, &at.model)).sum();
    let untyped_others = all.iter().map(|job| untyped_here(job)).sum::<u32>() - untyped;
    let certain = used.saturating_sub(typed_all).saturating_sub(untyped_others);
    typed + untyped.min(certain)
}

/// CPUs of a node that backfill would give back.
pub fn cpus_on(node: &Node, yielding: &[&QueueJob]) -> u32 {
    let here = yielding.iter().filter(|job| job.nodes.contains(&node.name));
    here.map(|job| per_node(job, job.cpus.unwrap_or(0))).sum()
}

fn per_node(job: &QueueJob, gpus: u32) -> u32 {
    gpus / (job.nodes.len().max(1) as u32)
}

fn typed_here(job: &QueueJob, model: &str) -> u32 {
    let same = |m: &Option<String>| m.as_deref().is_some_and(|m| m.eq_ignore_ascii_case(model));
    let gpus = job.asked.iter().filter(|ask| same(&ask.model)).map(|ask| ask.count).sum();
    per_node(job, gpus)
}

fn untyped_here(job: &QueueJob) -> u32 {
    let typed: u32 = job.asked.iter().filter(|a| a.model.is_some()).map(|a| a.count).sum();
    let untyped: u32 = job.asked.iter().filter(|a| a.model.is_none()).map(|a| a.count).sum();
    // `--gpus=N` shows no request per node, only a total.
    let total = job.gpus.unwrap_or(typed + untyped);
    per_node(job, total.saturating_sub(typed))
}

/// Backfill jobs to stop so that `need` more GPUs of the placement get free, and how many each
/// gives: as few GPUs as possible beyond the need, then as few jobs.
pub fn to_stop(
    pin: &Pin,
    model: &str,
    need: u32,
    policy: &Policy,
    cluster: &Cluster,
    taken: &[JobId],
) -> Vec<(JobId, u32)> {
    let gives = |job: &&QueueJob| {
        let typed = typed_here(job, model);
        if typed > 0 { typed } else { untyped_here(job) }
    };
    let mut candidates: Vec<(u32, JobId)> = jobs(policy, cluster)
        .iter()
        .filter(|job| job.nodes.contains(&pin.node) && !taken.contains(&job.id))
        .map(|job| (gives(job), job.id))
        .filter(|(gpus, _)| *gpus > 0)
        .collect();
    // The newest first among equals: it has the least to lose.
    candidates.sort_by_key(|(gpus, id)| (*gpus, std::cmp::Reverse(*id)));
    let mut left = need;
    let mut stop = Vec::new();
    while left > 0 {
        // The smallest one that is enough by itself, else the largest there is.
        let enough = candidates.iter().position(|(gpus, _)| *gpus >= left);
        let most = candidates.last().map(|(gpus, _)| *gpus);
        let largest = candidates.iter().position(|(gpus, _)| Some(*gpus) == most);
        let Some(at) = enough.or(largest) else { break };
        let (gpus, id) = candidates.remove(at);
        left = left.saturating_sub(gpus);
        stop.push((id, gpus));
    }
    stop
}

/// How long backfill may take to give way before it is told again. A stop command that failed, or
/// was lost in a crash, would else leave the start waiting for ever.
const GIVES_WAY: Secs = Secs::minutes(2);

/// Stops to ask for again: a start of ours still pends on a placement whose GPUs backfill holds.
pub fn again(moment: &Moment<'_>, state: &State, census: &Census) -> Vec<Start> {
    let Moment { policy, cluster, now, .. } = *moment;
    let mut taken: Vec<JobId> = Vec::new();
    let mut starts = Vec::new();
    if policy.backfill.is_none() {
        return starts;
    }
    for &shard in &census.pinned {
        let record = &state.shards[shard];
        let Some(live) = record.live().filter(|live| live.state == JobState::Pending) else {
            continue;
        };
        let Some(pin) = &live.attempt.pin else { continue };
        if now.since(live.attempt.asked_at) < GIVES_WAY || live.absent.is_some() {
            continue;
        }
        let nodes = cluster.nodes.iter().filter(|node| node.name == pin.node);
        let groups = nodes.flat_map(|node| node.gpus.iter().flatten());
        let here = groups.filter_map(|gpus| {
            let model = gpus.model.as_deref()?;
            policy.tier_of(model).filter(|tier| tier.name == pin.tier)?;
            Some((model.to_owned(), gpus.capacity.saturating_sub(gpus.used)))
        });
        let Some((model, idle)) = here.max_by_key(|(_, idle)| *idle) else { continue };
        let need = live.attempt.gpus.saturating_sub(idle);
        let stop = to_stop(pin, &model, need, policy, cluster, &taken);
        if !stop.is_empty() {
            taken.extend(stop.iter().map(|(job, _)| *job));
            starts.push(Start { shard, pin: pin.clone(), model, stop });
        }
    }
    starts
}

/// Tells backfill to give way: by scancel, or by the user's command with `{jobid}`, `{jobids}` (by
/// comma), `{node}` and `{gpus}` filled in. A command that names one `{jobid}` is run for each.
pub fn stop(policy: &Policy, start: &Start) -> Vec<Action> {
    let node = &start.pin.node;
    let template = policy.backfill.as_ref().and_then(|rule| rule.stop.as_deref());
    let one = |held: &[(JobId, u32)]| {
        let jobs: Vec<JobId> = held.iter().map(|(job, _)| *job).collect();
        let gpus: u32 = held.iter().map(|(_, gpus)| gpus).sum();
        let ids: Vec<String> = jobs.iter().map(JobId::to_string).collect();
        // Node names come from Slurm; one with a character that a shell reads is quoted.
        let quoted = shell_words::quote(node);
        let command = template.map(|line| {
            line.replace("{jobids}", &ids.join(","))
                .replace("{jobid}", &ids.concat())
                .replace("{node}", &quoted)
                .replace("{gpus}", &gpus.to_string())
        });
        Action::StopBackfill { node: node.clone(), gpus, jobs, command }
    };
    if template.is_some_and(|line| line.contains("{jobid}")) {
        start.stop.chunks(1).map(one).collect()
    } else {
        vec![one(&start.stop)]
    }
}
