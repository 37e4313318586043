//! Shards as programs: tables of rows, each with its time and its price, that jobs work through.
//!
//! A row that is finished stays finished and is never done again by a later run; the row in flight
//! is lost when the run is ended. Nothing here reads files or knows what a policy makes of it.

use std::collections::BTreeMap;

use super::trouble::{Trouble, Troubles};
use super::work::{Run, Start, Work};
use crate::model::cluster::EndWord;
use crate::model::id::JobId;
use crate::model::units::{Money, Secs, Time};

/// One shard's work.
#[derive(Debug, Clone)]
pub struct Table {
    /// Time at which each row would be finished if they were done without a break, in seconds.
    finish: Vec<i64>,
    start_cost: Secs,
    row_cost: Money,
    honours_cap: bool,
    late: Secs,
    slower: Vec<(String, f64)>,
    pub(super) troubles: Troubles,
    /// When each finished row was finished, in order.
    done: Vec<Time>,
    /// Rows that two runs did at once, the second time counted.
    redone: u32,
    lost: u32,
}

impl Table {
    /// Each row takes the same time.
    pub fn new(rows: u32, row_time: Secs) -> Table {
        Table::of((0..rows).map(|_| row_time))
    }

    /// Each row has its own time.
    pub fn of(row_times: impl IntoIterator<Item = Secs>) -> Table {
        let mut sum = 0i64;
        let finish = row_times.into_iter().map(|time| {
            sum = sum.saturating_add(time.0.max(0));
            sum
        });
        Table {
            finish: finish.collect(),
            start_cost: Secs(0),
            row_cost: Money::ZERO,
            honours_cap: false,
            late: Secs(0),
            slower: Vec::new(),
            troubles: Troubles::default(),
            done: Vec::new(),
            redone: 0,
            lost: 0,
        }
    }

    /// Spent anew at each start before the first row.
    pub fn start_cost(self, start_cost: Secs) -> Table {
        Table { start_cost, ..self }
    }

    pub fn row_cost(self, row_cost: Money) -> Table {
        Table { row_cost, ..self }
    }

    /// The program leaves (COMPLETED) when what was spent reaches its BABYSIT_COST_CAP.
    pub fn honours_cap(self) -> Table {
        Table { honours_cap: true, ..self }
    }

    /// Rows and money are seen so much later (files on NFS).
    pub fn late(self, late: Secs) -> Table {
        Table { late, ..self }
    }

    /// On this model a row takes so many times its time.
    pub fn slower_on(mut self, model: &str, factor: f64) -> Table {
        self.slower.push((model.to_owned(), factor));
        self
    }

    /// Every run has it.
    pub fn always(mut self, trouble: Trouble) -> Table {
        self.troubles.add(trouble, None);
        self
    }

    /// The first so many runs to which it applies have it.
    pub fn times(mut self, count: u32, trouble: Trouble) -> Table {
        self.troubles.add(trouble, Some(count));
        self
    }

    /// So many rows are there already.
    pub fn with_done(mut self, rows: u32, at: Time) -> Table {
        let rows = (rows as usize).min(self.finish.len());
        self.done = vec![at; rows];
        self
    }

    fn total(&self) -> usize {
        self.finish.len()
    }

    /// Seconds after its start at which a run has finished its nth row (n >= 1).
    fn due(&self, run: &LiveRun, n: usize) -> i64 {
        let before = run.from.checked_sub(1).and_then(|last| self.finish.get(last)).unwrap_or(&0);
        let after = (run.from + n).checked_sub(1).and_then(|last| self.finish.get(last));
        let work = after.unwrap_or(before) - before;
        let work = if run.slow == 1.0 { work } else { (work as f64 * run.slow).ceil() as i64 };
        self.start_cost.0 + work
    }

    /// Rows that a run has finished by then.
    fn finished(&self, run: &LiveRun, at: Time) -> usize {
        let ran = at.since(run.started).0;
        let (mut low, mut high) = (0, run.most);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match self.due(run, middle) <= ran {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        low
    }
}

#[derive(Debug, Clone)]
struct LiveRun {
    job: JobId,
    table: usize,
    node: String,
    started: Time,
    /// Rows that were there when it began.
    from: usize,
    /// Rows after which it leaves by itself.
    most: usize,
    slow: f64,
}

/// All shards, by a key that the job's environment gives (`family/shard`), else by the job's name
/// without its attempt.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    keys: BTreeMap<String, usize>,
    tables: Vec<Table>,
    live: Vec<LiveRun>,
    logs: BTreeMap<JobId, Vec<String>>,
    bad_nodes: Vec<String>,
}

impl Rows {
    pub fn new() -> Rows {
        Rows::default()
    }

    /// The table's index, for those who ask often. A key that is there already is replaced.
    pub fn add(&mut self, key: &str, table: Table) -> usize {
        if let Some(&index) = self.keys.get(key) {
            if let Some(there) = self.tables.get_mut(index) {
                *there = table;
            }
            return index;
        }
        self.keys.insert(key.to_owned(), self.tables.len());
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
        self.keys.get(key).copied()
    }

    /// Keys, in order, with their index.
    pub fn keys(&self) -> impl Iterator<Item = (&str, usize)> {
        self.keys.iter().map(|(key, &index)| (key.as_str(), index))
    }

    pub fn total(&self, index: usize) -> u32 {
        self.tables.get(index).map_or(0, |table| table.total() as u32)
    }

    /// Distinct finished rows as somebody sees them who looks at that moment.
    pub fn rows_at(&self, index: usize, at: Time) -> u32 {
        let Some(table) = self.tables.get(index) else { return 0 };
        let seen = at - table.late;
        let kept = table.done.partition_point(|finished| *finished <= seen);
        let live = self.live.iter().filter(|run| run.table == index);
        let most = live.map(|run| match table.finished(run, seen) {
            0 => 0,
            some => run.from + some,
        });
        most.max().unwrap_or(0).max(kept) as u32
    }

    /// What the ledger sums up to at that moment: every row that was done, twice done twice.
    pub fn spent_at(&self, index: usize, at: Time) -> Money {
        let Some(table) = self.tables.get(index) else { return Money::ZERO };
        let rows = i64::from(self.rows_at(index, at)) + i64::from(table.redone);
        Money(table.row_cost.0.saturating_mul(rows))
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
}

impl Work for Rows {
    fn start(&mut self, start: &Start<'_>) -> Run {
        let key = Rows::key_of(start);
        let index = self.index_of(&key);
        let Some((index, table)) = index.and_then(|i| Some((i, self.tables.get_mut(i)?))) else {
            self.tell(start.job, format!("{key}: no such shard"));
            return Run { exit: "127:0".into(), ..Run::fails(Secs(1)) };
        };
        let slow = |model: &String| table.slower.iter().find(|(m, _)| m == model).map(|(_, f)| *f);
        let models = start.gpus.iter().filter(|g| g.count > 0).filter_map(|g| g.model.as_ref());
        let slow = models
            .filter_map(slow)
            .fold(None, |worst: Option<f64>, f| Some(worst.map_or(f, |w| w.max(f))));
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
        let bad = self.bad_nodes.iter().any(|node| node == start.node);
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

    fn end(&mut self, job: JobId, at: Time, how: EndWord) {
        let Some(place) = self.live.iter().position(|run| run.job == job) else { return };
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
