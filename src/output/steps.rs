//! What needs a person, each with the command to type next.

use crate::model::reason::Reason;
use crate::model::units::Time;

use super::format::{dollars, per_row, plain};
use super::view::{Cost, ShardView};
use super::why;
use super::word::Word;
use crate::model::units::Money;

/// A raised cap that the projection does not pass leaves this much room: rows differ in price.
const CAP_ROOM: f64 = 1.2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub shard: String,
    pub what: String,
    /// Command lines; `None` where there is nothing to type.
    pub next: Vec<String>,
    /// Nothing moves until it is done; else it is only announced.
    pub urgent: bool,
}

pub fn steps(shards: &[ShardView], now: Time) -> Vec<Step> {
    let of = |shard: &ShardView| {
        let urgent = shard.needs_person;
        let held = shard.state == Word::Held;
        if urgent || held {
            let (what, next) = told(shard, now);
            Some(Step { shard: shard.id.clone(), what, next, urgent })
        } else if shard.cost.will_pass_cap {
            Some(Step {
                shard: shard.id.clone(),
                what: projection(&shard.cost),
                next: vec![raise(shard)],
                urgent: false,
            })
        } else {
            None
        }
    };
    let mut steps: Vec<Step> = shards.iter().filter_map(of).collect();
    steps.sort_by_key(|step| !step.urgent);
    steps
}

fn told(shard: &ShardView, now: Time) -> (String, Vec<String>) {
    let id = &shard.id;
    let retry = format!("babysit retry {id}");
    let log = format!("babysit log {id}");
    let next = match &shard.reason {
        Reason::OverCap { .. } => vec![raise(shard)],
        Reason::HeldByPerson { .. } => vec![format!("babysit release {id}")],
        Reason::JobCancelled { .. } => vec![format!("babysit release {id}")],
        Reason::StuckInSlurm { .. } => {
            shard.job.iter().map(|job| format!("scontrol show job {}", job.id)).collect()
        }
        Reason::HostOutOfMemory => {
            vec![format!("raise `mem` of {} in shards.toml, then: {retry}", shard.family)]
        }
        Reason::Refused { .. } | Reason::NoFit { .. } => {
            vec![format!("correct {} in shards.toml, then: {retry}", shard.family)]
        }
        _ => {
            vec![format!("{log}    # what happened"), format!("{retry}    # once it is put right")]
        }
    };
    (why::sentence(&shard.reason, now), next)
}

fn raise(shard: &ShardView) -> String {
    let Cost { spent, cap, projected, .. } = &shard.cost;
    let need = projected.unwrap_or(*spent).max(*spent).max(cap.unwrap_or(0.0));
    format!("babysit cap set {} {:.0}", shard.id, (need * CAP_ROOM).ceil())
}

/// `projected $27.20 of $25 ($0.080 a row)`
fn projection(cost: &Cost) -> String {
    let money =
        |amount: Option<f64>| Money::from_dollars(amount.unwrap_or(0.0)).unwrap_or_default();
    let each = cost.per_row.map_or(String::new(), |each| format!(" ({} a row)", per_row(each)));
    format!(
        "Will pass its cap before its last row: projected {}{each}, cap ${}.",
        dollars(money(cost.projected)),
        plain(money(cost.cap))
    )
}
