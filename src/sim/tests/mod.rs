//! Each behaviour of the simulated cluster against the measured facts, by their section.

mod accounting;
mod faults;
mod lanes;
mod nodes;
mod random;
mod rows;
mod writes;

use std::path::PathBuf;

use super::{Cluster, Work};
use crate::model::cluster::{JobState, QueueJob};
use crate::model::id::{JobId, Token};
use crate::model::policy::Launch;
use crate::model::request::{Request, Submitted};
use crate::model::units::Time;
use crate::slurm::{Scope, Slurm};

pub const T0: Time = Time(1_700_000_000);

/// The cluster of the facts' first paragraph, without its CPUs.
pub fn lab() -> Cluster {
    Cluster::at(T0)
        .node("a1", &[("rtx4090", 4)])
        .node("b1", &[("rtx4090", 2), ("rtx5090", 2)])
        .node("c1", &[("rtx3080ti", 2)])
        .qos("extra", 10, None, &[])
        .qos("own", 100, Some(4), &["extra"])
        .user("alice", 1001)
        .user("bob", 1002)
}

/// One node, two GPUs, own limited to two.
pub fn pair() -> Cluster {
    Cluster::at(T0)
        .node("p", &[("rtx4090", 2)])
        .qos("extra", 10, None, &[])
        .qos("own", 100, Some(2), &["extra"])
        .user("alice", 1001)
}

pub fn request(name: &str, qos: &str, gres: &str) -> Request {
    Request {
        token: Token { name: name.to_owned(), comment: format!("babysit:{name}") },
        qos: Some(qos.to_owned()),
        partition: None,
        account: None,
        gres: gres.to_owned(),
        node: None,
        exclude: Vec::new(),
        nice: 0,
        cpus: None,
        mem: None,
        time: None,
        workdir: PathBuf::from("/"),
        log_dir: PathBuf::from("/"),
        env: [].into(),
        args: Vec::new(),
        launch: Launch::Command("true".to_owned()),
        pilot: None,
    }
}

#[track_caller]
pub fn submit<W: Work>(cluster: &mut Cluster<W>, request: &Request) -> JobId {
    match cluster.door("alice").submit(request) {
        Submitted::Accepted(id) => id,
        other => panic!("not accepted: {other:?}"),
    }
}

#[track_caller]
pub fn queue<W: Work>(cluster: &mut Cluster<W>) -> Vec<QueueJob> {
    cluster.door("alice").jobs(Scope::Everybody).expect("no fault was set")
}

#[track_caller]
pub fn line<W: Work>(cluster: &mut Cluster<W>, id: JobId) -> QueueJob {
    let found = queue(cluster).into_iter().find(|job| job.id == id);
    found.unwrap_or_else(|| panic!("job {id} is not in squeue"))
}

/// `PENDING reason`, `RUNNING node` or the end's word.
#[track_caller]
pub fn state<W: Work>(cluster: &mut Cluster<W>, id: JobId) -> String {
    let job = line(cluster, id);
    match &job.state {
        JobState::Pending => format!("PENDING {}", job.reason),
        JobState::Running => format!("RUNNING {}", job.nodes.join(",")),
        JobState::Alive(word) => word.clone(),
        JobState::Over(end) => end.word().to_owned(),
    }
}

/// Several jobs at once, in order.
#[track_caller]
pub fn states<W: Work>(cluster: &mut Cluster<W>, ids: &[JobId]) -> Vec<String> {
    ids.iter().map(|id| state(cluster, *id)).collect()
}
