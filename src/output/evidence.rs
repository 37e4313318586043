//! `babysit why`: one sentence, then what it rests on.

use crate::model::cluster::JobState;
use crate::model::policy::{Policy, Shard};
use crate::model::reason::Reason;
use crate::model::state::{End, EndHow, Gate, HeldWhy, ShardRecord, Slot, State};
use crate::model::units::{Money, Time};

use super::around;
use super::format::{ago, count, dollars, one_line, per_row, secs, span};
use super::slurm_words;
use super::steps::steps;
use super::table::helpers_note;
use super::view::ShardView;
use super::word::Word;

/// A label and what is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    pub label: &'static str,
    pub text: String,
}

/// The evidence about one shard, the most telling first.
pub fn evidence(
    policy: &Policy,
    state: &State,
    shard: &Shard,
    record: &ShardRecord,
    view: &ShardView,
    now: Time,
) -> Vec<Evidence> {
    let mut found = Vec::new();
    let mut tell = |label, text: String| found.push(Evidence { label, text });
    tell("state", slot(view, record, now));
    if let Some(note) = helpers_note(view) {
        let ids: Vec<&str> = view.helpers.iter().map(|helper| helper.id.as_str()).collect();
        tell("helpers", format!("{note}: {}", ids.join(", ")));
    }
    if let Slot::Live(live) = &record.slot
        && live.state == JobState::Pending
        && slurm_words::is_said(&live.reason)
    {
        let reason = one_line(&live.reason);
        tell(
            "Slurm says",
            match slurm_words::words(&live.reason) {
                Some(words) => format!("{reason}: {words}"),
                None => reason,
            },
        );
    }
    if let Reason::PendingInSlurm { rank, of, .. } = &view.reason
        && *rank > 0
    {
        tell("place", format!("{rank} of {of} that wait, longest work first"));
    }
    found.extend(around::evidence(policy, state, shard, record, &view.reason, now));
    let mut tell = |label, text: String| found.push(Evidence { label, text });
    if let Gate::Backoff { until } = record.gate
        && until > now
    {
        tell("back-off", format!("next try in {}", span(until.since(now))));
    }
    tell("work left", work(view));
    tell("cost", cost(state, shard, view));
    tell("tries", tries(record, policy));
    if let Some(end) = &record.last_end {
        tell("last end", last_end(end, record, now));
    }
    let job = record.live().map(|live| live.job).or(record.last_end.as_ref().map(|end| end.job));
    if let Some(job) = job {
        tell("log file", shard.log_dir.join(format!("{job}.out")).display().to_string());
    }
    if let Gate::Held { why: HeldWhy::Failures { log, .. }, .. } = &record.gate {
        for line in log {
            tell("log", one_line(line));
        }
    }
    if let Some(refused) = &record.move_refused {
        tell(
            "lane change",
            format!(
                "to {} was refused ({}); tried again {}",
                refused.to.word(),
                one_line(&refused.said),
                if refused.until > now {
                    format!("in {}", span(refused.until.since(now)))
                } else {
                    "with the next tick".into()
                }
            ),
        );
    }
    if let Some(gap) = &record.progress.gap {
        tell("files", format!("cannot be read, the numbers are older: {}", one_line(gap)));
    }
    if record.progress.bad_lines > 0 {
        tell(
            "files",
            format!(
                "{} of the ledger hold no readable amount",
                count(record.progress.bad_lines, "line")
            ),
        );
    }
    for step in steps(std::slice::from_ref(view), now) {
        for next in step.next {
            tell("next", next);
        }
    }
    found
}

fn slot(view: &ShardView, record: &ShardRecord, now: Time) -> String {
    let word = view.state.text();
    match &record.slot {
        Slot::Free if matches!(view.state, Word::Done | Word::Cancelled) => {
            format!("{word}; no job in Slurm")
        }
        Slot::Free => {
            format!("{word}; no job in Slurm, queued {}", ago(record.queued_since, now))
        }
        Slot::Submitting(intent) => {
            format!(
                "{word} {}, {} looked for it",
                ago(intent.attempt.asked_at, now),
                count(intent.looks, "tick")
            )
        }
        Slot::Settling(end) => format!("{word}; job {} ended {}", end.job, ago(end.ended, now)),
        Slot::Live(live) => {
            let lane =
                if live.qos.is_empty() { String::new() } else { format!(", QOS {}", live.qos) };
            let since = match live.started {
                Some(started) if live.state != JobState::Pending => {
                    format!("on {} since {}", live.nodes.join(","), ago(started, now))
                }
                _ => format!(
                    "submitted {}",
                    ago(live.submitted.unwrap_or(live.attempt.asked_at), now)
                ),
            };
            format!("{word}; job {}{lane}, {since}", live.job)
        }
    }
}

fn work(view: &ShardView) -> String {
    let left = view.rows.total.saturating_sub(view.rows.done);
    let each = span(secs(view.seconds_per_row));
    let how = if view.rate_is_configured { "as configured, none measured yet" } else { "measured" };
    format!(
        "{left} of {} rows, about {} at {each} a row ({how})",
        view.rows.total,
        span(secs(view.remaining_seconds))
    )
}

fn cost(state: &State, shard: &Shard, view: &ShardView) -> String {
    let money = |amount: f64| dollars(Money::from_dollars(amount).unwrap_or_default());
    let mut text = format!("{} spent", money(view.cost.spent));
    match state.cap_of(&shard.id, shard.cap) {
        Some(cap) => text.push_str(&format!(", cap {}", dollars(cap))),
        None => text.push_str(", no cap"),
    }
    if let Some(each) = view.cost.per_row {
        text.push_str(&format!(", {} a row", per_row(each)));
    }
    if let Some(projected) = view.cost.projected {
        text.push_str(&format!(", projected {}", money(projected)));
    }
    text
}

fn tries(record: &ShardRecord, policy: &Policy) -> String {
    let failures = match record.failures {
        0 => "no failure since the last new row".to_owned(),
        n => format!(
            "{} in a row without a new row (a person is asked at {})",
            count(n, "failure"),
            policy.rules.max_failures
        ),
    };
    format!(
        "{}, {failures}, {}",
        count(record.attempts, "attempt"),
        count(record.preemptions, "preemption")
    )
}

fn last_end(end: &End, record: &ShardRecord, now: Time) -> String {
    let how = match end.how {
        EndHow::Word(word) => word.word(),
        EndHow::Vanished => "gone, accounting does not say how",
    };
    let rows = record.progress.rows.saturating_sub(end.rows_before);
    let exit = match end.exit.as_str() {
        "" | "0:0" => String::new(),
        exit => format!(", exit {}", one_line(exit)),
    };
    let node =
        if end.nodes.is_empty() { String::new() } else { format!(" on {}", end.nodes.join(",")) };
    let ran = end.started.map_or("never started".to_owned(), |started| {
        format!("ran {}", span(end.ended.since(started)))
    });
    format!(
        "attempt {}, job {}{node}: {how}{exit}, {}; {ran}, {} done since it began",
        end.attempt,
        end.job,
        ago(end.ended, now),
        count(rows, "row")
    )
}

/// Sentence, blank line, evidence in two columns.
pub fn text(id: &str, sentence: &str, evidence: &[Evidence]) -> String {
    let mut out = format!("{id}: {sentence}\n\n");
    let mut last = "";
    for Evidence { label, text } in evidence {
        let shown = if *label == last { "" } else { label };
        last = label;
        out.push_str(&format!("  {shown:<11} {text}\n"));
    }
    out
}
