//! The words that a scenario builds its cluster with: nodes, QOS, partitions, users, faults.

use super::cluster::{Cluster, Qos};
use super::faults::Faults;
use super::hardware::{Gpus, NodeState, SimNode};
use super::site::{PreemptMode, Site};
use super::work::Work;

/// CPUs and memory of a node for which a scenario names none: never what a job waits for.
const PLENTY_CPUS: u32 = 128;
const PLENTY_MEM: u64 = 1024 * 1024;

impl<W: Work> Cluster<W> {
    pub fn node(self, name: &str, gpus: &[(&str, u32)]) -> Cluster<W> {
        self.node_with(name, gpus, PLENTY_CPUS, PLENTY_MEM)
    }

    /// With CPUs and memory (MiB) that can run out.
    pub fn node_with(
        mut self,
        name: &str,
        gpus: &[(&str, u32)],
        cpus: u32,
        mem: u64,
    ) -> Cluster<W> {
        self.put_node(name, gpus, cpus, mem);
        self
    }

    /// A node of one partition only, which is made where it is not there yet.
    pub fn node_in(mut self, partition: &str, name: &str, gpus: &[(&str, u32)]) -> Cluster<W> {
        self.put_plain_node(name, gpus);
        if !self.partitions.iter().any(|p| **p == *partition) {
            self.partitions.push(partition.into());
        }
        if let Some(node) = self.nodes.last_mut() {
            node.partitions = vec![partition.to_owned()];
        }
        self
    }

    /// `gpus`: GrpTRES; `preempts`: the QOS whose jobs give way to this one's.
    pub fn qos(
        mut self,
        name: &str,
        priority: u64,
        gpus: Option<u32>,
        preempts: &[&str],
    ) -> Cluster<W> {
        self.qos.push(Qos {
            name: name.into(),
            priority,
            gpus,
            preempts: preempts.iter().map(|p| (*p).to_owned()).collect(),
            mode: PreemptMode::Requeue,
            nodes_of: None,
            used: 0,
        });
        self
    }

    /// The QOS named last leads to the nodes of this partition, whatever partition a job names: for
    /// lanes whose GPUs are not the same ones.
    pub fn on_nodes_of(mut self, partition: &str) -> Cluster<W> {
        if let Some(qos) = self.qos.last_mut() {
            qos.nodes_of = Some(partition.to_owned());
        }
        self
    }

    /// PreemptMode of the QOS named last.
    pub fn preempt_mode(mut self, mode: PreemptMode) -> Cluster<W> {
        if let Some(qos) = self.qos.last_mut() {
            qos.mode = mode;
        }
        self
    }

    /// A further partition of nodes that are there already (a node may be in several).
    pub fn partition(mut self, name: &str, nodes: &[&str]) -> Cluster<W> {
        self.partitions.push(name.into());
        for node in self.nodes.iter_mut().filter(|n| nodes.contains(&n.name.as_str())) {
            node.partitions.push(name.to_owned());
        }
        self
    }

    pub fn user(mut self, name: &str, uid: u32) -> Cluster<W> {
        self.users.push((name.into(), uid));
        self
    }

    /// The user's association does not allow this QOS.
    pub fn deny_qos(mut self, user: &str, qos: &str) -> Cluster<W> {
        let uid = self.uid_of(user);
        self.denied.extend(self.qos.iter().position(|q| *q.name == *qos).map(|q| (uid, q)));
        self
    }

    /// Changes the site's settings, in a sentence.
    pub fn site(mut self, change: impl FnOnce(&mut Site)) -> Cluster<W> {
        change(&mut self.site);
        self
    }

    pub fn faulty(mut self, faults: Faults) -> Cluster<W> {
        self.faults = faults;
        self
    }

    /// The id of the first job.
    pub fn first_id(mut self, id: u64) -> Cluster<W> {
        self.first_id = id;
        self
    }

    /// A node with as many CPUs and as much memory as a scenario never runs out of.
    pub(super) fn put_plain_node(&mut self, name: &str, gpus: &[(&str, u32)]) {
        self.put_node(name, gpus, PLENTY_CPUS, PLENTY_MEM);
    }

    fn put_node(&mut self, name: &str, gpus: &[(&str, u32)], cpus: u32, mem: u64) {
        let of_model = |(model, count): &(&str, u32)| Gpus {
            model: (*model).to_owned(),
            count: *count,
            used: 0,
        };
        self.nodes.push(SimNode {
            name: name.to_owned(),
            state: NodeState::Up,
            partitions: self.partitions.first().map(|p| p.to_string()).into_iter().collect(),
            gpus: gpus.iter().map(of_model).collect(),
            cpus,
            cpus_used: 0,
            mem,
            mem_used: 0,
        });
    }
}
