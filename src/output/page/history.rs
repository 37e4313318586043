//! What happened so far: runs from the state's charges, and what only the journal remembers (lanes,
//! nodes, ends, totals, incidents). A journal that was lost takes nothing else with it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::cluster::EndWord;
use crate::model::policy::{Lane, Policy};
use crate::model::state::{ChargeKind, EndHow, ShardRecord, State};
use crate::model::units::{Secs, Time};

use super::super::format::moment;
use super::super::journal::TOTALS;
use super::gantt::End;

/// One stay of a shard on GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Index in the policy; `None`: shards.toml no longer names it.
    pub shard: Option<usize>,
    pub id: String,
    pub attempt: u32,
    pub gpus: u32,
    pub lane: Option<Lane>,
    pub node: Option<String>,
    pub tier: Option<String>,
    pub from: Time,
    pub to: Time,
    pub end: End,
    /// Slurm's word for the end, where it is known.
    pub word: Option<String>,
}

/// GPUs that were kept for a shard.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    pub id: String,
    pub gpus: u32,
    pub from: Time,
    pub to: Time,
    pub led_to_a_start: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Total {
    pub at: Time,
    pub rows: f64,
}

/// Kinds of what a lab should hear of, in the order of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    Skipped,
    Refused,
    Nodes,
    Stalls,
    Held,
    Other,
}

