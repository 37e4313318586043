//! What backfill makes of the GPUs that the labs leave idle.
//!
//! Backfill gives way at once and waits for nobody, so nothing the labs get depends on it: what it
//! could have had is told from the history alone.

use crate::model::units::{Secs, Time};

use super::campaign::BEGINS;

/// An LLM server that people ask: GPUs it can keep busy by day and by night.
const BY_DAY: u32 = 16;
const BY_NIGHT: u32 = 6;
/// Loading the model on a GPU that fell idle, before the first answer.
const LOADS: Secs = Secs::minutes(5);
/// As of the labs' own arrivals.
const DAY_BEGINS: i64 = 8;
const NIGHT_BEGINS: i64 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Filled {
    /// GPU-seconds in which it answered.
    pub used: f64,
    /// How often it loaded its model on a GPU.
    pub starts: u32,
}

/// `runs`: from, until and on how many GPUs the labs' jobs ran.
pub fn filled(capacity: u32, runs: &[(Time, Time, u32)], from: Time, end: Time) -> Filled {
    let mut changes: Vec<(Time, i64)> = Vec::with_capacity(runs.len() * 2);
    for (begun, ended, gpus) in runs {
        let (begun, ended) = ((*begun).max(from), (*ended).min(end));
        if begun < ended {
            changes.push((begun, -i64::from(*gpus)));
            changes.push((ended, i64::from(*gpus)));
        }
    }
    // Its own wishes change at these moments.
    changes.extend(turns(from, end).map(|at| (at, 0)));
    changes.sort_unstable();
    let mut idle = i64::from(capacity);
    // When each GPU that it holds was taken; who came last goes first.
    let mut held: Vec<Time> = Vec::new();
    let mut filled = Filled::default();
    let mut give_back = |held: &mut Vec<Time>, wanted: usize, at: Time| {
        while held.len() > wanted {
            let Some(since) = held.pop() else { break };
            filled.used += (at.since(since).0 - LOADS.0).max(0) as f64;
        }
    };
    let mut starts = 0;
    let mut changes = changes.into_iter().peekable();
    while let Some((at, change)) = changes.next().filter(|(at, _)| *at < end) {
        idle += change;
        // All that happens in one second is one change.
        if changes.peek().is_some_and(|(next, _)| *next == at) {
            continue;
        }
        let wanted = idle.clamp(0, i64::from(demand(at))) as usize;
        give_back(&mut held, wanted, at);
        while held.len() < wanted {
            held.push(at);
            starts += 1;
        }
    }
    give_back(&mut held, 0, end);
    Filled { starts, ..filled }
}

fn demand(at: Time) -> u32 {
    let hour = at.since(BEGINS).0.div_euclid(3600).rem_euclid(24);
    if (DAY_BEGINS..NIGHT_BEGINS).contains(&hour) { BY_DAY } else { BY_NIGHT }
}

/// The beginning, and every morning and evening after it.
fn turns(from: Time, end: Time) -> impl Iterator<Item = Time> {
    let days = 0..=end.since(BEGINS).0 / 86_400;
    let hours = |day: i64| [DAY_BEGINS, NIGHT_BEGINS].map(|hour| Secs::hours(day * 24 + hour));
    let moments = days.flat_map(hours).map(|after| BEGINS + after);
    std::iter::once(from).chain(moments.filter(move |at| *at > from && *at < end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(runs: &[(i64, i64, u32)], hours: f64, starts: u32) {
        let at = |hour| BEGINS + Secs::hours(hour);
        let runs: Vec<_> = runs.iter().map(|(a, b, gpus)| (at(*a), at(*b), *gpus)).collect();
        let found = filled(20, &runs, BEGINS, at(24));
        assert!((found.used / 3600.0 - hours).abs() < 1e-9, "{runs:?}: {found:?}");
        assert_eq!(found.starts, starts, "{runs:?}");
    }

    #[test]
    fn it_takes_what_is_idle_and_wanted_but_for_the_loading() {
        let load = 5.0 / 60.0;
        // 6 all day long, 10 more for twelve hours.
        check(&[], 6.0 * 24.0 + 10.0 * 12.0 - 16.0 * load, 16);
        check(&[(0, 24, 20)], 0.0, 0);
        // Of 20 four are left: at noon they are given up for an hour.
        check(&[(0, 24, 16), (12, 13, 4)], 4.0 * 23.0 - 8.0 * load, 8);
    }
}
