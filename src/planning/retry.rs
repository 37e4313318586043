//! What an end means: come back at once, wait, or ask a person.
//!
//! Rows decide, not exit codes (slurm.md "Ending"). A preemption is never a failure.

use std::collections::BTreeMap;

use crate::model::caution::NodeMarks;
use crate::model::cluster::EndWord;
use crate::model::observation::Observation;
use crate::model::policy::{Policy, Rules, Shard};
use crate::model::state::{End, EndHow, Gate, HeldWhy, ShardRecord, Slot, Stop};
use crate::model::units::{Secs, Time};

use super::bad_nodes::{self, Blame, Marks};
use super::event::{Event, What};
use super::helpers;
use super::measure::is_done;
use super::oom;
use super::person;
use super::plan::Target;

/// No back-off is longer than this (contract.md, `backoff`).
const LONGEST_BACKOFF: Secs = Secs::hours(1);
/// Log lines shown with a shard that is held.
const LOG_LINES: usize = 5;

/// Judges a shard's job where it ended, and opens the shard's gate if the time for that has come.
pub fn judge(
    policy: &Policy,
    seen: &Observation,
    i: usize,
    record: &mut ShardRecord,
    nodes: &mut BTreeMap<String, NodeMarks>,
    now: Time,
    events: &mut Vec<Event>,
) {
    if matches!(record.gate, Gate::Backoff { until } if until <= now) {
        record.gate = Gate::Open;
    }
    let Slot::Settling(end) = &record.slot else { return };
    let shard = &policy.shards[i];
    let mut marks = Marks { nodes, cluster: &seen.cluster.nodes, rules: &policy.rules, now };
    let log = seen.log_of(i);
    let own = helpers::own_rows(seen, shard, i, end);
    let new_rows = own.unwrap_or(record.progress.rows.saturating_sub(end.rows_before));
    let verdict = verdict(record, end, shard, new_rows, &policy.rules, log, now);
    if verdict == Verdict::Wait {
        return;
    }
    let tell = |record: &ShardRecord, what| Event { at: now, shard: Some(record.id.clone()), what };
    events.push(tell(record, What::Ended { job: end.job, how: end.how, new_rows }));
    let Slot::Settling(end) = std::mem::replace(&mut record.slot, Slot::Free) else { return };
    if bad_nodes::node_failed(&end)
        && let [node] = end.nodes.as_slice()
    {
        marks.charge(node, record, &end);
    }
    // A start that never came about does not cost the place in the queue.
    if end.stop != Some(Stop::Stranded) || end.started.is_some() {
        record.queued_since = now;
    }
    match verdict {
        Verdict::Wait | Verdict::Free => {}
        Verdict::Preempted => record.preemptions += 1,
        Verdict::Progress => {
            record.failures = 0;
            marks.confirm(record, &end);
        }
        // Nobody is asked about a helper, which does no work of its own.
        Verdict::CancelledByOther if shard.helps.is_some() => {
            let told = rest(record, LONGEST_BACKOFF, now);
            events.extend(told.map(|what| tell(record, what)));
        }
        Verdict::CancelledByOther => {
            let why = HeldWhy::JobCancelled { job: end.job, by: end.cancelled_by };
            let told = hold(record, why, "its job was cancelled by somebody".into(), now);
            events.extend(told.map(|what| tell(record, what)));
        }
        Verdict::GpuOutOfMemory => {
            let told = oom::escalate(policy, shard, record, &end, now);
            events.extend(told.map(|what| tell(record, what)));
        }
        Verdict::Failure => match bad_nodes::blame(record, &end, &marks) {
            Blame::Node(node) => {
                marks.charge(&node, record, &end);
                events.push(tell(record, What::NodeBlamed { job: end.job, node }));
            }
            Blame::Shard => {
                marks.take_back(record);
                record.failures += 1;
                let told =
                    match shard.helps.is_some() && record.failures >= policy.rules.max_failures {
                        true => rest(record, LONGEST_BACKOFF, now),
                        false => punish(record, &end, &policy.rules, log, now),
                    };
                events.extend(told.map(|what| tell(record, what)));
            }
        },
    }
    record.last_end = Some(end);
}

