//! What may be claimed of a whole run, checked from its history alone.

use std::collections::BTreeMap;

use super::cluster::Cluster;
use super::hardware::NodeState;
use super::job::{Job, Phase};
use super::work::Work;
use crate::model::id::JobId;
use crate::model::units::{GpuSeconds, Time};

/// `project.family.shard` of a job name `project.family.shard.a<attempt>`; other names as they are.
pub fn without_attempt(name: &str) -> &str {
    match name.rsplit_once(".a") {
        Some((front, digits))
            if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) =>
        {
            front
        }
        _ => name,
    }
}

/// Two jobs of one shard that were in the queue at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    pub name: String,
    pub first: JobId,
    pub second: JobId,
    pub from: Time,
    /// Both held GPUs at once at some moment: rows may have been done twice.
    pub both_ran: bool,
}

impl<W: Work> Cluster<W> {
    /// Pairs of jobs that came by sbatch under one name but for the attempt, and lived at the same
    /// time, pending or running. Empty is the promise "no shard is submitted twice".
    pub fn overlaps(&self) -> Vec<Overlap> {
        let mut by_name: BTreeMap<(u32, &str), Vec<&Job>> = BTreeMap::new();
        for job in self.jobs.iter().filter(|job| job.program == super::job::Program::Asked) {
            by_name.entry((job.uid, without_attempt(&job.name))).or_default().push(job);
        }
        let mut found = Vec::new();
        for ((_, name), jobs) in by_name {
            // By id, so by first submission: only jobs still alive at a submission can overlap it.
            let mut alive: Vec<&Job> = Vec::new();
            for job in jobs {
                let from = first_submit(job);
                alive.retain(|other| other.ended().is_none_or(|end| end > from));
                found.extend(alive.iter().map(|other| Overlap {
                    name: name.to_owned(),
                    first: other.id,
                    second: job.id,
                    from,
                    both_ran: self.ran_together(other, job),
                }));
                alive.push(job);
            }
        }
        found
    }

    fn ran_together(&self, a: &Job, b: &Job) -> bool {
        let (a, b) = (self.runs_of(a), self.runs_of(b));
        a.iter().any(|(from, to, _)| b.iter().any(|(start, end, _)| from < end && start < to))
    }

    /// (start, end or now, GPUs) of each run.
    pub fn runs_of(&self, job: &Job) -> Vec<(Time, Time, u32)> {
        let over =
            job.stays.iter().filter_map(|stay| Some((stay.started?, stay.ended, job.gpus())));
        over.chain(job.started().map(|start| (start, self.now, job.gpus()))).collect()
    }

    /// GPU-seconds that jobs have run so far, all runs of a requeued job included.
    pub fn gpu_seconds(&self, which: impl Fn(&Job) -> bool) -> GpuSeconds {
        let mut sum = GpuSeconds::default();
        for job in self.jobs.iter().filter(|job| which(job)) {
            for (from, to, gpus) in self.runs_of(job) {
                sum += GpuSeconds::of(gpus, to.since(from));
            }
        }
        sum
    }

    /// The first thing that cannot be: GPUs given twice, a lane over its limit, counters that do
    /// not agree with the jobs, an end without an end. Recounts everything from the jobs.
    pub fn check(&self) -> Result<(), String> {
        let mut on_node: Vec<Vec<u32>> =
            self.nodes.iter().map(|node| vec![0; node.gpus.len()]).collect();
        let mut in_qos = vec![0u32; self.qos.len()];
        for job in self.jobs.iter() {
            let shown = job.ended().is_none_or(|end| end + self.site.min_job_age > self.now);
            let queued =
                self.place_of(job.id).is_some_and(|p| self.queue.binary_search(&p).is_ok());
            if shown && !queued {
                return Err(format!("job {} left squeue too early", job.id));
            }
            if job.stays.len() != job.restarts as usize + usize::from(job.is_over()) {
                return Err(format!("job {} has {} ends", job.id, job.stays.len()));
            }
            let Phase::Running(run) = &job.phase else { continue };
            if let Some(count) = in_qos.get_mut(job.qos) {
                *count += job.gpus();
            }
            let given: u32 = run.taken.iter().map(|(_, count)| count).sum();
            if given != job.gpus() {
                return Err(format!("job {} asked {} GPUs, has {given}", job.id, job.gpus()));
            }
            for (model, count) in &run.taken {
                if let Some(used) = on_node.get_mut(run.node).and_then(|n| n.get_mut(*model)) {
                    *used += count;
                }
            }
            if self
                .nodes
                .get(run.node)
                .is_none_or(|node| matches!(node.state, NodeState::Down | NodeState::Gone))
            {
                return Err(format!("job {} runs on a node that is not there", job.id));
            }
        }
        for (node, counted) in self.nodes.iter().zip(on_node) {
            for (gpus, counted) in node.gpus.iter().zip(counted) {
                if gpus.used != counted || gpus.used > gpus.count {
                    return Err(format!(
                        "{} {}: {} of {} in use, jobs hold {counted}",
                        node.name, gpus.model, gpus.used, gpus.count
                    ));
                }
            }
            if node.cpus_used > node.cpus || node.mem_used > node.mem {
                return Err(format!("{}: CPUs or memory given twice", node.name));
            }
        }
        for (qos, counted) in self.qos.iter().zip(in_qos) {
            if qos.used != counted || qos.gpus.is_some_and(|limit| counted > limit) {
                return Err(format!("{}: {} GPUs in use, jobs hold {counted}", qos.name, qos.used));
            }
        }
        Ok(())
    }
}

fn first_submit(job: &Job) -> Time {
    job.stays.first().map_or(job.submitted, |stay| stay.submitted)
}
