//! Keeping our own pending jobs off a reserved placement (policy.md section 6): Slurm knows nothing
//! of reservations, so the node is excluded for every "queued" job of ours that could start there,
//! and let back afterwards.

use crate::model::cluster::{JobState, Node, NodeGpus};
use crate::model::reason::Reason;
use crate::model::request::Change;
use crate::model::state::{Attempt, Pin, ShardRecord, State};

use super::ask::{Ask, ask};
use super::bad_nodes;
use super::census::Census;
use super::dispatch::Start;
use super::exclude::users_own;
use super::no_fit::reachable;
use super::parking::is_stuck;
use super::placement::{Placement, about_to_start, fits};
use super::plan::{Action, Purpose, Target};
use super::submit::Moment;

/// Nodes of placements that are kept for a holder now, or for the job that its reservation led to
/// until that runs: Slurm would give the GPUs to whichever pends before it.
pub fn reserved<'a>(
    placements: &'a [Placement],
    state: &State,
    census: &Census,
    starts: &[Start],
) -> Vec<&'a Placement> {
    let mut pins: Vec<&Pin> = Vec::new();
    let accounts = census.accounts.iter().map(|&i| &state.shards[i]);
    for record in accounts.filter(|record| starts_from_a_reservation(record)) {
        pins.extend(about_to_start(record).and_then(|attempt| attempt.pin.as_ref()));
    }
    let from_one = |start: &&Start| after_a_reservation(&state.shards[start.shard]);
    pins.extend(starts.iter().filter(from_one).map(|start| &start.pin));
    placements.iter().filter(|p| p.reserved > 0 || pins.contains(&&p.pin)).collect()
}

fn after_a_reservation(record: &ShardRecord) -> bool {
    record.owed.iter().any(|owed| owed.started)
}

/// Its job was submitted because a reservation was complete, and does not run yet.
pub fn starts_from_a_reservation(record: &ShardRecord) -> bool {
    after_a_reservation(record) && about_to_start(record).is_some()
}

/// Does this update keep jobs off some node (and not merely let them back)?
pub fn keeps_off(action: &Action) -> bool {
    matches!(action, Action::Update { purpose: Purpose::KeepOff(nodes), .. } if !nodes.is_empty())
}

/// Why a queued shard is not submitted while every node it could use is kept for a holder.
pub fn whole_wait(
    moment: &Moment<'_>,
    state: &State,
    shard: usize,
    reserved: &[&Placement],
) -> Option<Reason> {
    let Moment { policy, cluster, .. } = *moment;
    let kept = nodes_for(moment, state, shard, reserved);
    if kept.is_empty() {
        return None;
    }
    let min_tier = state.shards[shard].min_tier;
    let asked = ask(policy, &policy.shards[shard], min_tier, cluster);
    let all = union(&union(&kept, &asked.exclude), &users_own(&policy.shards[shard].args));
    (!leaves_one(moment, state, shard, &asked, &all, |_| true)).then(|| {
        let holder = state.shards.iter().find(|record| record.reservation.is_some());
        Reason::QueueWait {
            rank: 0,
            ahead: holder.map(|record| record.id.to_string().into()),
            idle_but_reserved: reserved.iter().map(|p| p.reserved).sum(),
        }
    })
}

/// Do these exclusions leave a node that could ever hold the shard? Slurm would refuse a submission
/// that has none, for good.
fn leaves_one(
    moment: &Moment<'_>,
    state: &State,
    shard: usize,
    asked: &Ask,
    exclude: &[String],
    also: impl Fn(&Node) -> bool,
) -> bool {
    let Moment { policy, cluster, .. } = *moment;
    let spec = &policy.shards[shard];
    let min = state.shards[shard].min_tier.or(spec.min_tier);
    // `gpu:<model>:<n>`: no other model will do, however good.
    let named = asked.gres.strip_prefix("gpu:").and_then(|rest| rest.split_once(':'));
    let good = |gpus: &NodeGpus| {
        if let Some((model, _)) = named {
            return gpus.model.as_deref().is_some_and(|m| m.eq_ignore_ascii_case(model));
        }
        let tier = gpus.model.as_deref().and_then(|model| policy.tier_of(model));
        min.is_none_or(|min| tier.is_some_and(|tier| tier.rank >= min))
    };
    let holds = |node: &Node| match &node.gpus {
        None => true,
        Some(gpus) => {
            let good: u32 = gpus.iter().filter(|g| good(g)).map(|g| g.capacity).sum();
            good >= spec.gpus
        }
    };
    cluster.nodes.iter().any(|node| {
        reachable(policy, node) && !exclude.contains(&node.name) && holds(node) && also(node)
    })
}

