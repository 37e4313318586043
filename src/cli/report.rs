//! `babysit report`: shards.toml, the state file and the journal; no Slurm call, and no write but
//! the page.

use std::path::Path;

use serde_json::json;

use crate::output::page::report::{Report, page};
use crate::output::view;

use super::context::Context;
use super::exit::{Exit, Stop};
use super::figures::figures;
use super::forecast::forecast;
use super::log;
use super::page::{is_stdout, may_write, put};
use super::scenario::Chosen;

/// Of more shards that are not done two hundred futures take minutes, and a page should not.
/// `status --forecast` takes the time.
const FORECAST_SHARDS: usize = 200;

const SCHEMA: &str = "babysit/report/v1";

pub fn run(cx: &Context, out: &Path, chosen: &Chosen) -> Result<Exit, Stop> {
    may_write(out)?;
    let campaign = cx.campaign()?;
    let policy = &campaign.loaded.policy;
    let state = cx.look(&campaign)?;
    let now = (cx.clock)();
    let status = view::status(policy, &state, &figures(policy, &state), now, |_, _| true);
    let journal = log::everything(&campaign)?;
    let open = state.shards.iter().filter(|record| record.finished.is_none()).count();
    // Before the first tick there is nothing to go on from.
    let forecast = match &state.last_tick {
        Some(_) if open > FORECAST_SHARDS => {
            cx.talk.aside(&format!("babysit: no forecast for more than {FORECAST_SHARDS} shards"));
            None
        }
        Some(_) => forecast(cx, chosen, policy, &state).map_or_else(
            |stop| {
                // The page is of use without it.
                if let Stop::Fault(_, fault) = stop {
                    cx.talk.say(&format!("babysit: no forecast: {}", fault.message));
                }
                None
            },
            |forecast| Some(forecast).filter(|f| f.futures > 0),
        ),
        None => None,
    };
    let html = page(&Report {
        policy,
        state: &state,
        status: &status,
        journal: &journal,
        forecast: forecast.as_ref(),
        now,
    });
    put(cx, out, &html)?;
    if cx.talk.json && !is_stdout(out) {
        cx.talk.result_json(&json!({
            "schema": SCHEMA,
            "path": out.display().to_string(),
            "bytes": html.len(),
        }))?;
    }
    Ok(Exit::Done)
}
