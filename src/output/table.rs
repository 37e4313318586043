//! `babysit status` for a person: one line a shard, what needs a person first.

use crate::model::state::TickOutcome;
use crate::model::units::{Money, Secs, Time};

use super::format::{ago, count, one_line, plain, rate, secs, span, spent, usage};
use super::layout::{Cell, Columns, Side, wrap};
use super::paint::{Paint, Tone};
use super::spark::{Spark, spark};
use super::steps::{Step, steps};
use super::view::{Helper, KeptOut, LastTick, LeftOver, ShardView, Status, Totals};
use super::why;
use super::word::Word;

/// A cron line ticks every minute or so; longer than this without one means that it is gone.
pub(super) const DEAD_AFTER: Secs = Secs::minutes(15);
/// Steps shown in full; a campaign of thousands may fail all at once.
const STEPS_SHOWN: usize = 12;

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

fn money(dollars: f64) -> Money {
    Money::from_dollars(dollars).unwrap_or_default()
}

fn lab_lines(status: &Status, look: &Look) -> String {
    let rows = status.labs.iter().map(|lab| {
        vec![
            Cell::new(lab.rank.to_string()),
            Cell::new(lab.name.clone()),
            Cell::new(lab.running_gpus.to_string()),
            Cell::new(usage(lab.usage.round())),
            Cell::new(format!("{:.0}%", lab.share * 100.0)),
        ]
    });
    let columns = Columns {
        heads: vec![
            ("RANK", Side::Right),
            ("LAB", Side::Left),
            ("GPU", Side::Right),
            ("USAGE (TFLOP-s)", Side::Right),
            ("SHARE", Side::Right),
        ],
        rows: rows.collect(),
    };
    columns.render(look.width, look.paint)
}

pub(super) fn total_lines(totals: &Totals, look: &Look) -> String {
    let left = totals.rows_total.saturating_sub(totals.rows_done);
    let states = [
        (totals.done, "done"),
        (totals.running, "running"),
        (totals.pending, "pending"),
        (totals.waiting, "waiting"),
    ];
    let mut states: Vec<String> =
        states.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    match totals.needs_person {
        0 => {}
        1 => states.push("1 needs a person".into()),
        n => states.push(format!("{n} need a person")),
    }
    let eta = match totals.eta_seconds {
        Some(seconds) => {
            let guess = if totals.eta_is_guess { "~" } else { "" };
            let without = match totals.needs_person {
                0 => String::new(),
                n => format!(" ({} not counted)", count(n, "shard")),
            };
            format!("ETA {guess}{}{without}", span(secs(seconds)))
        }
        None if left == 0 => "all done".to_owned(),
        None => "nothing moves by itself".to_owned(),
    };
    let ceiling = match totals.ceiling {
        Some(ceiling) => format!("ceiling ${}", plain(money(ceiling))),
        None => "no ceiling (a shard without a cap)".to_owned(),
    };
    let all = count(totals.shards, "shard");
    let shards = if states.is_empty() { all } else { format!("{all}: {}", states.join(", ")) };
    let rate = rate(totals.rows_per_hour);
    let rows = format!("{left} left of {}, {rate} rows/h, {eta}", totals.rows_total);
    let [spent, projected] = [totals.spent, totals.projected].map(|dollars| spent(money(dollars)));
    let cost = format!("${spent} spent, ${projected} projected, {ceiling}");
    [("shards", shards), ("rows", rows), ("cost", cost)]
        .iter()
        .map(|(label, text)| labelled(label, text, look))
        .collect()
}

/// `rows    235 left of 671, ...`, wrapped below its own beginning.
fn labelled(label: &str, text: &str, look: &Look) -> String {
    const INDENT: usize = "shards  ".len();
    let lines = wrap(text, INDENT, look.width);
    let pad = " ".repeat(INDENT.saturating_sub(label.len()));
    format!("{}{pad}{}", look.paint.put(Tone::Strong, label), lines.trim_start())
}

/// `rate    ▃▃▅▇█ the last 24h, 31 rows/h at most`
pub(super) fn rate_line(status: &Status, look: &Look) -> String {
    let Some(Spark { bars, length, most }) = spark(&status.history, look.now) else {
        return String::new();
    };
    let text = format!("{bars} the last {}, {} rows/h at most", span(length), rate(most));
    labelled("rate", &text, look).replacen(&bars, &look.paint.put(Tone::Good, &bars), 1)
}

/// Nodes on which jobs died, and which are left alone for a while.
fn node_lines(status: &Status, look: &Look) -> String {
    let line = |out: &KeptOut| {
        let left = span(secs(out.seconds_left));
        let node = one_line(&out.node);
        format!("{node} for {left} more ({} there)", count(out.deaths, "death"))
    };
    let all: Vec<String> = status.kept_out.iter().map(line).collect();
    if all.is_empty() {
        return String::new();
    }
    let text = format!("kept out  {}", all.join(", "));
    wrap(&text, 0, look.width)
}

fn notify_line(status: &Status, look: &Look) -> String {
    let trouble = status.notify.as_ref().and_then(|notify| notify.trouble.as_ref());
    let line = |text: &String| {
        look.paint.put(Tone::Warn, &wrap(&format!("notify  {text}"), 0, look.width))
    };
    trouble.map_or_else(String::new, line)
}

/// Jobs of shards that shards.toml no longer names.
fn left_over_lines(status: &Status, look: &Look) -> String {
    let line = |left: &LeftOver| match &left.job {
        Some(job) => format!("{} (job {} {})", left.shard, job.id, one_line(&job.state)),
        None => format!("{} (a submission without an answer)", left.shard),
    };
    let mut all: Vec<String> = status.left_over.iter().take(STEPS_SHOWN).map(line).collect();
    if all.is_empty() {
        return String::new();
    }
    if let Some(more) = status.left_over.len().checked_sub(STEPS_SHOWN).filter(|n| *n > 0) {
        all.push(format!("and {more} more"));
    }
    let text = format!(
        "left over {}: not in shards.toml any more; charged when it ends, or end it with scancel",
        all.join(", ")
    );
    wrap(&text, 0, look.width)
}

/// A command is to be copied, so it is never broken; what it is for goes first.
fn command_within(line: &str, width: Option<usize>) -> &str {
    let fits = width.is_none_or(|width| line.chars().count() <= width);
    match line.split_once("  #") {
        Some((command, _)) if !fits => command.trim_end(),
        _ => line,
    }
}

fn step_lines(steps: &[Step], look: &Look) -> String {
    let mut out = String::new();
    for (urgent, title, tone) in
        [(true, "needs a person", Tone::Bad), (false, "worth a look", Tone::Warn)]
    {
        let these: Vec<&Step> = steps.iter().filter(|step| step.urgent == urgent).collect();
        if these.is_empty() {
            continue;
        }
        out.push_str(&format!("\n{}\n", look.paint.put(tone, title)));
        for step in these.iter().take(STEPS_SHOWN) {
            out.push_str(&wrap(&format!("{}: {}", step.shard, step.what), 2, look.width));
            for next in &step.next {
                let next = command_within(next, look.width.map(|width| width.saturating_sub(4)));
                out.push_str(&format!("    {}\n", look.paint.put(Tone::Cool, next)));
            }
        }
        if let Some(more) = these.len().checked_sub(STEPS_SHOWN).filter(|n| *n > 0) {
            out.push_str(&format!("  and {more} more: `babysit status --json` has them all\n"));
        }
    }
    out
}