/// Submitted again after so long a rest, unless a person decided otherwise.
fn rest(record: &mut ShardRecord, length: Secs, now: Time) -> Option<What> {
    if person::decided(&record.gate) {
        return None;
    }
    let until = now + length;
    record.gate = Gate::Backoff { until };
    Some(What::BackedOff { until, failures: record.failures })
}

/// Not submitted until a person has seen to it, unless one has decided about it already.
pub fn hold(record: &mut ShardRecord, why: HeldWhy, told: String, now: Time) -> Option<What> {
    if person::decided(&record.gate) {
        return None;
    }
    record.gate = Gate::Held { why, at: now };
    Some(What::Held { why: told })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Late files may still come.
    Wait,
    /// Nobody's fault, nothing to count.
    Free,
    Preempted,
    /// It brought new rows: any count of failures starts again.
    Progress,
    Failure,
    /// Not a failure of the shard: the GPU was too small.
    GpuOutOfMemory,
    CancelledByOther,
}

fn verdict(
    record: &ShardRecord,
    end: &End,
    shard: &Shard,
    new_rows: u32,
    rules: &Rules,
    log: &str,
    now: Time,
) -> Verdict {
    if is_done(shard, record) {
        return Verdict::Progress;
    }
    if end.stop.is_some() {
        return Verdict::Free;
    }
    let word = match end.how {
        EndHow::Word(word) => Some(word),
        EndHow::Vanished => None,
    };
    match word {
        Some(EndWord::Preempted) => return Verdict::Preempted,
        Some(word) if word.may_return() => return Verdict::Free,
        Some(EndWord::Cancelled) => return Verdict::CancelledByOther,
        _ => {}
    }
    if oom::is_gpu_oom(shard, end, log) {
        return Verdict::GpuOutOfMemory;
    }
    // Others have every row that is left: it had nothing more to do.
    let none_left = shard.split.is_some() && helpers::not_begun(shard, record) == 0;
    if none_left && word == Some(EndWord::Completed) && record.progress.begun > 0 {
        return Verdict::Free;
    }
    let gained = new_rows > 0;
    let settled = now.since(end.seen_at) >= rules.settle;
    // A program that says it is finished and is not may have files on their way. So may one that
    // brought nothing; one that failed after new rows just goes on.
    let files_may_come = word == Some(EndWord::Completed) || !gained;
    if (files_may_come && !settled) || record.progress.gap.is_some() {
        return Verdict::Wait;
    }
    if gained { Verdict::Progress } else { Verdict::Failure }
}

fn punish(
    record: &mut ShardRecord,
    end: &End,
    rules: &Rules,
    log: &str,
    now: Time,
) -> Option<What> {
    if record.failures >= rules.max_failures {
        let why = if end.how == EndHow::Word(EndWord::OutOfMemory) {
            HeldWhy::HostMemory
        } else {
            let lines: Vec<&str> = log.lines().filter(|l| !l.trim().is_empty()).collect();
            let last = lines.iter().skip(lines.len().saturating_sub(LOG_LINES));
            HeldWhy::Failures {
                count: record.failures,
                log: last.map(|line| (*line).to_owned()).collect(),
            }
        };
        let told = format!("{} failures in a row without a new row", record.failures);
        return hold(record, why, told, now);
    }
    let doublings = record.failures.saturating_sub(1).min(16);
    let wait = Secs(rules.backoff.0.saturating_mul(1 << doublings)).min(LONGEST_BACKOFF);
    if wait.0 <= 0 {
        return None;
    }
    rest(record, wait, now)
}

/// A person wants no more of it, and Slurm still has its job.
pub fn cancelled_but_live(i: usize, record: &ShardRecord) -> Option<Target> {
    if !matches!(record.gate, Gate::Cancelled { .. }) {
        return None;
    }
    Some(Target::new(i, &record.id, record.live()?.job))
}
