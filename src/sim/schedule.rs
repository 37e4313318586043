//! One pass of the scheduler: who starts, who makes way, and why the others wait.
//!
//! Order: priority (QOS, age, nice), then submit time, then id. A job takes the first node, in the
//! order of slurm.conf, that has room. What a job waits for never includes what its QOS forbids.

use std::borrow::Cow;
use std::cmp::Reverse;

use super::clock::Then;
use super::cluster::Cluster;
use super::hardware::{NodeState, SimNode, Taken};
use super::job::{Job, Phase};
use super::site::{Controller, PreemptMode};
use super::work::Work;
use crate::model::cluster::EndWord;
use crate::model::units::Time;

/// Points of a QOS with priority 1: priority 100 gave 1000 where it was measured (section 5 ii).
const POINTS_PER_QOS_PRIORITY: u64 = 10;

enum Verdict {
    Start {
        qos: usize,
        node: usize,
        taken: Taken,
        victims: Vec<usize>,
    },
    Wait(Cow<'static, str>),
    /// Room is all that is missing.
    NoRoom,
}

/// What a pass goes over; its memory serves the next one.
#[derive(Debug, Clone, Default)]
pub(super) struct Desk {
    order: Vec<(Reverse<u64>, Time, usize)>,
    /// By partition: somebody there waits for room.
    blocked: Vec<bool>,
    /// By node: not for those who come after.
    closed: Vec<bool>,
}

impl<W: Work> Cluster<W> {
    /// The number that squeue prints: 0 while it is held, else at least 1.
    pub(super) fn priority(&self, job: &Job) -> u64 {
        if job.held.is_some() {
            return 0;
        }
        let qos = self.qos.get(job.qos).map_or(0, |qos| qos.priority * POINTS_PER_QOS_PRIORITY);
        let since = job.submitted.max(job.begin);
        let age = self.now.since(since).0.min(self.site.age_max.0).max(0) as u64;
        let age = self.site.age_weight * age / self.site.age_max.0.max(1) as u64;
        let points = i128::from(qos) + i128::from(age) - i128::from(job.nice);
        u64::try_from(points.max(1)).unwrap_or(u64::MAX)
    }

