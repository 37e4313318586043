//! Placement campaigns: several labs share a cluster of three tiers, every shard is placed by
//! babysit (policy.md sections 5-7). The real tick, on the simulated cluster.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::Outcome;
use crate::model::id::ShardId;
use crate::model::policy::{
    PlaceOrder, PlaceRules, Policy, R3, Reserve, ReserveAt, Rules, Shard, SlurmSettings, SubmitMode,
};
use crate::model::shards::Shards;
use crate::model::state::{ChargeKind, ShardRecord};
use crate::model::units::{Secs, Time, Usage};
use crate::planning::event::What;
use crate::sim::{Cluster, Table};

use super::campaign::{BEGINS, ME};
use super::lab_mix::Arrival;
use super::site::Site;
use super::waits::{Served, Waits, waits};
use super::world::World;

/// A way to place shards: a setting of the real planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placing {
    pub name: &'static str,
    pub sentence: &'static str,
    rules: PlaceRules,
}

const FIELD: PlaceRules = PlaceRules {
    reserve: Reserve::Mark,
    order: PlaceOrder::Tier,
    r3: R3::Release,
    reserve_at: ReserveAt::Best,
};

pub const PLACINGS: [Placing; 7] = [
    Placing {
        name: "skip",
        sentence: "the old head-of-line rule: who cannot start is skipped",
        rules: PlaceRules { reserve: Reserve::Never, ..FIELD },
    },
    Placing { name: "field", sentence: "rank 1 that cannot start collects GPUs", rules: FIELD },
    Placing {
        name: "soft",
        sentence: "as field, but rank 1 draws from the reservation of another instead of breaking it",
        rules: PlaceRules { r3: R3::Soft, ..FIELD },
    },
    Placing {
        name: "earliest",
        sentence: "as field, but GPUs are collected where all of them will be free first",
        rules: PlaceRules { reserve_at: ReserveAt::Earliest, ..FIELD },
    },
    Placing {
        name: "shadow",
        sentence: "nobody behind a wide job may delay its earliest start; no marks",
        rules: PlaceRules { reserve: Reserve::Shadow, ..FIELD },
    },
    Placing {
        name: "guard",
        sentence: "as field, but placements where wider jobs will start are taken last, full ones first",
        rules: PlaceRules { order: PlaceOrder::Guard, ..FIELD },
    },
    Placing {
        name: "best",
        sentence: "as [policy] preset = \"best\" has it: shadow and guard",
        rules: PlaceRules { reserve: Reserve::Shadow, order: PlaceOrder::Guard, ..FIELD },
    },
];

impl Placing {
    pub fn set(&self, rules: &mut Rules) {
        rules.place = self.rules;
    }
}

pub fn by_name(name: &str) -> Option<Placing> {
    PLACINGS.into_iter().find(|placing| placing.name == name)
}

/// One campaign, but for its jobs and its policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field {
    pub days: u32,
    /// Days whose arrivals count in no mean: the cluster is empty at first.
    pub warm_up: u32,
    pub every: Secs,
    /// A faster tier does the same work in less time.
    pub by_tier: bool,
}

impl Default for Field {
    fn default() -> Field {
        Field { days: 28, warm_up: 3, every: Secs::minutes(5), by_tier: false }
    }
}

/// `None`: it was broken off, since `stop` was set.
///
/// # Errors
/// A tick that failed, or GPU-seconds that do not add up: bugs of babysit.
pub fn run(
    field: &Field,
    site: &Site,
    placing: &Placing,
    arrivals: &[Arrival],
    stop: &AtomicBool,
) -> Result<Option<Waits>, String> {
    let cluster = Cluster::at(BEGINS).site(|site| {
        // Longer than from one tick to the next, so that accounting need not be asked.
        site.min_job_age = Secs(field.every.0 * 2 + 60);
    });
    let mut world = World::new(policy(site, placing), site.build(cluster), ME, 1);
    let mut hall = Hall::new(arrivals);
    let end = BEGINS + Secs(i64::from(field.days) * 86_400);
    let mut seen = None;
    while world.now() < end && !hall.is_empty(&world) {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let arrived = hall.admit(&mut world, field, site);
        // Between changes a cycle decides nothing here: what a reservation holds only grows older.
        let changes = world.cluster.changes();
        // Shadows move on with the clock.
        if arrived || seen != Some(changes) || placing.rules.reserve == Reserve::Shadow {
            seen = Some(changes);
            let report = world.tick();
            if let Outcome::Failed(why) = report.outcome {
                return Err(format!("{}: a tick failed: {why}", placing.name));
            }
            if let Some(seen) = report.seen {
                world.cluster.take_back(seen.cluster);
            }
            hall.hear(&mut world);
        }
        world.advance(field.every);
    }
    world.tick();
    hall.hear(&mut world);
    hall.check(&world, site)?;
    Ok(Some(waits(field, site.gpus(), &hall.served, &hall.told)))
}

