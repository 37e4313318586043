//! One campaign: a policy, its state in memory, and a simulated cluster that runs its shards.

use crate::engine::{Checkpoint, Hands, Report, dry_run, tick};
use crate::model::id::JobId;
use crate::model::observation::{Measured, Seen};
use crate::model::policy::{CostIn, Policy, Shard};
use crate::model::state::State;
use crate::model::units::{Secs, Time};
use crate::planning::event::Event;
use crate::planning::plan::Plan;
use crate::progress::Progress;
use crate::sim::{Cluster, Rows};

/// A campaign on a simulated cluster.
pub struct World {
    pub policy: Policy,
    pub state: State,
    pub cluster: Cluster<Rows>,
    /// Every event of every cycle.
    pub journal: Vec<Event>,
    /// The user whose babysitter this is.
    user: String,
    seed: u64,
}

impl World {
    /// `user` is the one that ticks; `seed` makes the nonces.
    pub fn new(policy: Policy, cluster: Cluster<Rows>, user: &str, seed: u64) -> World {
        let state = State::new(&policy.project, &format!("sim{seed:05x}"));
        World { policy, state, cluster, journal: Vec::new(), user: user.to_owned(), seed }
    }

    pub fn now(&self) -> Time {
        self.cluster.now()
    }

    pub fn advance(&mut self, length: Secs) {
        self.cluster.advance(length.0);
    }

    /// One real cycle, now.
    pub fn tick(&mut self) -> Report {
        let mut kept = Memory { journal: &mut self.journal };
        let report =
            with_hands(&self.policy, &mut self.cluster, &self.user, self.seed, &mut kept, |h| {
                tick(h, &mut self.state)
            });
        self.seed = self.seed.wrapping_add(1);
        report
    }

    /// What a tick would do now; nothing is changed.
    pub fn plan_again(&mut self) -> Plan {
        let mut state = self.state.clone();
        let mut journal = Vec::new();
        let mut kept = Memory { journal: &mut journal };
        let seed = self.seed;
        with_hands(&self.policy, &mut self.cluster, &self.user, seed, &mut kept, |hands| {
            dry_run(hands, &mut state).plan
        })
    }
}

fn with_hands<T>(
    policy: &Policy,
    cluster: &mut Cluster<Rows>,
    user: &str,
    seed: u64,
    kept: &mut Memory<'_>,
    go: impl FnOnce(&mut Hands<'_>) -> T,
) -> T {
    let now = cluster.now();
    let mut progress = Shards { rows: cluster.work.clone(), now };
    let mut slurm = cluster.door(user);
    go(&mut Hands {
        policy,
        slurm: &mut slurm,
        progress: &mut progress,
        checkpoint: kept,
        now,
        seed,
    })
}

/// A checkpoint that cannot fail: the caller holds the state.
struct Memory<'a> {
    journal: &'a mut Vec<Event>,
}

impl Checkpoint for Memory<'_> {
    fn save(&mut self, state: &mut State) -> anyhow::Result<()> {
        state.generation += 1;
        Ok(())
    }

    fn journal(&mut self, events: &[Event]) {
        self.journal.extend_from_slice(events);
    }
}

/// Progress as the simulated programs made it by now.
pub struct Shards {
    pub rows: Rows,
    pub now: Time,
}

impl Progress for Shards {
    fn measure(&mut self, shards: &[&Shard]) -> Vec<Seen<Measured>> {
        let read = |shard: &&Shard| {
            let key = shard.id.to_string();
            let ledger = matches!(shard.cost, Some(CostIn::Jsonl { .. }));
            Ok(Measured {
                rows: self.rows.rows_of(&key, self.now).unwrap_or(0),
                spent: ledger.then(|| self.rows.spent_of(&key, self.now).unwrap_or_default()),
                bad_lines: 0,
            })
        };
        shards.iter().map(read).collect()
    }

    fn log_tail(&mut self, _: &Shard, job: JobId, lines: usize) -> Vec<String> {
        let log = self.rows.log_of(job);
        log.iter().skip(log.len().saturating_sub(lines)).cloned().collect()
    }
}
