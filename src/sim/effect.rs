//! What sbatch, scontrol update and scancel do to the cluster once the controller has their
//! request, and the words with which it refuses them (facts, sections 2 and 5).

use std::sync::Arc;

use super::ask::{self, Ask};
use super::clock::Then;
use super::cluster::{Cluster, NewJob};
use super::job::{Job, Phase, Program};
use super::work::Work;
use crate::model::cluster::EndWord;
use crate::model::id::JobId;
use crate::model::request::{Change, Refusal, RefusalClass, Request};

/// A request as it reaches the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Submit { uid: u32, request: Box<Request> },
    Update { uid: u32, jobs: Vec<JobId>, change: Change },
    Cancel { uid: u32, jobs: Vec<JobId> },
}

/// Longest comment that slurmctld takes (section 2).
const COMMENT_MAX: usize = 1024;
const ROOT: u32 = 0;

impl<W: Work> Cluster<W> {
    /// Does it for a sender that is not there any more.
    pub(super) fn take_effect(&mut self, effect: Effect) {
        // Nobody waits for the answer, good or bad.
        match effect {
            Effect::Submit { uid, request } => drop(self.accept(uid, &request)),
            Effect::Update { uid, jobs, change } => drop(self.change(uid, &jobs, &change)),
            Effect::Cancel { uid, jobs } => drop(self.scancel(uid, &jobs)),
        }
    }

    pub(super) fn accept(&mut self, uid: u32, request: &Request) -> Result<JobId, Refusal> {
        let new = self.checked(uid, request)?;
        Ok(self.enqueue(new))
    }

    fn checked(&self, uid: u32, request: &Request) -> Result<NewJob, Refusal> {
        let list = self.qos_list(uid, request.qos.as_deref().unwrap_or("normal"));
        let (qos, or_qos) = list.ok_or_else(|| bad("Invalid qos specification"))?;
        let partition = match &request.partition {
            None => 0,
            Some(name) => self
                .partitions
                .iter()
                .position(|p| **p == **name)
                .ok_or_else(|| bad("Invalid partition name specified"))?,
        };
        if request.token.comment.len() > COMMENT_MAX {
            return Err(bad("Pathname of a file, directory or other parameter too long"));
        }
        let gpus = ask::gres(&request.gres)
            .ok_or_else(|| bad("Invalid generic resource (gres) specification"))?;
        let mem = match request.mem.as_deref().or_else(|| option(&request.args, "--mem")) {
            None => 0,
            Some(text) => ask::mem(text).ok_or_else(|| bad("Invalid --mem specification"))?,
        };
        let time_limit = match request.time.as_deref().or_else(|| option(&request.args, "--time")) {
            None => None,
            Some(text) => Some(ask::time(text).ok_or_else(|| bad("Invalid --time specification"))?),
        };
        let mut excluded = request.exclude.clone();
        let own = option(&request.args, "--exclude").unwrap_or("");
        excluded.extend(own.split(',').filter(|n| !n.is_empty()).map(str::to_owned));
        let wanted = request.node.as_ref().map(|name| self.node_place(name).ok_or(name));
        let wanted = match wanted {
            Some(Err(_)) => return Err(bad("Invalid node name specified")),
            Some(Ok(node)) => Some(node),
            None => None,
        };
        if excluded.iter().any(|name| self.node_place(name).is_none()) {
            return Err(bad("Invalid node name specified"));
        }
        let new = NewJob {
            uid,
            name: request.token.name.clone(),
            comment: request.token.comment.clone(),
            account: request.account.as_deref().unwrap_or("lab").into(),
            env: request.env.clone(),
            qos,
            or_qos,
            partition,
            ask: Ask { gpus, cpus: request.cpus.unwrap_or(1), mem },
            wanted,
            excluded,
            nice: request.nice.max(0),
            time_limit,
            requeue: request.args.iter().any(|arg| arg == "--requeue"),
            program: Program::Asked,
            pilot: request.pilot.clone().map(Box::new),
        };
        self.feasible(&new)?;
        self.within_submit_limit(&new)?;
        Ok(new)
    }

    /// All of them get the same text (section 2); nodes that are down count, those gone do not.
    pub(super) fn feasible(&self, new: &NewJob) -> Result<(), Refusal> {
        let fits = self.nodes.iter().enumerate().any(|(node, host)| {
            host.state != super::hardware::NodeState::Gone
                && new.wanted.is_none_or(|wanted| wanted == node)
                && self.leads_to(new.qos, new.partition, host)
                && !new.excluded.contains(&host.name)
                && host.could_hold(&new.ask)
        });
        fits.then_some(()).ok_or_else(|| bad("Requested node configuration is not available"))
    }

    fn within_submit_limit(&self, new: &NewJob) -> Result<(), Refusal> {
        let Some(limit) = self.site.max_submit else { return Ok(()) };
        let same = |job: &&Job| job.uid == new.uid && job.qos == new.qos && !job.is_over();
        let there = self.queue.iter().filter_map(|&place| self.jobs.get(place)).filter(same);
        if there.count() < limit {
            return Ok(());
        }
        let text = "QOSMaxSubmitJobPerUserLimit".to_owned();
        Err(Refusal { class: RefusalClass::Limit, text })
    }

    /// Goes on past a job that is refused; the first refusal is what scontrol's rc tells.
    pub(super) fn change(
        &mut self,
        uid: u32,
        jobs: &[JobId],
        change: &Change,
    ) -> Result<(), String> {
        let mut first = None;
        for id in jobs {
            match self.change_one(uid, *id, change) {
                Ok(owner) => self.count(owner),
                Err(text) => first = first.or(Some(format!("{text} for job {id}"))),
            }
        }
        self.changed();
        first.map_or(Ok(()), Err)
    }

