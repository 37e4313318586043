//! Two live jobs of one shard: which is kept, and what is done about the other.

use std::mem;

use crate::model::cluster::JobState;
use crate::model::state::{ShardRecord, Slot};
use crate::model::units::Time;

use super::super::event::{Event, What};
use super::super::plan::Target;
use super::super::roster::Roster;

/// Live jobs of a shard beside the one that its record holds. The record's own is kept; another
/// that still pends may be cancelled, one that runs is only told, once: it may be doing real work.
/// `cancel` takes up those that are cancelled.
pub(super) fn of(
    record: &mut ShardRecord,
    roster: &Roster<'_>,
    shard: usize,
    me: u32,
    now: Time,
    events: &mut Vec<Event>,
    cancel: &mut Vec<Target>,
) {
    let Slot::Live(live) = &mut record.slot else { return };
    let ours = roster.of(shard);
    // Its own, and no other, now as before: nearly all.
    if live.twins.is_empty() && matches!(ours, [own] if own.job.id == live.job) {
        return;
    }
    let before = mem::take(&mut live.twins);
    for ours in ours {
        // By its token the very job that the record means, under an id that it did not expect.
        let same = live.submitted.is_none() && ours.job.comment == live.attempt.token.comment;
        if ours.job.id == live.job || same || ours.job.state.is_over() {
            continue;
        }
        let cancelled = ours.job.state == JobState::Pending && ours.job.uid == me;
        if !before.contains(&ours.job.id) {
            events.push(Event {
                at: now,
                shard: Some(record.id.clone()),
                what: What::Twin { kept: live.job, other: ours.job.id, cancelled },
            });
        }
        if cancelled {
            cancel.push(Target::new(shard, &record.id, ours.job.id));
        } else {
            live.twins.push(ours.job.id);
        }
    }
}
