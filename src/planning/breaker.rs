//! Submissions that Slurm refuses (slurm.md "Submitting"). A family whose requests are refused
//! several times in a row is not tried any more until a person says so: the same mistake would be
//! refused for each of its shards. A Slurm that can take nothing is left alone for a while, each
//! time twice as long. One bad shard stops nobody else.

use std::collections::BTreeSet;

use crate::model::caution::{Breaker, Caution, Overload};
use crate::model::policy::{Policy, Rules};
use crate::model::reason::Reason;
use crate::model::request::{RefusalClass, Submitted};
use crate::model::state::{Gate, ShardRecord, Slot, State};
use crate::model::units::{Secs, Time};

use super::event::{Event, What};

/// The first wait after an overload. Shorter than the usual time between two ticks, so that a
/// short one costs no more than the rest of its own cycle.
const FIRST_REST: Secs = Secs(30);
/// No wait is longer: a controller that is back finds work within this time.
const LONGEST_REST: Secs = Secs::minutes(15);

/// Takes one answer of sbatch into account. Tells when a breaker opens.
pub fn heed(
    rules: &Rules,
    caution: &mut Caution,
    family: &str,
    outcome: &Submitted,
    now: Time,
) -> Option<What> {
    match outcome {
        Submitted::Accepted(_) => {
            caution.breakers.remove(family);
            caution.overload = None;
            None
        }
        // Whether Slurm took it is not known, so it proves nothing about the next one.
        Submitted::Unknown(_) => None,
        Submitted::Refused(refusal) => match refusal.class {
            RefusalClass::Limit => None,
            RefusalClass::Overload => {
                let before = caution.overload.as_ref().map_or(0, |overload| overload.in_a_row);
                let wait = Secs(FIRST_REST.0 << before.min(10)).min(LONGEST_REST);
                caution.overload = Some(Overload {
                    in_a_row: before.saturating_add(1),
                    until: now + wait,
                    said: refusal.text.clone(),
                });
                None
            }
            RefusalClass::Request => {
                let fresh = Breaker { refused: 0, said: String::new(), open_since: None };
                let breaker = caution.breakers.entry(family.to_owned()).or_insert(fresh);
                breaker.refused = breaker.refused.saturating_add(1);
                breaker.said.clone_from(&refusal.text);
                if breaker.open_since.is_some() || breaker.refused < rules.breaker {
                    return None;
                }
                breaker.open_since = Some(now);
                Some(What::BreakerOpened {
                    family: family.to_owned(),
                    refused: breaker.refused,
                    said: refusal.text.clone(),
                })
            }
        },
    }
}

pub fn is_open(caution: &Caution, family: &str) -> bool {
    open(caution, family).is_some()
}

fn open<'a>(caution: &'a Caution, family: &str) -> Option<&'a Breaker> {
    caution.breakers.get(family).filter(|breaker| breaker.open_since.is_some())
}

/// Why this shard, which could else be submitted, is not.
pub fn reason(caution: &Caution, record: &ShardRecord) -> Option<Reason> {
    let breaker = open(caution, &record.id.family)?;
    let waits = record.slot == Slot::Free && record.gate == Gate::Open;
    waits.then(|| Reason::BreakerOpen { refused: breaker.refused, said: breaker.said.clone() })
}

/// What Slurm said when it refused to take anything, while that is not long enough ago.
pub fn resting(caution: &Caution, now: Time) -> Option<&str> {
    let overload = caution.overload.as_ref().filter(|overload| now < overload.until)?;
    // A clock that was set back must not make the wait longer than any wait is.
    let sane = overload.until.since(now) <= LONGEST_REST;
    sane.then_some(overload.said.as_str())
}

/// Submissions that this cycle may make.
pub fn most_submissions(policy: &Policy, caution: &Caution, now: Time) -> usize {
    if resting(caution, now).is_some() { 0 } else { policy.rules.max_submits_per_tick }
}

/// Why a shard's turn did not come, though it could be submitted.
pub fn not_now(caution: &Caution, rank: u32, now: Time) -> Reason {
    match resting(caution, now) {
        Some(said) => Reason::SlurmBusy { said: said.to_owned() },
        None => Reason::SubmitBudget { rank },
    }
}

/// A person asks for these families to be tried again; returns those whose breaker was open.
pub fn close<'a>(state: &mut State, families: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let families: BTreeSet<&str> = families.into_iter().collect();
    let mut closed = Vec::new();
    for family in families {
        if state.caution.breakers.remove(family).is_some_and(|b| b.open_since.is_some()) {
            closed.push(family.to_owned());
        }
    }
    for record in &mut state.shards {
        let theirs = matches!(record.why, Reason::BreakerOpen { .. });
        if theirs && closed.iter().any(|family| record.id.family == *family) {
            record.why = Reason::NotLookedYet;
        }
    }
    closed
}

/// What became of `close`, for the journal.
pub fn closed(family: &str, by: &str, now: Time) -> Event {
    let did = format!("family {family}: its submissions are tried again");
    Event { at: now, shard: None, what: What::Person { by: by.to_owned(), did } }
}
