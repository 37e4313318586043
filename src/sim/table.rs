//! One shard's work as a table of rows, and how far a run gets with it.

use super::split::Shared;
use super::trouble::{Trouble, Troubles};
use crate::model::id::JobId;
use crate::model::units::{Money, Secs, Time};

/// One shard's work.
#[derive(Debug, Clone)]
pub struct Table {
    /// Time at which each row would be finished if they were done without a break, in seconds.
    finish: Vec<i64>,
    pub(super) start_cost: Secs,
    pub(super) row_cost: Money,
    pub(super) honours_cap: bool,
    pub(super) late: Secs,
    pub(super) slower: Vec<(String, f64)>,
    pub(super) troubles: Troubles,
    /// When each finished row was finished, in order.
    pub(super) done: Vec<Time>,
    /// Rows that two runs did at once, the second time counted.
    pub(super) redone: u32,
    pub(super) lost: u32,
    /// Its rows are taken one by one by several jobs.
    pub(super) shared: Option<Shared>,
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
            shared: None,
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

    pub(super) fn total(&self) -> usize {
        self.finish.len()
    }

    /// How long a row takes.
    pub(super) fn row_time(&self, row: usize) -> Secs {
        let before = row.checked_sub(1).and_then(|last| self.finish.get(last)).unwrap_or(&0);
        Secs(self.finish.get(row).unwrap_or(before) - before)
    }

    /// Seconds after its start at which a run has finished its nth row (n >= 1).
    pub(super) fn due(&self, run: &LiveRun, n: usize) -> i64 {
        let before = self.before(run);
        let after = (run.from + n).checked_sub(1).and_then(|last| self.finish.get(last));
        let work = after.map_or(0, |after| after - before);
        let work = if run.slow == 1.0 { work } else { (work as f64 * run.slow).ceil() as i64 };
        self.start_cost.0 + work
    }

    /// Rows that a run has finished by then.
    pub(super) fn finished(&self, run: &LiveRun, at: Time) -> usize {
        let ran = at.since(run.started).0;
        if run.slow == 1.0 {
            // As below, by the sums alone.
            let by = ran - self.start_cost.0 + self.before(run);
            let rows = self.finish.get(run.from..run.from + run.most).unwrap_or_default();
            return rows.partition_point(|finish| *finish <= by);
        }
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

    /// What the rows take that were there when a run began.
    fn before(&self, run: &LiveRun) -> i64 {
        run.from.checked_sub(1).and_then(|last| self.finish.get(last)).copied().unwrap_or(0)
    }
}

#[derive(Debug, Clone)]
pub(super) struct LiveRun {
    pub job: JobId,
    pub table: usize,
    pub node: String,
    pub started: Time,
    /// Rows that were there when it began.
    pub from: usize,
    /// Rows after which it leaves by itself.
    pub most: usize,
    pub slow: f64,
}
