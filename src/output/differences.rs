//! `babysit reconcile` as sentences and as JSON, each difference with the next step.

use serde_json::{Value, json};

use crate::model::id::JobId;
use crate::model::units::Time;
use crate::planning::differences::Difference;

use super::format::{ago, one_line};

pub const SCHEMA: &str = "babysit/reconcile/v1";

/// One word for scripts.
fn kind(difference: &Difference) -> &'static str {
    match difference {
        Difference::UnknownSubmission { .. } => "unknown-submission",
        Difference::Missing { .. } => "missing",
        Difference::Twins { .. } => "twins",
        Difference::Orphan { .. } => "orphan",
        Difference::Strangers { .. } => "strangers",
    }
}

pub fn sentence(difference: &Difference, now: Time) -> String {
    match difference {
        Difference::UnknownSubmission { shard, attempt, since, said } => format!(
            "{shard}: attempt {attempt} was submitted {} without a clear answer ({}), and its job \
             is not in the queue",
            ago(*since, now),
            one_line(said)
        ),
        Difference::Missing { shard, job, since } => {
            let since =
                since.map_or_else(String::new, |at| format!(", first missed {}", ago(at, now)));
            format!("{shard}: its job {job} is not in the queue{since}")
        }
        Difference::Twins { shard, kept, others } => {
            let others: Vec<String> = others.iter().map(|twin| twin.job.to_string()).collect();
            let kept = kept.map_or_else(|| "none".to_owned(), |job| job.to_string());
            format!("{shard}: two live jobs or more: {kept} is kept; {}", others.join(", "))
        }
        Difference::Orphan { shard, job, running, .. } => format!(
            "{}: job {job} {}, but shards.toml no longer has this shard",
            one_line(shard),
            if *running { "runs" } else { "pends" }
        ),
        Difference::Strangers { instance, jobs, .. } => format!(
            "{} of another state (instance {}) under this project's names: {}",
            super::format::count(jobs.len() as u64, "job"),
            one_line(instance),
            list(jobs)
        ),
    }
}

/// What to type, or what happens by itself.
pub fn next(difference: &Difference) -> String {
    match difference {
        Difference::UnknownSubmission { .. } => {
            "nothing to do: ticks look for it, and give it up after a quiet time".into()
        }
        Difference::Missing { .. } => {
            "nothing to do: ticks ask the accounting what became of it".into()
        }
        Difference::Twins { others, .. } => {
            let stay: Vec<JobId> =
                others.iter().filter(|t| !t.may_go).map(|twin| twin.job).collect();
            if stay.is_empty() {
                "nothing to do: the other one still pends, and is cancelled".into()
            } else {
                format!(
                    "both may be doing work; end the one you can do without: scancel {}",
                    list(&stay)
                )
            }
        }
        Difference::Orphan { job, followed: true, .. } => format!(
            "nothing to do: ticks follow it to its end and charge it; to end it now: scancel {job}"
        ),
        Difference::Orphan { job, .. } => {
            format!("scancel {job}, or put the shard back into shards.toml")
        }
        Difference::Strangers { instance, lost, .. } => {
            let lost_for_good = if *lost {
                let instance = one_line(instance);
                format!(
                    "; if it is lost for good and no babysit ticks for it any more: babysit reconcile \
                     --take-up {instance}"
                )
            } else {
                String::new()
            };
            format!(
                "if this is a second campaign, give it a `project` name of its own; if the state was \
                 lost, put it back (or its .bak){lost_for_good}"
            )
        }
    }
}

fn list(jobs: &[JobId]) -> String {
    jobs.iter().map(JobId::to_string).collect::<Vec<_>>().join(" ")
}

pub fn text(differences: &[Difference], now: Time) -> String {
    let line = |difference: &Difference| {
        let mark = if difference.needs_person() { "needs a person" } else { "noted" };
        format!("{mark}: {}\n    {}\n", sentence(difference, now), next(difference))
    };
    differences.iter().map(line).collect()
}

pub fn json(differences: &[Difference], now: Time) -> Vec<Value> {
    let of = |difference: &Difference| {
        let (shard, jobs) = subject(difference);
        json!({
            "kind": kind(difference),
            "shard": shard,
            "jobs": jobs.iter().map(|job| job.0).collect::<Vec<_>>(),
            "text": sentence(difference, now),
            "next": next(difference),
            "needs_person": difference.needs_person(),
        })
    };
    differences.iter().map(of).collect()
}

fn subject(difference: &Difference) -> (Option<String>, Vec<JobId>) {
    match difference {
        Difference::UnknownSubmission { shard, .. } => (Some(shard.to_string()), Vec::new()),
        Difference::Missing { shard, job, .. } => (Some(shard.to_string()), vec![*job]),
        Difference::Twins { shard, kept, others } => {
            let jobs = kept.iter().copied().chain(others.iter().map(|twin| twin.job));
            (Some(shard.to_string()), jobs.collect())
        }
        Difference::Orphan { shard, job, .. } => (Some(shard.clone()), vec![*job]),
        Difference::Strangers { jobs, .. } => (None, jobs.clone()),
    }
}
