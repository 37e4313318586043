//! What stands below the table of `babysit status`: labs, totals, nodes, what is left over, next steps.

use crate::model::units::Money;

use super::format::{count, one_line, plain, rate, secs, span, spent, usage};
use super::layout::{Cell, Columns, Side, wrap};
use super::paint::Tone;
use super::spark::{Spark, spark};
use super::steps::Step;
use super::table::Look;
use super::view::{KeptOut, LeftOver, Status, Totals};

/// Steps shown in full; a campaign of thousands may fail all at once.
const STEPS_SHOWN: usize = 12;

pub(super) fn money(dollars: f64) -> Money {
    Money::from_dollars(dollars).unwrap_or_default()
}

pub(super) fn lab_lines(status: &Status, look: &Look) -> String {
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
pub(super) fn node_lines(status: &Status, look: &Look) -> String {
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

pub(super) fn notify_line(status: &Status, look: &Look) -> String {
    let trouble = status.notify.as_ref().and_then(|notify| notify.trouble.as_ref());
    let line = |text: &String| {
        look.paint.put(Tone::Warn, &wrap(&format!("notify  {text}"), 0, look.width))
    };
    trouble.map_or_else(String::new, line)
}

/// Jobs of shards that shards.toml no longer names.
pub(super) fn left_over_lines(status: &Status, look: &Look) -> String {
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

pub(super) fn step_lines(steps: &[Step], look: &Look) -> String {
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
