//! Events as sentences, and as lines of `journal.jsonl` (schema `babysit/journal/v1`).

use serde_json::{Map, Value, json};

use crate::model::cluster::EndWord;
use crate::model::id::ShardId;
use crate::model::state::EndHow;
use crate::planning::event::{Event, What};

use super::format::{count, dollars, iso, one_line};

pub const SCHEMA: &str = "babysit/journal/v1";

/// Every `kind` that a line can have.
pub const KINDS: [&str; 46] = [
    TOTALS,
    "cycle-skipped",
    "submitted",
    "outcome-unknown",
    "adopted",
    "submission-given-up",
    "submit-refused",
    "submit-paused",
    "started",
    "moved",
    "move-refused",
    "move-unanswered",
    "moved-despite-error",
    "ended",
    "end-put-off",
    "done",
    "backed-off",
    "held",
    "over-cap",
    "cap-raised",
    "stop-asked",
    "stop-failed",
    "twin",
    "rows-shrank",
    "measure-failed",
    "reserved",
    "reservation-shrank",
    "reservation-released",
    "backfill-asked",
    "backfill-stop-failed",
    "min-tier-raised",
    "NO_FIT_PLACEMENT",
    "charged",
    "kept-off",
    "breaker-opened",
    "node-blamed",
    "node-kept-out",
    "node-let-back",
    "stalled",
    "lingers",
    "notified",
    "notify-failed",
    "rows-freed",
    "person",
    "took",
    "claim-refused",
];

/// The kind of the lines that only pictures are drawn from.
pub const TOTALS: &str = "totals";

/// `find/s0: submitted ...`
pub fn line(event: &Event) -> String {
    let sentence = sentence(&event.what, event.at);
    match &event.shard {
        Some(shard) => format!("{shard}: {sentence}"),
        None => sentence,
    }
}

