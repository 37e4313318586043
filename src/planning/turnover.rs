//! How fast own takes jobs: what K is where nobody fixes it (`[policy] lanes = "adaptive"`).
//!
//! K jobs parked in own take each GPU that gets free there between two ticks. More than that only
//! keep off extra GPUs that stand idle; so K is what is about to get free, and at least one.

use crate::model::policy::{Lane, Policy};
use crate::model::state::State;
use crate::model::units::{Secs, Time};

use super::event::{Event, What};
use super::lpt::Lpt;
use super::parking::Waiting;

/// A tick is every minute until it has been seen: the crontab line that `babysit cron` prints.
const USUAL_TICK: Secs = Secs::minutes(1);
/// A tick sooner than this after another was started by hand, or by a second babysitter: nobody asks
/// a controller that often on purpose. The gaps of a crontab's minute are at times 59 s.
const NO_TICK: Secs = Secs(5);
/// Nobody ticks more rarely on purpose: babysit, or its host, was away.
const LONGEST_TICK: Secs = Secs::hours(1);
/// Own jobs that end by then are followed by a parked one before the cycle after next could act.
const TICKS_AHEAD: f64 = 2.0;

/// Notes how long a tick is, from the last one that decided anything.
pub fn clock(state: &mut State, now: Time) {
    let last = state.last_tick.as_ref().and_then(|tick| tick.last_ok);
    if let Some(gap) = last.map(|at| now.since(at)).filter(|gap| *gap >= NO_TICK) {
        state.learned.tick_every = Some(gap.min(LONGEST_TICK));
    }
}

/// Counts the starts that this cycle saw, by lane.
pub fn count_starts(state: &mut State, events: &[Event]) {
    for event in events {
        let What::Started { lane: Some(lane), .. } = &event.what else { continue };
        let count = match lane {
            Lane::Own => &mut state.learned.own_starts,
            Lane::Extra => &mut state.learned.extra_starts,
            // A job that runs is in one of them; Slurm does not say yet in which.
            Lane::Both => continue,
        };
        *count = count.saturating_add(1);
    }
}

/// What is asked about own's turnover.
#[derive(Debug, Clone, Copy)]
pub struct Turnover<'a> {
    lpt: &'a Lpt,
    /// Shards that wait.
    pending: usize,
    /// There is one, and it wants several GPUs.
    is_wide: bool,
    now: Time,
}

impl Turnover<'_> {
    pub fn new<'a>(policy: &Policy, lpt: &'a Lpt, waiting: &[Waiting], now: Time) -> Turnover<'a> {
        let wide = |w: &Waiting| policy.shards.get(w.shard).is_some_and(|shard| shard.gpus > 1);
        let is_wide = matches!(waiting, [only] if wide(only));
        Turnover { lpt, pending: waiting.len(), is_wide, now }
    }

    /// K. A single one that waits goes where starts were more frequent: parked in own it would
    /// wait for one of ours to end, which may be the last thing that ever ends. Starts of narrow
    /// ones say nothing of so many GPUs at once, which extra may never have and own is sure to.
    pub fn park(&self, state: &State) -> usize {
        if self.pending >= 2 {
            return self.ending(state).max(1);
        }
        usize::from(self.is_wide || state.learned.own_starts >= state.learned.extra_starts)
    }

    /// Shards of ours that run in own and end within two ticks.
    fn ending(&self, state: &State) -> usize {
        let tick = state.learned.tick_every.unwrap_or(USUAL_TICK).as_f64();
        let soon = |(i, left): (usize, &f64)| {
            let live = state.shards.get(i)?.live()?;
            let started = live.started.filter(|_| live.lane == Some(Lane::Own))?;
            // The row in flight has been worked on since the last one was finished.
            let since = live.mark.map_or(started, |mark| mark.at);
            let left = left - self.now.since(since).as_f64();
            (left <= TICKS_AHEAD * tick).then_some(())
        };
        self.lpt.remaining.iter().enumerate().filter_map(soon).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::state::{TickOutcome, TickRecord};

    #[test]
    fn a_tick_is_as_long_as_the_last_gap_was() {
        let check = |gap, expected| {
            let (at, mut state) = (Time(1_000_000), State::new("p", "i"));
            let outcome = TickOutcome::Ok;
            state.last_tick =
                Some(TickRecord { at, outcome, skipped_in_a_row: 0, last_ok: Some(at) });
            clock(&mut state, at + Secs(gap));
            assert_eq!(state.learned.tick_every, expected, "after {gap} s");
        };
        check(30, Some(Secs(30)));
        check(59, Some(Secs(59)));
        check(600, Some(Secs(600)));
        check(90_000, Some(LONGEST_TICK));
        check(4, None);
        check(-60, None);
    }
}
