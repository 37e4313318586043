//! Slurm and the disk as a cycle meets them that is killed, or whose controller stalls, half way.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use babysit::engine::{Checkpoint, Hands};
use babysit::model::cluster::QueueJob;
use babysit::model::id::JobId;
use babysit::model::observation::{self, PastJob, Seen};
use babysit::model::pilot::{Claim, Claims, Offer};
use babysit::model::policy::Policy;
use babysit::model::request::{Asked, Change, Request, Submitted};
use babysit::model::state::State;
use babysit::model::units::Time;
use babysit::planning::event::Event;
use babysit::planning::pilots;
use babysit::planning::plan::FreeRows;
use babysit::sim::{Controller, Door};
use babysit::slurm::{PastAsk, Scope, Slurm};
use babysit::study::{Shards, World};

/// What goes wrong in a cycle, and its randomness. By itself nothing does.
#[derive(Default)]
pub struct Trouble {
    pub seed: u64,
    /// It is cut at the so many-th save or call.
    pub steps: Option<i64>,
    /// The disk takes nothing.
    pub fails: bool,
    /// At which call the controller stalls.
    pub stalls: Option<u64>,
    /// By how much our clock is wrong, in seconds.
    pub skew: i64,
}

/// One cycle, or another thing that takes hands; `None`: it was cut, and the state is what was saved.
/// `disk` is what the last save left, before and after.
pub fn cycle<T>(
    world: &mut World,
    disk: &mut State,
    trouble: &Trouble,
    go: impl FnOnce(&mut Hands<'_>, &mut State) -> T,
) -> Option<T> {
    let fuse = Fuse(Rc::new(Cell::new(trouble.steps.unwrap_or(i64::MAX))));
    let claims = world.cluster.work.claims_made().cloned().collect();
    let World { policy, state, cluster, journal, .. } = &mut *world;
    let now = cluster.now();
    let mut progress = Shards { rows: cluster.work.clone(), now };
    let stalls = trouble.stalls;
    let mut slurm = Cutting { inner: cluster.door("alice"), fuse: fuse.clone(), stalls };
    let (mut freed, mut offered) = (Vec::new(), None);
    let mut checkpoint = Disk {
        disk: &mut *disk,
        fuse,
        fails: trouble.fails,
        journal,
        freed: &mut freed,
        claims,
        offered: &mut offered,
    };
    let mut hands = Hands {
        policy,
        slurm: &mut slurm,
        progress: &mut progress,
        checkpoint: &mut checkpoint,
        now: Time(now.0 + trouble.skew),
        seed: trouble.seed,
    };
    let done = catch_unwind(AssertUnwindSafe(|| go(&mut hands, state)));
    world.give_back(&freed);
    if let Some(offer) = offered {
        world.cluster.work.offer(offer);
    }
    match done {
        Ok(done) => Some(done),
        Err(cause) if cause.is::<Cut>() => {
            world.state = disk.clone();
            None
        }
        Err(cause) => resume_unwind(cause),
    }
}

/// Where a cycle is cut; thrown without a message, as a kill would be.
struct Cut;

#[derive(Clone)]
struct Fuse(Rc<Cell<i64>>);

impl Fuse {
    fn burn(&self) {
        let left = self.0.get() - 1;
        self.0.set(left);
        if left == 0 {
            resume_unwind(Box::new(Cut));
        }
    }
}

/// Cut just before or just after any call.
struct Cutting<'a> {
    inner: Door<'a>,
    fuse: Fuse,
    stalls: Option<u64>,
}

impl<'a> Cutting<'a> {
    fn call<T>(&mut self, go: impl FnOnce(&mut Door<'a>) -> T) -> T {
        self.fuse.burn();
        self.stalls = self.stalls.map(|left| left.saturating_sub(1));
        if self.stalls == Some(0) {
            self.inner.cluster.controller(Controller::Stalled);
            self.stalls = None;
        }
        let answer = go(&mut self.inner);
        self.fuse.burn();
        answer
    }
}

impl Slurm for Cutting<'_> {
    fn look(&mut self, scope: Scope) -> Seen<observation::Cluster> {
        self.inner.look(scope)
    }
    fn jobs(&mut self, scope: Scope) -> Seen<Vec<QueueJob>> {
        self.call(|slurm| slurm.jobs(scope))
    }
    fn past(&mut self, ask: &PastAsk) -> Seen<Vec<PastJob>> {
        self.inner.past(ask)
    }
    fn takes_both(&mut self, request: &Request) -> Seen<(bool, String)> {
        self.inner.takes_both(request)
    }
    fn qos_gpus(&mut self, qos: &str) -> Seen<Option<u32>> {
        self.inner.qos_gpus(qos)
    }
    fn submit(&mut self, request: &Request) -> Submitted {
        self.call(|slurm| slurm.submit(request))
    }
    fn update(&mut self, jobs: &[JobId], change: &Change) -> Asked {
        self.call(|slurm| slurm.update(jobs, change))
    }
    fn cancel(&mut self, jobs: &[JobId]) -> Asked {
        self.call(|slurm| slurm.cancel(jobs))
    }
    fn run(&mut self, line: &str) -> Asked {
        self.call(|slurm| slurm.run(line))
    }
}

struct Disk<'a> {
    disk: &'a mut State,
    fuse: Fuse,
    fails: bool,
    journal: &'a mut Vec<Event>,
    /// Rows that were given back, for whoever holds the cluster.
    freed: &'a mut Vec<FreeRows>,
    /// What pilots have claimed when the cycle begins.
    claims: Vec<Claim>,
    /// What they may take after it, for whoever holds the cluster.
    offered: &'a mut Option<Offer>,
}

impl Checkpoint for Disk<'_> {
    fn save(&mut self, state: &mut State) -> anyhow::Result<()> {
        self.fuse.burn();
        anyhow::ensure!(!self.fails, "no space left on device");
        state.generation += 1;
        self.disk.clone_from(state);
        self.fuse.burn();
        Ok(())
    }

    fn free_rows(&mut self, rows: &FreeRows) -> anyhow::Result<()> {
        self.fuse.burn();
        self.freed.push(rows.clone());
        self.fuse.burn();
        Ok(())
    }

    fn journal(&mut self, events: &[Event]) {
        self.journal.extend_from_slice(events);
    }

    fn claims(&mut self, state: &State, _: Time) -> Seen<Claims> {
        let news = |claim: &&Claim| {
            let of = state.shards.iter().find(|record| record.id == claim.shard);
            of.is_some_and(|record| claim.fence >= record.claims)
        };
        Ok(Claims { claims: self.claims.iter().filter(news).cloned().collect(), bad: Vec::new() })
    }

    fn offer(&mut self, policy: &Policy, state: &State, _: Time) {
        self.fuse.burn();
        *self.offered = Some(pilots::offer(policy, state));
    }
}
