//! What the notify hook reads on its standard input: one JSON object, `babysit/notify/v1`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::notice::{Delivery, DeliveryEnd, Matter, Message, Notice};
use crate::model::policy::Hook;
use crate::model::units::{Secs, Time};
use crate::planning::event::What;

use super::format::{ago, count, iso, one_line};
use super::journal::sentence;

pub const SCHEMA: &str = "babysit/notify/v1";
/// `kind` of a message that tells of several events.
pub const DIGEST: &str = "digest";
/// Lines of a digest's `text`; all events are in `events`.
const LINES: usize = 20;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MessageView {
    pub schema: &'static str,
    pub project: String,
    /// No two messages have one id.
    pub id: String,
    pub at: String,
    pub kind: &'static str,
    /// One line, for a subject.
    pub title: String,
    /// The whole of it, for a person.
    pub text: String,
    /// By kind, those that `events` leaves out counted too.
    pub counts: BTreeMap<String, u32>,
    /// Oldest first.
    pub events: Vec<NoticeView>,
    /// Events that are only counted.
    pub left_out: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoticeView {
    pub at: String,
    pub kind: &'static str,
    /// `null`: of a family, a node, the whole campaign.
    pub shard: Option<String>,
    pub text: String,
}

pub fn view(project: &str, instance: &str, message: &Message) -> MessageView {
    let Message { number, at, notices, left_out } = message;
    let mut counts = left_out.clone();
    for notice in notices {
        *counts.entry(notice.matter.kind().to_owned()).or_default() += 1;
    }
    let events: Vec<NoticeView> = notices.iter().map(notice).collect();
    let left_out: u32 = left_out.values().sum();
    let line = |event: &NoticeView| match &event.shard {
        Some(shard) => format!("{shard}: {}", event.text),
        None => event.text.clone(),
    };
    let (kind, title, text) = match events.as_slice() {
        [only] if left_out == 0 => (only.kind, line(only), line(only)),
        all => {
            let kinds: Vec<String> = counts.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
            let title = format!("{}: {}", count(message.events(), "event"), kinds.join(", "));
            let mut lines: Vec<String> = all.iter().take(LINES).map(line).collect();
            let more = message.events().saturating_sub(lines.len() as u32);
            if more > 0 {
                lines.push(format!("and {more} more: `babysit log` has them all"));
            }
            (DIGEST, title, lines.join("\n"))
        }
    };
    MessageView {
        schema: SCHEMA,
        project: project.to_owned(),
        id: format!("{instance}-{number}"),
        at: iso(*at),
        kind,
        title: format!("{project}: {title}"),
        text,
        counts,
        events,
        left_out,
    }
}

fn notice(notice: &Notice) -> NoticeView {
    let Notice { at, shard, matter } = notice;
    NoticeView {
        at: iso(*at),
        kind: matter.kind(),
        shard: shard.as_ref().map(ToString::to_string),
        text: words(matter, *at),
    }
}

/// The journal's sentence, where it has one.
fn words(matter: &Matter, at: Time) -> String {
    let what = match matter.clone() {
        Matter::Done { rows } => What::Done { rows },
        Matter::OverCap { spent, cap } => What::OverCap { spent, cap },
        Matter::Held { why } => What::Held { why },
        Matter::Refused { said } => What::SubmitRefused { said },
        Matter::NoFit { asked, largest } => What::NoFit { asked, largest },
        Matter::Breaker { family, refused, said } => What::BreakerOpened { family, refused, said },
        Matter::Stalled { job, since, restarted } => What::Stalled { job, since, restarted },
        Matter::Lingers { job, since, ended } => What::Lingers { job, since, ended },
        Matter::BadNode { node, deaths, until } => What::NodeKeptOut { node, deaths, until },
        Matter::ProbeFailing { skipped, why } => {
            return format!(
                "the last {skipped} ticks were skipped, nothing was decided: {}",
                one_line(&why)
            );
        }
        Matter::Finished { done, not_done: 0 } => {
            return format!("finished: {} done", count(done, "shard"));
        }
        Matter::Finished { done, not_done } => {
            return format!(
                "nothing moves by itself any more: {} done, {not_done} not; `babysit status` says \
                 what is needed",
                count(done, "shard")
            );
        }
    };
    sentence(&what, at)
}

/// For status and doctor: the last message, where it did not get through.
pub fn trouble(last: &Delivery, hook: &Hook, now: Time) -> Option<String> {
    // Its end is noted under the lock, for which another cycle may have to be waited for.
    let in_hand_for = Secs(hook.timeout.0.saturating_add(60));
    let Delivery { at, events, end } = last;
    let of = format!("the message of {} ({})", ago(*at, now), count(*events, "event"));
    match end {
        DeliveryEnd::Delivered => None,
        DeliveryEnd::InHand if now.since(*at) <= in_hand_for => None,
        DeliveryEnd::InHand => {
            Some(format!("{of} may not have got through: babysit was ended meanwhile"))
        }
        DeliveryEnd::Failed(said) => Some(format!("{of} did not get through: {}", one_line(said))),
    }
}
