//! What happens to the cluster from outside: other people's jobs, nodes that come and go.
//!
//! Each is a method for now and an `Event` for later.

use super::ask::{self, Ask};
use super::clock::Then;
use super::cluster::{Cluster, NewJob};
use super::hardware::NodeState;
use super::job::Program;
use super::site::{Accounting, Controller};
use super::work::Work;
use crate::model::cluster::EndWord;
use crate::model::id::JobId;
use crate::model::units::{Secs, Time};

/// Somebody else's job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    pub user: String,
    pub qos: String,
    pub gres: String,
    pub name: String,
    pub partition: Option<String>,
    pub node: Option<String>,
    pub cpus: u32,
    /// MiB.
    pub mem: u64,
    /// `None`: until it is ended.
    pub lasts: Option<Secs>,
    pub requeue: bool,
}

impl Stranger {
    pub fn new(user: &str, qos: &str, gres: &str) -> Stranger {
        Stranger {
            user: user.to_owned(),
            qos: qos.to_owned(),
            gres: gres.to_owned(),
            name: "stranger".to_owned(),
            partition: None,
            node: None,
            cpus: 1,
            mem: 0,
            lasts: None,
            requeue: true,
        }
    }
    pub fn lasting(self, lasts: Secs) -> Stranger {
        Stranger { lasts: Some(lasts), ..self }
    }
    pub fn named(self, name: &str) -> Stranger {
        Stranger { name: name.to_owned(), ..self }
    }
    pub fn on(self, node: &str) -> Stranger {
        Stranger { node: Some(node.to_owned()), ..self }
    }
    pub fn no_requeue(self) -> Stranger {
        Stranger { requeue: false, ..self }
    }
}

/// Something planned; see `Cluster::plan`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Job(Stranger),
    Cancel(JobId),
    Hold(JobId),
    NodeUp(String),
    NodeDown(String),
    Drain(String),
    /// A node of one extra GPU is there (again).
    GpuComes {
        node: String,
        model: String,
    },
    /// It is gone, and what ran on it preempted.
    GpuGoes {
        node: String,
    },
    /// So many GPUs of a model on a node from now on.
    Gpus {
        node: String,
        model: String,
        count: u32,
    },
    /// So many more (or fewer) than there are.
    GpusBy {
        node: String,
        model: String,
        by: i32,
    },
    Accounting(Accounting),
    Controller(Controller),
}

impl<W: Work> Cluster<W> {
    /// At that moment, when the clock gets there. Names that are not there then end up in
    /// `complaints`.
    pub fn plan(&mut self, at: Time, event: Event) {
        self.calendar.put(at.max(self.now), super::clock::Due::Event(event));
    }

