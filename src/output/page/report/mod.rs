//! `babysit report`: the campaign on one page, for whoever has five seconds and for whoever has five
//! minutes. Its numbers are those of `status --json`. One file a part of the page.

mod money;
mod person;
mod shards;
mod tiles;

use serde_json::Value;

use crate::model::policy::Policy;
use crate::model::state::State;
use crate::model::units::{Money, Time};
use crate::output::forecast::Forecast;
use crate::output::format::{ago, day_and_minute, dollars, secs, span};
use crate::output::heading::is_overdue;
use crate::output::view::{Status, Totals};

use super::axis::Axis;
use super::history::History;
use super::over_time::Past;
use super::{Page, Section};

/// Shards of a large campaign that are listed one by one.
const LISTED: usize = 200;

/// What a report is made from. `journal`: this project's, oldest first; `status` and `forecast` of
/// the same policy, state and moment.
pub struct Report<'a> {
    pub policy: &'a Policy,
    pub state: &'a State,
    pub status: &'a Status,
    pub journal: &'a [Value],
    pub forecast: Option<&'a Forecast>,
    pub now: Time,
}

pub fn page(report: &Report<'_>) -> String {
    let Report { policy, state, status, journal, forecast, now } = *report;
    let history = History::new(policy, state, journal, now);
    let x = Axis::of_time(history.begins().unwrap_or(now), now);
    let past = Past { history: &history, status, state, forecast, now, x };
    let mut sections = Vec::new();
    sections.extend(person::section(status, now));
    sections.push(
        Section::new("rows", "Rows over time")
            .says(forecast_says(forecast, state))
            .put(past.rows()),
    );
    sections.push(money::section(status));
    sections.push(Section::new("runs", "Runs").all(past.runs()));
    let says = "As Slurm accounts for them. Where more changed than can be seen, means are drawn.";
    sections.push(Section::new("gpus", "GPUs in use").says(says).put(past.gpus()));
    let says = "What each lab was charged, which is what its turn goes by. A run is charged when it \
                ends, so the lines go up in steps.";
    sections.push(Section::new("labs", "Labs").says(says).put(past.labs()));
    sections.push(Section::new("incidents", "Incidents").put(past.incidents()));
    sections.push(shards::section(status));
    let since = match history.since {
        Some(at) => format!("The journal reaches back to {}.", day_and_minute(at)),
        None => "There is no journal: lanes, nodes and incidents of the past are not known.".into(),
    };
    Page {
        title: status.project.clone(),
        kind: "Campaign report",
        lead: lead(status, forecast, now),
        tiles: tiles::all(status, forecast, now),
        sections,
        foot: format!(
            "Made by babysit {} at {} from shards.toml, the state file and the journal; Slurm was \
             not asked. {since} All times are UTC. Make it anew: `babysit report`.",
            env!("CARGO_PKG_VERSION"),
            day_and_minute(now)
        ),
    }
    .write()
}

fn money_text(amount: f64) -> String {
    dollars(Money::from_dollars(amount).unwrap_or_default())
}

fn left(totals: &Totals) -> u64 {
    totals.rows_total.saturating_sub(totals.rows_done)
}

/// The page in a few sentences, for those who read no picture.
fn lead(status: &Status, forecast: Option<&Forecast>, now: Time) -> String {
    let totals = &status.totals;
    let mut text = match left(totals) {
        0 => format!("All {} rows are done. ", totals.rows_total),
        _ => format!("{} of {} rows are done. ", totals.rows_done, totals.rows_total),
    };
    if let Some(range) = forecast.and_then(|f| f.all_done_in) {
        text.push_str(&format!(
            "The rest takes between {} and {} in nine of ten simulated futures. ",
            span(secs(range.low)),
            span(secs(range.high))
        ));
    } else if left(totals) > 0 && totals.eta_seconds.is_none() {
        text.push_str("Nothing moves by itself any more. ");
    }
    text.push_str(&match totals.needs_person {
        0 => "Nothing needs a person.".to_owned(),
        1 => "One shard needs a person.".to_owned(),
        n => format!("{n} shards need a person."),
    });
    if let Some(tick) = &status.last_tick {
        text.push_str(&format!(
            " As of {}; last tick {}",
            day_and_minute(now),
            ago(tick.record.at, now)
        ));
        text.push_str(match () {
            () if is_overdue(status, now) => ": does cron still run it?",
            () => match tick.outcome {
                "skipped" => ", which was skipped.",
                "failed" => ", which failed.",
                _ => ".",
            },
        });
    } else {
        text.push_str(" There was no tick yet.");
    }
    text
}

fn forecast_says(forecast: Option<&Forecast>, state: &State) -> String {
    match forecast {
        Some(f) if f.futures > 0 => {
            let without = match f.left_out.len() {
                0 => String::new(),
                1 => {
                    " One shard is not in it: it waits for a person, or wants several GPUs.".into()
                }
                n => format!(
                    " {n} shards are not in it: they wait for a person, or want several GPUs."
                ),
            };
            format!(
                "The forecast is that of `babysit status --forecast`: {} simulated futures from \
                 here, scenario {} ({}).{without}",
                f.futures, f.scenario, f.scenario_says
            )
        }
        _ if state.last_tick.is_none() => "There was no tick yet.".to_owned(),
        _ => "No forecast here: nothing is left that moves by itself, or there are so many shards \
              that it would take minutes; `babysit status --forecast` takes them."
            .to_owned(),
    }
}
