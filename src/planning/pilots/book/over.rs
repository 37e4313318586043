//! The attempt that a pilot leaves for another shard: when it ends, and what of the run it pays for.

use crate::model::cluster::EndWord;
use crate::model::pilot::Claim;
use crate::model::state::{End, EndHow, Live, Slot, Stop};
use crate::model::units::Time;

use super::Desk;
use crate::planning::account::{self, Run};
use crate::planning::event::{Event, What};
use crate::planning::reconcile::{VANISH_AFTER, tier_of_run};

impl Desk<'_> {
    /// When the run that claimed began, as Slurm has it. `None`: that is to be learned yet.
    pub(super) fn run_began(&self, claim: &Claim, pilot: &Live) -> Option<Time> {
        let shown = self.queued(claim).filter(|job| job.restarts == claim.run);
        if let Some(began) = shown.and_then(|job| job.started) {
            return Some(began);
        }
        let of_run = pilot.turn.filter(|turn| turn.run == claim.run);
        if let (Some(turn), Some(started)) = (of_run, pilot.started) {
            return Some(started - turn.after);
        }
        let rows = self.past.runs(&pilot.attempt, claim.job, claim.run);
        if let Some(began) = rows.first().and_then(|row| row.started) {
            return Some(began);
        }
        // Accounting is late, as it may be; or it has nothing, and only the claim's own clock tells.
        let late =
            self.past.gap.is_some() || (!self.past.off && self.now.since(claim.at) < VANISH_AFTER);
        (!late).then(|| (claim.at - claim.after).min(self.now))
    }

    /// Ends the attempt that the pilot leaves, and returns when: its part of the run is charged here.
    pub(super) fn hand_over(
        &mut self,
        a: usize,
        claim: &Claim,
        base: Time,
        events: &mut Vec<Event>,
    ) -> Option<Time> {
        let (policy, now) = (self.policy, self.now);
        let shown = self.queued(claim).cloned();
        let live = match &self.record(a)?.slot {
            Slot::Live(live) => (**live).clone(),
            Slot::Free | Slot::Submitting(_) | Slot::Settling(_) => return None,
        };
        let rows = self.past.all(&live.attempt, live.job);
        let row = rows.iter().find(|row| row.started == Some(base));
        let over = row.and_then(|row| row.ended);
        let over =
            over.or(shown.as_ref().filter(|job| job.state.is_over()).and_then(|job| job.ends));
        let began = live.begun(base, claim.run);
        // No claim can be from after the run, or from the time to come.
        let latest = over.unwrap_or(now).min(now);
        let ended = (base + claim.after).min(latest).max(began);
        let nodes = [&live.nodes].into_iter().chain(shown.as_ref().map(|job| &job.nodes));
        let nodes = nodes.chain(row.map(|row| &row.nodes)).find(|nodes| !nodes.is_empty());
        let nodes = nodes.cloned().unwrap_or_default();
        let asked = shown.as_ref().map_or(&[][..], |job| job.asked.as_slice());
        let all = &self.seen.cluster.nodes;
        let min = policy.shards.get(a).and_then(|shard| shard.min_tier);
        // As `record`, which would keep `labs` out of reach.
        let (named, labs) = (self.shards.len(), &mut *self.labs);
        let record =
            if a < named { self.shards.get_mut(a) } else { self.orphans.get_mut(a - named) }?;
        let min = record.min_tier.or(min);
        let known = live.tier.clone().filter(|_| live.started.is_some());
        let tier = known.or_else(|| tier_of_run(policy, all, min, &live.attempt, &nodes, asked));
        let (number, gpus) = (live.attempt.number, live.attempt.gpus);
        let run = Run { attempt: number, gpus, started: began, ended, tier: tier.as_deref() };
        let lab = record.lab.clone();
        let new = account::charge_run(policy, &lab, record, labs, &run, now);
        account::charge_owed(policy, &lab, record, labs, now);
        record.ran += new;
        let tell = |what| Event { at: now, shard: Some(record.id.clone()), what };
        if new.0 > 0 {
            events.push(tell(What::Charged { attempt: number, gpu_seconds: new.0 }));
        }
        let returned = live.turn.is_some_and(|turn| turn.returned);
        let how = EndHow::Word(EndWord::Completed);
        record.slot = Slot::Settling(Box::new(End {
            started: Some(began),
            ended,
            exit: "0:0".to_owned(),
            nodes,
            tier,
            mark: live.mark,
            stop: live.stop.or(returned.then_some(Stop::Unclaimed)),
            ..End::new(&live.attempt, live.job, how, now)
        }));
        Some(ended)
    }
}