/// Nodes that a queued job of this shard must be kept off: reserved ones, and those on which jobs
/// die, as long as another one that is up could hold it.
pub fn nodes_for(
    moment: &Moment<'_>,
    state: &State,
    shard: usize,
    reserved: &[&Placement],
) -> Vec<String> {
    let Moment { policy, cluster, now, .. } = *moment;
    let spec = &policy.shards[shard];
    let min_tier = state.shards[shard].min_tier;
    let could = |p: &&&Placement| fits(policy, spec, min_tier, p);
    let mut nodes: Vec<String> =
        reserved.iter().filter(could).map(|p| p.pin.node.clone()).collect();
    nodes.sort();
    nodes.dedup();
    let mut avoided = bad_nodes::avoided(state, &state.shards[shard], now);
    // Slurm refuses a list with a node that it does not know.
    avoided.retain(|name| cluster.nodes.iter().any(|node| node.name == *name));
    if avoided.is_empty() {
        return nodes;
    }
    let asked = ask(policy, spec, min_tier, cluster);
    let wider = union(&nodes, &avoided);
    let all = union(&union(&wider, &asked.exclude), &users_own(&spec.args));
    if leaves_one(moment, state, shard, &asked, &all, bad_nodes::is_usable) {
        nodes = wider;
    }
    nodes
}

/// One update per distinct list of nodes, for the pending jobs whose exclusions differ from what
/// the reservations of this cycle want. Those that are let back to all nodes come last.
pub fn updates(
    moment: &Moment<'_>,
    state: &State,
    census: &Census,
    me: u32,
    reserved: &[&Placement],
) -> Vec<Action> {
    let mut groups: Vec<(Vec<String>, Vec<String>, Vec<Target>)> = Vec::new();
    // Mostly no node is to be kept free of anybody, and nearly all records need not be looked at.
    let none = reserved.is_empty() && state.caution.nodes.is_empty();
    for &i in if none { &census.kept_off } else { &census.pending } {
        let record = &state.shards[i];
        if !is_changeable(record, me) {
            continue;
        }
        let Some(live) = record.live() else { continue };
        let wanted = nodes_for(moment, state, i, reserved);
        let kept = &record.kept_off;
        if wanted == kept.nodes && kept.told {
            continue;
        }
        let all = union(&live.attempt.exclude, &wanted);
        let job = Target::new(i, &record.id, live.job);
        match groups.iter_mut().find(|(list, keep, _)| *list == all && *keep == wanted) {
            Some((.., jobs)) => jobs.push(job),
            None => groups.push((all, wanted, vec![job])),
        }
    }
    groups.sort_by_key(|(_, keep, _)| keep.is_empty());
    let action = |(all, keep, jobs)| Action::Update {
        purpose: Purpose::KeepOff(keep),
        change: Change::Exclude(all),
        jobs,
    };
    groups.into_iter().map(action).collect()
}

fn is_changeable(record: &ShardRecord, me: u32) -> bool {
    record.live().is_some_and(|live| {
        live.state == JobState::Pending
            && live.attempt.pin.is_none()
            && live.attempt.uid == me
            && live.absent.is_none()
            && live.stop.is_none()
            && (!is_stuck(&live.reason) || by_our_own_doing(record, &live.reason))
            // A list that cannot be read here must not be replaced.
            && !live.attempt.exclude.iter().any(|name| name.contains('/'))
    })
}

/// A job that is kept off every node it could use: Slurm says BadConstraints until it is let back.
fn by_our_own_doing(record: &ShardRecord, reason: &str) -> bool {
    reason.starts_with("BadConstraints")
        && (!record.kept_off.nodes.is_empty() || !record.kept_off.told)
}

/// What a job is kept off when it is first seen, and not by us, is its user's: a batch script has
/// options of its own.
pub fn first_sight(attempt: &mut Attempt, record: &ShardRecord, shown: Option<&[String]>) {
    let theirs = shown.unwrap_or_default().iter().filter(|n| !record.kept_off.nodes.contains(n));
    let theirs: Vec<String> = theirs.cloned().collect();
    attempt.exclude = union(&attempt.exclude, &theirs);
}

/// What Slurm shows of a job's exclusions, where its release shows them, beats what it was told.
pub fn see(record: &mut ShardRecord, base: &[String], shown: Option<&[String]>) {
    if let Some(shown) = shown {
        let wanted = &record.kept_off.nodes;
        // Nearly always there is nothing to compare.
        record.kept_off.told = match base.is_empty() && wanted.is_empty() {
            true => shown.is_empty(),
            false => union(base, wanted) == union(shown, &[]),
        };
    }
}

/// Both lists, sorted, each name once.
pub fn union(a: &[String], b: &[String]) -> Vec<String> {
    let mut all: Vec<String> = a.iter().chain(b).cloned().collect();
    all.sort();
    all.dedup();
    all
}
