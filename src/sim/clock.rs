//! Time: what is due happens at its own second, however far the clock is moved at once.

use std::borrow::Cow;
use std::sync::Arc;

use super::cluster::Cluster;
use super::effect::Effect;
use super::events::Event;
use super::hardware::NodeState;
use super::job::{Phase, Program, Running, Stay};
use super::work::{Run, Start, Work};
use crate::model::cluster::{EndWord, GpuCount};
use crate::model::units::{Secs, Time};

/// What a moment brings.
#[derive(Debug, Clone)]
pub(super) enum Due {
    /// A run ends by itself, unless it is another turn of the job by then.
    End {
        job: usize,
        turn: u32,
    },
    /// A requeued job may be looked at again.
    Begin {
        job: usize,
        turn: u32,
    },
    Event(Event),
    /// A request that reached the controller after its sender had given up.
    Effect(Effect),
}

/// What becomes of a job whose run somebody else ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Over,
    /// Back into the queue, where the job allows it.
    Requeue,
}

/// How long a requeued job is kept from starting (facts, section 6 iii).
const REQUEUE_WAIT: Secs = Secs(120);

impl<W: Work> Cluster<W> {
    /// Moves the clock on by so many seconds.
    pub fn advance(&mut self, seconds: i64) {
        self.advance_to(self.now + Secs(seconds.max(0)));
    }

    /// Moves the clock on; a moment that has passed changes nothing.
    pub fn advance_to(&mut self, target: Time) {
        loop {
            let next = [self.calendar.next_at(), self.pass_due].into_iter().flatten().min();
            let Some(next) = next.filter(|at| *at <= target) else { break };
            self.now = self.now.max(next);
            while let Some(due) = self.calendar.take_due(self.now) {
                self.happen(due);
            }
            if self.pass_due.is_some_and(|at| at <= self.now) {
                self.pass();
            }
        }
        self.now = self.now.max(target);
        if self.over > 0 {
            self.forget();
        }
    }

    /// What is over leaves the queue after a while.
    fn forget(&mut self) {
        let (now, keep) = (self.now, self.site.min_job_age);
        let (jobs, before) = (&self.jobs, self.queue.len());
        self.queue.retain(|&place| {
            let gone = |job: &super::job::Job| {
                job.shown_as.is_none() && job.ended().is_some_and(|at| at + keep <= now)
            };
            !jobs.get(place).is_some_and(gone)
        });
        self.over -= before - self.queue.len();
    }

    /// Lets the scheduler act on everything now, without waiting for its delay.
    pub fn schedule_now(&mut self) {
        self.pass();
    }

    /// Something changed that may let a job start. Never schedules by itself: in the middle of a
    /// pass the GPUs of a victim would go to somebody else.
    pub(super) fn changed(&mut self) {
        self.changes += 1;
        let due = self.now + self.site.sched_delay;
        self.pass_due = Some(self.pass_due.map_or(due, |at| at.min(due)));
    }

    /// With a delay of 0 the scheduler has acted before a command returns.
    pub(super) fn catch_up(&mut self) {
        while self.pass_due.is_some_and(|at| at <= self.now) {
            self.pass();
        }
    }

    fn happen(&mut self, due: Due) {
        let present = |cluster: &Cluster<W>, job: usize, turn: u32| {
            cluster.jobs.get(job).is_some_and(|job| job.turn == turn && !job.is_over())
        };
        match due {
            Due::End { job, turn } => {
                if present(self, job, turn) && !self.goes_on(job, turn) {
                    let outcome = self.jobs.get(job).map(|job| job.outcome.clone());
                    if let Some((end, exit)) = outcome {
                        self.leave(job, end, exit, None, Then::Over);
                    }
                }
            }
            Due::Begin { job, turn } => {
                if present(self, job, turn) {
                    self.changed();
                }
            }
            Due::Event(event) => {
                if let Err(complaint) = self.event(event) {
                    self.complaints.push(complaint);
                }
            }
            Due::Effect(effect) => self.take_effect(effect),
        }
    }

    /// Its program has more to do, and its time limit allows it.
    fn goes_on(&mut self, place: usize, turn: u32) -> bool {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(place) else { return false };
        if job.program != Program::Asked || job.outcome.0 != EndWord::Completed {
            return false;
        }
        let Some(run) = self.work.goes_on(job.id, now) else { return false };
        let end = run.lasts.map(|lasts| now + lasts);
        let limit = job.started().zip(job.time_limit).map(|(start, limit)| start + limit);
        let limit = limit.filter(|limit| end.is_none_or(|end| *limit < end));
        job.outcome = match limit {
            Some(_) => (EndWord::Timeout, Cow::Borrowed("0:0")),
            None => (run.end, run.exit),
        };
        if let Some(at) = limit.or(end) {
            self.calendar.put(at, Due::End { job: place, turn });
        }
        true
    }

