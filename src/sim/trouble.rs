//! What can be wrong with a shard's program, and what its job then looks like to Slurm and in its
//! log (facts and slurm.md, "Ending").

use chrono::DateTime;

use super::work::{Run, Start};
use crate::model::cluster::EndWord;
use crate::model::units::{Secs, Time};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// FAILED 1:0 within a second, nothing done.
    DiesAtOnce,
    /// The same, on these nodes only.
    DiesOn(Vec<String>),
    /// FAILED 1:0 after so many rows of this run.
    FailsAfter(u32),
    /// COMPLETED 0:0 after so many rows of this run, with others left.
    LeavesAfter(u32),
    /// No more rows after so many of this run, and no end.
    StallsAfter(u32),
    /// GPU out-of-memory on these models (none named: on all): FAILED 1:0, told in the log only.
    GpuMemory(Vec<String>),
    /// The node's memory after so many rows: OUT_OF_MEMORY 0:125.
    HostMemory(u32),
}

impl Trouble {
    /// Rows that a run finishes before.
    pub(super) fn rows_before(&self) -> u32 {
        match self {
            Trouble::DiesAtOnce | Trouble::DiesOn(_) | Trouble::GpuMemory(_) => 0,
            Trouble::FailsAfter(n)
            | Trouble::LeavesAfter(n)
            | Trouble::StallsAfter(n)
            | Trouble::HostMemory(n) => *n,
        }
    }

    fn applies(&self, rows_left: usize, start: &Start<'_>) -> bool {
        match self {
            Trouble::DiesAtOnce => true,
            Trouble::DiesOn(nodes) => nodes.iter().any(|node| node == start.node),
            Trouble::GpuMemory(models) => {
                models.is_empty()
                    || start
                        .gpus
                        .iter()
                        .filter(|g| g.count > 0)
                        .any(|g| g.model.as_ref().is_some_and(|model| models.contains(model)))
            }
            // After its last row, too: then it outlives its rows.
            Trouble::StallsAfter(rows) => *rows as usize <= rows_left,
            _ => (self.rows_before() as usize) < rows_left,
        }
    }

    pub(super) fn run(&self, work: Secs) -> Run {
        let not_at_once = Secs(work.0.max(1));
        match self {
            Trouble::DiesAtOnce | Trouble::DiesOn(_) => Run::fails(Secs(1)),
            Trouble::FailsAfter(_) | Trouble::GpuMemory(_) => Run::fails(not_at_once),
            Trouble::LeavesAfter(_) => Run::completes(not_at_once),
            Trouble::StallsAfter(_) => Run::forever(),
            Trouble::HostMemory(_) => {
                Run { lasts: Some(not_at_once), end: EndWord::OutOfMemory, exit: "0:125".into() }
            }
        }
    }

    pub(super) fn log(&self, start: &Start<'_>) -> Vec<String> {
        let lines: &[&str] = match self {
            Trouble::DiesAtOnce | Trouble::DiesOn(_) => {
                &["Traceback (most recent call last):", "RuntimeError: died at once"]
            }
            Trouble::FailsAfter(_) => {
                &["Traceback (most recent call last):", "ValueError: bad row"]
            }
            Trouble::LeavesAfter(_) | Trouble::StallsAfter(_) => &[],
            Trouble::GpuMemory(_) => &[
                "Traceback (most recent call last):",
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            ],
            Trouble::HostMemory(_) => {
                return vec![format!(
                    "slurmstepd-{}: error: Detected 1 oom_kill event in StepId={}.batch. Some of the step tasks have been OOM Killed.",
                    start.node, start.job
                )];
            }
        };
        lines.iter().map(|line| (*line).to_owned()).collect()
    }
}

/// Troubles of one shard, each with the number of runs it is still good for.
#[derive(Debug, Clone, Default)]
pub(super) struct Troubles(Vec<(Trouble, Option<u32>)>);

impl Troubles {
    pub fn add(&mut self, trouble: Trouble, times: Option<u32>) {
        self.0.push((trouble, times));
    }

    /// The first that applies to this run, and one use of it.
    pub fn draw(&mut self, rows_left: usize, start: &Start<'_>) -> Option<Trouble> {
        let usable = |(trouble, left): &&mut (Trouble, Option<u32>)| {
            *left != Some(0) && trouble.applies(rows_left, start)
        };
        let (trouble, left) = self.0.iter_mut().find(usable)?;
        *left = left.map(|n| n - 1);
        Some(trouble.clone())
    }
}

/// As Slurm writes moments into a job's output.
pub(super) fn stamp(at: Time) -> String {
    let moment = DateTime::from_timestamp(at.0, 0);
    // Of a whole second it is written as Slurm does.
    moment.map_or_else(|| at.0.to_string(), |m| format!("{:?}", m.naive_utc()))
}
