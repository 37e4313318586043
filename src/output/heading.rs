//! The first lines of `babysit status`: the project, its last tick, and whether anything still ticks.

use crate::model::state::TickOutcome;
use crate::model::units::{Secs, Time};

use super::format::{ago, one_line};
use super::layout::wrap;
use super::paint::Tone;
use super::table::Look;
use super::view::{LastTick, ShardView, Status};
use super::word::Word;

/// A cron line ticks every minute or so; longer than this without one means that it is gone.
pub(super) const DEAD_AFTER: Secs = Secs::minutes(15);

/// The dead man's line: a babysitter that stopped looks exactly like a quiet one.
pub(super) fn head(status: &Status, look: &Look) -> String {
    let paint = look.paint;
    let name = paint.put(Tone::Strong, &status.project);
    let Some(tick) = &status.last_tick else {
        let hint = "no tick yet: run `babysit tick` or `babysit cron --install`";
        return first_line(&name, &status.project, hint, Tone::Warn, look);
    };
    let record = &tick.record;
    let last = format!("last tick {}", ago(record.at, look.now));
    let mut out = if is_overdue(status, look.now) {
        let warning = format!("{last}: does cron still run it? (`crontab -l`)");
        first_line(&name, &status.project, &warning, Tone::Warn, look)
    } else {
        first_line(&name, &status.project, &last, Tone::Faint, look)
    };
    let trouble = match &record.outcome {
        TickOutcome::Ok => return out,
        TickOutcome::Skipped(why) => {
            let row = record.skipped_in_a_row;
            let what = if row > 1 {
                format!("the last {row} ticks were skipped")
            } else {
                "it was skipped".into()
            };
            let good = record.last_ok.map_or("none went through yet".to_owned(), |at| {
                format!("the last good one was {}", ago(at, look.now))
            });
            format!("{what}, nothing was decided ({good}): {}", one_line(why))
        }
        TickOutcome::Failed(why) => format!("it failed: {}", one_line(why)),
    };
    for line in wrap(&trouble, 2, look.width).lines() {
        out.push_str(&paint.put(Tone::Warn, line));
        out.push('\n');
    }
    out
}

/// The project and what is said of it: beside it, or below it where that does not fit.
fn first_line(painted: &str, project: &str, text: &str, tone: Tone, look: &Look) -> String {
    let needed = project.chars().count() + 3 + text.chars().count();
    if look.width.is_none_or(|width| needed <= width) {
        return format!("{painted}   {}\n", look.paint.put(tone, text));
    }
    let mut out = format!("{painted}\n");
    for line in wrap(text, 2, look.width).lines() {
        out.push_str(&format!("{}\n", look.paint.put(tone, line)));
    }
    out
}

/// No tick for far too long. A finished campaign needs no cron any more.
pub(super) fn is_overdue(status: &Status, now: Time) -> bool {
    let open = |shard: &ShardView| !matches!(shard.state, Word::Done | Word::Cancelled);
    let late = |tick: &LastTick| now.since(tick.record.at) > DEAD_AFTER;
    status.last_tick.as_ref().is_some_and(late) && status.shards.iter().any(open)
}