pub(super) fn sentence(what: &What, at: crate::model::units::Time) -> String {
    let lane_of = |lane: &Option<crate::model::policy::Lane>| {
        lane.map_or(String::new(), |lane| format!(" in {}", lane.word()))
    };
    match what {
        What::CycleSkipped { why } => {
            format!("this tick was skipped, nothing was decided: {}", one_line(why))
        }
        What::Submitted { job, lane, attempt } => {
            format!("submitted as job {job}{} (attempt {attempt})", lane_of(lane))
        }
        What::OutcomeUnknown { attempt, said } => format!(
            "submitted (attempt {attempt}) without a clear answer, looked for before anything else \
             is done: {}",
            one_line(said)
        ),
        What::Adopted { job, attempt } => {
            format!("job {job} was found in the queue as attempt {attempt}")
        }
        What::Took { job, after: Some(after), .. } => format!("job {job} took it after {after}"),
        What::Took { job, after: None, instead: Some(instead) } => {
            format!("job {job}, submitted for {instead}, took it as the longest that waited")
        }
        What::Took { job, after: None, instead: None } => format!("job {job} took it"),
        What::ClaimRefused { job, fence, why } => format!(
            "claim {fence}{} of it counts for nothing: {}",
            job.map_or(String::new(), |job| format!(" (job {job})")),
            one_line(why)
        ),
        What::SubmissionGivenUp { attempt } => {
            format!("attempt {attempt} never reached Slurm; it is submitted again")
        }
        What::SubmitRefused { said } => format!("refused by Slurm: {}", one_line(said)),
        What::SubmitPaused { said } => {
            format!("not submitted now, tried again later: {}", one_line(said))
        }
        What::Started { job, lane, node } => {
            format!("job {job} started on {node}{}", lane_of(lane))
        }
        What::Moved { job, to } => format!("pending job {job} moved to {}", to.word()),
        What::MoveRefused { job, to, said } => format!(
            "pending job {job} could not be moved to {}, not tried again for a while: {}",
            to.word(),
            one_line(said)
        ),
        What::MoveUnanswered { job, to, said } => format!(
            "pending job {job} is not in {} yet, the next tick tries again: {}",
            to.word(),
            one_line(said)
        ),
        What::MovedDespiteError { job, to, said } => format!(
            "pending job {job} moved to {}, although Slurm answered: {}",
            to.word(),
            one_line(said)
        ),
        What::Ended { job, how, new_rows } => {
            format!("job {job} {} after {}", ended(*how), count(*new_rows, "new row"))
        }
        What::EndPutOff { job, why } => format!(
            "job {job} is not in the queue, and what became of it cannot be told yet: {}",
            one_line(why)
        ),
        What::Done { rows } => format!("done, {}", count(*rows, "row")),
        What::BackedOff { until, failures } => format!(
            "{} in a row, next try in {}",
            count(*failures, "failure"),
            super::format::span(until.since(at))
        ),
        What::Held { why } => format!("held: {}", one_line(why)),
        What::OverCap { spent, cap } => {
            format!("cost cap reached: {} of {} spent", dollars(*spent), dollars(*cap))
        }
        What::CapRaised { cap } => format!("goes on: its cap is now {}", dollars(*cap)),
        What::StopAsked { job, why } => format!("end of job {job} asked: {}", one_line(why)),
        What::StopFailed { job, said } => {
            format!("job {job} could not be cancelled: {}", one_line(said))
        }
        What::Twin { kept, other, cancelled } => format!(
            "two live jobs: {kept} is kept, {other} {}",
            match cancelled {
                true => "is cancelled".to_owned(),
                false => format!("is left alone, since it runs: `scancel {other}` would end it"),
            }
        ),
        What::RowsShrank { before, now } => {
            format!("finished rows went down from {before} to {now}: were files removed?")
        }
        What::MeasureFailed { why } => {
            format!("its files cannot be read, the numbers are older: {}", one_line(why))
        }
        What::Reserved { node, tier, gpus } => {
            format!("{} on {node} ({tier}) reserved for it", count(*gpus, "GPU"))
        }
        What::ReservationShrank { before, now } => {
            format!(
                "its reservation shrank from {} to {now}: others took GPUs",
                count(*before, "GPU")
            )
        }
        What::ReservationReleased { node, tier, gpu_seconds, why } => format!(
            "its reservation on {node} ({tier}) is released after {gpu_seconds} GPU-seconds: {}",
            one_line(why)
        ),
        What::BackfillAsked { node, jobs, gpus } => format!(
            "{} of backfill on {node} told to give {} back",
            count(jobs.len() as u64, "job"),
            count(*gpus, "GPU")
        ),
        What::BackfillStopFailed { node, said } => {
            format!("backfill on {node} could not be told to give way: {}", one_line(said))
        }
        What::MinTierRaised { tier } => {
            format!("out of GPU memory; from now on only on {tier} or better")
        }
        What::NoFit { asked, largest } => {
            format!("fits no node: asks for {asked}; the largest there is: {largest}")
        }
        What::Charged { attempt, gpu_seconds } => {
            format!("attempt {attempt} charged to its lab: {gpu_seconds} GPU-seconds")
        }
        What::KeptOff { job, nodes } if nodes.is_empty() => {
            format!("pending job {job} may use every node again")
        }
        What::KeptOff { job, nodes } => {
            format!(
                "pending job {job} is kept off {}: GPUs are reserved there, or jobs die there",
                nodes.join(", ")
            )
        }
        What::BreakerOpened { family, refused, said } => format!(
            "family {family}: {} refused in a row, no more are tried until `babysit retry \
             {family}`: {}",
            count(*refused, "submission"),
            one_line(said)
        ),
        What::NodeBlamed { job, node } => format!(
            "job {job} died within a minute on {node}; that is held against the node, and it is \
             tried elsewhere"
        ),
        What::NodeKeptOut { node, deaths, until } => format!(
            "node {node} is kept out for {} after {}",
            super::format::span(until.since(at)),
            deaths_of(*deaths)
        ),
        What::NodeLetBack { node } => format!("node {node} is used again"),
        What::Stalled { job, since, restarted } => format!(
            "job {job} runs, but has finished no row for {}{}",
            super::format::span(at.since(*since)),
            if *restarted { "; it is ended and started again" } else { "" }
        ),
        What::Lingers { job, since, ended } => format!(
            "all rows are there, but job {job} runs on, {} after the last one{}",
            super::format::span(at.since(*since)),
            if *ended { "; it is ended" } else { "" }
        ),
        What::Totals { rows, of, spent } => {
            format!("{rows} of {} done, {} spent", count(*of, "row"), dollars(*spent))
        }
        What::Notified { events } => {
            format!("notify hook: {} told", count(*events, "event"))
        }
        What::NotifyFailed { events, said } => format!(
            "notify hook: {} not told, and not tried again: {}",
            count(*events, "event"),
            one_line(said)
        ),
        What::RowsFreed { rows: _, all: true } => {
            "rows are missing though all were marked as done: all are given out again".into()
        }
        What::RowsFreed { rows, all: false } => format!(
            "{} in hand of jobs that are over: given out again",
            if *rows == 1 { "1 row was".to_owned() } else { format!("{rows} rows were") }
        ),
        What::Person { by, did } => format!("{}, by {}", one_line(did), one_line(by)),
    }
}

