//! The simulated cluster as a value; `build.rs` has the words that a scenario builds it with.
//!
//! It knows Slurm's rules as measured (the measured Slurm facts, cited by section) and nothing of
//! babysit's policy. Everything is kept in lists, in the order of making: no run depends on a hash.

use std::borrow::Cow;
use std::sync::Arc;

use super::ask::Ask;
use super::calendar::Calendar;
use super::clock::Due;
use super::effect::Effect;
use super::faults::{Calls, Faults};
use super::hardware::SimNode;
use super::job::{Job, Jobs, Phase, Program};
use super::rows::Rows;
use super::schedule::Desk;
use super::sheet::Sheet;
use super::site::{Controller, PreemptMode, Site};
use super::work::Work;
use crate::model::cluster::{EndWord, Node};
use crate::model::id::JobId;
use crate::model::pilot::Pilot;
use crate::model::units::{Secs, Time};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Qos {
    pub name: Arc<str>,
    pub priority: u64,
    /// GrpTRES=gres/gpu.
    pub gpus: Option<u32>,
    pub preempts: Vec<String>,
    pub mode: PreemptMode,
    /// Partition whose nodes it leads to, whatever partition a job names.
    pub nodes_of: Option<String>,
    /// GPUs of its running jobs.
    pub used: u32,
}

/// A Slurm cluster with its jobs, its clock and its moods.
#[derive(Debug, Clone)]
pub struct Cluster<W = Rows> {
    /// What the jobs do; see `Work`.
    pub work: W,
    pub site: Site,
    pub faults: Faults,
    /// Command lines of the user's that were run through the door.
    pub ran: Vec<String>,
    /// What such a command fails with.
    pub run_fails: Option<String>,
    /// How often each command was called.
    pub calls: Calls,
    /// Planned events that named something which is not there.
    pub complaints: Vec<String>,
    /// Counts what squeue and sinfo would show differently, but for ages and priorities.
    pub(super) changes: u64,
    /// Of these, changes of a user's jobs, by uid.
    pub(super) changes_of: Vec<(u32, u64)>,
    pub(super) now: Time,
    pub(super) nodes: Vec<SimNode>,
    pub(super) qos: Vec<Qos>,
    pub(super) partitions: Vec<Arc<str>>,
    pub(super) users: Vec<(Arc<str>, u32)>,
    /// (uid, QOS) that the user may not use.
    pub(super) denied: Vec<(u32, usize)>,
    /// Every job ever, by id.
    pub(super) jobs: Jobs,
    pub(super) first_id: u64,
    /// Places in `jobs` of what squeue still shows, by id.
    pub(super) queue: Vec<usize>,
    /// Of these, jobs that are over.
    pub(super) over: usize,
    pub(super) calendar: Calendar<Due>,
    pub(super) pass_due: Option<Time>,
    /// Kinds of jobs so far.
    pub(super) kinds: u32,
    pub(super) controller: Controller,
    /// What a stalled controller was asked meanwhile.
    pub(super) waiting: Vec<Effect>,
    /// Lines of an earlier look, to be written over.
    pub(super) lines: Lines,
    pub(super) desk: Desk,
}

/// See `Cluster::take_back`.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    pub jobs: Sheet,
    /// Those of one user.
    pub mine: Sheet,
    pub nodes: Vec<Node>,
}

/// Where ordinary users' ids begin on most systems.
const FIRST_UID: u32 = 1001;

impl Cluster<Rows> {
    /// An empty cluster whose jobs are shards with rows.
    pub fn at(now: Time) -> Cluster<Rows> {
        Cluster::with(now, Rows::new())
    }
}

impl<W: Work> Cluster<W> {
    /// An empty cluster: partition `gpu`, QOS `normal`, nobody there.
    pub fn with(now: Time, work: W) -> Cluster<W> {
        let cluster = Cluster {
            work,
            site: Site::default(),
            faults: Faults::none(),
            ran: Vec::new(),
            run_fails: None,
            calls: Calls::default(),
            complaints: Vec::new(),
            changes: 0,
            changes_of: Vec::new(),
            now,
            nodes: Vec::new(),
            qos: Vec::new(),
            partitions: vec!["gpu".into()],
            users: Vec::new(),
            denied: Vec::new(),
            jobs: Jobs::default(),
            first_id: 1,
            queue: Vec::new(),
            over: 0,
            calendar: Calendar::new(),
            pass_due: None,
            kinds: 0,
            controller: Controller::Up,
            waiting: Vec::new(),
            lines: Lines::default(),
            desk: Desk::default(),
        };
        cluster.qos("normal", 0, None, &[])
    }

    pub fn now(&self) -> Time {
        self.now
    }

