//! `babysit simulate --compare` of shards that babysit places: one line, or
//! `babysit/simulate-placed/v1`.

use serde::Serialize;

use super::simulate::{Mean, saved};

pub const SCHEMA: &str = "babysit/simulate-placed/v1";

/// Hours that one policy takes more than the other, on the same luck.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Savings {
    pub schema: &'static str,
    pub policy: String,
    pub against: String,
    /// Until the last shard is done, over the campaigns in which all are.
    pub longer_by: Option<Mean>,
    /// Until a shard starts, on average over the shards.
    pub waits_longer_by: Option<Mean>,
    /// Until a shard is done, likewise.
    pub done_later_by: Option<Mean>,
    /// Campaigns of either policy in which a shard was not done after `never_after_hours`.
    pub never_ended: usize,
    pub never_after_hours: u32,
    pub shards: usize,
    /// Shards that no placement could hold, left out.
    pub too_wide: usize,
    pub gpus: u32,
    pub seeds: usize,
    pub shards_of: String,
}

pub fn line(s: &Savings) -> String {
    if s.seeds == 0 {
        return "no campaign was finished\n".to_owned();
    }
    let hours = |n: f64| format!("{n:.1} h");
    let part = |what: &str, mean, less, more| {
        saved(mean, less, more, hours).map(|text| format!("{what} {text}"))
    };
    let left_out = |n: usize, one: &str, more: &str| match n {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {more}")),
    };
    let parts = [
        part("the last ends", s.longer_by, "earlier", "later"),
        part("the mean one starts", s.waits_longer_by, "earlier", "later"),
        part("and ends", s.done_later_by, "earlier", "later"),
        left_out(s.never_ended, "campaign never ended", "campaigns never ended"),
        left_out(s.too_wide, "shard fits nowhere", "shards fit nowhere"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!(
        "{} instead of {} for {} placed shards: {} ({} seeds, {} GPUs as the last tick saw them, {})\n",
        s.policy,
        s.against,
        s.shards,
        parts.join("; "),
        s.seeds,
        s.gpus,
        s.shards_of
    )
}