/// `1 death there`, `2 deaths there`
fn deaths_of(deaths: u32) -> String {
    format!("{} there", count(deaths, "death"))
}

fn ended(how: EndHow) -> String {
    match how {
        EndHow::Word(EndWord::Completed) => "ended".into(),
        EndHow::Word(EndWord::Preempted) => "was preempted".into(),
        EndHow::Word(EndWord::Cancelled) => "was cancelled".into(),
        EndHow::Word(word) => format!("ended as {}", word.word()),
        EndHow::Vanished => "is gone (accounting does not say how)".into(),
    }
}

/// One line of the journal: `at`, `shard`, `kind`, the sentence as `text`, and the kind's fields.
pub fn json(event: &Event) -> Value {
    let (kind, fields) = fields(&event.what);
    let mut object = Map::new();
    object.insert("schema".into(), json!(SCHEMA));
    object.insert("at".into(), json!(iso(event.at)));
    object.insert("shard".into(), json!(event.shard.as_ref().map(ToString::to_string)));
    object.insert("kind".into(), json!(kind));
    object.insert("text".into(), json!(sentence(&event.what, event.at)));
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
    Value::Object(object)
}

fn fields(what: &What) -> (&'static str, Value) {
    let word = |lane: &crate::model::policy::Lane| lane.word();
    match what {
        What::CycleSkipped { why } => ("cycle-skipped", json!({ "why": why })),
        What::Submitted { job, lane, attempt } => (
            "submitted",
            json!({ "job": job.0, "lane": lane.as_ref().map(word), "attempt": attempt }),
        ),
        What::OutcomeUnknown { attempt, said } => {
            ("outcome-unknown", json!({ "attempt": attempt, "said": said }))
        }
        What::Adopted { job, attempt } => ("adopted", json!({ "job": job.0, "attempt": attempt })),
        What::SubmissionGivenUp { attempt } => {
            ("submission-given-up", json!({ "attempt": attempt }))
        }
        What::SubmitRefused { said } => ("submit-refused", json!({ "said": said })),
        What::SubmitPaused { said } => ("submit-paused", json!({ "said": said })),
        What::Started { job, lane, node } => {
            ("started", json!({ "job": job.0, "lane": lane.as_ref().map(word), "node": node }))
        }
        What::Moved { job, to } => ("moved", json!({ "job": job.0, "to": word(to) })),
        What::MoveRefused { job, to, said } => {
            ("move-refused", json!({ "job": job.0, "to": word(to), "said": said }))
        }
        What::MoveUnanswered { job, to, said } => {
            ("move-unanswered", json!({ "job": job.0, "to": word(to), "said": said }))
        }
        What::MovedDespiteError { job, to, said } => {
            ("moved-despite-error", json!({ "job": job.0, "to": word(to), "said": said }))
        }
        What::Ended { job, how, new_rows } => {
            let how = match how {
                EndHow::Word(word) => word.word(),
                EndHow::Vanished => "VANISHED",
            };
            ("ended", json!({ "job": job.0, "how": how, "new_rows": new_rows }))
        }
        What::EndPutOff { job, why } => ("end-put-off", json!({ "job": job.0, "why": why })),
        What::Done { rows } => ("done", json!({ "rows": rows })),
        What::BackedOff { until, failures } => {
            ("backed-off", json!({ "until": iso(*until), "failures": failures }))
        }
        What::Held { why } => ("held", json!({ "why": why })),
        What::OverCap { spent, cap } => {
            ("over-cap", json!({ "spent": spent.dollars(), "cap": cap.dollars() }))
        }
        What::CapRaised { cap } => ("cap-raised", json!({ "cap": cap.dollars() })),
        What::StopAsked { job, why } => ("stop-asked", json!({ "job": job.0, "why": why })),
        What::StopFailed { job, said } => ("stop-failed", json!({ "job": job.0, "said": said })),
        What::Twin { kept, other, cancelled } => {
            ("twin", json!({ "kept": kept.0, "other": other.0, "cancelled": cancelled }))
        }
        What::RowsShrank { before, now } => {
            ("rows-shrank", json!({ "before": before, "now": now }))
        }
        What::MeasureFailed { why } => ("measure-failed", json!({ "why": why })),
        What::Reserved { node, tier, gpus } => {
            ("reserved", json!({ "node": node, "tier": tier, "gpus": gpus }))
        }
        What::ReservationShrank { before, now } => {
            ("reservation-shrank", json!({ "before": before, "now": now }))
        }
        What::ReservationReleased { node, tier, gpu_seconds, why } => (
            "reservation-released",
            json!({ "node": node, "tier": tier, "gpu_seconds": gpu_seconds, "why": why }),
        ),
        What::BackfillAsked { node, jobs, gpus } => {
            let jobs: Vec<u64> = jobs.iter().map(|job| job.0).collect();
            ("backfill-asked", json!({ "node": node, "jobs": jobs, "gpus": gpus }))
        }
        What::BackfillStopFailed { node, said } => {
            ("backfill-stop-failed", json!({ "node": node, "said": said }))
        }
        What::MinTierRaised { tier } => ("min-tier-raised", json!({ "tier": tier })),
        What::NoFit { asked, largest } => {
            ("NO_FIT_PLACEMENT", json!({ "asked": asked, "largest": largest }))
        }
        What::Charged { attempt, gpu_seconds } => {
            ("charged", json!({ "attempt": attempt, "gpu_seconds": gpu_seconds }))
        }
        What::KeptOff { job, nodes } => ("kept-off", json!({ "job": job.0, "nodes": nodes })),
        What::BreakerOpened { family, refused, said } => {
            ("breaker-opened", json!({ "family": family, "refused": refused, "said": said }))
        }
        What::NodeBlamed { job, node } => ("node-blamed", json!({ "job": job.0, "node": node })),
        What::NodeKeptOut { node, deaths, until } => {
            ("node-kept-out", json!({ "node": node, "deaths": deaths, "until": iso(*until) }))
        }
        What::NodeLetBack { node } => ("node-let-back", json!({ "node": node })),
        What::Stalled { job, since, restarted } => {
            ("stalled", json!({ "job": job.0, "since": iso(*since), "restarted": restarted }))
        }
        What::Lingers { job, since, ended } => {
            ("lingers", json!({ "job": job.0, "since": iso(*since), "ended": ended }))
        }
        What::Totals { rows, of, spent } => {
            (TOTALS, json!({ "rows": rows, "of": of, "spent": spent.dollars() }))
        }
        What::Notified { events } => ("notified", json!({ "events": events })),
        What::NotifyFailed { events, said } => {
            ("notify-failed", json!({ "events": events, "said": said }))
        }
        What::RowsFreed { rows, all } => ("rows-freed", json!({ "rows": rows, "all": all })),
        What::Took { job, after, instead } => {
            let name = |id: &Option<ShardId>| id.as_ref().map(ToString::to_string);
            let (after, instead) = (name(after), name(instead));
            ("took", json!({ "job": job.0, "after": after, "instead": instead }))
        }
        What::ClaimRefused { job, fence, why } => {
            ("claim-refused", json!({ "job": job.map(|job| job.0), "fence": fence, "why": why }))
        }
        What::Person { by, did } => ("person", json!({ "by": by, "did": did })),
    }
}

/// A line of the journal as a person reads it: `2026-11-02T18:52:00Z find/s2: ...`. A line that is
/// no such object (a torn one), or decides nothing, is `None`.
pub fn recall(value: &Value) -> Option<String> {
    if value.get("kind").and_then(Value::as_str) == Some(TOTALS) {
        return None;
    }
    let at = value.get("at")?.as_str()?;
    let text = one_line(value.get("text")?.as_str()?);
    match value.get("shard").and_then(Value::as_str) {
        Some(shard) => Some(format!("{at}  {}: {text}", one_line(shard))),
        None => Some(format!("{at}  {text}")),
    }
}
