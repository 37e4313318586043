//! `babysit status`: shards.toml and the state file only; no Slurm call, no write.

use std::time::Duration;

use serde_json::Value;

use crate::model::units::Time;
use crate::output::spark::Point;
use crate::output::table::{self, Look};
use crate::output::view::{self, Status};
use crate::output::word::Word;

use super::context::{Campaign, Context};
use super::exit::{Exit, Stop};
use super::figures::figures;
use super::target;

/// The state changes with a tick, so there is nothing to see sooner than this.
const REDRAW: Duration = Duration::from_secs(2);

/// Of the journal's end: a day of a busy campaign.
const JOURNAL: u64 = 2 << 20;

pub fn run(cx: &Context, filter: &[String], check: bool) -> Result<Exit, Stop> {
    let (status, text) = draw(cx, filter)?;
    if cx.talk.json {
        cx.talk.result_json(&status)?;
    } else {
        cx.talk.result(&text)?;
    }
    let person = check && status.totals.needs_person > 0;
    Ok(if person { Exit::Person } else { Exit::Done })
}

/// Ends by a signal, or when nobody reads any more.
pub fn watch(cx: &Context, filter: &[String]) -> Result<Exit, Stop> {
    loop {
        let (status, text) = draw(cx, filter)?;
        if cx.talk.json {
            cx.talk.result_json(&status)?;
        } else {
            // Cursor home, then clear: without flicker, and the last picture stays in the window.
            let clear = if cx.talk.terminal { "\u{1b}[H\u{1b}[2J" } else { "" };
            cx.talk.result(&format!("{clear}{text}"))?;
        }
        std::thread::sleep(REDRAW);
    }
}

fn draw(cx: &Context, filter: &[String]) -> Result<(Status, String), Stop> {
    let campaign = cx.campaign()?;
    let policy = &campaign.loaded.policy;
    let state = cx.look(&campaign)?;
    let words: Vec<Word> =
        Word::ALL.into_iter().filter(|word| filter.iter().any(|f| f == word.text())).collect();
    let names: Vec<String> = filter
        .iter()
        .filter(|f| !Word::ALL.iter().any(|word| word.text() == *f))
        .cloned()
        .collect();
    let states = Word::ALL.map(|word| word.text().to_owned());
    let named = target::filtered(policy, &names, &states)?;
    let wanted = |i: usize, word: Word| {
        (words.is_empty() || words.contains(&word))
            && (names.is_empty() || named.binary_search(&i).is_ok())
    };
    let now = (cx.clock)();
    let mut status = view::status(policy, &state, &figures(policy, &state), now, wanted);
    // Of the whole campaign, so it says nothing about a part of it.
    if filter.is_empty() {
        status.history = history(&campaign);
    }
    let look = Look { width: cx.talk.width, paint: cx.talk.paint, now };
    let text = table::render(&status, &look);
    Ok((status, text))
}

/// Rows over time, from the journal's lines of totals. A picture beside the numbers: where the
/// journal cannot be read there is none.
fn history(campaign: &Campaign) -> Vec<Point> {
    let lines = campaign.store.journal_tail(JOURNAL).unwrap_or_default();
    let point = |line: &Value| {
        let ours = line.get("project")?.as_str()? == campaign.loaded.policy.project;
        let at = chrono::DateTime::parse_from_rfc3339(line.get("at")?.as_str()?).ok()?;
        let rows = line.get("rows")?.as_u64()?;
        (ours && line.get("kind")?.as_str()? == "totals")
            .then(|| Point { at: Time(at.timestamp()), rows })
    };
    let mut points: Vec<Point> = lines.iter().filter_map(point).collect();
    points.sort_by_key(|point| point.at);
    points
}
