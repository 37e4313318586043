//! `babysit tick --dry-run`: what a tick would do now, with the exact command lines.

use serde_json::{Value, json};

use crate::model::policy::Lane;
use crate::model::state::Stop;
use crate::planning::plan::{Action, Plan, Purpose, Target};

use super::format::count;

pub const SCHEMA: &str = "babysit/plan/v1";

/// `commands`: by action, the command lines it stands for.
pub fn text(plan: &Plan, commands: &[Vec<String>]) -> String {
    let mut out = String::new();
    for event in &plan.events {
        out.push_str(&format!("note   {}\n", super::journal::line(event)));
    }
    for (action, lines) in plan.actions.iter().zip(commands) {
        out.push_str(&format!("would {}\n", headline(action)));
        for line in lines {
            out.push_str(&format!("  {line}\n"));
        }
    }
    if plan.actions.is_empty() {
        out.push_str("a tick would change nothing now\n");
    }
    out
}

fn headline(action: &Action) -> String {
    match action {
        Action::Submit(submit) => {
            let lane =
                submit.attempt.lane.map_or(String::new(), |lane| format!(", {}", lane.word()));
            format!("submit {} (attempt {}{lane})", submit.id, submit.attempt.number)
        }
        Action::Update { purpose: Purpose::Move(lane), jobs, .. } => {
            let why = match lane {
                Lane::Own => "among the longest that wait",
                Lane::Extra => "not among the longest that wait",
                Lane::Both => "whichever has a GPU first",
            };
            format!(
                "move {} to {} ({why}): {}",
                count(jobs.len() as u64, "job"),
                lane.word(),
                names(jobs)
            )
        }
        Action::Update { purpose: Purpose::Detour(lane), jobs, .. } => format!(
            "take {} out of both lanes, by way of {}: {}",
            count(jobs.len() as u64, "job"),
            lane.word(),
            names(jobs)
        ),
        Action::Update { purpose: Purpose::Order, jobs, .. } => {
            format!("put {} behind longer ones: {}", count(jobs.len() as u64, "job"), names(jobs))
        }
        Action::Update { purpose: Purpose::KeepOff(nodes), jobs, .. } if nodes.is_empty() => {
            format!("let {} back to every node: {}", count(jobs.len() as u64, "job"), names(jobs))
        }
        Action::Update { purpose: Purpose::KeepOff(nodes), jobs, .. } => format!(
            "keep {} off {} (GPUs are reserved there, or jobs die): {}",
            count(jobs.len() as u64, "job"),
            nodes.join(", "),
            names(jobs)
        ),
        Action::StopBackfill { node, gpus, jobs, command: _ } => format!(
            "tell {} of backfill on {node} to give {} back",
            count(jobs.len() as u64, "job"),
            count(*gpus, "GPU")
        ),
        Action::FreeRows(free) if free.all => {
            format!("give out all rows of {} again: their files are gone", free.id)
        }
        Action::FreeRows(free) => format!(
            "give {} of {} out again, whose jobs are over",
            count(free.rows.len() as u64, "row"),
            free.id
        ),
        Action::Cancel { why, jobs } => {
            let why = match why {
                Stop::OverCap => "cost cap reached",
                Stop::Cancelled => "cancelled by a person",
                Stop::Twin => "second job of one shard",
                Stop::Stalled => "no new row for too long",
                Stop::Stranded => "cannot start where it was sent",
                Stop::Unwanted => "would find no row to do",
                Stop::Unclaimed => "left over: a pilot took its shard",
            };
            format!("cancel {} ({why}): {}", count(jobs.len() as u64, "job"), names(jobs))
        }
    }
}

fn names(jobs: &[Target]) -> String {
    let name = |target: &Target| format!("{} ({})", target.id, target.job);
    jobs.iter().map(name).collect::<Vec<_>>().join(", ")
}

pub fn json(plan: &Plan, commands: &[Vec<String>]) -> Value {
    let action = |(action, lines): (&Action, &Vec<String>)| {
        let kind = action.kind();
        let jobs = match action {
            Action::Submit(submit) => {
                return json!({
                    "kind": kind, "shards": [submit.id.to_string()], "jobs": [],
                    "attempt": submit.attempt.number,
                    "lane": submit.attempt.lane.map(Lane::word), "commands": lines,
                });
            }
            Action::StopBackfill { node, gpus, jobs, command: _ } => {
                return json!({
                    "kind": kind, "shards": [], "node": node, "gpus": gpus,
                    "jobs": jobs.iter().map(|job| job.0).collect::<Vec<_>>(), "commands": lines,
                });
            }
            Action::FreeRows(free) => {
                return json!({
                    "kind": kind, "shards": [free.id.to_string()], "jobs": [],
                    "rows": free.rows.iter().map(|claim| claim.row).collect::<Vec<_>>(),
                    "all": free.all, "commands": lines,
                });
            }
            Action::Update { jobs, .. } | Action::Cancel { jobs, .. } => jobs,
        };
        json!({
            "kind": kind,
            "shards": jobs.iter().map(|j| j.id.to_string()).collect::<Vec<_>>(),
            "jobs": jobs.iter().map(|j| j.job.0).collect::<Vec<_>>(),
            "commands": lines,
        })
    };
    json!({
        "schema": SCHEMA,
        "actions": plan.actions.iter().zip(commands).map(action).collect::<Vec<_>>(),
        "events": plan.events.iter().map(super::journal::json).collect::<Vec<_>>(),
    })
}
