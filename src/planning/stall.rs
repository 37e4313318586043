//! Stalls: a job that runs and finishes no row for many times its usual row time. Told once; it
//! goes on running, unless `restart_stalled` says that it is to be ended and started again. One whose
//! rows are all there has not stalled, it lingers: nothing is left for it to do.

use crate::model::cluster::JobState;
use crate::model::policy::Policy;
use crate::model::reason::Reason;
use crate::model::state::{Live, ShardRecord, Slot, State, Stop};
use crate::model::units::{Secs, Time};

use super::event::{Event, What};
use super::lpt::Lpt;
use super::plan::Target;

/// So many usual row times without a new row are a stall.
const TIMES: f64 = 10.0;
/// Shorter silences are none, however short the rows: files of the user's are late by minutes.
const LEAST: Secs = Secs::minutes(10);

/// Could it stall at all?
pub fn may_stall(record: &ShardRecord) -> bool {
    record.live().is_some_and(runs)
}

/// One that was to end and runs on is looked at again: its scancel may have come to nothing.
fn runs(live: &Live) -> bool {
    live.state == JobState::Running && live.stop.is_none_or(|stop| stop == Stop::Stalled)
}

/// Marks and tells the stalls among the shards that `may_stall`, and names the jobs that are to be
/// started again. The files must have been measured in this cycle.
pub fn stalls(
    policy: &Policy,
    state: &mut State,
    running: &[usize],
    usual: &Lpt,
    now: Time,
    events: &mut Vec<Event>,
) -> Vec<Target> {
    let mut restart = Vec::new();
    for &i in running {
        let record = &mut state.shards[i];
        let measured = record.progress.gap.is_none() && record.progress.measured_at == Some(now);
        let id = &record.id;
        let Slot::Live(live) = &mut record.slot else { continue };
        if !runs(live) || !measured || live.absent.is_some() {
            continue;
        }
        let Some(started) = live.started else { continue };
        let last = live.mark.map_or(started, |mark| mark.at).max(started);
        let patience = Secs((usual.seconds_per_row[i] * TIMES) as i64).max(LEAST);
        if now.since(last) < patience {
            live.stalled = None;
            continue;
        }
        let again = policy.shards[i].restart_stalled;
        let job = live.job;
        let what = match record.progress.rows >= policy.shards[i].rows {
            true => What::Lingers { job, since: last, ended: again },
            false => What::Stalled { job, since: last, restarted: again },
        };
        if live.stalled.is_none() {
            live.stalled = Some(last);
            events.push(Event { at: now, shard: Some(id.clone()), what });
        }
        if again {
            restart.push(Target::new(i, id, live.job));
        }
    }
    restart
}

/// What status says of a running shard that stalls; not asked of one whose rows are all there.
pub fn reason(live: &Live) -> Option<Reason> {
    let since = live.stalled.filter(|_| live.state == JobState::Running)?;
    Some(Reason::Stalled { node: live.nodes.join(","), since })
}
