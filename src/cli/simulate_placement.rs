//! `babysit simulate --labs` and `--trace`: placement policies side by side.

use std::path::Path;

use crate::output::page::placement::page;
use crate::output::placement::{Placement, PlacingView, SCHEMA, WidthView, text};
use crate::output::simulate::Mean;
use crate::study::lab_mix::{Arrival, mix};
use crate::study::many::side_by_side;
use crate::study::placing::{Field, PLACINGS, Placing, run as place};
use crate::study::site::Site;
use crate::study::statistics::estimate;
use crate::study::trace::{self, Trace};
use crate::study::waits::{Waits, Width};

use super::args::Simulate;
use super::context::Context;
use super::exit::{Exit, Stop};
use super::page::{is_stdout, may_write, put};
use super::simulate::{mean_of, named, with_bar};

/// What the reference figures were made with.
const LOAD: f64 = 0.85;
const TRACE_LOAD: f64 = 0.5;
const DAYS: u32 = 28;
const TRACE_DAYS: u32 = 30;

pub fn run(cx: &Context, asked: &Simulate) -> Result<Exit, Stop> {
    if let Some(out) = &asked.out {
        may_write(out)?;
    }
    let trace = asked.trace.as_deref().map(read).transpose()?;
    let (load, days) = if trace.is_some() { (TRACE_LOAD, TRACE_DAYS) } else { (LOAD, DAYS) };
    let (load, days) = (asked.load.unwrap_or(load), asked.days.unwrap_or(days));
    let warm_up = Field::default().warm_up.min(days / 2);
    let field = Field { days, warm_up, by_tier: asked.by_tier, ..Field::default() };
    let site = Site::field();
    let placings = named(&asked.policies, &PLACINGS, |placing| placing.name)?;
    let jobs = |seed| -> Vec<Arrival> {
        match &trace {
            Some(trace) => trace::scaled(&trace.jobs, seed, load, days),
            None => mix(seed, load, days),
        }
    };
    let runs = with_bar(cx, asked.seeds, placings.len(), |orders| {
        side_by_side(placings.len(), orders, |n, seed| match placings.get(n) {
            Some(placing) => place(&field, &site, placing, &jobs(seed), orders.stop),
            None => Err(format!("no policy number {n}")),
        })
    })?;
    let source = asked.trace.as_ref().map(|path| path.display().to_string());
    let seen = Placement {
        schema: SCHEMA,
        jobs_of: source.unwrap_or_else(|| "five labs".to_owned()),
        load,
        days,
        warm_up_days: warm_up,
        by_tier: asked.by_tier,
        too_wide: trace.as_ref().map_or(0, |trace| trace.too_wide),
        seeds_asked: asked.seeds,
        seeds: runs.first().map_or(0, Vec::len),
        policies: placings.iter().zip(&runs).map(|(placing, runs)| view(placing, runs)).collect(),
    };
    if let Some(out) = &asked.out {
        put(cx, out, &page(&seen))?;
        if is_stdout(out) {
            return Ok(Exit::Done);
        }
    }
    if cx.talk.json {
        cx.talk.result_json(&seen)?;
    } else {
        cx.talk.result(&text(&seen, cx.talk.width, cx.talk.paint))?;
    }
    Ok(Exit::Done)
}

fn read(path: &Path) -> Result<Trace, Stop> {
    let fault = |why: String| {
        let hint = "a trace is in the Standard Workload Format, or a CSV with the columns lab, \
                    submit_s, gpus and duration_s";
        Stop::usage(format!("{}: {why}", path.display()), hint)
    };
    let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
    trace::read(&text).map_err(fault)
}

fn view(placing: &Placing, runs: &[(u64, Waits)]) -> PlacingView {
    let over = |value: &dyn Fn(&Waits) -> f64| -> Option<Mean> {
        estimate(&runs.iter().map(|(_, waits)| value(waits)).collect::<Vec<_>>()).map(mean_of)
    };
    let mut widths: Vec<Option<u32>> =
        runs.iter().flat_map(|(_, waits)| &waits.widths).map(|width| width.gpus).collect();
    // All widths last.
    widths.sort_unstable_by_key(|gpus| gpus.unwrap_or(u32::MAX));
    widths.dedup();
    PlacingView {
        name: placing.name.to_owned(),
        says: placing.sentence.to_owned(),
        waits: widths.into_iter().map(|gpus| width(gpus, runs)).collect(),
        utilization: over(&|w| w.utilization),
        with_backfill: over(&|w| w.with_backfill),
        idle: over(&|w| w.idle),
        reserved_in_vain: over(&|w| w.failed_share),
        reservations: over(&|w| f64::from(w.reservations)),
        reservations_failed: over(&|w| f64::from(w.failed)),
        jain: over(&|w| w.jain),
        largest_deviation: over(&|w| w.deviation),
    }
}

fn width(gpus: Option<u32>, runs: &[(u64, Waits)]) -> WidthView {
    let of: Vec<&Width> =
        runs.iter().flat_map(|(_, waits)| &waits.widths).filter(|w| w.gpus == gpus).collect();
    let over = |value: fn(&Width) -> f64| {
        estimate(&of.iter().map(|width| value(width)).collect::<Vec<_>>()).map(mean_of)
    };
    WidthView {
        gpus,
        jobs: over(|w| w.jobs as f64),
        mean: over(|w| w.mean),
        p95: over(|w| w.p95),
        turnaround: over(|w| w.turnaround),
        max: of.iter().map(|width| width.max).fold(0.0, f64::max),
        not_started: over(|w| w.not_started as f64),
    }
}
