//! One campaign: a policy, its state in memory, and a simulated cluster that runs its shards.

use std::cell::RefCell;

use crate::engine::{Checkpoint, Hands, Report, dry_run, tick};
use crate::model::cluster::QueueJob;
use crate::model::id::{JobId, ShardId};
use crate::model::observation::{self, Gap, GapKind, Measured, PastJob, Seen};
use crate::model::pilot::{Claims, Offer, Pilot};
use crate::model::policy::{CostIn, Policy, Shard};
use crate::model::request::{Asked, Change, Request, Submitted};
use crate::model::state::{ShardRecord, State};
use crate::model::units::{Money, Secs, Time};
use crate::planning::event::Event;
use crate::planning::pilots::{self, Choice, Equipment, choices};
use crate::planning::plan::{FreeRows, Plan};
use crate::planning::submit;
use crate::progress::Progress;
use crate::sim::{Cluster, Door, Rows};
use crate::slurm::{PastAsk, Scope, Slurm};

/// A campaign on a simulated cluster.
pub struct World {
    pub policy: Policy,
    pub state: State,
    pub cluster: Cluster<Rows>,
    /// Every event of every cycle, unless nobody reads it.
    pub journal: Vec<Event>,
    pub(super) unread: bool,
    /// By shard of the policy: its rows. Empty until `look_up`: they are looked for each time.
    pub(super) tables: Vec<Option<usize>>,
    /// The user whose babysitter this is.
    user: String,
    seed: u64,
}

impl World {
    /// `user` is the one that ticks; `seed` makes the nonces.
    pub fn new(policy: Policy, mut cluster: Cluster<Rows>, user: &str, seed: u64) -> World {
        cluster.work.choose_by(choose);
        let state = State::new(&policy.project, &format!("sim{seed:05x}"));
        let policy = policy.with_helpers().into_owned();
        let (journal, unread) = (Vec::new(), false);
        let (tables, user) = (Vec::new(), user.to_owned());
        World { policy, state, cluster, journal, unread, tables, user, seed }
    }

    /// Policy and rows are what they will be.
    pub(super) fn look_up(&mut self) {
        let table = |shard: &Shard| self.cluster.work.index_of_shard(&shard.id);
        self.tables = self.policy.shards.iter().map(table).collect();
    }

    pub fn now(&self) -> Time {
        self.cluster.now()
    }

    pub fn advance(&mut self, length: Secs) {
        self.cluster.advance(length.0);
    }

    /// One real cycle, now.
    pub fn tick(&mut self) -> Report {
        let World { policy, cluster, user, seed, tables, state, journal, unread } = self;
        let journal = (!*unread).then_some(journal);
        let by = By { policy, tables, user, seed: *seed };
        let (report, freed) = with_hands(&by, cluster, journal, |hands| tick(hands, state));
        self.give_back(&freed);
        self.seed = self.seed.wrapping_add(1);
        report
    }

    /// What `Checkpoint::free_rows` was asked, done on the simulated shards.
    pub fn give_back(&mut self, freed: &[FreeRows]) {
        for FreeRows { id, rows, all: _, claims: _ } in freed {
            let Some(index) = self.cluster.work.index_of_shard(id) else { continue };
            for claim in rows {
                self.cluster.work.free_row(index, claim.row, &claim.claimant);
            }
        }
    }

    /// In place of a cycle that would decide nothing: the next one has the luck it would have had.
    pub(super) fn leave_out(&mut self) {
        self.seed = self.seed.wrapping_add(1);
        let now = self.now();
        if let Some(tick) = &mut self.state.last_tick {
            (tick.at, tick.last_ok) = (now, Some(now));
        }
    }

    /// What a tick would do now; nothing is changed.
    pub fn plan_again(&mut self) -> Plan {
        let mut state = self.state.clone();
        let World { policy, cluster, user, seed, tables, .. } = self;
        let by = By { policy, tables, user, seed: *seed };
        with_hands(&by, cluster, None, |hands| dry_run(hands, &mut state).plan).0
    }
}

