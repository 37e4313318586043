//! What holds a family, or the whole campaign, back: the shards that do not run, by cause, with what
//! would help. All of it as the last cycle saw it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::reason::Reason;
use crate::model::state::{State, TickOutcome};
use crate::model::units::Time;

use super::around;
use super::format::{ago, count, one_line, rate, secs, span};
use super::heading::DEAD_AFTER;
use super::layout::wrap;
use super::paint::Tone;
use super::steps::steps;
use super::table::Look;
use super::view::{ShardView, Status};
use super::why;
use super::word::Word;

/// Commands shown for one cause; a family of hundreds may have as many.
const MOST_HELP: usize = 4;
/// Shards of a cause that are named.
const NAMED: usize = 4;

/// Shards that wait for one and the same thing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// For scripts: `why_code` of its shards, or what they have in common.
    pub code: &'static str,
    /// Where it concerns one family alone.
    pub family: Option<String>,
    pub what: String,
    pub shards: u32,
    pub rows: u64,
    /// Work that waits: remaining time x GPUs.
    pub gpu_hours: f64,
    /// The first few, most work first.
    pub such_as: Vec<String>,
    /// The sentence of the first of them.
    pub sentence: String,
    /// Facts that tell for how long.
    pub facts: Vec<String>,
    /// Command lines to type; empty where only time helps.
    pub next: Vec<String>,
}

/// Most work first.
pub fn causes(state: &State, status: &Status, now: Time) -> Vec<Cause> {
    let mut groups: BTreeMap<(&'static str, Option<&str>), Vec<&ShardView>> = BTreeMap::new();
    for view in status.shards.iter().filter(|view| is_held_back(view)) {
        let (code, each_family) = kind(view);
        groups.entry((code, each_family.then_some(view.family.as_str()))).or_default().push(view);
    }
    let of_group = |(of, views)| cause(state, status, of, views, now);
    let mut causes: Vec<Cause> = groups.into_iter().map(of_group).collect();
    causes.sort_by(|a, b| b.gpu_hours.total_cmp(&a.gpu_hours));
    // Before all others: without a tick none of them ends.
    causes.splice(0..0, no_ticks(status, now));
    causes
}

fn is_held_back(view: &ShardView) -> bool {
    match view.state {
        Word::Done | Word::Cancelled => false,
        Word::Running => matches!(view.reason, Reason::Stalled { .. }),
        _ => true,
    }
}

/// A code for the cause, and whether each family has one of its own.
fn kind(view: &ShardView) -> (&'static str, bool) {
    match why::code(&view.reason) {
        "pending-own-parked" | "pending-own" => ("own-lane", false),
        "collecting" | "queue-wait" => ("placements", false),
        code @ ("pending-extra" | "pending" | "fit-nodes-down" | "no-cpus-or-memory"
        | "slurm-busy") => (code, false),
        "not-looked-yet" | "submitted" | "submit-budget" | "settling" | "outcome-unknown"
        | "end-unknown" | "in-slurm" | "stopping" | "running" => ("under-way", false),
        code => (code, true),
    }
}

const NO_TICKS: &str = "no-ticks";

/// What they have in common.
fn words(code: &str) -> &'static str {
    match code {
        "own-lane" => "waiting for a GPU of own",
        "placements" => "waiting in babysit's queue for GPUs of one node",
        "pending-extra" => "waiting in extra for any free GPU",
        "pending" => "waiting in Slurm's queue",
        "fit-nodes-down" => "fitting only nodes that are down or drained",
        "no-cpus-or-memory" => "finding GPUs, but not the CPUs or the memory beside them",
        "slurm-busy" => "put off, since Slurm takes no more now",
        "under-way" => "under way, the next ticks see to it",
        "over-cap" => "stopped at the cost cap",
        "held-by-person" => "held by a person",
        "job-cancelled" => "held, since the job was cancelled",
        "too-many-failures" => "held after failures",
        "nothing-finished" => "held, since the jobs end without a row",
        "gpu-memory-top-tier" | "host-memory" => "held, out of memory",
        "refused" | "family-refused" => "refused by Slurm",
        "NO_FIT_PLACEMENT" => "fitting no node there is",
        "backoff" => "waiting after a failure",
        "stuck-in-slurm" => "stuck in Slurm",
        "stalled" => "running, and finishing no rows",
        _ => "waiting",
    }
}

