//! The most GPUs of own that we hold or wait for (`[policy] own_share`): each of them makes somebody
//! else wait longer in own.

use crate::model::policy::OwnShare;
use crate::model::state::{OthersInOwn, OwnLane, State};
use crate::model::units::{GpuSeconds, Secs, Time};

/// A lab's habits change: what is older than this counts ever less.
const REMEMBERED: Secs = Secs::hours(14 * 24);
/// An average of less than a day is one of an afternoon.
const LEAST: Secs = Secs::hours(24);
/// Over a longer gap nobody knows who was there.
const LONGEST_GAP: Secs = Secs::hours(1);

/// Counts what others held since the last cycle: who was there then was there until now.
pub fn note(state: &mut State, now: Time) {
    let Some(lane) = state.learned.own_lane else { return };
    let counted = counted(&state.learned.others_in_own, &lane, now);
    state.learned.others_in_own = Some(counted);
}

fn counted(before: &Option<OthersInOwn>, lane: &OwnLane, now: Time) -> OthersInOwn {
    let nothing = OthersInOwn { gpu_seconds: GpuSeconds::default(), over: Secs(0), until: now };
    let mut held = before.unwrap_or(nothing);
    let gap = now.since(held.until);
    if gap > Secs(0) && gap <= LONGEST_GAP {
        held.gpu_seconds += GpuSeconds::of(lane.running_others, gap);
        held.over = Secs(held.over.0 + gap.0);
    }
    if held.over >= REMEMBERED {
        held.gpu_seconds.0 /= 2;
        held.over = Secs(held.over.0 / 2);
    }
    held.until = now;
    held
}

/// `None`: no limit, or none that could be known yet.
pub fn share(rule: OwnShare, state: &State, lane: &OwnLane, now: Time) -> Option<u32> {
    match rule {
        OwnShare::All => None,
        OwnShare::Gpus(gpus) => Some(gpus),
        OwnShare::Average => {
            let held = counted(&state.learned.others_in_own, lane, now);
            let average = held.gpu_seconds.0 as f64 / held.over.as_f64();
            let known = lane.size.filter(|_| held.over >= LEAST);
            known.map(|size| size.saturating_sub(average.round() as u32).max(1))
        }
    }
}

/// Of it, what we neither hold nor are about to.
pub fn left(rule: OwnShare, state: &State, lane: &OwnLane) -> Option<u32> {
    let held = lane.running_ours.saturating_add(lane.pending_pinned);
    whole(rule, state, lane).map(|share| share.saturating_sub(held))
}

/// The rule for whoever goes on from this state without its memory: an average that is known by now is
/// a number.
pub fn so_far(rule: OwnShare, state: &State) -> OwnShare {
    let lane = state.learned.own_lane.unwrap_or_default();
    whole(rule, state, &lane).map_or(rule, OwnShare::Gpus)
}

/// What we hold of it and what is left. After a cycle has counted, so that now is the moment up to
/// which it did.
pub fn whole(rule: OwnShare, state: &State, lane: &OwnLane) -> Option<u32> {
    let now = state.learned.others_in_own.map_or(Time(0), |held| held.until);
    share(rule, state, lane, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Time = Time(1_000_000);

    fn lane(size: u32, running_others: u32) -> OwnLane {
        OwnLane { size: Some(size), running_others, ..OwnLane::default() }
    }

    /// Hours in which so many GPUs of own were others', a look every ten minutes.
    fn after(hours: &[(i64, u32)]) -> State {
        let mut state = State::new("p", "i");
        let mut now = T0;
        for (hours, others) in hours {
            state.learned.own_lane = Some(lane(8, *others));
            for _ in 0..hours * 6 {
                note(&mut state, now);
                now = now + Secs::minutes(10);
            }
        }
        note(&mut state, now);
        state
    }

    #[test]
    fn it_is_what_others_left_on_average() {
        let check = |hours: &[(i64, u32)], expected| {
            let state = after(hours);
            let now = state.learned.others_in_own.expect("counted").until;
            let found = share(OwnShare::Average, &state, &lane(8, 0), now);
            assert_eq!(found, expected, "{hours:?}");
        };
        check(&[(23, 8)], None);
        check(&[(24, 8)], Some(1));
        check(&[(24, 4)], Some(4));
        check(&[(24, 0)], Some(8));
        check(&[(12, 8), (12, 2)], Some(3));
        // Two weeks are halved, so the last one counts more.
        check(&[(14 * 24, 8), (14 * 24, 0)], Some(6));
    }

    #[test]
    fn a_gap_that_nobody_saw_counts_for_nothing() {
        let mut state = after(&[(30, 2)]);
        let before = state.learned.others_in_own.expect("counted");
        note(&mut state, before.until + Secs::hours(5));
        let held = state.learned.others_in_own.expect("counted");
        assert_eq!((held.gpu_seconds, held.over), (before.gpu_seconds, before.over));
    }

    #[test]
    fn a_number_is_that_number_and_without_one_there_is_no_limit() {
        let state = after(&[(48, 6)]);
        let of = |rule| share(rule, &state, &lane(8, 6), T0);
        assert_eq!((of(OwnShare::Gpus(5)), of(OwnShare::All)), (Some(5), None));
    }
}