    /// Does it now. The error names what is not there.
    pub fn event(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Job(stranger) => {
                self.add_job(stranger)?;
            }
            Event::Cancel(id) => self.scancel(0, &[id])?,
            Event::Hold(id) => self.hold(id)?,
            Event::NodeUp(name) => self.node_up(&name)?,
            Event::NodeDown(name) => self.node_down(&name)?,
            Event::Drain(name) => self.drain(&name)?,
            Event::GpuComes { node, model } => self.gpu_comes(&node, &model),
            Event::GpuGoes { node } => self.gpu_goes(&node)?,
            Event::Gpus { node, model, count } => self.set_gpus(&node, &model, count)?,
            Event::GpusBy { node, model, by } => {
                let place = self.known_node(&node)?;
                let there = self.nodes.get(place).and_then(|host| host.gpus_of(&model));
                let there = there.ok_or_else(|| format!("no {model} on node {node}"))?;
                self.set_gpus(&node, &model, there.saturating_add_signed(by))?;
            }
            Event::Accounting(accounting) => self.site.accounting = accounting,
            Event::Controller(controller) => self.controller(controller),
        }
        Ok(())
    }

    /// A job of somebody else's, in short.
    pub fn add_job_of(
        &mut self,
        user: &str,
        qos: &str,
        gres: &str,
        lasts: Option<Secs>,
    ) -> Result<JobId, String> {
        self.add_job(Stranger { lasts, ..Stranger::new(user, qos, gres) })
    }

    pub fn add_job(&mut self, stranger: Stranger) -> Result<JobId, String> {
        let uid = self.uid_of(&stranger.user);
        let qos = self.qos_for(uid, &stranger.qos);
        let qos = qos.ok_or_else(|| format!("no QOS {} for {}", stranger.qos, stranger.user))?;
        let partition = match &stranger.partition {
            None => 0,
            Some(name) => self
                .partitions
                .iter()
                .position(|p| **p == **name)
                .ok_or_else(|| format!("no partition {name}"))?,
        };
        let gpus = ask::gres(&stranger.gres).ok_or_else(|| format!("no gres {}", stranger.gres))?;
        let wanted = match &stranger.node {
            None => None,
            Some(name) => Some(self.known_node(name)?),
        };
        let new = NewJob {
            uid,
            name: stranger.name,
            comment: String::new(),
            account: "lab".into(),
            env: [].into(),
            qos,
            or_qos: Vec::new(),
            partition,
            ask: Ask { gpus, cpus: stranger.cpus, mem: stranger.mem },
            wanted,
            excluded: Vec::new(),
            nice: 0,
            time_limit: None,
            requeue: stranger.requeue,
            program: Program::Lasts(stranger.lasts),
            pilot: None,
        };
        self.feasible(&new).map_err(|refusal| refusal.text)?;
        let id = self.enqueue(new);
        self.catch_up();
        Ok(id)
    }

    pub fn node_up(&mut self, name: &str) -> Result<(), String> {
        let node = self.known_node(name)?;
        self.set_node(node, NodeState::Up);
        self.catch_up();
        Ok(())
    }

    /// Its jobs end as NODE_FAIL, or come back by themselves where they may (section 6).
    pub fn node_down(&mut self, name: &str) -> Result<(), String> {
        let node = self.known_node(name)?;
        self.set_node(node, NodeState::Down);
        for place in self.running_on(node) {
            self.leave(place, EndWord::NodeFail, "1:0", None, Then::Requeue);
        }
        self.catch_up();
        Ok(())
    }

    /// Its jobs run on; nothing new starts.
    pub fn drain(&mut self, name: &str) -> Result<(), String> {
        let node = self.known_node(name)?;
        self.set_node(node, NodeState::Drain);
        self.catch_up();
        Ok(())
    }

    /// A node of one GPU, made at its first coming.
    pub fn gpu_comes(&mut self, node: &str, model: &str) {
        match self.node_place(node) {
            Some(place) => self.set_node(place, NodeState::Up),
            None => {
                self.put_plain_node(node, &[(model, 1)]);
                self.changed();
            }
        }
        self.catch_up();
    }

    /// The node leaves sinfo; what ran there is preempted, whatever its QOS.
    pub fn gpu_goes(&mut self, node: &str) -> Result<(), String> {
        let node = self.known_node(node)?;
        self.set_node(node, NodeState::Gone);
        for place in self.running_on(node) {
            self.preempt(place);
        }
        self.catch_up();
        Ok(())
    }

    /// More or fewer GPUs of one model; the youngest jobs make way where there are too few.
    pub fn set_gpus(&mut self, node: &str, model: &str, count: u32) -> Result<(), String> {
        let place = self.known_node(node)?;
        let host = self.nodes.get_mut(place).ok_or_else(|| format!("no node {node}"))?;
        let known = host.gpus.iter().position(|gpus| gpus.model == model);
        let known = known.ok_or_else(|| format!("no {model} on node {node}"))?;
        if let Some(gpus) = host.gpus.get_mut(known) {
            gpus.count = count;
        }
        let mut there = self.running_on(place);
        there.sort_by_key(|&job| self.jobs.get(job).map(|job| (job.started(), job.id)));
        while self.too_many(place, known) {
            let Some(youngest) = there.pop() else { break };
            if self.holds(youngest, known) {
                self.preempt(youngest);
            }
        }
        self.changed();
        self.catch_up();
        Ok(())
    }

    fn too_many(&self, node: usize, model: usize) -> bool {
        let gpus = self.nodes.get(node).and_then(|host| host.gpus.get(model));
        gpus.is_some_and(|gpus| gpus.used > gpus.count)
    }

    fn holds(&self, job: usize, model: usize) -> bool {
        let phase = self.jobs.get(job).map(|job| &job.phase);
        matches!(phase, Some(super::job::Phase::Running(run))
            if run.taken.iter().any(|(place, _)| *place == model))
    }

    /// slurmctld goes down, stalls, or comes back and does what it was asked meanwhile.
    pub fn controller(&mut self, controller: Controller) {
        self.controller = controller;
        let asked = match controller {
            Controller::Stalled => return,
            // What only its sockets knew dies with it.
            Controller::Down => return self.waiting.clear(),
            Controller::Up => std::mem::take(&mut self.waiting),
        };
        for effect in asked {
            self.take_effect(effect);
        }
        self.changed();
        self.catch_up();
    }

    fn known_node(&self, name: &str) -> Result<usize, String> {
        self.node_place(name).ok_or_else(|| format!("no node {name}"))
    }
}
