//! What needs a person, each with the command to type next.

use std::collections::BTreeMap;

use crate::model::reason::Reason;
use crate::model::units::{Money, Time};

use super::format::{count, dollars, per_row};
use super::view::{Cost, ShardView};
use super::why;
use super::word::Word;

/// A raised cap that the projection does not pass leaves this much room: rows differ in price.
const CAP_ROOM: f64 = 1.2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Shard, or family where several of its shards are concerned.
    pub shard: String,
    pub what: String,
    /// Command lines; `None` where there is nothing to type.
    pub next: Vec<String>,
    /// Nothing moves until it is done; else it is only announced.
    pub urgent: bool,
}

pub fn steps(shards: &[ShardView], now: Time) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut refused: BTreeMap<&str, Vec<&ShardView>> = BTreeMap::new();
    let mut families: Vec<(&str, bool, Vec<&ShardView>)> = Vec::new();
    for shard in shards {
        let over = matches!(shard.reason, Reason::OverCap { .. });
        if let Reason::BreakerOpen { .. } = shard.reason {
            refused.entry(&shard.family).or_default().push(shard);
            continue;
        }
        if let Reason::Stalled { .. } | Reason::AllRows { since: Some(_), .. } = shard.reason {
            let (what, next) = told(shard, now);
            steps.push(Step { shard: shard.id.clone(), what, next, urgent: false });
        }
        if (shard.needs_person && !over) || shard.state == Word::Held {
            let (what, next) = told(shard, now);
            let urgent = shard.needs_person;
            steps.push(Step { shard: shard.id.clone(), what, next, urgent });
        } else if shard.needs_person || shard.cost.will_pass_cap {
            let urgent = shard.needs_person;
            match families.iter_mut().find(|(f, u, _)| *f == shard.family && *u == urgent) {
                Some((_, _, list)) => list.push(shard),
                None => families.push((&shard.family, urgent, vec![shard])),
            }
        }
    }
    steps.extend(
        families.into_iter().map(|(family, urgent, list)| money_step(family, urgent, &list, now)),
    );
    // One step for the whole family: one mistake is behind all of them.
    for (family, list) in refused {
        let Some(first) = list.first() else { continue };
        let what = match list.len() {
            1 => why::sentence(&first.reason, now),
            n => format!("{}: {}", count(n as u64, "shard"), why::sentence(&first.reason, now)),
        };
        let next = vec![format!("correct {family} in shards.toml, then: babysit retry {family}")];
        steps.push(Step { shard: family.to_owned(), what, next, urgent: true });
    }
    steps.sort_by_key(|step| !step.urgent);
    steps
}

/// A cap that is reached or will be. Shards of one family are told together: rows of one program
/// cost about the same, so they reach it together.
fn money_step(family: &str, urgent: bool, list: &[&ShardView], now: Time) -> Step {
    let need = list.iter().map(|shard| needed(&shard.cost)).fold(0.0, f64::max);
    if let [shard] = list {
        let what = if urgent { why::sentence(&shard.reason, now) } else { projection(&shard.cost) };
        return Step { shard: shard.id.clone(), what, next: vec![raise(&shard.id, need)], urgent };
    }
    let names: Vec<&str> = list.iter().map(|shard| shard.shard.as_str()).collect();
    let of_all = format!("{} ({})", count(list.len() as u64, "shard"), names.join(" "));
    let what = if urgent {
        format!("{of_all} reached the cost cap; only a raised cap lets them go on.")
    } else {
        let most = list.iter().filter_map(|shard| shard.cost.projected).fold(0.0, f64::max);
        format!(
            "{of_all} will pass the cost cap before the last row: projected up to {}.",
            money(most)
        )
    };
    Step { shard: family.to_owned(), what, next: vec![raise(family, need)], urgent }
}

fn told(shard: &ShardView, now: Time) -> (String, Vec<String>) {
    let id = &shard.id;
    let retry = format!("babysit retry {id}");
    let log = format!("babysit log {id}");
    let next = match &shard.reason {
        Reason::HeldByPerson { .. } => vec![format!("babysit release {id}")],
        Reason::JobCancelled { .. } => vec![format!("babysit release {id}")],
        Reason::StuckInSlurm { .. } => {
            shard.job.iter().map(|job| format!("scontrol show job {}", job.id)).collect()
        }
        Reason::Stalled { .. } => {
            let job = shard.job.as_ref().map_or_else(String::new, |job| job.id.to_string());
            vec![
                format!("scontrol show job {job}    # where its log is"),
                "restart_stalled = true    # in shards.toml: such jobs are ended and started again"
                    .into(),
            ]
        }
        Reason::AllRows { .. } => shard
            .job
            .iter()
            .map(|job| format!("scancel {}    # once it does nothing of use any more", job.id))
            .collect(),
        Reason::NothingFinished { .. } => vec![
            format!("babysit check{}    # `done` against the files that are there", pad(id)),
            format!("{retry}    # once it is put right"),
        ],
        Reason::HostOutOfMemory => {
            vec![format!("raise `mem` of {} in shards.toml, then: {retry}", shard.family)]
        }
        Reason::Refused { .. } | Reason::NoFit { .. } => {
            vec![format!("correct {} in shards.toml, then: {retry}", shard.family)]
        }
        _ => {
            vec![
                format!("{log}      # what happened"),
                format!("{retry}    # once it is put right"),
            ]
        }
    };
    (why::sentence(&shard.reason, now), next)
}

/// Brings what follows `babysit check` below what follows `babysit retry ID`.
fn pad(id: &str) -> String {
    " ".repeat(id.chars().count() + 1)
}

/// The cap that would be enough, as far as one can tell.
fn needed(Cost { spent, cap, projected, .. }: &Cost) -> f64 {
    projected.unwrap_or(*spent).max(*spent).max(cap.unwrap_or(0.0)) * CAP_ROOM
}

fn raise(target: &str, need: f64) -> String {
    format!("babysit cap set {target} {:.0}", need.ceil())
}

fn money(amount: f64) -> String {
    dollars(Money::from_dollars(amount).unwrap_or_default())
}

/// `projected $27.20 of $25 ($0.080 a row)`
fn projection(cost: &Cost) -> String {
    let each = cost.per_row.map_or(String::new(), |each| format!(" ({} a row)", per_row(each)));
    format!(
        "Will pass its cap before its last row: projected {}{each}, cap {}.",
        money(cost.projected.unwrap_or(0.0)),
        money(cost.cap.unwrap_or(0.0))
    )
}
