//! Events as lines of `journal.jsonl` (schema `babysit/journal/v1`), and as sentences.

mod sentence;

use serde_json::{Map, Value, json};

use crate::model::id::ShardId;
use crate::model::state::EndHow;
use crate::planning::event::{Event, What};

use super::format::{iso, one_line};

pub use self::sentence::{line, sentence};

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
