//! Stalls: a job that runs and finishes no row for many times its usual row time. Told once; it
//! goes on running, unless `restart_stalled` says that it is to be ended and started again.

use crate::model::cluster::JobState;
use crate::model::policy::Policy;
use crate::model::reason::Reason;
use crate::model::state::{Live, State};
use crate::model::units::{Secs, Time};

use super::event::{Event, What};
use super::measure;
use super::plan::Target;

/// So many usual row times without a new row are a stall.
const TIMES: f64 = 10.0;
/// Shorter silences are none, however short the rows: files of the user's are late by minutes.
const LEAST: Secs = Secs::minutes(10);

/// Marks and tells the stalls, and names the jobs that are to be started again. The files must
/// have been measured in this cycle.
pub fn stalls(
    policy: &Policy,
    state: &mut State,
    now: Time,
    events: &mut Vec<Event>,
) -> Vec<Target> {
    let runs = |live: &Live| live.state == JobState::Running && live.stop.is_none();
    // No shard runs: the row times need not be worked out.
    if !state.shards.iter().any(|record| record.live().is_some_and(runs)) {
        return Vec::new();
    }
    let usual = measure::row_times(policy, state);
    let mut restart = Vec::new();
    for (i, record) in state.shards.iter_mut().enumerate() {
        let measured = record.progress.gap.is_none() && record.progress.measured_at == Some(now);
        let id = record.id.clone();
        let crate::model::state::Slot::Live(live) = &mut record.slot else { continue };
        if !runs(live) || !measured || live.absent.is_some() {
            continue;
        }
        let Some(started) = live.started else { continue };
        let last = live.mark.map_or(started, |mark| mark.at).max(started);
        let patience = Secs((usual[i].0 * TIMES) as i64).max(LEAST);
        if now.since(last) < patience {
            live.stalled = None;
            continue;
        }
        let again = policy.shards[i].restart_stalled;
        if live.stalled.is_none() {
            live.stalled = Some(last);
            let what = What::Stalled { job: live.job, since: last, restarted: again };
            events.push(Event { at: now, shard: Some(id.clone()), what });
        }
        if again {
            restart.push(Target::new(i, &id, live.job));
        }
    }
    restart
}

/// What status says of a running shard that stalls.
pub fn reason(live: &Live) -> Option<Reason> {
    let since = live.stalled.filter(|_| live.state == JobState::Running)?;
    Some(Reason::Stalled { node: live.nodes.join(","), since })
}