    /// Grows with every change that squeue or sinfo would show, but for ages and priorities, and
    /// for jobs that are over and leave the queue.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Of these, changes of the user's jobs; their reasons for pending do not count.
    pub fn changes_of(&self, uid: u32) -> u64 {
        self.changes_of.iter().find(|(of, _)| *of == uid).map_or(0, |(_, count)| *count)
    }

    /// GPUs that other users' jobs hold, and those that they wait for.
    pub fn gpus_of_others(&self, uid: u32) -> (u32, u32) {
        let jobs = self.queue.iter().filter_map(|&place| self.jobs.get(place));
        jobs.filter(|job| job.uid != uid).fold((0, 0), |(run, wait), job| match job.phase {
            Phase::Running(_) => (run + job.gpus(), wait),
            Phase::Pending => (run, wait + job.gpus()),
            Phase::Over => (run, wait),
        })
    }

    /// A job of the user's is not what it was.
    pub(super) fn job_changed(&mut self, uid: u32) {
        self.count(uid);
        self.changed();
    }

    /// As `job_changed`, where no job can start for it.
    pub(super) fn count(&mut self, uid: u32) {
        self.changes += 1;
        match self.changes_of.iter_mut().find(|(of, _)| *of == uid) {
            Some((_, count)) => *count += 1,
            None => self.changes_of.push((uid, 1)),
        }
    }

    /// Every job there ever was, by id.
    pub fn history(&self) -> &[Job] {
        &self.jobs
    }

    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(self.place_of(id)?)
    }

    pub(super) fn place_of(&self, id: JobId) -> Option<usize> {
        let place = usize::try_from(id.0.checked_sub(self.first_id)?).ok()?;
        (place < self.jobs.len()).then_some(place)
    }

    /// The user's id; somebody new gets the next free one.
    pub fn uid_of(&mut self, user: &str) -> u32 {
        if let Some((_, uid)) = self.users.iter().find(|(name, _)| **name == *user) {
            return *uid;
        }
        let uid = self.users.iter().map(|(_, uid)| uid + 1).max().unwrap_or(0).max(FIRST_UID);
        self.users.push((user.into(), uid));
        uid
    }

    pub(super) fn user_of(&self, uid: u32) -> Arc<str> {
        let known = self.users.iter().find(|(_, u)| *u == uid);
        known.map_or_else(|| uid.to_string().into(), |(name, _)| Arc::clone(name))
    }

    /// Puts a checked job at the end of the queue.
    pub(super) fn enqueue(&mut self, new: NewJob) -> JobId {
        let id = JobId(self.first_id + self.jobs.len() as u64);
        self.queue.push(self.jobs.len());
        self.jobs.push(Job {
            id,
            user: self.user_of(new.uid),
            uid: new.uid,
            name: new.name,
            comment: new.comment,
            account: new.account,
            env: new.env,
            submitted: self.now,
            restarts: 0,
            stays: Vec::new(),
            qos: new.qos,
            or_qos: new.or_qos,
            partition: new.partition,
            ask: new.ask,
            wanted: new.wanted,
            excluded: new.excluded,
            nice: new.nice,
            time_limit: new.time_limit,
            requeue: new.requeue,
            held: None,
            shown_as: None,
            begin: self.now,
            program: new.program,
            pilot: new.pilot,
            phase: Phase::Pending,
            reason: Cow::Borrowed("None"),
            turn: 0,
            outcome: (EndWord::Completed, Cow::Borrowed("0:0")),
            mark: 0,
            kind: 0,
        });
        let kind = self.kind_of_last();
        if let Some(job) = self.jobs.get_mut(self.jobs.len() - 1) {
            job.kind = kind;
        }
        self.job_changed(new.uid);
        id
    }

    /// That of the job before it, where the two ask the same.
    fn kind_of_last(&mut self) -> u32 {
        if let [.., before, last] = self.queue.as_slice()
            && self.ask_the_same(*before, *last)
            && let Some(job) = self.jobs.get(*before)
        {
            return job.kind;
        }
        self.new_kind()
    }

    pub(super) fn new_kind(&mut self) -> u32 {
        self.kinds += 1;
        self.kinds
    }
}

/// All of a submission that has been found good.
#[derive(Debug, Clone)]
pub(super) struct NewJob {
    pub uid: u32,
    pub name: String,
    pub comment: String,
    pub account: Arc<str>,
    pub env: Arc<[(String, String)]>,
    pub qos: usize,
    pub or_qos: Vec<usize>,
    pub partition: usize,
    pub ask: Ask,
    pub wanted: Option<usize>,
    pub excluded: Vec<String>,
    pub nice: i64,
    pub time_limit: Option<Secs>,
    pub requeue: bool,
    pub program: Program,
    pub pilot: Option<Box<Pilot>>,
}
