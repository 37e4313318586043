//! Accounting: what sacct knows, as late as the site makes it.

use std::collections::BTreeSet;

use super::cluster::Cluster;
use super::job::{Job, Stay};
use super::work::Work;
use crate::model::cluster::EndWord;
use crate::model::observation::PastJob;
use crate::slurm::PastAsk;

impl<W: Work> Cluster<W> {
    /// One row for each stay (`-D`), of the user's own jobs, as accounting knew them a lag ago.
    pub(super) fn sacct(&self, uid: u32, ask: &PastAsk) -> Vec<PastJob> {
        let names: BTreeSet<&str> = ask.names.iter().map(String::as_str).collect();
        let known = self.now - self.site.accounting_lag;
        let mut rows = Vec::new();
        for job in self.jobs.iter().filter(|j| j.uid == uid && names.contains(j.name.as_str())) {
            for stay in job.stays.iter().filter(|stay| stay.submitted <= known) {
                let over = stay.ended <= known;
                let end = over.then_some(stay.end);
                let comment = match over && self.site.stores_comments {
                    true => job.comment.clone(),
                    false => String::new(),
                };
                rows.push(PastJob {
                    end,
                    comment,
                    submitted: Some(stay.submitted),
                    started: stay.started.filter(|at| *at <= known),
                    ended: over.then_some(stay.ended),
                    nodes: stay.node.iter().cloned().collect(),
                    exit: exit_of(stay, end),
                    cancelled_by: stay.cancelled_by.filter(|_| over),
                    ..self.row(job, &stay.qos)
                });
            }
            // Held and not yet eligible jobs are in no list (section 6, last point).
            let eligible =
                job.held.is_none() && (job.is_running() || job.restarts > 0 || job.begin <= known);
            if !job.is_over() && job.submitted <= known && eligible {
                let qos = self.qos.get(job.qos).map_or("", |qos| &*qos.name);
                let node = match &job.phase {
                    super::job::Phase::Running(run) => self.nodes.get(run.node),
                    super::job::Phase::Pending | super::job::Phase::Over => None,
                };
                rows.push(PastJob {
                    submitted: Some(job.submitted),
                    started: job.started().filter(|at| *at <= known),
                    nodes: node.map(|node| node.name.clone()).into_iter().collect(),
                    ..self.row(job, qos)
                });
            }
        }
        rows.retain(|row| row.submitted.is_some_and(|at| at >= ask.since));
        rows
    }

    fn row(&self, job: &Job, qos: &str) -> PastJob {
        PastJob {
            id: job.id,
            uid: job.uid,
            name: job.name.clone(),
            comment: String::new(),
            qos: qos.to_owned(),
            end: None,
            submitted: None,
            started: None,
            ended: None,
            nodes: Vec::new(),
            exit: "0:0".to_owned(),
            cancelled_by: None,
        }
    }
}

fn exit_of(stay: &Stay, end: Option<EndWord>) -> String {
    match end {
        Some(_) => stay.exit.clone().into_owned(),
        None => "0:0".to_owned(),
    }
}