fn cause(
    state: &State,
    status: &Status,
    (code, family): (&'static str, Option<&str>),
    mut views: Vec<&ShardView>,
    now: Time,
) -> Cause {
    views.sort_by(|a, b| gpu_hours(b).total_cmp(&gpu_hours(a)));
    let of = family.map_or(String::new(), |family| format!("{family}, "));
    Cause {
        code,
        family: family.map(str::to_owned),
        what: format!("{of}{}", words(code)),
        shards: views.len() as u32,
        rows: views.iter().map(|view| rows_left(view)).sum(),
        gpu_hours: views.iter().map(|view| gpu_hours(view)).sum(),
        such_as: views.iter().take(NAMED).map(|view| view.id.clone()).collect(),
        sentence: views.first().map_or(String::new(), |view| view.why.clone()),
        facts: facts(state, status, code, now),
        next: next(code, &views, now),
    }
}

/// What is known of the GPUs that are waited for.
fn facts(state: &State, status: &Status, code: &str, now: Time) -> Vec<String> {
    let own = state.learned.own_lane.as_ref().filter(|_| code == "own-lane");
    let mut facts: Vec<String> =
        own.iter().map(|own| format!("own: {}", around::own_lane(own, now))).collect();
    if matches!(code, "placements" | "pending-extra" | "pending" | "fit-nodes-down") {
        let groups = state.learned.placements.iter().filter(|group| group.reachable);
        facts.extend(groups.take(NAMED).map(around::placement));
        facts.extend(status.kept_out.iter().take(NAMED).map(|out| {
            let left = span(secs(out.seconds_left));
            format!("{} is kept out for {left} more, since jobs died there", one_line(&out.node))
        }));
    }
    facts
}

/// The commands that status shows for these shards, where one of them helps now.
fn next(code: &str, views: &[&ShardView], now: Time) -> Vec<String> {
    if code == "fit-nodes-down" {
        return vec!["sinfo -R    # why they are down".to_owned()];
    }
    let asked = matches!(code, "held-by-person" | "stalled");
    let theirs: Vec<ShardView> = views.iter().map(|view| (*view).clone()).collect();
    // A cap that will be passed some day holds nothing back now.
    let helps = steps(&theirs, now).into_iter().filter(|step| step.urgent || asked);
    helps.flat_map(|step| step.next).take(MOST_HELP).collect()
}

/// Ticks that decide nothing hold back all that waits for one.
fn no_ticks(status: &Status, now: Time) -> Option<Cause> {
    let (what, next) = match status.last_tick.as_ref().map(|tick| &tick.record) {
        None => ("no tick yet".to_owned(), "babysit doctor    # prints the crontab line"),
        Some(record) if now.since(record.at) > DEAD_AFTER => {
            let what = format!("the last tick was {}", ago(record.at, now));
            (what, "crontab -l    # does cron still run it?")
        }
        Some(record) => match &record.outcome {
            TickOutcome::Ok => return None,
            TickOutcome::Skipped(why) | TickOutcome::Failed(why) => {
                (format!("the last tick decided nothing: {}", one_line(why)), "babysit doctor")
            }
        },
    };
    let waits =
        |view: &&ShardView| is_held_back(view) && view.state != Word::Running && !view.needs_person;
    let views: Vec<&ShardView> = status.shards.iter().filter(waits).collect();
    let first = views.first()?;
    Some(Cause {
        code: NO_TICKS,
        family: None,
        what,
        shards: views.len() as u32,
        rows: views.iter().map(|view| rows_left(view)).sum(),
        gpu_hours: views.iter().map(|view| gpu_hours(view)).sum(),
        such_as: vec![first.id.clone()],
        sentence: first.why.clone(),
        facts: Vec::new(),
        next: vec![next.to_owned()],
    })
}

fn rows_left(view: &ShardView) -> u64 {
    u64::from(view.rows.total.saturating_sub(view.rows.done))
}

fn gpu_hours(view: &ShardView) -> f64 {
    view.remaining_seconds * f64::from(view.gpus) / 3600.0
}

/// The shard that is held back most: what needs a person first, then by its work.
pub fn most_held_back(shards: &[ShardView]) -> Option<&ShardView> {
    let back = shards.iter().filter(|view| is_held_back(view));
    back.max_by(|a, b| {
        a.needs_person.cmp(&b.needs_person).then(gpu_hours(a).total_cmp(&gpu_hours(b)))
    })
}

/// One line for each state of things, then the causes in full.
pub fn text(whose: &str, status: &Status, causes: &[Cause], most: usize, look: &Look) -> String {
    let totals = &status.totals;
    let open = totals.shards - totals.done.min(totals.shards);
    let mut out = format!(
        "{whose}: {}, {} done, {} running; {} of {} rows done\n",
        count(totals.shards, "shard"),
        totals.done,
        totals.running,
        totals.rows_done,
        totals.rows_total
    );
    if causes.is_empty() {
        out.push_str(if open == 0 { "All is done.\n" } else { "Nothing holds it back.\n" });
        return out;
    }
    for (cause, n) in causes.iter().take(most).zip(1..) {
        let title = format!(
            "{n}. {}: {}, {}, {} GPU-h",
            cause.what,
            count(cause.shards, "shard"),
            count(cause.rows, "row"),
            rate(cause.gpu_hours)
        );
        out.push('\n');
        out.push_str(&wrap(&title, 0, look.width));
        if let Some(first) = cause.such_as.first() {
            let such = if cause.shards > 1 { "such as " } else { "" };
            out.push_str(&wrap(&format!("{such}{first}: {}", cause.sentence), 3, look.width));
        }
        for fact in &cause.facts {
            out.push_str(&wrap(fact, 3, look.width));
        }
        for line in &cause.next {
            out.push_str(&format!("     {}\n", look.paint.put(Tone::Cool, line)));
        }
    }
    if let Some(more) = causes.len().checked_sub(most).filter(|more| *more > 0) {
        out.push_str(&format!(
            "\n{} less work: `babysit why --json` has them\n",
            match more {
                1 => "1 more cause holds back".to_owned(),
                n => format!("{n} more causes hold back"),
            }
        ));
    }
    out
}
