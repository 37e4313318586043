//! `babysit status` for a person: one line a shard, what needs a person first.

use crate::model::units::Time;

use super::format::{count, plain, rate, secs, span, spent};
use super::heading::head;
use super::layout::{Cell, Columns, Side};
use super::paint::{Paint, Tone};
use super::steps::steps;
use super::totals::{
    lab_lines, left_over_lines, money, node_lines, notify_line, rate_line, step_lines, total_lines,
};
use super::view::{Helper, ShardView, Status};
use super::why;
use super::word::Word;

/// Columns of the table, what one can do without first.
const LEAST_WORTH: [&str; 8] = ["TRY", "GPU", "RATE", "%", "QOS", "COST/CAP", "ETA", "ROWS"];
/// Room for most of the short reasons.
const WHY_ROOM: usize = 13;

pub struct Look {
    /// Columns of the screen; `None`: nothing is cut or wrapped.
    pub width: Option<usize>,
    pub paint: Paint,
    pub now: Time,
}

pub fn render(status: &Status, look: &Look) -> String {
    let mut out = head(status, look);
    out.push('\n');
    if status.shards.is_empty() {
        out.push_str("no shard matches\n");
        return out;
    }
    out.push_str(&shard_lines(&sorted(&status.shards), look));
    // One lab takes no turns with anybody; `babysit usage` tells what it used.
    if status.labs.len() > 1 {
        out.push('\n');
        out.push_str(&lab_lines(status, look));
    }
    out.push('\n');
    out.push_str(&total_lines(&status.totals, look));
    out.push_str(&rate_line(status, look));
    out.push_str(&node_lines(status, look));
    out.push_str(&notify_line(status, look));
    out.push_str(&left_over_lines(status, look));
    out.push_str(&step_lines(&steps(&status.shards, look.now), look));
    out
}

/// What needs a person first.
pub(super) fn order(shard: &ShardView) -> u8 {
    match shard.state {
        _ if shard.needs_person => 0,
        Word::Running => 1,
        Word::Pending => 2,
        Word::Submitting => 3,
        Word::Reserving => 4,
        Word::Waiting => 5,
        Word::Backoff => 6,
        Word::Held => 7,
        Word::OverCap | Word::Refused => 8,
        Word::Cancelled => 9,
        Word::Done => 10,
    }
}

/// What needs a person first, what is done last.
pub(super) fn sorted(shards: &[ShardView]) -> Vec<&ShardView> {
    let mut sorted: Vec<&ShardView> = shards.iter().collect();
    sorted.sort_by_key(|shard| order(shard));
    sorted
}

pub(super) fn shard_lines(sorted: &[&ShardView], look: &Look) -> String {
    use Side::{Left, Right};
    let mut columns = Columns {
        heads: vec![
            ("SHARD", Left),
            ("STATE", Left),
            ("QOS", Left),
            ("GPU", Right),
            ("ROWS", Right),
            ("%", Right),
            ("RATE", Right),
            ("COST/CAP", Right),
            ("ETA", Right),
            ("TRY", Right),
            ("WHY", Left),
        ],
        rows: sorted.iter().map(|shard| cells(shard)).collect(),
    };
    if let Some(width) = look.width {
        let reasons = sorted.iter().map(|shard| why::short(&shard.reason, look.now));
        let longest = reasons.map(|text| text.chars().count()).max().unwrap_or(0);
        columns.fit(width, longest.clamp("WHY".len(), WHY_ROOM), &LEAST_WORTH);
    }
    let room = look.width.map_or(usize::MAX, |width| columns.room_for_last(width));
    for (shard, row) in sorted.iter().zip(&mut columns.rows) {
        let tone = if shard.needs_person { Tone::Bad } else { faint_when_done(shard) };
        let note = helpers_note(shard).map_or(String::new(), |note| format!(" ({note})"));
        let left = room.saturating_sub(note.chars().count());
        row.push(Cell::tone(reason_text(shard, left, look.now) + &note, tone));
    }
    columns.render(look.width, look.paint)
}

