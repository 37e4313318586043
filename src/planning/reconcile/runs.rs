//! The runs of a job as they become past, each charged once (policy.md section 7): those we saw,
//! those that Slurm's requeueing ended, and those that only accounting knows.

use crate::model::cluster::{GpuCount, JobState, Node, QueueJob};
use crate::model::observation::PastJob;
use crate::model::policy::{Policy, Tier};
use crate::model::state::{Attempt, Live};
use crate::model::units::Secs;

use super::super::account::{self, Run};
use super::super::event::What;
use super::Step;

impl Step<'_, '_> {
    /// Slurm put the job back by itself: the run we know of is over, and its submit time was reset
    /// at that moment. Where more than one run went by, only accounting has their ends; it is
    /// asked when the job is over.
    pub(super) fn put_back(&mut self, live: &mut Live, job: &QueueJob) {
        // A job on its way back counts the restart while the old run is still ending.
        let began = job.started.map(|run| live.begun(run, live.restarts));
        let ending = job.state.holds_gpus() && began.is_some() && began == live.started;
        if ending {
            return;
        }
        let restarts = job.restarts.saturating_sub(live.restarts);
        live.restarts = job.restarts;
        if restarts == 0 && job.state != JobState::Pending {
            return;
        }
        if self.past.off {
            // Nobody will ever tell of those that were not seen.
            live.paid = live.restarts;
        }
        let Some(started) = live.started.take() else { return };
        self.record.preemptions += 1;
        let reset = job.submitted.filter(|at| restarts <= 1 && *at >= started);
        if let Some(ended) = reset.or(self.past.off.then_some(self.now)) {
            let (attempt, gpus) = (live.attempt.number, live.attempt.gpus);
            self.charge(&Run { attempt, gpus, started, ended, tier: live.tier.as_deref() });
            if live.paid + restarts == live.restarts {
                live.paid = live.restarts;
            }
        }
    }

    /// A pilot may be another shard's next: runs of it that nobody saw are paid for here, as soon as
    /// accounting tells of them.
    pub(super) fn pay_earlier(&mut self, live: &mut Live) {
        let unpaid = live.restarts.saturating_sub(live.paid) as usize;
        let rows = self.past.runs(&live.attempt, live.job, live.paid);
        let rows = rows.get(..unpaid).filter(|rows| rows.iter().all(|row| row.is_over()));
        let Some(rows) = rows else { return };
        for (run, row) in (live.paid..).zip(rows) {
            self.charge_row(&live.attempt, row, live.after(run));
        }
        live.paid = live.restarts;
    }

    /// Charges the runs that a job had before its last one. `Err`: accounting cannot tell yet.
    pub(super) fn charge_earlier(&mut self, live: &Live, job: &QueueJob) -> Result<(), String> {
        if self.past.off {
            return Ok(());
        }
        if let Some(why) = self.past.gap {
            return Err(why.to_owned());
        }
        let others = live.runs_before();
        let rows = self.past.runs(&live.attempt, job.id, others);
        let over = |(_, row): &(u32, &PastJob)| row.is_over() && row.started != job.started;
        let earlier: Vec<(u32, &PastJob)> = (others..).zip(rows).filter(over).collect();
        if earlier.len() < job.restarts.saturating_sub(others) as usize {
            return Err("accounting does not have all of its runs yet".to_owned());
        }
        for (run, row) in earlier {
            self.charge_row(&live.attempt, row, live.after(run));
        }
        Ok(())
    }

    /// `after`: the attempt began so long after the run did.
    pub(super) fn charge_row(&mut self, attempt: &Attempt, row: &PastJob, after: Secs) {
        let started = row.started.filter(|_| !row.nodes.is_empty()).map(|run| run + after);
        let (Some(started), Some(ended)) = (started, row.ended) else { return };
        let tier = self.tier_of_run(attempt, &row.nodes, &[]);
        let (attempt, gpus) = (attempt.number, attempt.gpus);
        self.charge(&Run { attempt, gpus, started, ended, tier: tier.as_deref() });
    }

    pub(super) fn tier_of_run(
        &self,
        attempt: &Attempt,
        nodes: &[String],
        asked: &[GpuCount],
    ) -> Option<String> {
        let min = self.record.min_tier.or(self.policy.shards[self.shard].min_tier);
        tier_of_run(self.policy, self.nodes, min, attempt, nodes, asked)
    }

    pub(super) fn charge(&mut self, run: &Run<'_>) {
        let lab = &self.policy.shards[self.shard].lab;
        let new = account::charge_run(self.policy, lab, self.record, self.labs, run, self.now);
        self.record.ran += new;
        if new.0 > 0 {
            self.tell(What::Charged { attempt: run.attempt, gpu_seconds: new.0 });
        }
    }
}

/// The tier a run is charged at: as pinned, as asked, or as its node has it. On a mixed node
/// Slurm's queue does not show which model an untyped job got: the lower one is charged.
///
/// `min`: rank of the lowest tier that the shard may run on.
pub(in crate::planning) fn tier_of_run(
    policy: &Policy,
    all: &[Node],
    min: Option<u32>,
    attempt: &Attempt,
    nodes: &[String],
    asked: &[GpuCount],
) -> Option<String> {
    if let Some(pin) = &attempt.pin {
        return Some(pin.tier.clone());
    }
    let asked = asked.iter().find_map(|ask| ask.model.as_deref());
    if let Some(tier) = asked.and_then(|model| policy.tier_of(model)) {
        return Some(tier.name.clone());
    }
    let good = |tier: &&Tier| min.is_none_or(|min| tier.rank >= min);
    let Some(node) = all.iter().find(|node| nodes.first() == Some(&node.name)) else {
        // The node has left the cluster since: what it must at least have had.
        return policy.tiers.iter().find(good).map(|tier| tier.name.clone());
    };
    let models = node.gpus.iter().flatten().filter_map(|gpus| gpus.model.as_deref());
    let tiers = models.filter_map(|model| policy.tier_of(model));
    tiers.filter(good).min_by_key(|tier| tier.rank).map(|tier| tier.name.clone())
}