fn policy(site: &Site, placing: &Placing) -> Policy {
    let rules = Rules { place: placing.rules, ..Rules::default() };
    Policy { tiers: site.tiers.clone(), rules, ..empty() }
}

/// No shard yet, no tier and no lanes.
pub(super) fn empty() -> Policy {
    Policy {
        project: "sim".to_owned(),
        shards: Shards::default(),
        tiers: Vec::new(),
        lanes: None,
        backfill: None,
        rules: Rules::default(),
        slurm: SlurmSettings::default(),
        logs: "/logs".into(),
        notify: None,
    }
}

/// What the journal told of reservations.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Told {
    pub begun: u32,
    /// Released without a start.
    pub failed: u32,
    /// GPU-seconds of those that failed.
    pub failed_seconds: u64,
}

/// The labs' people: they hand in jobs as they come, and take away what is done.
struct Hall<'a> {
    arrivals: &'a [Arrival],
    next: usize,
    /// By shard name, what is in the policy now.
    place: BTreeMap<String, usize>,
    served: Vec<Served>,
    told: Told,
    charged: Charged,
}

/// What the records of shards say was charged.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Charged {
    run: u64,
    /// Reservations that led to a start, and those that did not.
    reserved: u64,
    released: u64,
    usage: Usage,
}

impl Charged {
    fn add(&mut self, record: &ShardRecord) {
        for charge in &record.charges {
            *match charge.kind {
                ChargeKind::Run => &mut self.run,
                ChargeKind::Reserved => &mut self.reserved,
                ChargeKind::Released => &mut self.released,
            } += charge.gpu_seconds.0;
            self.usage += charge.gpu_seconds.weighted(charge.weight);
        }
    }
}

