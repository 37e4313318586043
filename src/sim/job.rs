//! One job of the simulated cluster, from sbatch to the end, with every run it had.

use std::borrow::Cow;

use super::ask::Ask;
use super::hardware::Taken;
use crate::model::cluster::{EndWord, GpuCount, JobState, QueueJob};
use crate::model::id::JobId;
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
    pub qos: String,
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: JobId,
    pub uid: u32,
    pub user: String,
    pub name: String,
    pub comment: String,
    pub account: String,
    /// The BABYSIT_* variables of its request.
    pub env: Vec<(String, String)>,
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
    pub(super) phase: Phase,
    pub(super) reason: Cow<'static, str>,
    /// Which start or wait an event in the calendar belongs to; older ones are void.
    pub(super) turn: u32,
    /// How the present run will end by itself.
    pub(super) outcome: (EndWord, Cow<'static, str>),
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

    /// A line of squeue.
    pub(super) fn seen(&self, qos: &str, partition: &str, node: &str, priority: u64) -> QueueJob {
        let over = self.last_stay();
        let state = match (&self.phase, over) {
            (Phase::Running(_), _) => JobState::Running,
            (Phase::Over, Some(stay)) => JobState::Over(stay.end),
            (Phase::Pending | Phase::Over, _) => JobState::Pending,
        };
        let state = match self.shown_as {
            Some(word) => JobState::Alive(word.to_owned()),
            None => state,
        };
        let started = self.started().or(over.and_then(|stay| stay.started));
        let ends = match over {
            Some(stay) => Some(stay.ended),
            None => self.started().zip(self.time_limit).map(|(start, limit)| start + limit),
        };
        let nodes = match (&self.phase, over.and_then(|stay| stay.node.as_ref())) {
            (Phase::Running(_), _) => vec![node.to_owned()],
            (_, Some(node)) => vec![node.clone()],
            (_, None) => Vec::new(),
        };
        QueueJob {
            id: self.id,
            uid: self.uid,
            user: self.user.clone(),
            state,
            qos: qos.to_owned(),
            partition: partition.to_owned(),
            account: self.account.clone(),
            gpus: Some(self.gpus()),
            asked: self.ask.gpus.clone(),
            cpus: Some(self.ask.cpus),
            submitted: Some(self.submitted),
            started,
            ends,
            time_limit: self.time_limit,
            priority: Some(priority),
            nice: self.nice,
            nodes,
            excluded: Some(self.excluded.clone()),
            restarts: self.restarts,
            requeue: self.requeue,
            reason: self.reason.clone().into_owned(),
            name: self.name.clone(),
            comment: self.comment.clone(),
        }
    }
}
