//! A pinned job that Slurm could not start: strangers took its GPUs between the look and the
//! submission, its node went down, or its lane filled up. It would wait there for ever while other
//! placements get free, so it is taken back into babysit's queue, at the place it had.
//!
//! Only PENDING jobs are withdrawn. This is not a move between lanes by other means: the shard is
//! dispatched anew like any other (policy.md section 6).

use crate::model::cluster::JobState;
use crate::model::policy::Policy;
use crate::model::state::{Live, State, Stop};
use crate::model::units::{Secs, Time};

use super::census::Census;
use super::placement::Placement;
use super::plan::Target;

/// Long enough for backfill to give way and for Slurm to look at the job more than once.
const STRANDED_AFTER: Secs = Secs::minutes(5);

/// `there`: the placements with what is idle on them, our own promises not deducted.
pub fn stranded(
    policy: &Policy,
    state: &State,
    census: &Census,
    there: &[Placement],
    me: u32,
    now: Time,
) -> Vec<Target> {
    let lost = |live: &Live| {
        let Some(pin) = &live.attempt.pin else { return false };
        let waits = live.state == JobState::Pending
            && live.absent.is_none()
            // Once more where its scancel came to nothing.
            && live.stop.is_none_or(|stop| stop == Stop::Stranded)
            && live.attempt.uid == me
            && now.since(live.attempt.asked_at) >= STRANDED_AFTER;
        let at = there.iter().find(|p| p.pin == *pin);
        let gone = at.is_none_or(|p| !p.up || p.idle < live.attempt.gpus);
        let lane_full = ["QOS", "Assoc"].iter().any(|word| live.reason.starts_with(word));
        waits && (gone || (lane_full && policy.lanes.is_some()))
    };
    let found = census.pinned.iter().filter_map(|&i| {
        let record = &state.shards[i];
        let live = record.live().filter(|live| lost(live))?;
        Some(Target::new(i, &record.id, live.job))
    });
    found.collect()
}
