//! One row of squeue's table as a job.

use std::sync::Arc;

use super::Column as C;
use super::Column;
use crate::model::cluster::{GpuCount, QueueJob};
use crate::model::id::JobId;
use crate::slurm::gres::Gres;
use crate::slurm::rows::{job_id, own_text, shown};
use crate::slurm::{gres, hostlist, state, time};

/// The row above: most jobs of a queue are somebody's in the same few words, which are read and kept
/// once then.
#[derive(Debug, Default)]
pub(super) struct Above {
    total: Words,
    per_node: Words,
    per_job: Words,
    user: Text,
    qos: Text,
    partition: Text,
    account: Text,
    reason: Text,
}

/// A cell's text, and what is kept of it.
#[derive(Debug, Default)]
struct Text(String, Arc<str>);

impl Text {
    fn share(&mut self, cell: &str, keep: fn(&str) -> String) -> Arc<str> {
        let Text(known, kept) = self;
        if known != cell {
            cell.clone_into(known);
            *kept = keep(cell).into();
        }
        Arc::clone(kept)
    }
}

/// A cell, and what it was read as; `None` as long as there was none.
#[derive(Debug, Default)]
struct Words(Option<(String, Option<Gres>)>);

impl Words {
    fn read(&mut self, cell: &str, read: fn(&str) -> Option<Gres>) {
        if self.0.as_ref().is_none_or(|(known, _)| known != cell) {
            self.0 = Some((cell.to_owned(), read(cell)));
        }
    }

    fn gres(&self) -> Read<'_> {
        self.0.as_ref().map(|(_, gres)| gres.as_ref())
    }
}

pub(super) fn job(
    cells: &[&str],
    columns: &[Column],
    above: &mut Above,
) -> Result<QueueJob, String> {
    let mut job = QueueJob::default();
    let Above { total, per_node, per_job, user, qos, partition, account, reason } = above;
    let mut nodes = 1;
    for (cell, column) in cells.iter().zip(columns) {
        let cell = trimmed(cell);
        match column {
            C::JobId => job.id = JobId(job_id(cell)?),
            C::UserId => job.uid = number(cell, "uid")?,
            C::UserName => job.user = user.share(cell, str::to_owned),
            C::State if cell.is_empty() => return Err("a job without a state".to_owned()),
            C::State => job.state = state::job(cell),
            C::Qos => job.qos = qos.share(cell, own_text),
            C::Partition => job.partition = partition.share(cell, own_text),
            C::Account => job.account = account.share(cell, own_text),
            C::TresAlloc => total.read(cell, gres::of_tres),
            C::TresPerNode => per_node.read(cell, gres::of_job),
            C::TresPerJob => per_job.read(cell, gres::of_job),
            // A pending job may ask for a range; the least is what it surely gets.
            C::NumNodes => nodes = least(cell).unwrap_or(1),
            C::NumCpus => job.cpus = least(cell),
            C::SubmitTime => job.submitted = time::moment(cell)?,
            C::StartTime => job.started = time::moment(cell)?,
            C::EndTime => job.ends = time::moment(cell)?,
            C::TimeLimit => job.time_limit = time::length(cell)?,
            C::Priority => job.priority = cell.parse().ok(),
            C::Nice => job.nice = number(cell, "nice")?,
            C::NodeList => job.nodes = names(cell)?,
            C::ExcNodes => job.excluded = Some(names(cell)?),
            C::RestartCnt => job.restarts = number(cell, "restart count")?,
            C::Requeue => job.requeue = number::<u32>(cell, "requeue flag")? != 0,
            C::Reason => job.reason = reason.share(cell, own_text),
            C::Name => job.name = own_text(cell),
            C::Comment => job.comment = own_text(cell),
            C::Ignored => {}
        }
    }
    (job.gpus, job.asked) = gpus(total.gres(), per_node.gres(), per_job.gres(), nodes);
    Ok(job)
}

/// `str::trim`, for cells of which hardly one has anything to trim.
fn trimmed(cell: &str) -> &str {
    let plain = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_graphic);
    let bytes = cell.as_bytes();
    if plain(bytes.first()) && plain(bytes.last()) { cell } else { cell.trim() }
}

/// Of a column that was asked for or not, in words that can be read or not.
type Read<'a> = Option<Option<&'a Gres>>;

/// GPUs in all, and by model. A site that does not track gres/gpu leaves it out of tres-alloc, so the
/// larger of what is told counts; what cannot be read makes the number unknown.
fn gpus(
    total: Read<'_>,
    per_node: Read<'_>,
    per_job: Read<'_>,
    nodes: u32,
) -> (Option<u32>, Vec<GpuCount>) {
    let mut asked = Vec::new();
    let mut readable = true;
    for (read, times) in [(per_node, nodes), (per_job, 1)] {
        match read {
            Some(Some(gres)) => asked.extend(gres.gpus.iter().map(|gpu| GpuCount {
                model: gpu.model.clone(),
                count: gpu.count.saturating_mul(times),
            })),
            Some(None) => readable = false,
            None => {}
        }
    }
    let from_asked = asked.iter().fold(0_u32, |sum, gpu| sum.saturating_add(gpu.count));
    let count = match total {
        Some(Some(gres)) if readable => Some(gres.total().max(from_asked)),
        Some(Some(gres)) => Some(gres.total()).filter(|total| *total > 0),
        Some(None) => None,
        None => readable.then_some(from_asked),
    };
    (count, asked)
}

fn number<T: std::str::FromStr>(cell: &str, what: &str) -> Result<T, String> {
    cell.parse().map_err(|_| format!("{} is no {what}", shown(cell)))
}

fn least(cell: &str) -> Option<u32> {
    cell.split('-').next()?.parse().ok()
}

fn names(cell: &str) -> Result<Vec<String>, String> {
    hostlist::expand(cell).ok_or_else(|| format!("{} is no list of nodes", shown(cell)))
}