impl<'a> Hall<'a> {
    fn new(arrivals: &'a [Arrival]) -> Hall<'a> {
        let served = arrivals.iter().map(Served::waiting).collect();
        let (place, told) = (BTreeMap::new(), Told::default());
        Hall { arrivals, next: 0, place, served, told, charged: Charged::default() }
    }

    /// Everybody has come, and nobody is left.
    fn is_empty(&self, world: &World) -> bool {
        self.next == self.arrivals.len() && world.state.shards.iter().all(is_done)
    }

    fn admit(&mut self, world: &mut World, field: &Field, site: &Site) -> bool {
        let now = world.now();
        let first = self.next;
        while let Some(job) = self.arrivals.get(self.next).filter(|j| BEGINS + j.at <= now) {
            // A family of its own: what one job took says nothing about another.
            let name = format!("j{:06}", self.next);
            let id = ShardId::new(&name, &name);
            let mut table = Table::new(1, job.runs);
            if field.by_tier {
                table = site.by_tier(table);
            }
            world.cluster.work.add(&id.to_string(), table);
            self.place.insert(name, self.next);
            world.policy.shards.push(shard(id, job));
            self.next += 1;
        }
        self.next > first
    }

    /// Takes in what the last cycle did; shards that are done leave shards.toml.
    fn hear(&mut self, world: &mut World) {
        for event in world.journal.drain(..) {
            match event.what {
                What::Reserved { .. } => self.told.begun += 1,
                What::ReservationReleased { gpu_seconds, .. } => {
                    self.told.failed += 1;
                    self.told.failed_seconds += gpu_seconds;
                }
                _ => {}
            }
        }
        // In one go and rarely: each removal moves all behind it.
        if world.state.shards.iter().filter(|record| is_done(record)).count() < KEPT {
            return;
        }
        let gone: Vec<bool> = world.state.shards.iter().map(is_done).collect();
        for (record, _) in world.state.shards.iter().zip(&gone).filter(|(_, gone)| **gone) {
            self.charged.add(record);
        }
        let (policy, state) = (&mut world.policy.shards, &mut world.state.shards);
        let mut at = gone.iter();
        policy.retain(|_| !at.next().copied().unwrap_or(false));
        let mut at = gone.iter();
        state.retain(|_| !at.next().copied().unwrap_or(false));
    }

    /// Fills in when each job started and ended, and that all GPU-seconds were charged once.
    fn check(&mut self, world: &World, site: &Site) -> Result<(), String> {
        if let Some(twice) = world.cluster.overlaps().first() {
            return Err(format!("two jobs of one shard at a time: {twice:?}"));
        }
        world.cluster.check()?;
        let mut ended = 0;
        for job in world.cluster.history() {
            let name = crate::sim::without_attempt(&job.name);
            let shard = name.rsplit('.').next().and_then(|shard| self.place.get(shard));
            let Some(served) = shard.and_then(|at| self.served.get_mut(*at)) else { continue };
            for (from, to, gpus) in world.cluster.runs_of(job) {
                served.started = served.started.or(Some(from));
                served.ran.push((from, to));
                if job.is_over() {
                    ended += u64::from(gpus) * to.since(from).0.max(0) as u64;
                }
            }
        }
        let rows = &world.cluster.work;
        for (name, at) in &self.place {
            let index = rows.index_of(&ShardId::new(name, name).to_string());
            let Some(index) = index else { return Err(format!("{name}: its row is gone")) };
            let (over, job) = (rows.finished_at(index).is_some(), self.served.get(*at));
            let ran = job.is_some_and(|job| job.ran.iter().any(|(_, to)| *to <= world.now()));
            if rows.redone(index) > 0 || (over && !ran) {
                return Err(format!("{name}: done {} times, ran: {ran}", rows.redone(index) + 1));
            }
        }
        let mut charged = self.charged;
        world.state.shards.iter().for_each(|record| charged.add(record));
        if charged.run != ended {
            return Err(format!("{ended} GPU-seconds ended, {} charged", charged.run));
        }
        if charged.released != self.told.failed_seconds {
            let (told, charged) = (self.told.failed_seconds, charged.released);
            return Err(format!("{told} GPU-seconds reserved in vain, {charged} charged"));
        }
        let usage: Usage = world.state.labs.values().map(|lab| lab.usage).sum();
        if usage != charged.usage {
            return Err(format!("usage of the labs is {usage:?}, charged {:?}", charged.usage));
        }
        // What led to a start is paid with the run, so no lab has more of it than there was.
        let all = capacity(site.gpus(), world.now().since(BEGINS)) as u64;
        if charged.run + charged.reserved + charged.released > all {
            return Err(format!("{charged:?} is more than {all} GPU-seconds"));
        }
        Ok(())
    }
}

fn is_done(record: &ShardRecord) -> bool {
    record.finished.is_some() && record.live().is_none()
}

/// Shards that are done are taken away when there are so many.
const KEPT: usize = 32;

fn shard(id: ShardId, job: &Arrival) -> Shard {
    Shard {
        lab: job.lab.clone().into(),
        gpus: job.gpus,
        min_tier: job.min_tier,
        submit: SubmitMode::Placed,
        // What it asks for is what planning may know, as the length of its one row; a job that would
        // be cut off by it on a slow tier is not what is studied here.
        row_time: job.limit,
        ..Shard::plain(id)
    }
}

pub(super) fn moment(at: Secs) -> Time {
    BEGINS + at
}

/// GPU-seconds of the whole cluster over a length of time.
pub(super) fn capacity(gpus: u32, length: Secs) -> f64 {
    f64::from(gpus) * length.as_f64()
}
