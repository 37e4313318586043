//! `babysit status --forecast`: when the rest is done and what it costs, as a table and as
//! `babysit/forecast/v1`.

use serde::Serialize;

use super::format::{secs, span};
use super::layout::{Cell, Columns, Side, wrap};
use super::paint::{Paint, Tone};

pub const SCHEMA: &str = "babysit/forecast/v1";

/// The middle of all futures, and the range in which nine of ten lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

/// Times in seconds from now, money in dollars.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    pub schema: &'static str,
    pub project: String,
    pub scenario: String,
    pub scenario_says: String,
    pub futures: usize,
    pub shards: Vec<ShardForecast>,
    /// Until the last of them is done; `null` where nothing is left that moves by itself.
    pub all_done_in: Option<Range>,
    /// Of these shards, what was spent already included.
    pub cost: Option<Range>,
    /// Finished rows of all shards, from now until all of these are done.
    pub rows_done: Vec<RowsAt>,
    /// Shards that wait for a person: not in the forecast.
    pub left_out: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RowsAt {
    /// From now.
    pub seconds: f64,
    pub done: Range,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShardForecast {
    pub id: String,
    pub rows_left: u32,
    pub done_in: Range,
    pub cost: Range,
    pub cap: Option<f64>,
    /// Share of futures in which its cap stops it.
    pub hits_cap: Option<f64>,
}

pub fn text(f: &Forecast, width: Option<usize>, paint: Paint) -> String {
    let head = format!(
        "{}: {} simulated futures from here, by shards.toml as it stands, scenario {} ({}); the middle, \
         and where nine of ten lie",
        f.project, f.futures, f.scenario, f.scenario_says
    );
    let mut out = wrap(&head, 0, width);
    if let (Some(time), Some(cost)) = (f.all_done_in, f.cost) {
        let mut columns = Columns {
            heads: vec![
                ("SHARD", Side::Left),
                ("ROWS LEFT", Side::Right),
                ("DONE IN", Side::Right),
                ("90 %", Side::Left),
                ("COST", Side::Right),
                ("90 %", Side::Left),
                ("CAP", Side::Right),
                ("HITS IT", Side::Right),
            ],
            rows: f.shards.iter().map(row).chain([total(f, time, cost)]).collect(),
        };
        out.push('\n');
        if let Some(width) = width {
            columns.fit(width, "HITS IT".len(), &["CAP", "ROWS LEFT", "COST", "90 %"]);
        }
        out.push_str(&columns.render(None, paint));
    } else {
        out.push_str("\nnothing is left that moves by itself\n");
    }
    if !f.left_out.is_empty() {
        let why = "not in it, since they wait for a person:";
        out.push('\n');
        out.push_str(&wrap(&format!("{why} {}", f.left_out.join(", ")), 0, width));
    }
    out
}

fn row(shard: &ShardForecast) -> Vec<Cell> {
    let chance = match shard.hits_cap {
        None => Cell::new("-"),
        Some(share) if share >= 0.05 => Cell::tone(percent(share), Tone::Bad),
        Some(share) => Cell::new(percent(share)),
    };
    let cap = shard.cap.map_or("none".to_owned(), |cap| format!("${cap:.2}"));
    let name = Cell::new(shard.id.clone());
    cells(name, u64::from(shard.rows_left), shard.done_in, shard.cost, cap, chance)
}

fn total(f: &Forecast, time: Range, cost: Range) -> Vec<Cell> {
    let rows = f.shards.iter().map(|shard| u64::from(shard.rows_left)).sum();
    let name = Cell::tone("all", Tone::Strong);
    cells(name, rows, time, cost, String::new(), Cell::new(""))
}

fn cells(name: Cell, rows: u64, time: Range, cost: Range, cap: String, chance: Cell) -> Vec<Cell> {
    let length = |seconds: f64| span(secs(seconds));
    vec![
        name,
        Cell::new(rows.to_string()),
        Cell::new(length(time.median)),
        Cell::new(format!("{} to {}", length(time.low), length(time.high))),
        Cell::new(format!("${:.2}", cost.median)),
        Cell::new(format!("${:.2} to ${:.2}", cost.low, cost.high)),
        Cell::new(cap),
        chance,
    ]
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
