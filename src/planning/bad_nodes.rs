//! Bad nodes (slurm.md "Ending"): one of them can eat every retry within minutes. A death soon
//! after the start, or one that Slurm blames on the node, is charged to the node and not to the
//! shard; after some of them no job is sent there for a while.
//!
//! A program that is broken dies at once wherever it runs. So a shard may blame one node only:
//! dying on a second one as well makes it the shard's own fault, and what it said about the first
//! is taken back.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::caution::{Death, NodeMarks};
use crate::model::cluster::{EndWord, Node, Usable};
use crate::model::observation::Cluster;
use crate::model::policy::{Policy, Rules};
use crate::model::state::{End, EndHow, ShardRecord, State};
use crate::model::units::{Secs, Time};

use super::event::{Event, What};
use super::placement::{Placement, fits};

/// A job that dies within this time of its start has hardly begun to work.
const SOON: Secs = Secs::minutes(1);

/// A shard that died on a node looks for another one for so long. One death proves little, and
/// GPUs that are free must not stay idle for it.
const ELSEWHERE_FIRST: Secs = Secs::minutes(10);

/// Who is to blame for an end without a new row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blame {
    Node(String),
    Shard,
}

/// Slurm itself says that the node, and not the job, failed.
pub fn node_failed(end: &End) -> bool {
    matches!(
        end.how,
        EndHow::Word(
            EndWord::NodeFail | EndWord::BootFail | EndWord::LaunchFailed | EndWord::ReconfigFail
        )
    )
}

/// Whose fault an early death was. `state` is as it was before this death.
pub fn blame(record: &ShardRecord, end: &End, marks: &Marks<'_>) -> Blame {
    let [node] = end.nodes.as_slice() else { return Blame::Shard };
    if node_failed(end) {
        return Blame::Node(node.clone());
    }
    let died = matches!(end.how, EndHow::Word(EndWord::Failed));
    let soon = end.started.is_some_and(|started| end.ended.since(started) < SOON);
    // `0:53` is a log folder that is not there, the same on every node.
    let log_folder = end.exit == "0:53";
    let first = record.failures == 0 && !marks.blamed_any(record);
    // Where it could not go elsewhere, there would be nothing to tell the node from the shard.
    if died && soon && !log_folder && first && marks.has_another(node) {
        return Blame::Node(node.clone());
    }
    Blame::Shard
}

/// What is known of the nodes while the ends of one cycle are judged.
pub struct Marks<'a> {
    pub nodes: &'a mut BTreeMap<String, NodeMarks>,
    pub cluster: &'a [Node],
    pub rules: &'a Rules,
    pub now: Time,
}

impl Marks<'_> {
    fn blamed_any(&self, record: &ShardRecord) -> bool {
        let theirs = |death: &Death| death.shard == record.id && !death.sure;
        self.nodes.values().flat_map(|marks| &marks.deaths).any(theirs)
    }

    fn has_another(&self, node: &str) -> bool {
        self.cluster.iter().any(|other| other.name != node && is_usable(other))
    }

    pub fn charge(&mut self, node: &str, record: &ShardRecord, end: &End) {
        let death = Death {
            shard: record.id.clone(),
            attempt: end.attempt,
            at: self.now,
            sure: node_failed(end),
        };
        let marks = self.nodes.entry(node.to_owned()).or_default();
        let again = |d: &Death| d.shard == death.shard && d.attempt == death.attempt;
        if !marks.deaths.iter().any(again) {
            marks.deaths.push(death);
        }
    }

    /// It did new rows on other nodes: what it died of was not its own fault.
    pub fn confirm(&mut self, record: &ShardRecord, end: &End) {
        for (node, marks) in self.nodes.iter_mut() {
            let theirs = |death: &&mut Death| death.shard == record.id;
            if !end.nodes.contains(node) {
                marks.deaths.iter_mut().filter(theirs).for_each(|death| death.sure = true);
            }
        }
    }

    /// It failed by its own fault: what it said about nodes is taken back.
    pub fn take_back(&mut self, record: &ShardRecord) {
        for marks in self.nodes.values_mut() {
            let before = marks.deaths.len();
            marks.deaths.retain(|death| death.sure || death.shard != record.id);
            if marks.deaths.len() < before && count(marks) < self.rules.node_deaths {
                marks.out_until = None;
            }
        }
    }
}

