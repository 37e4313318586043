//! The end of an attempt, from what the queue showed of it or from accounting's row.

use crate::model::cluster::EndWord;
use crate::model::observation::PastJob;
use crate::model::state::{Attempt, End, EndHow, KeptOff, Live, Slot, Stop};
use crate::model::units::Secs;

use super::super::account::{self, Run};
use super::Step;

impl Step<'_, '_> {
    pub(super) fn end_of(&self, live: &Live, how: EndHow) -> End {
        // A pilot that found nothing to take has failed in nothing.
        let returned = live.turn.is_some_and(|turn| turn.returned);
        let unclaimed = how == EndHow::Word(EndWord::Completed)
            && live.attempt.pilot
            && (live.is_unclaimed() || returned);
        End {
            started: live.started,
            nodes: live.nodes.clone(),
            tier: live.tier.clone(),
            mark: live.mark,
            stop: live.stop.or(unclaimed.then_some(Stop::Unclaimed)),
            ..End::new(&live.attempt, live.job, how, self.now)
        }
    }

    pub(super) fn end_of_live(&mut self, live: &Live, row: &PastJob, how: EndHow) -> Slot {
        let began = row.started.map(|run| live.begun(run, live.restarts));
        let tier = live.tier.clone().filter(|_| live.started == began);
        let end = End { tier, ..self.end_of(live, how) };
        self.end_by_row(end, &live.attempt, row, Some(live))
    }

    pub(super) fn end_of_past(&mut self, attempt: &Attempt, row: &PastJob, how: EndHow) -> Slot {
        let end = End::new(attempt, row.id, how, self.now);
        self.end_by_row(end, attempt, row, None)
    }

    /// Accounting's times count. Earlier runs of the same job (Slurm requeued it between two
    /// cycles) have rows of their own.
    ///
    /// `live`: what was known of it, where it was seen alive.
    fn end_by_row(
        &mut self,
        mut end: End,
        attempt: &Attempt,
        row: &PastJob,
        live: Option<&Live>,
    ) -> Slot {
        let after = |run: u32| live.map_or(Secs(0), |live| live.after(run));
        let shift = live.map_or(Secs(0), |live| live.after(live.restarts));
        let others = live.map_or(0, Live::runs_before);
        end.started = row.started.filter(|_| !row.nodes.is_empty()).map(|run| run + shift);
        end.ended = row.ended.unwrap_or(self.now);
        end.exit.clone_from(&row.exit);
        end.nodes.clone_from(&row.nodes);
        end.cancelled_by = row.cancelled_by;
        // What the queue showed of this very run is better than what its node tells.
        if end.tier.is_none() {
            end.tier = self.tier_of_run(attempt, &row.nodes, &[]);
        }
        for (run, earlier) in (others..).zip(self.past.runs(attempt, row.id, others)) {
            if earlier.started != row.started {
                self.charge_row(attempt, earlier, after(run));
            }
        }
        self.end(end)
    }

    /// The one place where a run becomes past: it is charged here, from Slurm's own times.
    pub(super) fn end(&mut self, end: End) -> Slot {
        if let Some(started) = end.started {
            let (attempt, gpus, ended) = (end.attempt, end.gpus, end.ended);
            self.charge(&Run { attempt, gpus, started, ended, tier: end.tier.as_deref() });
        }
        let lab = &self.policy.shards[self.shard].lab;
        self.record.kept_off = KeptOff::default();
        account::charge_owed(self.policy, lab, self.record, self.labs, self.now);
        Slot::Settling(Box::new(end))
    }
}
