//! Shards as programs: tables of rows, each with its time and its price, that jobs work through.
//!
//! A row that is finished stays finished and is never done again by a later run; the row in flight
//! is lost when the run is ended. Nothing here reads files or knows what a policy makes of it.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::pilots::Pilots;
use super::split::Worker;
use super::table::{LiveRun, Table};
use super::trouble::Trouble;
use super::work::{Run, Start, Work};
use crate::model::cluster::EndWord;
use crate::model::id::{JobId, ShardId};
use crate::model::units::{Money, Secs, Time};

/// All shards, by a key that the job's environment gives (`family/shard`), else by the job's name
/// without its attempt.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// By key.
    keys: Vec<(String, usize)>,
    pub(super) tables: Vec<Table>,
    live: Vec<LiveRun>,
    pub(super) workers: Vec<Worker>,
    pub(super) pilots: Pilots,
    /// Runs that began on a shard, not one that is shared, while another was at it.
    doubled: u32,
    logs: BTreeMap<JobId, Vec<String>>,
    /// Nobody can read the logs: the file system that they lie on is away.
    pub logs_away: bool,
    bad_nodes: Vec<String>,
}

impl Rows {
    pub fn new() -> Rows {
        Rows::default()
    }

    /// The table's index, for those who ask often. A key that is there already is replaced.
    pub fn add(&mut self, key: &str, table: Table) -> usize {
        let place = match self.keys.binary_search_by(|(known, _)| known.as_str().cmp(key)) {
            Err(place) => place,
            Ok(place) => {
                let index = self.keys.get(place).map_or(0, |(_, index)| *index);
                if let Some(there) = self.tables.get_mut(index) {
                    *there = table;
                }
                return index;
            }
        };
        self.keys.insert(place, (key.to_owned(), self.tables.len()));
        self.tables.push(table);
        self.tables.len() - 1
    }

    /// Every program that starts on this node dies at once.
    pub fn bad_node(&mut self, node: &str) {
        self.bad_nodes.push(node.to_owned());
    }

    pub fn good_node(&mut self, node: &str) {
        self.bad_nodes.retain(|bad| bad != node);
    }

    /// Adds a trouble to a shard that is there; false where there is none of that key.
    pub fn trouble(&mut self, key: &str, trouble: Trouble, times: Option<u32>) -> bool {
        let table = self.index_of(key).and_then(|index| self.tables.get_mut(index));
        table.map(|table| table.troubles.add(trouble, times)).is_some()
    }

    pub fn index_of(&self, key: &str) -> Option<usize> {
        self.find(|known| known.cmp(key))
    }

    /// The same for the key `family/shard`, which need not be written for it.
    pub fn index_of_shard(&self, ShardId { family, shard }: &ShardId) -> Option<usize> {
        self.find(|known| {
            let (front, rest) = known.as_bytes().split_at(known.len().min(family.len()));
            front.cmp(family.as_bytes()).then_with(|| match rest.split_first() {
                None => Ordering::Less,
                Some((slash, rest)) => slash.cmp(&b'/').then_with(|| rest.cmp(shard.as_bytes())),
            })
        })
    }

    fn find(&self, is: impl Fn(&str) -> Ordering) -> Option<usize> {
        let place = self.keys.binary_search_by(|(known, _)| is(known)).ok()?;
        self.keys.get(place).map(|(_, index)| *index)
    }

    /// Keys, in order, with their index.
    pub fn keys(&self) -> impl Iterator<Item = (&str, usize)> {
        self.keys.iter().map(|(key, index)| (key.as_str(), *index))
    }

    pub fn total(&self, index: usize) -> u32 {
        self.tables.get(index).map_or(0, |table| table.total() as u32)
    }

    /// Distinct finished rows as somebody sees them who looks at that moment.
    pub fn rows_at(&self, index: usize, at: Time) -> u32 {
        self.look(index, at).0
    }

