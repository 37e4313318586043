//! The report's charts over time, one file each: rows, runs, GPUs, labs, incidents.

mod gpus;
mod incidents;
mod labs;
mod rows;
mod runs;

use crate::model::state::State;
use crate::model::units::Time;
use crate::output::forecast::Forecast;
use crate::output::view::Status;

use super::axis::Axis;
use super::history::History;

/// Lines of a chart of shards; of more shards those are drawn that had most tries.
pub const SHARDS_SHOWN: usize = 40;
/// Rows of a table behind a chart: a page is for looking, `--json` for reading all.
const TABLE: usize = 200;

/// What the charts are drawn from.
pub struct Past<'a> {
    pub history: &'a History,
    pub status: &'a Status,
    pub state: &'a State,
    pub forecast: Option<&'a Forecast>,
    pub now: Time,
    /// All of the past, and nothing else.
    pub x: Axis,
}

fn at(time: Time) -> f64 {
    time.0 as f64
}