    /// Gives a pending job its GPUs.
    pub(super) fn start(&mut self, place: usize, node: usize, taken: Vec<(usize, u32)>) {
        let now = self.now;
        let (Some(job), Some(host)) = (self.jobs.get_mut(place), self.nodes.get_mut(node)) else {
            return;
        };
        host.take(&job.ask, &taken);
        if let Some(qos) = self.qos.get_mut(job.qos) {
            qos.used += job.ask.total();
        }
        let run = match &job.program {
            Program::Lasts(lasts) => Run { lasts: *lasts, ..Run::forever() },
            Program::Asked => {
                let gpus = models(&host.gpus, &taken);
                self.work.start(&Start::of(job, now, &host.name, &gpus))
            }
        };
        job.turn += 1;
        job.phase = Phase::Running(Running { started: now, node, taken });
        job.reason = Cow::Borrowed("None");
        let lasts = match (run.lasts, job.time_limit) {
            (Some(lasts), Some(limit)) if limit < lasts => None,
            (lasts, _) => lasts,
        };
        let (after, outcome) = match (lasts, job.time_limit) {
            (Some(lasts), _) => (Some(lasts), (run.end, run.exit)),
            (None, limit) => (limit, (EndWord::Timeout, Cow::Borrowed("0:0"))),
        };
        job.outcome = outcome;
        let uid = job.uid;
        if let Some(after) = after {
            self.calendar.put(now + Secs(after.0.max(0)), Due::End { job: place, turn: job.turn });
        }
        self.count(uid);
    }

    /// Ends a job's stay, pending or running.
    pub(super) fn leave(
        &mut self,
        place: usize,
        end: EndWord,
        exit: impl Into<Cow<'static, str>>,
        cancelled_by: Option<u32>,
        then: Then,
    ) {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(place).filter(|job| !job.is_over()) else { return };
        let qos = self.qos.get_mut(job.qos);
        let mut stay = Stay {
            submitted: job.submitted,
            started: None,
            ended: now,
            end,
            exit: exit.into(),
            node: None,
            gpus: Vec::new(),
            qos: qos.as_ref().map_or_else(Arc::default, |qos| Arc::clone(&qos.name)),
            cancelled_by,
        };
        if let Phase::Running(run) = &job.phase {
            stay.started = Some(run.started);
            if let Some(qos) = qos {
                qos.used = qos.used.saturating_sub(job.ask.total());
            }
            if let Some(host) = self.nodes.get_mut(run.node) {
                host.give_back(&job.ask, &run.taken);
                stay.node = Some(host.name.clone());
                stay.gpus = models(&host.gpus, &run.taken);
            }
            if job.program == Program::Asked {
                self.work.end(job.id, now, end);
            }
        }
        job.stays.push(stay);
        job.turn += 1;
        if then == Then::Requeue && job.requeue {
            job.phase = Phase::Pending;
            job.submitted = now;
            job.begin = now + REQUEUE_WAIT;
            job.restarts += 1;
            job.reason = Cow::Borrowed("BeginTime");
            self.calendar.put(job.begin, Due::Begin { job: place, turn: job.turn });
        } else {
            job.phase = Phase::Over;
            self.over += 1;
            match end {
                EndWord::Failed => job.reason = Cow::Borrowed("NonZeroExitCode"),
                EndWord::Timeout => job.reason = Cow::Borrowed("TimeLimit"),
                // A cancelled job keeps the reason it was pending for (section 1).
                _ => {}
            }
        }
        let uid = job.uid;
        self.job_changed(uid);
    }

    /// Places of the running jobs on a node.
    pub(super) fn running_on(&self, node: usize) -> Vec<usize> {
        let here = |place: &usize| {
            let phase = self.jobs.get(*place).map(|job| &job.phase);
            matches!(phase, Some(Phase::Running(run)) if run.node == node)
        };
        self.queue.iter().copied().filter(here).collect()
    }

    pub(super) fn set_node(&mut self, node: usize, state: NodeState) {
        if let Some(host) = self.nodes.get_mut(node) {
            host.state = state;
        }
        self.changed();
    }
}

fn models(gpus: &[super::hardware::Gpus], taken: &[(usize, u32)]) -> Vec<GpuCount> {
    let named = |&(place, count): &(usize, u32)| {
        let model = gpus.get(place).map(|g| g.model.clone()).filter(|m| !m.is_empty());
        GpuCount { model, count }
    };
    taken.iter().map(named).collect()
}