    pub(super) fn pass(&mut self) {
        // Cleared first, so that what this pass itself changes (victims) asks for another one.
        self.pass_due = None;
        if self.controller != Controller::Up {
            return;
        }
        let mut desk = std::mem::take(&mut self.desk);
        self.lay_out(&mut desk);
        // The job that waited last, and what for: one that asks the same waits for the same.
        let mut last: Option<(usize, Option<Cow<'static, str>>)> = None;
        for &(_, _, place) in &desk.order {
            let verdict = match last.take() {
                Some((other, why)) if self.ask_the_same(other, place) => {
                    why.map_or(Verdict::NoRoom, Verdict::Wait)
                }
                _ => self.verdict(place, &desk.closed),
            };
            match verdict {
                Verdict::Start { qos, node, taken, victims } => {
                    self.settle_qos(place, qos);
                    for victim in victims {
                        self.preempt(victim);
                    }
                    self.start(place, node, taken);
                }
                Verdict::Wait(reason) => {
                    self.set_reason(place, reason.clone());
                    last = Some((place, Some(reason)));
                }
                Verdict::NoRoom => {
                    let partition = self.jobs.get(place).map(|job| job.partition);
                    let first = partition.and_then(|partition| desk.blocked.get_mut(partition));
                    let second = first.is_some_and(|flag| std::mem::replace(flag, true));
                    let word = if second { "Priority" } else { "Resources" };
                    self.set_reason(place, Cow::Borrowed(word));
                    if !self.site.backfill {
                        self.close_for_others(place, &mut desk.closed);
                    }
                    last = Some((place, None));
                }
            }
        }
        self.desk = desk;
    }

    fn set_reason(&mut self, place: usize, reason: Cow<'static, str>) {
        if self.jobs.get(place).is_some_and(|job| job.reason != reason)
            && let Some(job) = self.jobs.get_mut(place)
        {
            job.reason = reason;
        }
    }

    /// Nothing that a verdict goes by tells these two apart.
    pub(super) fn ask_the_same(&self, one: usize, other: usize) -> bool {
        let Some((a, b)) = self.jobs.get(one).zip(self.jobs.get(other)) else { return false };
        if a.kind == b.kind && a.kind > 0 {
            return true;
        }
        (a.qos, a.partition, a.wanted) == (b.qos, b.partition, b.wanted)
            && a.or_qos == b.or_qos
            && a.ask == b.ask
            && a.excluded == b.excluded
    }

    /// The pending jobs that may be looked at; the others get their reason here.
    fn lay_out(&mut self, desk: &mut Desk) {
        let Desk { order, blocked, closed } = desk;
        order.clear();
        blocked.clear();
        blocked.resize(self.partitions.len(), false);
        closed.clear();
        closed.resize(self.nodes.len(), false);
        for at in 0..self.queue.len() {
            let Some(&place) = self.queue.get(at) else { break };
            let Some(job) = self.jobs.get(place).filter(|job| job.is_pending()) else { continue };
            let kept = job.held.or((job.begin > self.now).then_some("BeginTime"));
            match kept {
                None => order.push((Reverse(self.priority(job)), job.submitted, place)),
                Some(word) => self.set_reason(place, Cow::Borrowed(word)),
            }
        }
        order.sort_unstable();
    }

    /// May the job use this node at all, up or not?
    pub(super) fn may_use(&self, job: &Job, qos: usize, node: usize, host: &SimNode) -> bool {
        host.state != NodeState::Gone
            && job.wanted.is_none_or(|wanted| wanted == node)
            && self.leads_to(qos, job.partition, host)
            && !job.excluded.contains(&host.name)
            && host.could_hold(&job.ask)
    }

    /// A node that a job of this QOS and partition may get to.
    pub(super) fn leads_to(&self, qos: usize, partition: usize, host: &SimNode) -> bool {
        let own = self.qos.get(qos).and_then(|qos| qos.nodes_of.as_deref());
        let partition = own.or(self.partitions.get(partition).map(|p| &**p));
        partition.is_some_and(|p| host.partitions.iter().any(|of| *of == *p))
    }

    /// Which of a list of QOS the job runs in; the others it may get after a requeue.
    fn settle_qos(&mut self, place: usize, qos: usize) {
        let kind = self.new_kind();
        let Some(job) = self.jobs.get_mut(place) else { return };
        if let Some(other) = job.or_qos.iter_mut().find(|other| **other == qos) {
            *other = std::mem::replace(&mut job.qos, qos);
            job.kind = kind;
        }
    }

    /// The first QOS of the job's list in which it can start; else what the first one lacks.
    fn verdict(&self, place: usize, closed: &[bool]) -> Verdict {
        let Some(job) = self.jobs.get(place) else { return Verdict::NoRoom };
        let first = self.verdict_in(job, job.qos, closed);
        if matches!(first, Verdict::Start { .. }) || job.or_qos.is_empty() {
            return first;
        }
        let mut others = job.or_qos.iter().map(|&qos| self.verdict_in(job, qos, closed));
        others.find(|v| matches!(v, Verdict::Start { .. })).unwrap_or(first)
    }

    fn verdict_in(&self, job: &Job, in_qos: usize, closed: &[bool]) -> Verdict {
        let Some(qos) = self.qos.get(in_qos) else { return Verdict::NoRoom };
        if qos.gpus.is_some_and(|limit| qos.used + job.ask.total() > limit) {
            return Verdict::Wait(Cow::Borrowed("QOSGrpGRES"));
        }
        let may = |&(node, host): &(usize, &SimNode)| self.may_use(job, in_qos, node, host);
        let (mut up, mut other) = (false, false);
        for (node, host) in self.nodes.iter().enumerate().filter(may) {
            if host.state != NodeState::Up {
                other = true;
                continue;
            }
            up = true;
            if closed.get(node).copied().unwrap_or(false) {
                continue;
            }
            if let Some(taken) = host.room_for(&job.ask) {
                return Verdict::Start { qos: in_qos, node, taken, victims: Vec::new() };
            }
        }
        if !up {
            return Verdict::Wait(match other {
                false => Cow::Borrowed("BadConstraints"),
                true => {
                    let there = self.nodes.iter().enumerate().filter(may);
                    let names: Vec<&str> = there.map(|(_, host)| host.name.as_str()).collect();
                    let names = names.join(",");
                    Cow::Owned(format!("ReqNodeNotAvail, UnavailableNodes:{names}"))
                }
            });
        }
        if qos.preempts.is_empty() {
            return Verdict::NoRoom;
        }
        let open = |node: &usize| !closed.get(*node).copied().unwrap_or(false);
        let there = self.nodes.iter().enumerate().filter(may);
        let usable = there.filter(|(_, host)| host.state == NodeState::Up).map(|(node, _)| node);
        // The fewest victims; among equals those that lose least, the youngest; then by node.
        let choices = usable.filter(open).filter_map(|node| {
            let (victims, taken) = self.victims(job, &qos.preempts, node)?;
            let oldest = victims.iter().filter_map(|&v| self.jobs.get(v)?.started()).min();
            Some(((victims.len(), Reverse(oldest), node), victims, taken))
        });
        match choices.min_by_key(|(rank, _, _)| *rank) {
            Some(((_, _, node), victims, taken)) => {
                Verdict::Start { qos: in_qos, node, taken, victims }
            }
            None => Verdict::NoRoom,
        }
    }

    /// The youngest preemptable jobs of a node whose end makes room, and not one more.
    fn victims(&self, job: &Job, preempts: &[String], node: usize) -> Option<(Vec<usize>, Taken)> {
        let host = self.nodes.get(node)?;
        let mut pool: Vec<(Reverse<Time>, Reverse<usize>)> = Vec::new();
        for place in self.running_on(node) {
            let other = self.jobs.get(place)?;
            let qos = self.qos.get(other.qos)?;
            if let Some(started) =
                other.started().filter(|_| preempts.iter().any(|p| *p == *qos.name))
            {
                pool.push((Reverse(started), Reverse(place)));
            }
        }
        pool.sort_unstable();
        let mut chosen: Vec<usize> = Vec::new();
        let mut pool = pool.into_iter();
        while self.room_after(host, job, &chosen).is_none() {
            let (_, Reverse(place)) = pool.next()?;
            chosen.push(place);
        }
        // Some of the young ones may have been of no help (another model).
        for place in chosen.clone() {
            let others: Vec<usize> = chosen.iter().copied().filter(|c| *c != place).collect();
            if self.room_after(host, job, &others).is_some() {
                chosen = others;
            }
        }
        let taken = self.room_after(host, job, &chosen)?;
        Some((chosen, taken))
    }

    fn room_after(&self, host: &SimNode, job: &Job, victims: &[usize]) -> Option<Taken> {
        let gone = || victims.iter().filter_map(|&v| self.jobs.get(v));
        let freed = |model: usize| {
            let held = gone().filter_map(|victim| match &victim.phase {
                Phase::Running(run) => Some(&run.taken),
                Phase::Pending | Phase::Over => None,
            });
            held.flatten().filter(|(place, _)| *place == model).map(|(_, count)| count).sum()
        };
        let cpus = gone().map(|victim| victim.ask.cpus).sum();
        let mem = gone().map(|victim| victim.ask.mem).sum();
        host.room_without(&job.ask, freed, cpus, mem)
    }

    /// Requeued or ended for good, as its QOS and its own --no-requeue say (section 6).
    pub(super) fn preempt(&mut self, place: usize) {
        let mode = self.jobs.get(place).and_then(|job| self.qos.get(job.qos)).map(|qos| qos.mode);
        let then = match mode {
            Some(PreemptMode::Requeue) => Then::Requeue,
            Some(PreemptMode::Cancel) | None => Then::Over,
        };
        self.leave(place, EndWord::Preempted, "0:0", None, then);
    }

    /// Without backfill nobody lower starts where this job could.
    fn close_for_others(&self, place: usize, closed: &mut [bool]) {
        let Some(job) = self.jobs.get(place) else { return };
        for ((node, host), shut) in self.nodes.iter().enumerate().zip(closed) {
            *shut = *shut || self.may_use(job, job.qos, node, host);
        }
    }
}
