//! One job of the simulated cluster, from sbatch to the end, with every run it had.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use super::ask::Ask;
use super::hardware::Taken;
use crate::model::cluster::{EndWord, GpuCount, JobState, QueueJob};
use crate::model::id::JobId;
use crate::model::pilot::Pilot;
use crate::model::units::{Secs, Time};

/// What decides how long a job runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// The cluster's `Work` is asked at each start.
    Asked,
    /// Somebody else's job: this long (`None`: until it is ended), then COMPLETED.
    Lasts(Option<Secs>),
}

/// One stay of a job on a node; a requeued job has several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stay {
    pub submitted: Time,
    /// `None`: it never started.
    pub started: Option<Time>,
    pub ended: Time,
    pub end: EndWord,
    /// `code:signal`, as sacct has it.
    pub exit: Cow<'static, str>,
    pub node: Option<String>,
    /// The models it got, which the request need not name.
    pub gpus: Vec<GpuCount>,
    pub qos: Arc<str>,
    /// uid of who cancelled it.
    pub cancelled_by: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Running {
    pub started: Time,
    pub node: usize,
    pub taken: Taken,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    Pending,
    Running(Running),
    Over,
}

/// Every job ever, by id. Whoever takes one to change it leaves a mark on it, so that squeue knows the
/// lines that it need not write anew.
#[derive(Debug, Clone, Default)]
pub(super) struct Jobs(Vec<Job>);

impl Jobs {
    pub fn get_mut(&mut self, place: usize) -> Option<&mut Job> {
        let job = self.0.get_mut(place)?;
        job.mark += 1;
        Some(job)
    }

    pub fn push(&mut self, job: Job) {
        self.0.push(job);
    }
}

impl Deref for Jobs {
    type Target = [Job];

    fn deref(&self) -> &[Job] {
        &self.0
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: JobId,
    pub uid: u32,
    pub user: Arc<str>,
    pub name: String,
    pub comment: String,
    pub account: Arc<str>,
    /// The BABYSIT_* variables of its request.
    pub env: Arc<[(String, String)]>,
    /// Of its present incarnation: a requeue resets it (slurm-facts.md section 6 iii).
    pub submitted: Time,
    pub restarts: u32,
    /// Every stay that is over, oldest first.
    pub stays: Vec<Stay>,
    pub(super) qos: usize,
    /// The others of its list, in which it may start as well (facts, section 9).
    pub(super) or_qos: Vec<usize>,
    pub(super) partition: usize,
    pub(super) ask: Ask,
    pub(super) wanted: Option<usize>,
    pub(super) excluded: Vec<String>,
    pub(super) nice: i64,
    pub(super) time_limit: Option<Secs>,
    pub(super) requeue: bool,
    /// Kept from starting, with the reason that squeue gives.
    pub(super) held: Option<&'static str>,
    /// A state word that squeue shows instead of the true one.
    pub(super) shown_as: Option<&'static str>,
    /// Not to be started before this.
    pub(super) begin: Time,
    pub(super) program: Program,
    pub(super) pilot: Option<Box<Pilot>>,
    pub(super) phase: Phase,
    pub(super) reason: Cow<'static, str>,
    /// Which start or wait an event in the calendar belongs to; older ones are void.
    pub(super) turn: u32,
    /// How the present run will end by itself.
    pub(super) outcome: (EndWord, Cow<'static, str>),
    /// How often it was changed, or taken to be.
    pub(super) mark: u32,
    /// Jobs of one kind ask the same of the scheduler; those of two may.
    pub(super) kind: u32,
}

impl Job {
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }
    pub fn is_pending(&self) -> bool {
        self.phase == Phase::Pending
    }
    pub fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running(_))
    }
    pub fn gpus(&self) -> u32 {
        self.ask.total()
    }
    /// Start of the present run.
    pub fn started(&self) -> Option<Time> {
        match &self.phase {
            Phase::Running(run) => Some(run.started),
            Phase::Pending | Phase::Over => None,
        }
    }
    /// The last word, once it is over for good.
    pub fn end(&self) -> Option<EndWord> {
        self.last_stay().map(|stay| stay.end)
    }
    /// When it was over for good.
    pub fn ended(&self) -> Option<Time> {
        self.last_stay().map(|stay| stay.ended)
    }
    pub(super) fn last_stay(&self) -> Option<&Stay> {
        self.stays.last().filter(|_| self.is_over())
    }

    /// A line of squeue, but for the priority. `line` is an empty one, some job's that is gone, or the
    /// same job's from an earlier look: then what a job never changes is in it already. `qos`: `None`
    /// where the line has it.
    pub(super) fn show(
        &self,
        line: &mut QueueJob,
        qos: Option<Arc<str>>,
        partition: &Arc<str>,
        node: &str,
    ) {
        if line.id != self.id || line.user.is_empty() {
            line.id = self.id;
            line.uid = self.uid;
            line.user = Arc::clone(&self.user);
            line.gpus = Some(self.gpus());
            line.asked.clone_from(&self.ask.gpus);
            line.cpus = Some(self.ask.cpus);
            line.time_limit = self.time_limit;
            line.requeue = self.requeue;
            line.name.clone_from(&self.name);
            line.comment.clone_from(&self.comment);
        }
        let over = self.last_stay();
        line.state = match (self.shown_as, &self.phase, over) {
            (Some(word), _, _) => JobState::Alive(word.to_owned()),
            (None, Phase::Running(_), _) => JobState::Running,
            (None, Phase::Over, Some(stay)) => JobState::Over(stay.end),
            (None, Phase::Pending | Phase::Over, _) => JobState::Pending,
        };
        if let Some(qos) = qos {
            line.qos = qos;
        }
        line.partition.clone_from(partition);
        line.account.clone_from(&self.account);
        line.submitted = Some(self.submitted);
        line.started = self.started().or(over.and_then(|stay| stay.started));
        line.ends = match over {
            Some(stay) => Some(stay.ended),
            None => self.started().zip(self.time_limit).map(|(start, limit)| start + limit),
        };
        line.nice = self.nice;
        let node = match (&self.phase, over.and_then(|stay| stay.node.as_deref())) {
            (Phase::Running(_), _) => Some(node),
            (_, node) => node,
        };
        match (line.nodes.as_mut_slice(), node) {
            ([there], Some(node)) => put(there, node),
            (_, node) => line.nodes = node.map(str::to_owned).into_iter().collect(),
        }
        match &mut line.excluded {
            Some(there) if *there == self.excluded => {}
            other => *other = Some(self.excluded.clone()),
        }
        line.restarts = self.restarts;
        share(&mut line.reason, &self.reason);
    }
}

/// The same text is not made again.
fn share(text: &mut Arc<str>, new: &str) {
    if **text != *new {
        *text = new.into();
    }
}

/// Into the memory that it has, where it is not there already.
fn put(text: &mut String, new: &str) {
    if text != new {
        text.clear();
        text.push_str(new);
    }
}
