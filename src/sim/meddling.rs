//! What people and mishaps do to single jobs: ends, holds, states that squeue shows.

use super::clock::Then;
use super::cluster::Cluster;
use super::work::Work;
use crate::model::cluster::EndWord;
use crate::model::id::JobId;

impl<W: Work> Cluster<W> {
    /// Ends a job as its own program would.
    pub fn finish(&mut self, id: JobId, end: EndWord, exit: &'static str) -> Result<(), String> {
        let place = self.place_of(id).ok_or_else(|| format!("no job {id}"))?;
        self.leave(place, end, exit, None, Then::Over);
        self.catch_up();
        Ok(())
    }

    /// scancel by the admin.
    pub fn admin_cancels(&mut self, id: JobId) -> Result<(), String> {
        self.scancel(0, &[id])?;
        self.catch_up();
        Ok(())
    }

    /// scontrol hold by its owner: JobHeldUser, priority 0.
    pub fn hold(&mut self, id: JobId) -> Result<(), String> {
        self.hold_for(id, "JobHeldUser")
    }

    /// Kept from starting for another reason: JobHeldAdmin, DependencyNeverSatisfied.
    pub fn hold_for(&mut self, id: JobId, reason: &'static str) -> Result<(), String> {
        self.set_held(id, Some(reason))
    }

    pub fn release(&mut self, id: JobId) -> Result<(), String> {
        self.set_held(id, None)
    }

    fn set_held(&mut self, id: JobId, held: Option<&'static str>) -> Result<(), String> {
        let place = self.place_of(id).ok_or_else(|| format!("no job {id}"))?;
        if let Some(job) = self.jobs.get_mut(place).filter(|job| !job.is_over()) {
            job.held = held;
            job.reason = held.unwrap_or("None").into();
        }
        let uid = self.jobs.get(place).map_or(0, |job| job.uid);
        self.job_changed(uid);
        self.catch_up();
        Ok(())
    }

    /// squeue shows this state word (`COMPLETING`, `SUSPENDED`, one that nobody knows) until told
    /// otherwise, and goes on showing the job; what it really does is not changed.
    pub fn show_as(&mut self, id: JobId, word: Option<&'static str>) -> Result<(), String> {
        let place = self.place_of(id).ok_or_else(|| format!("no job {id}"))?;
        if let Some(job) = self.jobs.get_mut(place) {
            job.shown_as = word;
        }
        let uid = self.jobs.get(place).map_or(0, |job| job.uid);
        self.count(uid);
        Ok(())
    }
}
