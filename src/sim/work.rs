//! What a job does while it has its GPUs: the cluster asks, somebody else answers.

use std::borrow::Cow;

use super::job::Job;
use crate::model::cluster::{EndWord, GpuCount};
use crate::model::id::JobId;
use crate::model::pilot::Pilot;
use crate::model::units::{Secs, Time};

/// A job that has just been given its GPUs.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    pub job: JobId,
    pub user: &'a str,
    pub uid: u32,
    pub name: &'a str,
    pub comment: &'a str,
    /// The BABYSIT_* variables of its request.
    pub env: &'a [(String, String)],
    pub at: Time,
    pub node: &'a str,
    /// The models it got.
    pub gpus: &'a [GpuCount],
    /// 0 for the first run of this id.
    pub restarts: u32,
    /// When its time limit ends it.
    pub ends: Option<Time>,
    /// It decides itself which shard it works on.
    pub pilot: Option<&'a Pilot>,
}

impl<'a> Start<'a> {
    pub(super) fn of(job: &'a Job, at: Time, node: &'a str, gpus: &'a [GpuCount]) -> Start<'a> {
        Start {
            job: job.id,
            user: &job.user,
            uid: job.uid,
            name: &job.name,
            comment: &job.comment,
            env: &job.env,
            at,
            node,
            gpus,
            restarts: job.restarts,
            ends: job.time_limit.map(|limit| at + limit),
            pilot: job.pilot.as_deref(),
        }
    }

    /// A variable of the job's environment.
    pub fn var(&self, name: &str) -> Option<&'a str> {
        self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// How a run goes if nobody interferes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// `None`: it never ends by itself.
    pub lasts: Option<Secs>,
    pub end: EndWord,
    /// `code:signal`, as sacct prints it.
    pub exit: Cow<'static, str>,
}

impl Run {
    pub fn completes(after: Secs) -> Run {
        Run { lasts: Some(after), end: EndWord::Completed, exit: "0:0".into() }
    }
    pub fn fails(after: Secs) -> Run {
        Run { lasts: Some(after), end: EndWord::Failed, exit: "1:0".into() }
    }
    pub fn forever() -> Run {
        Run { lasts: None, end: EndWord::Completed, exit: "0:0".into() }
    }
}

/// The programs of the jobs that came by sbatch.
pub trait Work {
    fn start(&mut self, start: &Start<'_>) -> Run;
    /// A run that completes by itself now may have found more to do.
    fn goes_on(&mut self, _: JobId, _: Time) -> Option<Run> {
        None
    }
    /// The run is over, whoever ended it.
    fn end(&mut self, job: JobId, at: Time, how: EndWord);
}

/// Every job runs for the same time and leaves nothing behind.
#[derive(Debug, Clone)]
pub struct Lasting(pub Option<Secs>);

impl Work for Lasting {
    fn start(&mut self, _: &Start<'_>) -> Run {
        Run { lasts: self.0, ..Run::forever() }
    }
    fn end(&mut self, _: JobId, _: Time, _: EndWord) {}
}