/// The rule that real pilots go by, as the simulated ones are handed it.
fn choose(
    offer: &Offer,
    pilot: &Pilot,
    goes_on: bool,
    at: Time,
    ends: Option<Time>,
) -> Vec<(ShardId, u32)> {
    let choices = choices(offer, &pilot.shard, &pilot.group, goes_on, at, ends);
    let named = |choice: Choice<'_>| match choice {
        Choice::Offered(offered) => (offered.shard.clone(), offered.fence),
        Choice::Own => (pilot.shard.clone(), pilot.fence),
    };
    choices.into_iter().map(named).collect()
}

/// Who ticks, and by what.
struct By<'a> {
    policy: &'a Policy,
    tables: &'a [Option<usize>],
    user: &'a str,
    seed: u64,
}

/// What came of it, and the rows that it gave back.
fn with_hands<T>(
    by: &By<'_>,
    cluster: &mut Cluster<Rows>,
    journal: Option<&mut Vec<Event>>,
    go: impl FnOnce(&mut Hands<'_>) -> T,
) -> (T, Vec<FreeRows>) {
    let By { policy, tables, user, seed } = *by;
    let now = cluster.now();
    let uid = cluster.uid_of(user);
    let cluster = RefCell::new(cluster);
    let mut progress = Reader { cluster: &cluster, policy, tables };
    let mut slurm = Shared { cluster: &cluster, uid };
    let mut kept = Memory { journal, freed: Vec::new(), cluster: &cluster };
    let done = go(&mut Hands {
        policy,
        slurm: &mut slurm,
        progress: &mut progress,
        checkpoint: &mut kept,
        now,
        seed,
    });
    (done, kept.freed)
}

/// A checkpoint that cannot fail: the caller holds the state.
struct Memory<'a, 'c> {
    journal: Option<&'a mut Vec<Event>>,
    freed: Vec<FreeRows>,
    cluster: &'a RefCell<&'c mut Cluster<Rows>>,
}

impl Checkpoint for Memory<'_, '_> {
    fn save(&mut self, state: &mut State) -> anyhow::Result<()> {
        state.generation += 1;
        Ok(())
    }

    /// Done once the cycle lets go of its cluster: before the clock moves on, as if at once.
    fn free_rows(&mut self, rows: &FreeRows) -> anyhow::Result<()> {
        self.freed.push(rows.clone());
        Ok(())
    }

    fn journal(&mut self, events: &[Event]) {
        if let Some(journal) = &mut self.journal {
            journal.extend_from_slice(events);
        }
    }

    fn claims(&mut self, state: &State, _: Time) -> Seen<Claims> {
        let cluster = self.cluster.borrow();
        // No simulated pilot gives back what it claimed: those that are booked tell nothing new.
        let news = |record: &ShardRecord| {
            cluster.work.claims_of(&record.id, record.claims.saturating_add(1)).iter().cloned()
        };
        let claims = state.shards.iter().flat_map(news).collect();
        Ok(Claims { claims, bad: Vec::new() })
    }

    /// Of what a program is told, a simulated one asks for its cap alone.
    fn offer(&mut self, policy: &Policy, state: &State, _: Time) {
        let offer = pilots::offer_with(policy, state, |_, _, cap| {
            let cap = cap.map(|cap| (submit::COST_CAP.to_owned(), cap.dollars().to_string()));
            Some(Equipment { env: cap.into_iter().collect(), ..Equipment::default() })
        });
        self.cluster.borrow_mut().work.offer(offer);
    }
}

/// The door, for a cluster whose programs are looked at in the same cycle.
struct Shared<'a, 'c> {
    cluster: &'a RefCell<&'c mut Cluster<Rows>>,
    uid: u32,
}

impl Shared<'_, '_> {
    fn with<T>(&mut self, ask: impl FnOnce(&mut Door<'_>) -> T) -> T {
        ask(&mut Door { cluster: &mut self.cluster.borrow_mut(), uid: self.uid })
    }
}

impl Slurm for Shared<'_, '_> {
    fn look(&mut self, scope: Scope) -> Seen<observation::Cluster> {
        self.with(|door| door.look(scope))
    }
    fn jobs(&mut self, scope: Scope) -> Seen<Vec<QueueJob>> {
        self.with(|door| door.jobs(scope))
    }
    fn take_back(&mut self, jobs: Vec<QueueJob>) {
        self.with(|door| door.take_back(jobs));
    }
    fn past(&mut self, ask: &PastAsk) -> Seen<Vec<PastJob>> {
        self.with(|door| door.past(ask))
    }
    fn qos_gpus(&mut self, qos: &str) -> Seen<Option<u32>> {
        self.with(|door| door.qos_gpus(qos))
    }
    fn takes_both(&mut self, request: &Request) -> Seen<(bool, String)> {
        self.with(|door| door.takes_both(request))
    }
    fn submit(&mut self, request: &Request) -> Submitted {
        self.with(|door| door.submit(request))
    }
    fn update(&mut self, jobs: &[JobId], change: &Change) -> Asked {
        self.with(|door| door.update(jobs, change))
    }
    fn cancel(&mut self, jobs: &[JobId]) -> Asked {
        self.with(|door| door.cancel(jobs))
    }
    fn run(&mut self, line: &str) -> Asked {
        self.with(|door| door.run(line))
    }
}

struct Reader<'a, 'c> {
    cluster: &'a RefCell<&'c mut Cluster<Rows>>,
    policy: &'a Policy,
    tables: &'a [Option<usize>],
}

impl Progress for Reader<'_, '_> {
    fn measure(&mut self, shards: &[&Shard], _: u64) -> Vec<Seen<Measured>> {
        let cluster = self.cluster.borrow();
        // They are asked for in the order of the policy.
        let mut known = self.policy.shards.iter().zip(self.tables);
        let read = |shard: &&Shard| {
            let index = match known.find(|(other, _)| std::ptr::eq(*other, *shard)) {
                Some((_, index)) => *index,
                None => cluster.work.index_of_shard(&shard.id),
            };
            Ok(read_at(&cluster.work, index, shard, cluster.now()).0)
        };
        shards.iter().map(read).collect()
    }

    fn log_tail(&mut self, _: &Shard, job: JobId, lines: usize) -> Seen<Vec<String>> {
        tail(&self.cluster.borrow().work, job, lines)
    }
}

fn tail(rows: &Rows, job: JobId, lines: usize) -> Seen<Vec<String>> {
    if rows.logs_away {
        let detail = "their file system does not answer".to_owned();
        return Err(Gap { kind: GapKind::TimedOut, source: "logs".to_owned(), detail });
    }
    let log = rows.log_of(job);
    Ok(log.iter().skip(log.len().saturating_sub(lines)).cloned().collect())
}

/// What the files of a shard say at that moment, and until when if no job begins or ends.
pub(super) fn read_at(
    rows: &Rows,
    index: Option<usize>,
    shard: &Shard,
    now: Time,
) -> (Measured, Time) {
    let ledger = matches!(shard.cost, Some(CostIn::Jsonl { .. }));
    let (done, until) = index.map_or((0, now), |index| rows.look(index, now));
    let spent = || index.map_or(Money::ZERO, |index| rows.spent_on(index, done));
    let claims = shard.split.as_ref().and_then(|_| rows.claims(index?)).map(Box::new);
    (Measured { rows: done, spent: ledger.then(spent), bad_lines: 0, claims }, until)
}

/// Progress as a copy of the simulated programs made it by some moment.
pub struct Shards {
    pub rows: Rows,
    pub now: Time,
}

impl Progress for Shards {
    fn measure(&mut self, shards: &[&Shard], _: u64) -> Vec<Seen<Measured>> {
        let read = |shard: &&Shard| {
            let index = self.rows.index_of_shard(&shard.id);
            Ok(read_at(&self.rows, index, shard, self.now).0)
        };
        shards.iter().map(read).collect()
    }

    fn log_tail(&mut self, _: &Shard, job: JobId, lines: usize) -> Seen<Vec<String>> {
        tail(&self.rows, job, lines)
    }
}