    /// The owner of the job that was changed.
    fn change_one(&mut self, uid: u32, id: JobId, change: &Change) -> Result<u32, &'static str> {
        let place = self.shown(id).ok_or("Invalid job id specified")?;
        let job = self.jobs.get(place).ok_or("Invalid job id specified")?;
        if uid != ROOT && uid != job.uid {
            return Err("Invalid user id");
        }
        match job.phase {
            Phase::Over => return Err("Job has already finished"),
            Phase::Running(_) => return Err("Job is no longer pending execution"),
            Phase::Pending => {}
        }
        let owner = job.uid;
        match change {
            Change::Lane { qos, partition, account } => {
                let (qos, or_qos) = match qos {
                    None => (job.qos, job.or_qos.clone()),
                    Some(names) => {
                        let list = self.qos_list(owner, names);
                        let (qos, or_qos) = list.ok_or("Invalid qos specification")?;
                        // As 24.11 does: that of its list in which it was last looked at is taken
                        // for no change.
                        let same = or_qos.is_empty() && qos == job.qos;
                        (qos, if same { job.or_qos.clone() } else { or_qos })
                    }
                };
                let partition = match partition {
                    None => job.partition,
                    Some(name) => self
                        .partitions
                        .iter()
                        .position(|p| **p == **name)
                        .ok_or("Invalid partition name specified")?,
                };
                let kind = self.new_kind();
                if let Some(job) = self.jobs.get_mut(place) {
                    job.kind = kind;
                    job.qos = qos;
                    job.or_qos = or_qos;
                    job.partition = partition;
                    if let Some(account) = account {
                        job.account = account.as_str().into();
                    }
                }
            }
            Change::Nice(nice) => {
                if *nice < 0 && uid != ROOT {
                    return Err("Access/permission denied");
                }
                if let Some(job) = self.jobs.get_mut(place) {
                    job.nice = *nice;
                }
            }
            Change::Exclude(nodes) => {
                if nodes.iter().any(|name| self.node_place(name).is_none()) {
                    return Err("Invalid node name specified");
                }
                let kind = self.new_kind();
                if let Some(job) = self.jobs.get_mut(place) {
                    job.kind = kind;
                    job.excluded.clone_from(nodes);
                }
            }
        }
        Ok(owner)
    }

    /// Unknown, purged and finished jobs are silently fine (section 5).
    pub(super) fn scancel(&mut self, uid: u32, jobs: &[JobId]) -> Result<(), String> {
        let mut first = None;
        for id in jobs {
            let Some(place) = self.shown(*id) else { continue };
            let Some(job) = self.jobs.get(place).filter(|job| !job.is_over()) else { continue };
            if uid != ROOT && uid != job.uid {
                let text = format!("Kill job error on job id {id}: Access/permission denied");
                first = first.or(Some(text));
                continue;
            }
            let exit = if job.is_running() { "0:15" } else { "0:0" };
            self.leave(place, EndWord::Cancelled, exit, Some(uid), Then::Over);
        }
        first.map_or(Ok(()), Err)
    }

    /// A job that slurmctld still has.
    fn shown(&self, id: JobId) -> Option<usize> {
        let place = self.place_of(id)?;
        self.queue.binary_search(&place).ok().map(|_| place)
    }

    pub(super) fn node_place(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    pub(super) fn qos_for(&self, uid: u32, name: &str) -> Option<usize> {
        let qos = self.qos.iter().position(|qos| *qos.name == *name)?;
        (!self.denied.contains(&(uid, qos))).then_some(qos)
    }
}

impl<W: Work> Cluster<W> {
    /// The QOS of a request, and those after it in its list, which older releases refuse.
    pub(super) fn qos_list(&self, uid: u32, names: &str) -> Option<(usize, Vec<usize>)> {
        let all: Option<Vec<usize>> =
            names.split(',').map(|name| self.qos_for(uid, name)).collect();
        let mut all = all?.into_iter();
        let (first, rest) = (all.next()?, all.collect::<Vec<_>>());
        (rest.is_empty() || self.site.lists_of_qos).then_some((first, rest))
    }

    /// squeue's column: the whole list while the job waits, then the one that it got. `None`: what is
    /// there says so.
    pub(super) fn qos_shown(&self, job: &Job, there: &str) -> Option<Arc<str>> {
        let name = |qos: usize| self.qos.get(qos).map(|qos| &qos.name);
        let others = job.or_qos.iter().filter(|_| job.is_pending());
        let all = || std::iter::once(&job.qos).chain(others.clone()).filter_map(|qos| name(*qos));
        let mut rest = Some(there);
        for (place, name) in all().enumerate() {
            let from = if place == 0 { rest } else { rest.and_then(|rest| rest.strip_prefix(',')) };
            rest = from.and_then(|from| from.strip_prefix(&**name));
        }
        if rest == Some("") {
            return None;
        }
        let mut names = all();
        match (names.next(), names.next()) {
            (Some(one), None) => Some(Arc::clone(one)),
            _ => Some(all().map(|name| &**name).collect::<Vec<_>>().join(",").into()),
        }
    }
}

fn bad(text: &str) -> Refusal {
    Refusal { class: RefusalClass::Request, text: text.to_owned() }
}

/// The value of `--name=value` or `--name value`; the last one counts.
fn option<'a>(args: &'a [String], name: &str) -> Option<&'a str> {
    let mut found = None;
    for (place, arg) in args.iter().enumerate() {
        match arg.strip_prefix(name) {
            Some("") => found = args.get(place + 1).map(String::as_str),
            Some(rest) => found = rest.strip_prefix('=').or(found),
            None => {}
        }
    }
    found
}
