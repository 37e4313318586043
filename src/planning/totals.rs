//! Row and money totals for the journal, now and then: what a picture of the campaign over time is
//! drawn from, since the state only knows how things stand.

use crate::model::observation::Observation;
use crate::model::policy::Policy;
use crate::model::state::State;
use crate::model::units::{Money, Secs, Time};

use super::event::{Event, What};

/// A line in so much time at most, beside one for each shard that gets done: 150 bytes each, so a
/// year of work without a pause is 8 MB.
const EVERY: Secs = Secs::minutes(10);

/// The totals, in the first cycle of a stretch of `EVERY` that read any shard's files. `state` is
/// as this cycle measured it, with the last cycle's time; so the same cycle twice tells it once.
pub fn totals(policy: &Policy, state: &State, seen: &Observation, now: Time) -> Option<Event> {
    let stretch = |at: Time| at.0.div_euclid(EVERY.0);
    let fresh = state.last_tick.as_ref().is_none_or(|tick| stretch(tick.at) != stretch(now));
    let pairs = || policy.shards.iter().take(policy.named()).zip(&state.shards);
    let last = || {
        pairs().any(|(_, record)| record.finished.is_some_and(|f| f.at == now))
            && state.last_tick.as_ref().is_none_or(|tick| tick.at != now)
    };
    if !seen.progress.iter().flatten().any(Result::is_ok) || !(fresh || last()) {
        return None;
    }
    let (mut rows, mut of, mut spent) = (0u64, 0u64, Money::ZERO);
    for (shard, record) in pairs() {
        rows += u64::from(record.progress.rows.min(shard.rows));
        of += u64::from(shard.rows);
        spent += record.progress.spent.unwrap_or_default();
    }
    Some(Event { at: now, shard: None, what: What::Totals { rows, of, spent } })
}
