//! Shards whose rows several jobs share: each takes the next row that nobody has. A row in flight
//! stays taken when its job dies, until somebody gives it back.

use super::rows::Rows;
use super::table::Table;
use super::work::{Run, Start};
use std::sync::Arc;

use crate::model::id::JobId;
use crate::model::rows::{Claimant, RowClaim, RowClaims, RowsBy};
use crate::model::units::{Secs, Time};

/// Who has each row.
#[derive(Debug, Clone, Default)]
pub(super) struct Shared {
    pub rows: Vec<Holder>,
    /// The same as whoever reads the claims finds it.
    claims: RowClaims,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Holder {
    Nobody,
    Begun(Arc<str>),
    /// There before anybody claimed anything, or done by a worker.
    Done {
        worked: bool,
    },
}

impl Shared {
    fn begin(&mut self, row: usize, claimant: &Arc<str>) {
        let Some(holder) = self.rows.get_mut(row) else { return };
        *holder = Holder::Begun(Arc::clone(claimant));
        let begun = &mut self.claims.begun;
        let at = begun.partition_point(|claim| (claim.row as usize) < row);
        begun.insert(at, RowClaim { row: row as u32, claimant: Arc::clone(claimant) });
    }

    /// False: it is not this claimant's.
    fn has(&self, row: usize, claimant: &str) -> bool {
        matches!(self.rows.get(row), Some(Holder::Begun(by)) if **by == *claimant)
    }

    fn leave(&mut self, row: usize, to: Holder) {
        if let Some(holder) = self.rows.get_mut(row) {
            *holder = to;
        }
        self.claims.begun.retain(|claim| claim.row as usize != row);
    }

    fn finish(&mut self, row: usize, worker: &Arc<str>) {
        self.leave(row, Holder::Done { worked: true });
        self.claims.done += 1;
        let by = &mut self.claims.by;
        match by.binary_search_by(|by| by.worker.cmp(worker)) {
            Ok(at) => by[at].rows += 1,
            Err(at) => by.insert(at, RowsBy { worker: Arc::clone(worker), rows: 1 }),
        }
    }
}

/// A job at work on a shared table.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub job: JobId,
    pub table: usize,
    pub claimant: Arc<str>,
    pub name: Arc<str>,
    pub row: Option<usize>,
    /// When it took the row, the job's start included for its first one.
    pub since: Time,
    pub first: bool,
    pub slow: f64,
}

impl Table {
    /// Its rows are shared by all jobs that work on it.
    pub fn shared(mut self) -> Table {
        let done = self.done.len();
        let of = |row| if row < done { Holder::Done { worked: false } } else { Holder::Nobody };
        let rows = (0..self.total()).map(of).collect();
        self.shared = Some(Shared { rows, claims: RowClaims::default() });
        self
    }

    /// Takes the first free row: its number and how long it takes.
    pub(super) fn take(&mut self, claimant: &Arc<str>, slow: f64) -> Option<(usize, Secs)> {
        let shared = self.shared.as_mut()?;
        let row = shared.rows.iter().position(|holder| *holder == Holder::Nobody)?;
        shared.begin(row, claimant);
        Some((row, self.time_of(row, slow)))
    }

    fn time_of(&self, row: usize, slow: f64) -> Secs {
        let time = self.row_time(row);
        if slow == 1.0 { time } else { Secs((time.0 as f64 * slow).ceil() as i64) }
    }
}

impl Worker {
    /// What the row that it has takes.
    pub(super) fn time(&self, table: &Table) -> Option<Secs> {
        Some(table.time_of(self.row?, self.slow))
    }
}

impl Rows {
    /// Several jobs may share the rows of this shard from now on.
    pub fn share(&mut self, key: &str) {
        let table = self.index_of(key).and_then(|index| self.tables.get_mut(index));
        if let Some(table) = table {
            *table = std::mem::replace(table, Table::new(0, Secs(0))).shared();
        }
    }

    /// A worker's row is finished: the time its next one takes, or `None` where none is left.
    pub(super) fn next_row(&mut self, job: JobId, at: Time) -> Option<Secs> {
        let worker = self.workers.iter_mut().find(|worker| worker.job == job)?;
        let table = self.tables.get_mut(worker.table)?;
        if let (Some(row), Some(shared)) = (worker.row.take(), table.shared.as_mut()) {
            if shared.has(row, &worker.claimant) {
                shared.finish(row, &worker.name);
                table.done.push(at);
            } else {
                // Given back in between, and done by another too.
                table.redone += 1;
            }
        }
        let (row, time) = table.take(&worker.claimant, worker.slow)?;
        (worker.row, worker.since, worker.first) = (Some(row), at, false);
        Some(time)
    }

    /// A job begins with the first row that nobody has; without one it leaves at once.
    pub(super) fn work_on(&mut self, index: usize, start: &Start<'_>, slow: f64) -> Run {
        let var = |name: &str| start.var(name).unwrap_or_default();
        let claimant: Arc<str> = format!("{} {}", var("BABYSIT_ROW_CLAIMANT"), start.job).into();
        let name =
            Claimant::read(&claimant).map_or_else(|| start.name.into(), |c| c.worker().into());
        let Some(table) = self.tables.get_mut(index) else { return Run::completes(Secs(0)) };
        let taken = table.take(&claimant, slow);
        let time = taken.map_or(Secs(0), |(_, time)| time);
        let lasts = Secs(table.start_cost.0 + time.0);
        self.workers.push(Worker {
            job: start.job,
            table: index,
            claimant,
            name,
            row: taken.map(|(row, _)| row),
            since: start.at,
            first: true,
            slow,
        });
        Run::completes(lasts)
    }

    /// Its job is over: a row in flight is lost, and stays taken.
    pub(super) fn stop_working(&mut self, job: JobId, at: Time) {
        let Some(place) = self.workers.iter().position(|worker| worker.job == job) else { return };
        let worker = self.workers.swap_remove(place);
        if let (Some(_), Some(table)) = (worker.row, self.tables.get_mut(worker.table)) {
            let started = !worker.first || at.since(worker.since) > table.start_cost;
            table.lost += u32::from(started);
        }
    }

    /// What the claims of a shared table say; `None` of any other.
    pub fn claims(&self, index: usize) -> Option<RowClaims> {
        Some(self.tables.get(index)?.shared.as_ref()?.claims.clone())
    }

    /// Gives a row back, if it is still this claimant's.
    pub fn free_row(&mut self, index: usize, row: u32, claimant: &str) {
        let shared = self.tables.get_mut(index).and_then(|table| table.shared.as_mut());
        if let Some(shared) = shared.filter(|shared| shared.has(row as usize, claimant)) {
            shared.leave(row as usize, Holder::Nobody);
        }
    }

    /// Seconds that the rows finished so far take, those of the beginning left out.
    pub fn worked(&self, index: usize, before: u32) -> i64 {
        let Some(table) = self.tables.get(index) else { return 0 };
        let rows: Vec<usize> = match &table.shared {
            Some(shared) => {
                let worked =
                    |(_, holder): &(usize, &Holder)| **holder == Holder::Done { worked: true };
                (0..).zip(&shared.rows).filter(worked).map(|(row, _)| row).collect()
            }
            None => (before as usize..table.done.len()).collect(),
        };
        rows.into_iter().map(|row| table.row_time(row).0).sum()
    }
}