/// `+2 helpers in extra, 1 waits`
pub fn helpers_note(shard: &ShardView) -> Option<String> {
    let runs = |helper: &&Helper| helper.job.as_ref().is_some_and(|job| job.started_at.is_some());
    let running: Vec<&Helper> = shard.helpers.iter().filter(runs).collect();
    let waiting = shard.helpers.len() - running.len();
    let mut lanes: Vec<&str> = running.iter().filter_map(|helper| helper.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let place =
        if lanes.is_empty() { String::new() } else { format!(" in {}", lanes.join(" and ")) };
    match (running.len(), waiting) {
        (0, 0) => None,
        (0, waiting) => Some(format!("{} waiting", count(waiting as u64, "helper"))),
        (running, 0) => Some(format!("+{}{place}", count(running as u64, "helper"))),
        (running, waiting) => {
            Some(format!("+{}{place}, {waiting} waiting", count(running as u64, "helper")))
        }
    }
}

/// The sentence where there is room for it, else the few words.
fn reason_text(shard: &ShardView, room: usize, now: Time) -> String {
    if matches!(shard.state, Word::Running | Word::Done) && why::code(&shard.reason) != "stopping" {
        return why::short(&shard.reason, now);
    }
    why::fitting(&shard.reason, room, now)
}

fn faint_when_done(shard: &ShardView) -> Tone {
    if matches!(shard.state, Word::Done | Word::Cancelled) { Tone::Faint } else { Tone::Plain }
}

fn cells(shard: &ShardView) -> Vec<Cell> {
    let quiet = faint_when_done(shard);
    let plain_cell = |text: String| Cell::tone(text, quiet);
    let state = match shard.state {
        _ if shard.needs_person => Tone::Bad,
        Word::Running => Tone::Good,
        Word::Pending | Word::Submitting | Word::Reserving => Tone::Cool,
        Word::Backoff | Word::Held => Tone::Warn,
        Word::Waiting | Word::OverCap | Word::Refused => Tone::Plain,
        Word::Done | Word::Cancelled => Tone::Faint,
    };
    let cost = if shard.cost.will_pass_cap { Tone::Warn } else { quiet };
    vec![
        plain_cell(shard.id.clone()),
        Cell::tone(shard.state.text(), state),
        plain_cell(qos(shard)),
        plain_cell(shard.gpus.to_string()),
        plain_cell(format!("{}/{}", shard.rows.done, shard.rows.total)),
        plain_cell(percent(shard.rows.done, shard.rows.total)),
        plain_cell(rate_text(shard)),
        Cell::tone(cost_text(shard), cost),
        plain_cell(eta_text(shard.eta_seconds, shard.rate_is_configured)),
        plain_cell(shard.attempts.to_string()),
    ]
}

fn qos(shard: &ShardView) -> String {
    match &shard.job {
        Some(job) if !job.qos.is_empty() => job.qos.clone(),
        _ => "-".to_owned(),
    }
}

/// Cut off, so that 100 means all.
fn percent(done: u32, total: u32) -> String {
    (u64::from(done) * 100).checked_div(u64::from(total)).unwrap_or(100).to_string()
}

fn rate_text(shard: &ShardView) -> String {
    if shard.rows_per_hour <= 0.0 {
        return "-".to_owned();
    }
    let guess = if shard.rate_is_configured { "~" } else { "" };
    format!("{guess}{}", rate(shard.rows_per_hour))
}

/// `12.30/25`, with `!` before it where the projection passes the cap.
fn cost_text(shard: &ShardView) -> String {
    let cost = &shard.cost;
    let mark = if cost.will_pass_cap { "!" } else { "" };
    match cost.cap {
        Some(cap) => format!("{mark}{}/{}", spent(money(cost.spent)), plain(money(cap))),
        None if cost.spent > 0.0 => spent(money(cost.spent)),
        None => "-".to_owned(),
    }
}

fn eta_text(seconds: Option<f64>, guess: bool) -> String {
    match seconds {
        Some(seconds) if guess => format!("~{}", span(secs(seconds))),
        Some(seconds) => span(secs(seconds)),
        None => "-".to_owned(),
    }
}