    /// The same, and until when neither they nor claims on them change, if no run begins or ends
    /// meanwhile.
    pub fn look(&self, index: usize, at: Time) -> (u32, Time) {
        let Some(table) = self.tables.get(index) else { return (0, Time(i64::MAX)) };
        let seen = at - table.late;
        let mut rows = match table.done.last() {
            Some(last) if *last > seen => table.done.partition_point(|at| *at <= seen),
            _ => table.done.len(),
        };
        let mut next = table.done.get(rows).copied();
        let mut then = |moment: Time| next = Some(next.map_or(moment, |next| next.min(moment)));
        for run in self.live.iter().filter(|run| run.table == index) {
            let finished = table.finished(run, seen);
            if finished > 0 {
                rows = rows.max(run.from + finished);
            }
            if finished < run.most {
                then(run.started + Secs(table.due(run, finished + 1)));
            }
        }
        for worker in self.workers.iter().filter(|worker| worker.table == index) {
            let start = if worker.first { table.start_cost } else { Secs(0) };
            if let Some(time) = worker.time(table) {
                // Claims are seen at once.
                then(worker.since + start + time - table.late);
            }
        }
        (rows as u32, next.map_or(Time(i64::MAX), |next| next + table.late))
    }

    /// What the ledger sums up to at that moment: every row that was done, twice done twice.
    pub fn spent_at(&self, index: usize, at: Time) -> Money {
        self.spent_on(index, self.rows_at(index, at))
    }

    /// The same for who has the count of rows already.
    pub fn spent_on(&self, index: usize, rows: u32) -> Money {
        let Some(table) = self.tables.get(index) else { return Money::ZERO };
        Money(table.row_cost.0.saturating_mul(i64::from(rows) + i64::from(table.redone)))
    }

    pub fn rows_of(&self, key: &str, at: Time) -> Option<u32> {
        self.index_of(key).map(|index| self.rows_at(index, at))
    }

    pub fn spent_of(&self, key: &str, at: Time) -> Option<Money> {
        self.index_of(key).map(|index| self.spent_at(index, at))
    }

    /// The job's output, oldest line first; empty for a run without anything to tell.
    pub fn log_of(&self, job: JobId) -> &[String] {
        self.logs.get(&job).map_or(&[], Vec::as_slice)
    }

    /// Rows done a second time because two jobs worked on one shard.
    pub fn redone(&self, index: usize) -> u32 {
        self.tables.get(index).map_or(0, |table| table.redone)
    }

    /// Runs that began on a shard at which another one was still at work, of all shards that are not
    /// shared.
    pub fn doubled(&self) -> u32 {
        self.doubled
    }

    /// When the last of all its rows was finished; `None` while rows are left.
    pub fn finished_at(&self, index: usize) -> Option<Time> {
        let table = self.tables.get(index)?;
        (table.done.len() >= table.total()).then(|| table.done.last().copied())?
    }

    /// When the last row so far was finished.
    pub fn last_row_at(&self, index: usize) -> Option<Time> {
        self.tables.get(index)?.done.last().copied()
    }

    /// Rows in flight that were lost when a run was ended.
    pub fn lost(&self, index: usize) -> u32 {
        self.tables.get(index).map_or(0, |table| table.lost)
    }

    fn key_of(start: &Start<'_>) -> String {
        match (start.var("BABYSIT_FAMILY"), start.var("BABYSIT_SHARD")) {
            (Some(family), Some(shard)) => format!("{family}/{shard}"),
            _ => super::proof::without_attempt(start.name).to_owned(),
        }
    }

    fn tell(&mut self, job: JobId, line: String) {
        self.logs.entry(job).or_default().push(line);
    }

