//! Cycles of a simulated campaign in which there is nothing to decide: they are left out, which changes
//! nothing but the time it takes.

use crate::engine::Report;
use crate::model::observation::Measured;
use crate::model::units::Time;
use crate::planning::event::{Event as Happened, What};
use crate::planning::pilots;
use crate::planning::plan::{Action, Purpose};
use crate::planning::quiet::{self, Rest};

use super::campaign::{BEGINS, ME};
use super::world::{World, read_at};

/// Knows cycles in which there is nothing to decide.
pub(super) struct Quiet {
    me: u32,
    /// By shard of the policy: until when its files say what they said when they were last read.
    same_until: Vec<Time>,
    /// The count of changes of our jobs, as the last cycle saw them. What is decided about shards that
    /// are all with Slurm depends on their own jobs, and on how much of own others have or wait for,
    /// where its room or our share of it is asked for. Nodes only matter to what is submitted.
    changes: u64,
    /// The count of claims that pilots had made by then.
    claims: u64,
    /// When it was, where it left nothing that needs another one; and what it left, once asked.
    since: Option<Time>,
    rest: Option<Rest>,
}

impl Quiet {
    pub(super) fn new(world: &mut World) -> Quiet {
        let me = world.cluster.uid_of(ME);
        Quiet { me, same_until: Vec::new(), changes: 0, claims: 0, since: None, rest: None }
    }

    pub(super) fn before(&mut self, world: &World) {
        self.changes = world.cluster.changes_of(self.me);
        self.claims = world.cluster.work.count_of_claims();
        (self.since, self.rest) = (None, None);
    }

    pub(super) fn after(&mut self, world: &World, report: &Report) {
        // A cycle that only moved jobs has read the queue again and knows all that it changed itself.
        // Not where longest go first: the order within a lane is seen to once a job is in it. One that
        // only put jobs in order leaves them in it.
        let in_order = world.policy.rules.lanes.longest_first;
        let knows = |action: &Action| match action {
            Action::Update { purpose: Purpose::Move(_) | Purpose::Detour(_), .. } => !in_order,
            Action::Update { purpose: Purpose::Order, .. } => true,
            _ => false,
        };
        let failed = |event: &Happened| {
            matches!(event.what, What::MoveRefused { .. } | What::MoveUnanswered { .. })
        };
        if !report.plan.actions.is_empty()
            && report.plan.actions.iter().all(knows)
            && !report.events.iter().any(failed)
        {
            self.changes = world.cluster.changes_of(self.me);
        }
        // A claim that could not be booked yet is looked at in every cycle.
        let claims = report.seen.as_ref().and_then(|seen| seen.claims.as_ref()?.as_ref().ok());
        let booked = |claims| pilots::claimed(&world.policy, &world.state, claims).is_empty();
        self.since = claims.is_none_or(booked).then(|| world.now());
    }

    /// The next cycle reads every file, whether it says what it said or not.
    pub(super) fn read_all(&mut self) {
        self.same_until.fill(BEGINS);
    }

    pub(super) fn is_it(&mut self, world: &mut World) -> bool {
        let claims = world.cluster.work.count_of_claims();
        if self.changes != world.cluster.changes_of(self.me) || self.claims != claims {
            return false;
        }
        // The state is as that cycle left it; only now does anybody ask.
        if let Some(since) = self.since.take() {
            self.rest = quiet::rest(&world.policy, &world.state, self.me, since);
            // What is running may be another run since.
            self.same_until.clear();
            self.same_until.resize(world.policy.shards.len(), since);
        }
        let Some(rest) = &mut self.rest else { return false };
        let now = world.now();
        let World { policy, state, cluster, tables, .. } = world;
        let others = || cluster.gpus_of_others(self.me);
        let read = |i: usize| {
            let shard = policy.shards.get(i).zip(tables.get(i));
            let Some(((shard, table), until)) = shard.zip(self.same_until.get_mut(i)) else {
                return Some(Ok(Measured::default()));
            };
            if now < *until {
                return None;
            }
            let (measured, same_until) = read_at(&cluster.work, *table, shard, now);
            *until = same_until;
            Some(Ok(measured))
        };
        quiet::stays_at_rest(policy, state, rest, others, read, now)
    }
}
