//! What accounting answered, by job name, and whose row it is.

use std::collections::HashMap;

use crate::model::id::JobId;
use crate::model::observation::{GapKind, Observation, PastJob};
use crate::model::state::{Attempt, State};
use crate::model::units::Secs;

/// What accounting said, by job name.
pub struct Past<'a> {
    rows: HashMap<&'a str, Vec<&'a PastJob>>,
    /// Why nothing can be read; `None`: it answered (or was not asked).
    pub gap: Option<&'a str>,
    pub off: bool,
}

impl<'a> Past<'a> {
    pub fn new(state: &State, seen: &'a Observation) -> Past<'a> {
        let mut past = Past { rows: HashMap::new(), gap: None, off: state.learned.accounting_off };
        match &seen.accounting {
            None => {}
            Some(Err(gap)) if gap.kind == GapKind::Off => past.off = true,
            Some(Err(gap)) => past.gap = Some(&gap.detail),
            Some(Ok(rows)) => {
                for row in rows {
                    past.rows.entry(row.name.as_str()).or_default().push(row);
                }
            }
        }
        past
    }

    /// The last thing accounting knows of this attempt; `job` where its id is known. A requeued
    /// job has a row for each run: one that still lives wins, else the latest.
    pub fn of(&self, attempt: &Attempt, job: Option<JobId>) -> Option<&'a PastJob> {
        let ours = self.ours(attempt).filter(|row| job.is_none_or(|id| id == row.id));
        ours.max_by_key(|row| (!row.is_over(), row.submitted, row.started, row.id))
    }

    /// Every row of one job of this attempt.
    pub fn all(&self, attempt: &Attempt, job: JobId) -> Vec<&'a PastJob> {
        self.ours(attempt).filter(|row| row.id == job).collect()
    }

    /// Its rows by run, without the first so many. One that has not started yet comes last.
    pub fn runs(&self, attempt: &Attempt, job: JobId, others: u32) -> Vec<&'a PastJob> {
        let mut rows = self.all(attempt, job);
        rows.sort_by_key(|row| (row.started.is_none(), row.started));
        rows.drain(..rows.len().min(others as usize));
        rows
    }

    fn ours(&self, attempt: &Attempt) -> impl Iterator<Item = &'a PastJob> {
        let rows = self.rows.get(attempt.token.name.as_str());
        rows.into_iter().flatten().copied().filter(|row| {
            row.uid == attempt.uid
                && (row.comment.is_empty() || row.comment == attempt.token.comment)
                // Names repeat when a state was lost and made anew: then only time tells.
                && row.submitted.is_none_or(|at| at >= attempt.asked_at - Secs::hours(1))
        })
    }
}
