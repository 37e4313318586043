//! The JSON contract `babysit/status/v1` (contract.md): structs of their own, so that a change of
//! the model cannot change what scripts read.

use serde::Serialize;

use crate::model::reason::Reason;
use crate::model::state::TickRecord;

use super::spark::Point;
use super::word::Word;

pub const SCHEMA: &str = "babysit/status/v1";

/// Times ISO-8601 UTC, durations in seconds, money in dollars.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status {
    pub schema: &'static str,
    pub project: String,
    pub generated_at: String,
    /// `null` before the first tick.
    pub last_tick: Option<LastTick>,
    pub shards: Vec<ShardView>,
    pub labs: Vec<LabView>,
    /// Nodes that no job is sent to for a while.
    pub kept_out: Vec<KeptOut>,
    /// The last message to the notify hook; `null`: none yet, or no hook.
    pub notify: Option<Notified>,
    /// Jobs of shards that shards.toml no longer names.
    pub left_over: Vec<LeftOver>,
    pub totals: Totals,
    /// For the reader of the table: rows over time, where the journal tells.
    #[serde(skip)]
    pub history: Vec<Point>,
}

/// Nothing is decided for it any more; it is followed to its end and charged.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftOver {
    pub shard: String,
    pub lab: String,
    /// `null`: its submission is not settled yet.
    pub job: Option<Job>,
    pub gpus: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeptOut {
    pub node: String,
    pub deaths: u32,
    pub until: String,
    #[serde(skip)]
    pub seconds_left: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Notified {
    pub at: String,
    pub events: u32,
    /// `in-hand`, `delivered` or `failed`.
    pub outcome: &'static str,
    pub reason: Option<String>,
    /// For the reader of the table, where it did not get through.
    #[serde(skip)]
    pub trouble: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LastTick {
    pub at: String,
    /// `ok`, `skipped` or `failed`.
    pub outcome: &'static str,
    pub reason: Option<String>,
    pub skipped_in_a_row: u32,
    /// The last cycle that was not skipped.
    pub last_ok: Option<String>,
    pub seconds_ago: i64,
    /// For the reader of the table.
    #[serde(skip)]
    pub record: TickRecord,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShardView {
    pub id: String,
    pub family: String,
    pub shard: String,
    pub lab: String,
    pub state: Word,
    pub why: String,
    /// The typed reason behind `why`, one word.
    pub why_code: &'static str,
    pub needs_person: bool,
    pub gpus: u32,
    pub rows: Rows,
    /// 0 where it does not run.
    pub rows_per_hour: f64,
    pub seconds_per_row: f64,
    /// The seconds per row are the configured ones: no row has been timed yet.
    pub rate_is_configured: bool,
    pub remaining_seconds: f64,
    /// `null` where it is done, or nothing moves until a person does something.
    pub eta: Option<String>,
    pub cost: Cost,
    pub job: Option<Job>,
    /// Other jobs that work on its rows, or wait to (`split` in shards.toml).
    pub helpers: Vec<Helper>,
    pub reservation: Option<Reserved>,
    pub attempts: u32,
    pub failures: u32,
    pub preemptions: u32,
    /// Name of the lowest tier it may run on; `null`: any GPU.
    pub min_tier: Option<String>,
    #[serde(skip)]
    pub reason: Reason,
    #[serde(skip)]
    pub eta_seconds: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rows {
    pub done: u32,
    pub total: u32,
}

/// Dollars; `null` where there is no cap, or nothing to tell a price per row from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cost {
    pub spent: f64,
    pub cap: Option<f64>,
    pub per_row: Option<f64>,
    pub projected: Option<f64>,
    /// The projection passes the cap (policy.md section 4): told before it gets there.
    pub will_pass_cap: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Job {
    pub id: u64,
    pub qos: String,
    /// Slurm's word.
    pub state: String,
    pub node: Option<String>,
    pub tier: Option<String>,
    pub submitted_at: Option<String>,
    pub started_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Helper {
    /// `find/s1~2`: as the journal and `usage` name it.
    pub id: String,
    /// `null`: its submission is not settled yet.
    pub job: Option<Job>,
    /// `own`, `extra` or `both`; `null` without lanes.
    pub lane: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reserved {
    pub node: String,
    pub tier: String,
    pub gpus: u32,
    pub since: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabView {
    pub name: String,
    /// TFLOP-seconds.
    pub usage: f64,
    /// Of the usage of all labs, 0 to 1.
    pub share: f64,
    pub running_gpus: u32,
    /// In turn, from 1: least usage first, a newcomer's floor counted.
    pub rank: u32,
    /// What the rank goes by: usage and floor.
    #[serde(skip)]
    pub standing: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Totals {
    pub shards: u32,
    pub done: u32,
    pub running: u32,
    pub pending: u32,
    /// Waiting, reserving, submitting or backing off.
    pub waiting: u32,
    pub needs_person: u32,
    pub rows_done: u64,
    pub rows_total: u64,
    pub rows_per_hour: f64,
    /// Of all that can still make progress.
    pub eta: Option<String>,
    pub spent: f64,
    pub projected: f64,
    /// Sum of the caps; `null` where a shard with a cost has none.
    pub ceiling: Option<f64>,
    #[serde(skip)]
    pub eta_seconds: Option<f64>,
    /// Some rate behind the ETA is a configured one.
    #[serde(skip)]
    pub eta_is_guess: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema that scripts may check against is made from these very structs.
    /// `UPDATE_EXPECT=1 cargo test schema` writes it anew.
    #[test]
    fn the_published_schema_is_that_of_the_structs() {
        let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
        let schema = settings.into_generator().into_root_schema_for::<Status>();
        let text = serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
        expect_test::expect_file!["../../docs/status.schema.json"].assert_eq(&text);
    }
}