fn count(marks: &NodeMarks) -> u32 {
    u32::try_from(marks.deaths.len()).unwrap_or(u32::MAX)
}

/// Up, whether or not it has anything to give now.
pub fn is_usable(node: &Node) -> bool {
    matches!(node.usable, Usable::Yes | Usable::Full | Usable::Backfill)
}

/// Forgets what is long ago, and keeps out the nodes that have killed enough, the worst first, but
/// never more than half of those that are usable at all.
pub fn review(
    policy: &Policy,
    state: &mut State,
    cluster: &Cluster,
    now: Time,
    events: &mut Vec<Event>,
) {
    if state.caution.nodes.is_empty() {
        return;
    }
    let Rules { node_deaths, node_rest, .. } = policy.rules;
    // A clock that was set back must not keep a node out for ever.
    let counts = |at: Time| now.since(at) < node_rest && at.since(now) < node_rest;
    let mut let_back = Vec::new();
    for (node, marks) in &mut state.caution.nodes {
        marks.deaths.retain(|death| counts(death.at));
        if marks.out_until.is_some_and(|until| until <= now || until.since(now) > node_rest) {
            marks.out_until = None;
            marks.deaths.clear();
            let_back.push(node.clone());
        }
    }
    let usable: BTreeSet<&str> =
        cluster.nodes.iter().filter(|n| is_usable(n)).map(|n| n.name.as_str()).collect();
    let most = usable.len() / 2;
    let mut out = state
        .caution
        .nodes
        .iter()
        .filter(|(node, marks)| marks.out_until.is_some() && usable.contains(node.as_str()))
        .count();
    let mut suspects: Vec<(&String, &mut NodeMarks)> = state
        .caution
        .nodes
        .iter_mut()
        .filter(|(_, marks)| marks.out_until.is_none() && count(marks) >= node_deaths)
        .collect();
    suspects.sort_by_key(|(node, marks)| (std::cmp::Reverse(count(marks)), (*node).clone()));
    let mut tell = |what| events.push(Event { at: now, shard: None, what });
    for (node, marks) in suspects {
        // One that Slurm has taken out by itself costs nothing.
        if usable.contains(node.as_str()) {
            if out >= most {
                continue;
            }
            out += 1;
        }
        marks.out_until = Some(now + node_rest);
        let deaths = count(marks);
        tell(What::NodeKeptOut { node: node.clone(), deaths, until: now + node_rest });
    }
    for node in let_back {
        tell(What::NodeLetBack { node });
    }
    state.caution.nodes.retain(|_, marks| *marks != NodeMarks::default());
}

/// The same for a start on a placement: none where nothing else could hold the shard.
pub fn shunned(
    policy: &Policy,
    state: &State,
    shard: usize,
    placements: &[Placement],
    now: Time,
) -> Vec<String> {
    let record = &state.shards[shard];
    let avoided = avoided(state, record, now);
    if avoided.is_empty() {
        return avoided;
    }
    let spec = &policy.shards[shard];
    let elsewhere = |p: &Placement| {
        p.up && !avoided.contains(&p.pin.node) && fits(policy, spec, record.min_tier, p)
    };
    if placements.iter().any(elsewhere) { avoided } else { Vec::new() }
}

/// Nodes that this shard is not sent to, if there is another: those that are kept out for all, and
/// the one on which it died itself.
pub fn avoided(state: &State, record: &ShardRecord, now: Time) -> Vec<String> {
    let theirs = |death: &Death| death.shard == record.id && now.since(death.at) < ELSEWHERE_FIRST;
    let bad = |marks: &NodeMarks| marks.out_until.is_some() || marks.deaths.iter().any(theirs);
    state.caution.nodes.iter().filter(|(_, m)| bad(m)).map(|(node, _)| node.clone()).collect()
}