    /// A run of the shard's program.
    pub(super) fn begin(&mut self, key: &str, start: &Start<'_>) -> Run {
        let index = self.index_of(key);
        let Some((index, table)) = index.and_then(|i| Some((i, self.tables.get_mut(i)?))) else {
            self.tell(start.job, format!("{key}: no such shard"));
            return Run { exit: "127:0".into(), ..Run::fails(Secs(1)) };
        };
        let slow = |model: &String| table.slower.iter().find(|(m, _)| m == model).map(|(_, f)| *f);
        let models = start.gpus.iter().filter(|g| g.count > 0).filter_map(|g| g.model.as_ref());
        let slow = models
            .filter_map(slow)
            .fold(None, |worst: Option<f64>, f| Some(worst.map_or(f, |w| w.max(f))));
        let bad = self.bad_nodes.iter().any(|node| node == start.node);
        if table.shared.is_some() && !bad {
            return self.work_on(index, start, slow.unwrap_or(1.0));
        }
        self.doubled += u32::from(self.live.iter().any(|run| run.table == index));
        let from = table.done.len();
        let mut run = LiveRun {
            job: start.job,
            table: index,
            node: start.node.to_owned(),
            started: start.at,
            from,
            most: table.total() - from.min(table.total()),
            slow: slow.unwrap_or(1.0),
        };
        if table.honours_cap && table.row_cost > Money::ZERO {
            let dollars = start.var("BABYSIT_COST_CAP").and_then(|text| text.parse().ok());
            if let Some(cap) = dollars.and_then(Money::from_dollars) {
                let spent = table.row_cost.0 * (from as i64 + i64::from(table.redone));
                let left = (cap.0 - spent).max(0);
                // It stops before the row that would begin at or over the cap.
                run.most = run.most.min((left as u64).div_ceil(table.row_cost.0 as u64) as usize);
            }
        }
        let hit = match bad {
            true => Some(Trouble::DiesAtOnce),
            false => table.troubles.draw(run.most, start),
        };
        if let Some(rows) = hit.as_ref().map(Trouble::rows_before) {
            run.most = run.most.min(rows as usize);
        }
        let work = Secs(table.due(&run, run.most));
        self.live.push(run);
        match hit {
            None => Run::completes(work),
            Some(trouble) => {
                for line in trouble.log(start) {
                    self.tell(start.job, line);
                }
                trouble.run(work)
            }
        }
    }

    /// Takes down what a run has done by then.
    pub(super) fn close(&mut self, job: JobId, at: Time) -> Option<LiveRun> {
        let place = self.live.iter().position(|run| run.job == job)?;
        let run = self.live.remove(place);
        if let Some(table) = self.tables.get_mut(run.table) {
            let finished = table.finished(&run, at);
            let in_flight = finished < run.most && at.since(run.started) > table.start_cost;
            table.lost += u32::from(in_flight);
            for n in 1..=finished {
                if run.from + n > table.done.len() {
                    let moment = run.started + Secs(table.due(&run, n));
                    table.done.push(moment);
                } else {
                    table.redone += 1;
                }
            }
            // Two runs on one shard need not end in the order in which they finished rows.
            table.done.sort_unstable();
        }
        Some(run)
    }
}

impl Work for Rows {
    fn start(&mut self, start: &Start<'_>) -> Run {
        match start.pilot {
            Some(pilot) => self.board(pilot, start),
            None => self.begin(&Rows::key_of(start), start),
        }
    }

    fn goes_on(&mut self, job: JobId, at: Time) -> Option<Run> {
        self.next_of_pilot(job, at).or_else(|| self.next_row(job, at).map(Run::completes))
    }

    fn end(&mut self, job: JobId, at: Time, how: EndWord) {
        self.stop_working(job, at);
        self.pilots.leave(job);
        let Some(run) = self.close(job, at) else { return };
        if how == EndWord::Preempted {
            let node = &run.node;
            let line = format!(
                "slurmstepd-{node}: error: *** JOB {job} ON {node} CANCELLED AT {} DUE TO PREEMPTION ***",
                super::trouble::stamp(at)
            );
            self.tell(job, line);
        }
    }
}
