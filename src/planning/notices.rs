//! What the notify hook is told (contract.md `[hooks]`), and when. At most once: a notice leaves the
//! state with the save before the hook is started, so a crash in between loses it and never doubles
//! it. Not the hook's business: whether it is there, how long it takes, what it answers.

use crate::model::notice::{Delivery, DeliveryEnd, Matter, Message, Notice};
use crate::model::policy::{Policy, Shard};
use crate::model::reason::Reason;
use crate::model::state::{Gate, ShardRecord, Slot, State};
use crate::model::units::{Secs, Time};

use super::event::{Event, What};
use super::measure::is_done;
use super::reason::standing;

/// From one message to the next: what happens meanwhile comes as one digest. With one message a
/// minute nobody reads them after the first hour.
const APART: Secs = Secs::minutes(5);
/// Notices that one message tells in full; it has to be read by a person, and kept in the state.
const MOST: usize = 100;
/// Skipped cycles in a row, after which it is more than a hiccup of the controller.
const PROBE_FAILS: u32 = 5;

/// Notes what of a cycle's events is worth a message.
pub fn note(policy: &Policy, state: &mut State, events: &[Event]) {
    if policy.notify.is_none() {
        // A hook that is set again a month later must not tell what was new before.
        state.notices.waiting.clear();
        state.notices.left_out.clear();
        return;
    }
    for event in events {
        if let Some(matter) = matter(&event.what) {
            keep(state, Notice { at: event.at, shard: event.shard.clone(), matter });
        }
    }
}

/// After a cycle that went through: whether anything still moves. `quiet`: it had no event.
pub fn review(policy: &Policy, state: &mut State, quiet: bool, now: Time) {
    state.notices.probe_told = false;
    // Whatever begins to move does so with an event.
    if policy.notify.is_none() || (state.notices.rests && quiet) {
        return;
    }
    let end = standstill(policy, state);
    if let (Some(Standstill { done, not_done }), false) = (end, state.notices.rests) {
        let matter = Matter::Finished { done, not_done };
        keep(state, Notice { at: now, shard: None, matter });
    }
    state.notices.rests = end.is_some();
}

/// The same for a cycle that was skipped, once its count is on the record.
pub fn skipped(policy: &Policy, state: &mut State, why: &str, now: Time) {
    let row = state.last_tick.as_ref().map_or(0, |tick| tick.skipped_in_a_row);
    if policy.notify.is_none() || state.notices.probe_told || row < PROBE_FAILS {
        return;
    }
    state.notices.probe_told = true;
    let matter = Matter::ProbeFailing { skipped: row, why: why.to_owned() };
    keep(state, Notice { at: now, shard: None, matter });
}

/// The message that is due now, noted as in hand. The caller saves the state before the hook runs.
pub fn take(policy: &Policy, state: &mut State, now: Time) -> Option<Message> {
    policy.notify.as_ref()?;
    let notices = &mut state.notices;
    let last = notices.last.as_ref().map(|delivery| delivery.at);
    // A clock that was set back must not silence it.
    let rested = last.is_none_or(|at| now < at || now.since(at) >= APART);
    // `loop --until-done` ends with it: no later cycle would tell the rest.
    let over = notices.waiting.iter().any(|n| matches!(n.matter, Matter::Finished { .. }));
    if notices.waiting.is_empty() || !(rested || over) {
        return None;
    }
    notices.number = notices.number.saturating_add(1);
    let message = Message {
        number: notices.number,
        at: now,
        notices: std::mem::take(&mut notices.waiting),
        left_out: std::mem::take(&mut notices.left_out),
    };
    let (events, end) = (message.events(), DeliveryEnd::InHand);
    notices.last = Some(Delivery { at: now, events, end });
    Some(message)
}

/// What became of a message; an older one's end is of no interest any more.
pub fn delivered(state: &mut State, number: u64, end: DeliveryEnd) {
    let newest = state.notices.number == number;
    if let Some(last) = state.notices.last.as_mut().filter(|_| newest) {
        last.end = end;
    }
}

fn matter(what: &What) -> Option<Matter> {
    Some(match what {
        What::Done { rows } => Matter::Done { rows: *rows },
        What::OverCap { spent, cap } => Matter::OverCap { spent: *spent, cap: *cap },
        What::Held { why } => Matter::Held { why: why.clone() },
        What::SubmitRefused { said } => Matter::Refused { said: said.clone() },
        What::NoFit { asked, largest } => {
            Matter::NoFit { asked: asked.clone(), largest: largest.clone() }
        }
        What::BreakerOpened { family, refused, said } => {
            Matter::Breaker { family: family.clone(), refused: *refused, said: said.clone() }
        }
        What::Stalled { job, since, restarted } => {
            Matter::Stalled { job: *job, since: *since, restarted: *restarted }
        }
        What::Lingers { job, since, ended } => {
            Matter::Lingers { job: *job, since: *since, ended: *ended }
        }
        What::NodeKeptOut { node, deaths, until } => {
            Matter::BadNode { node: node.clone(), deaths: *deaths, until: *until }
        }
        _ => return None,
    })
}

/// Where there are too many, those that only tell of success give way.
fn keep(state: &mut State, notice: Notice) {
    let notices = &mut state.notices;
    let is_done = |notice: &Notice| matches!(notice.matter, Matter::Done { .. });
    let mut out = None;
    if notices.waiting.len() < MOST {
        notices.waiting.push(notice);
    } else if let (Some(at), false) = (notices.waiting.iter().rposition(is_done), is_done(&notice))
    {
        out = Some(notices.waiting.remove(at));
        notices.waiting.push(notice);
    } else {
        out = Some(notice);
    }
    if let Some(notice) = out {
        *notices.left_out.entry(notice.matter.kind().to_owned()).or_default() += 1;
    }
}

/// A campaign in which nothing moves by itself any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standstill {
    /// With all their rows, or cancelled for good.
    pub done: u32,
    /// A person is needed.
    pub not_done: u32,
}

/// `None`: some shard can still make progress by itself.
pub fn standstill(policy: &Policy, state: &State) -> Option<Standstill> {
    let mut end = Standstill { done: 0, not_done: 0 };
    let named = policy.named();
    if state.shards.iter().skip(named).any(|helper| helper.slot != Slot::Free) {
        return None;
    }
    for (shard, record) in policy.shards.iter().take(named).zip(&state.shards) {
        match rest(shard, record)? {
            true => end.done += 1,
            false => end.not_done += 1,
        }
    }
    Some(end)
}

/// Is it over with this shard (true), or stopped (false)? `None`: it moves.
fn rest(shard: &Shard, record: &ShardRecord) -> Option<bool> {
    if record.slot != Slot::Free {
        return None;
    }
    if is_done(shard, record) || matches!(record.gate, Gate::Cancelled { .. }) {
        return Some(true);
    }
    let closed = matches!(record.gate, Gate::Held { .. } | Gate::Refused { .. });
    if record.over_cap.is_some() || closed {
        return Some(false);
    }
    let why = standing(shard, record);
    let why = why.as_ref().unwrap_or(&record.why);
    let never = matches!(why, Reason::NoFit { .. } | Reason::BreakerOpen { .. });
    (never && record.gate == Gate::Open).then_some(false)
}
