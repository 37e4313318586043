//! `babysit simulate --labs` and `--trace`: placement policies side by side, as a table and as
//! `babysit/simulate-placement/v1`.

use serde::Serialize;

use super::layout::{Cell, Columns, Side, wrap};
use super::paint::{Paint, Tone};
use super::simulate::Mean;

pub const SCHEMA: &str = "babysit/simulate-placement/v1";

/// Waits in hours; shares of 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Placement {
    pub schema: &'static str,
    /// Whose jobs: a path, or the five labs that are drawn.
    pub jobs_of: String,
    pub load: f64,
    pub days: u32,
    pub warm_up_days: u32,
    /// Run times shrink and grow with the tier's TFLOPS.
    pub by_tier: bool,
    /// Jobs of a trace that no placement here could hold.
    pub too_wide: usize,
    pub seeds_asked: u64,
    pub seeds: usize,
    pub policies: Vec<PlacingView>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacingView {
    pub name: String,
    pub says: String,
    /// By width, all widths last.
    pub waits: Vec<WidthView>,
    pub utilization: Option<Mean>,
    /// With what an LLM server could have done on GPUs that stood idle.
    pub with_backfill: Option<Mean>,
    /// Not used by the labs, reserved GPUs included.
    pub idle: Option<Mean>,
    /// Reserved without leading to a start.
    pub reserved_in_vain: Option<Mean>,
    pub reservations: Option<Mean>,
    pub reservations_failed: Option<Mean>,
    pub jain: Option<Mean>,
    pub largest_deviation: Option<Mean>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WidthView {
    /// `null`: all widths.
    pub gpus: Option<u32>,
    pub jobs: Option<Mean>,
    pub mean: Option<Mean>,
    pub p95: Option<Mean>,
    /// Mean time from arrival to end.
    pub turnaround: Option<Mean>,
    /// Of all seeds.
    pub max: f64,
    pub not_started: Option<Mean>,
}

pub fn text(p: &Placement, width: Option<usize>, paint: Paint) -> String {
    let tier = if p.by_tier { ", run times by tier" } else { "" };
    let wide = match p.too_wide {
        0 => String::new(),
        n => format!("; jobs wider than any placement and left out: {n}"),
    };
    let head = format!(
        "{} on 40 GPUs (4 nodes of 2, 4 of 4, 2 of 8), load {}, {} days of which the first {} do \
         not count{tier}; {} seed(s){wide}; waits in hours, with 95 % intervals",
        p.jobs_of, p.load, p.days, p.warm_up_days, p.seeds
    );
    let mut out = wrap(&head, 0, width);
    if p.seeds == 0 {
        out.push_str("\nno campaign was finished\n");
        return out;
    }
    let waits = Columns {
        heads: vec![
            ("POLICY", Side::Left),
            ("GPUS", Side::Right),
            ("JOBS", Side::Right),
            ("MEAN WAIT", Side::Right),
            ("P95", Side::Right),
            ("MAX", Side::Right),
            ("TURNAROUND", Side::Right),
            ("NOT STARTED", Side::Right),
        ],
        rows: p.policies.iter().flat_map(|v| v.waits.iter().map(|w| row(v, w))).collect(),
    };
    out.push('\n');
    out.push_str(&waits.render(None, paint));
    let shares = Columns {
        heads: vec![
            ("POLICY", Side::Left),
            ("USED", Side::Right),
            ("AND BACKFILL", Side::Right),
            ("IDLE", Side::Right),
            ("RESERVED IN VAIN", Side::Right),
            ("RESERVATIONS", Side::Right),
            ("FAILED", Side::Right),
            ("JAIN", Side::Right),
            ("DEVIATION", Side::Right),
        ],
        rows: p.policies.iter().map(share).collect(),
    };
    out.push('\n');
    out.push_str(&shares.render(None, paint));
    out
}

fn row(view: &PlacingView, width: &WidthView) -> Vec<Cell> {
    vec![
        Cell::tone(view.name.clone(), Tone::Strong),
        Cell::new(width.gpus.map_or("all".to_owned(), |gpus| gpus.to_string())),
        Cell::new(number(width.jobs, 0)),
        Cell::new(mean(width.mean, 2)),
        Cell::new(number(width.p95, 1)),
        Cell::new(format!("{:.1}", width.max)),
        Cell::new(mean(width.turnaround, 2)),
        Cell::new(number(width.not_started, 1)),
    ]
}

fn share(view: &PlacingView) -> Vec<Cell> {
    let percent = |mean: Option<Mean>| {
        mean.map_or("-".to_owned(), |mean| format!("{:.1} %", mean.mean * 100.0))
    };
    vec![
        Cell::tone(view.name.clone(), Tone::Strong),
        Cell::new(percent(view.utilization)),
        Cell::new(percent(view.with_backfill)),
        Cell::new(percent(view.idle)),
        Cell::new(percent(view.reserved_in_vain)),
        Cell::new(number(view.reservations, 1)),
        Cell::new(number(view.reservations_failed, 1)),
        Cell::new(number(view.jain, 3)),
        Cell::new(percent(view.largest_deviation)),
    ]
}

pub(super) fn number(mean: Option<Mean>, digits: usize) -> String {
    mean.map_or("-".to_owned(), |mean| format!("{:.digits$}", mean.mean))
}

fn mean(mean: Option<Mean>, digits: usize) -> String {
    match mean {
        Some(Mean { mean, plus_minus: Some(half), .. }) => {
            format!("{mean:.digits$} ±{half:.digits$}")
        }
        other => number(other, digits),
    }
}