impl Trouble {
    pub const ALL: [Trouble; 6] = [
        Trouble::Skipped,
        Trouble::Refused,
        Trouble::Nodes,
        Trouble::Stalls,
        Trouble::Held,
        Trouble::Other,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Trouble::Skipped => "skipped ticks",
            Trouble::Refused => "refused submissions",
            Trouble::Nodes => "bad nodes",
            Trouble::Stalls => "stalls",
            Trouble::Held => "held, over cap",
            Trouble::Other => "other",
        }
    }

    /// Of a line of the journal; `None`: all in order.
    fn of(kind: &str) -> Option<Trouble> {
        Some(match kind {
            "cycle-skipped" => Trouble::Skipped,
            "submit-refused" | "submit-paused" | "breaker-opened" | "NO_FIT_PLACEMENT" => {
                Trouble::Refused
            }
            "node-blamed" | "node-kept-out" => Trouble::Nodes,
            "stalled" | "lingers" => Trouble::Stalls,
            "held" | "over-cap" => Trouble::Held,
            "outcome-unknown"
            | "submission-given-up"
            | "end-put-off"
            | "move-refused"
            | "stop-failed"
            | "twin"
            | "rows-shrank"
            | "measure-failed"
            | "min-tier-raised"
            | "backfill-stop-failed" => Trouble::Other,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Incident {
    pub trouble: Trouble,
    pub from: Time,
    /// Later than `from` where it lasted: ticks skipped in a row, a node kept out.
    pub to: Time,
    /// Lines of the journal that it stands for.
    pub times: u32,
    pub shard: Option<String>,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    pub runs: Vec<Run>,
    pub kept: Vec<Kept>,
    pub totals: Vec<Total>,
    pub incidents: Vec<Incident>,
    /// The first line of the journal that is still there.
    pub since: Option<Time>,
}

/// Ticks that were skipped within this time of each other are one incident.
const IN_A_ROW: Secs = Secs::minutes(15);

impl History {
    /// The first moment of all.
    pub fn begins(&self) -> Option<Time> {
        let runs = self.runs.iter().map(|run| run.from);
        let kept = self.kept.iter().map(|kept| kept.from);
        runs.chain(kept).chain(self.since).min()
    }

    /// `journal`: of this project, oldest first.
    pub fn new(policy: &Policy, state: &State, journal: &[Value], now: Time) -> History {
        let mut read = Read::default();
        let mut history = History::default();
        for line in journal {
            let Some(at) = text(line, "at").and_then(moment).filter(|at| *at <= now) else {
                continue;
            };
            history.since.get_or_insert(at);
            let kind = text(line, "kind").unwrap_or_default();
            if kind == TOTALS {
                if let Some(rows) = line.get("rows").and_then(Value::as_f64) {
                    history.totals.push(Total { at, rows });
                }
                continue;
            }
            read.line(line, kind, at);
            if let Some(trouble) = Trouble::of(kind) {
                history.trouble(trouble, line, at);
            }
        }
        let known: BTreeMap<_, usize> = policy.shards.iter().map(|s| &s.id).zip(0..).collect();
        for record in state.shards.iter().chain(&state.orphans) {
            let shard = known.get(&record.id).copied();
            history.record(shard, record, &read, now);
        }
        history.runs.sort_by_key(|run| run.from);
        history
    }

    fn trouble(&mut self, trouble: Trouble, line: &Value, at: Time) {
        let said = text(line, "text").unwrap_or_default().to_owned();
        if trouble == Trouble::Skipped
            && let Some(last) = self.incidents.iter_mut().rev().find(|i| i.trouble == trouble)
            && at.since(last.to) <= IN_A_ROW
        {
            last.to = at;
            last.times += 1;
            last.text = said;
            return;
        }
        let until = text(line, "until").and_then(moment).filter(|_| trouble == Trouble::Nodes);
        self.incidents.push(Incident {
            trouble,
            from: at,
            to: until.unwrap_or(at),
            times: 1,
            shard: text(line, "shard").map(str::to_owned),
            text: said,
        });
    }

    fn record(&mut self, shard: Option<usize>, record: &ShardRecord, read: &Read, now: Time) {
        let id = record.id.to_string();
        let about = read.jobs.get(&id);
        let last_charge = |attempt: u32| {
            let of = record.charges.iter().filter(|c| c.kind == ChargeKind::Run);
            of.filter(|c| c.attempt == attempt).map(|c| c.from).max()
        };
        for charge in &record.charges {
            let (from, to) = (charge.from, charge.from + charge.length);
            if charge.kind != ChargeKind::Run {
                let led_to_a_start = charge.kind == ChargeKind::Reserved;
                let (id, gpus) = (id.clone(), charge.gpus);
                self.kept.push(Kept { id, gpus, from, to, led_to_a_start });
                continue;
            }
            let known = about.and_then(|jobs| jobs.get(&charge.attempt));
            let live = record.live().is_some_and(|live| live.attempt.number == charge.attempt);
            let (end, word) = match known.and_then(|job| job.how.clone()) {
                // Slurm started the same job again: only its last run ended as it was told.
                _ if live || last_charge(charge.attempt) != Some(from) => {
                    (End::Preempted, Some("REQUEUED".to_owned()))
                }
                Some(word) => (end_of(&word), Some(word)),
                None => last_end(record, charge.attempt),
            };
            self.runs.push(Run {
                shard,
                id: id.clone(),
                attempt: charge.attempt,
                gpus: charge.gpus,
                lane: known.and_then(|job| job.lane),
                node: known.and_then(|job| job.node_at(from)),
                tier: charge.tier.clone(),
                from,
                to,
                end,
                word,
            });
        }
        if let Some(live) = record.live()
            && let Some(from) = live.started
        {
            self.runs.push(Run {
                shard,
                id: id.clone(),
                attempt: live.attempt.number,
                gpus: live.attempt.gpus,
                lane: live.lane,
                node: (!live.nodes.is_empty()).then(|| live.nodes.join(",")),
                tier: live.tier.clone().or_else(|| Some(live.attempt.pin.as_ref()?.tier.clone())),
                from,
                to: now.max(from),
                end: End::Running,
                word: None,
            });
        }
        if let Some(held) = &record.reservation {
            let (from, to) = (held.since, now.max(held.since));
            self.kept.push(Kept { id, gpus: held.gpus, from, to, led_to_a_start: false });
        }
    }
}

/// The state remembers how the last run ended, whatever became of the journal.
fn last_end(record: &ShardRecord, attempt: u32) -> (End, Option<String>) {
    match record.last_end.as_ref().filter(|end| end.attempt == attempt).map(|end| end.how) {
        Some(EndHow::Word(word)) => (end_of(word.word()), Some(word.word().to_owned())),
        Some(EndHow::Vanished) | None => (End::Unknown, None),
    }
}

fn end_of(word: &str) -> End {
    match EndWord::ALL.into_iter().find(|end| end.word() == word) {
        Some(EndWord::Completed) => End::Completed,
        Some(EndWord::Preempted) => End::Preempted,
        Some(EndWord::Cancelled | EndWord::Revoked) => End::Cancelled,
        Some(_) => End::Failed,
        None => End::Unknown,
    }
}

/// What the journal tells of jobs, by shard and attempt.
#[derive(Default)]
struct Read {
    jobs: BTreeMap<String, BTreeMap<u32, Job>>,
    attempts: BTreeMap<u64, u32>,
}

#[derive(Default)]
struct Job {
    lane: Option<Lane>,
    /// When each start was seen, and where it was.
    nodes: Vec<(Time, String)>,
    how: Option<String>,
}

impl Job {
    /// A start is seen by the first tick after it.
    fn node_at(&self, from: Time) -> Option<String> {
        let seen = self.nodes.iter().find(|(at, _)| *at >= from).or(self.nodes.last());
        seen.map(|(_, node)| node.clone())
    }
}

impl Read {
    fn line(&mut self, line: &Value, kind: &str, at: Time) {
        let Some(shard) = text(line, "shard") else { return };
        let Some(id) = line.get("job").and_then(Value::as_u64) else { return };
        if let Some(attempt) = line.get("attempt").and_then(Value::as_u64) {
            self.attempts.insert(id, attempt as u32);
        }
        let Some(attempt) = self.attempts.get(&id).copied() else { return };
        if !self.jobs.contains_key(shard) {
            self.jobs.insert(shard.to_owned(), BTreeMap::new());
        }
        let Some(jobs) = self.jobs.get_mut(shard) else { return };
        let job = jobs.entry(attempt).or_default();
        let lane = text(line, "lane").or(text(line, "to"));
        let lane =
            lane.and_then(|word| [Lane::Own, Lane::Extra].into_iter().find(|l| l.word() == word));
        match kind {
            "submitted" | "moved" | "moved-despite-error" | "started" => {
                job.lane = lane.or(job.lane)
            }
            "ended" => job.how = text(line, "how").map(str::to_owned),
            _ => {}
        }
        if let ("started", Some(node)) = (kind, text(line, "node")) {
            job.nodes.push((at, node.to_owned()));
        }
    }
}

fn text<'a>(line: &'a Value, key: &str) -> Option<&'a str> {
    line.get(key).and_then(Value::as_str)
}
