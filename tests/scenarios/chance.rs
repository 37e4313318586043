//! Random labs on random clusters, with strangers, breakdowns, faults of every command and cycles
//! that are cut in the middle. One seed is one run, to the last detail.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use babysit::engine::{Outcome, tick};
use babysit::model::id::JobId;
use babysit::model::policy::{LaneMode, OwnShare, PlaceOrder, R3, Reserve, ReserveAt, SubmitMode};
use babysit::model::reason::Reason;
use babysit::model::split::Split;
use babysit::model::state::{Gate, HeldWhy, State};
use babysit::model::units::Secs;
use babysit::planning::breaker;
use babysit::planning::plan::{Action, Purpose};
use babysit::sim::{Accounting, Controller, Faults, Rng, Stranger, Table};
use babysit::study::World;

use crate::bills;
use crate::cutting::{Trouble, cycle};
use crate::harness::T0;
use crate::labs::{Lab, Node};
use crate::rules;

/// How rough a run is.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    /// Probability that a command fails.
    pub faults: f64,
    /// Probability that a cycle is cut at some save or Slurm call.
    pub cuts: f64,
    /// Our clock may be wrong by so much, either way, and jump within that.
    pub skew: Secs,
    /// Rough cycles, before the calm in which every shard must finish.
    pub ticks: u32,
}

pub struct Trial {
    pub world: World,
    /// What the last save left on the disk.
    disk: State,
    rng: Rng,
    seed: u64,
    weather: Weather,
    nodes: Vec<Node>,
    strangers: Vec<JobId>,
    skew: i64,
    pub ticks: u32,
    pub cut: u32,
}

impl Trial {
    pub fn new(seed: u64, weather: Weather) -> Trial {
        let mut rng = Rng::stream(seed, 100);
        let Lab { nodes, mut policy, mut cluster } = Lab::by_chance(&mut rng);
        // Luck of their own: the labs of earlier seeds stay as they were.
        let mut settings = Rng::stream(seed, 101);
        let modes = [LaneMode::Fixed, LaneMode::Adaptive, LaneMode::Both];
        let reserves = [Reserve::Mark, Reserve::Mark, Reserve::Shadow];
        let orders = [PlaceOrder::Tier, PlaceOrder::Guard];
        policy.rules.lanes.mode = modes[settings.below(3) as usize];
        policy.rules.lanes.own_share = match settings.below(5) {
            0 => OwnShare::Gpus(2),
            1 => OwnShare::Average,
            _ => OwnShare::All,
        };
        policy.rules.place.reserve = reserves[settings.below(3) as usize];
        policy.rules.place.order = orders[settings.below(2) as usize];
        if settings.chance(0.3) {
            policy.rules.place.r3 = R3::Soft;
        }
        if settings.chance(0.3) {
            policy.rules.place.reserve_at = ReserveAt::Earliest;
        }
        cluster.site.lists_of_qos = settings.chance(0.7);
        for shard in policy.shards.iter_mut().filter(|s| s.submit == SubmitMode::Queued) {
            if settings.chance(0.4) {
                let workers = 2 + settings.below(3) as u32;
                shard.split = Some(Split { workers, claims: "/claims".into() });
                shard.rows += 4 + settings.below(12) as u32;
                let table = Table::new(shard.rows, shard.row_time).start_cost(Secs(20));
                cluster.work.add(&shard.id.to_string(), table.shared());
            }
        }
        let cluster = cluster.faulty(Faults::seeded(seed).all(weather.faults));
        let world = World::new(policy, cluster, "alice", seed);
        let disk = world.state.clone();
        let (strangers, skew) = (Vec::new(), 0);
        Trial { world, disk, rng, seed, weather, nodes, strangers, skew, ticks: 0, cut: 0 }
    }

    /// The whole run: rough weather, then calm until every shard has finished.
    pub fn run(&mut self) {
        for _ in 0..self.weather.ticks {
            self.happen();
            let step = [5, 30, 60, 60, 60, 120, 180, 900];
            self.world.advance(Secs(step[self.rng.below(8) as usize]));
            self.tick(true);
        }
        self.calm();
        for _ in 0..400 {
            self.world.advance(Secs(300));
            self.tick(false);
            self.free_the_held();
            if self.all_done() {
                break;
            }
        }
        self.world.advance(Secs(4000));
        for _ in 0..4 {
            self.world.advance(Secs(400));
            self.tick(false);
        }
        let (policy, state) = (&self.world.policy, &self.world.state);
        for (shard, record) in policy.shards.iter().zip(&state.shards) {
            let cancelled = matches!(record.gate, Gate::Cancelled { .. });
            assert!(
                record.finished.is_some() || cancelled,
                "{} never finished: {:?} {:?} {:?}",
                shard.id,
                record.why,
                record.gate,
                record.slot
            );
            assert!(record.reservation.is_none(), "{}: {:?}", shard.id, record.reservation);
            if shard.helps.is_some() {
                continue;
            }
            let index = self.world.cluster.work.index_of(&shard.id.to_string()).expect("a table");
            assert_eq!(self.world.cluster.work.redone(index), 0, "{}: rows done twice", shard.id);
        }
        rules::always(&mut self.world);
        bills::all_is_charged(&self.world);
    }

    fn all_done(&self) -> bool {
        self.world.state.shards.iter().all(|record| {
            record.finished.is_some() || matches!(record.gate, Gate::Cancelled { .. })
        })
    }

    /// Strangers, breakdowns, and a person.
    fn happen(&mut self) {
        let node = self.rng.below(self.nodes.len() as u64) as usize;
        let (name, models) = self.nodes[node].clone();
        let (model, count) = models[self.rng.below(models.len() as u64) as usize];
        let cluster = &mut self.world.cluster;
        match self.rng.below(24) {
            0..=2 => {
                let gpus = 1 + self.rng.below(u64::from(count)) as u32;
                let qos = if self.rng.chance(0.3) { "own" } else { "normal" };
                let lasts = Secs(60 + self.rng.below(7200) as i64);
                let job = Stranger::new("bob", qos, &format!("gpu:{model}:{gpus}")).on(&name);
                self.strangers.extend(cluster.add_job(job.lasting(lasts)).ok());
            }
            3 | 4 => {
                let job = Stranger::new("alice", "llm", &format!("gpu:{model}:1")).on(&name);
                self.strangers.extend(cluster.add_job(job.no_requeue()).ok());
            }
            5 => {
                if let Some(job) = self.strangers.pop() {
                    cluster.admin_cancels(job).expect("a job");
                }
            }
            6 => cluster.node_down(&name).expect("a node"),
            7 => cluster.drain(&name).expect("a node"),
            8..=11 => cluster.node_up(&name).expect("a node"),
            12 => cluster.set_gpus(&name, model, count.saturating_sub(1)).expect("a model"),
            13 | 14 => cluster.set_gpus(&name, model, count).expect("a model"),
            15 => {
                let i = self.rng.below(self.world.policy.shards.len() as u64) as usize;
                if let Some(record) = self.disk.shards.get_mut(i) {
                    let at = self.world.cluster.now();
                    match self.rng.below(8) {
                        0 => record.gate = Gate::Cancelled { by: "alice".to_owned(), at },
                        1..=3 if record.gate == Gate::Open => {
                            let why = HeldWhy::Person { by: "alice".to_owned() };
                            record.gate = Gate::Held { why, at };
                        }
                        _ => {}
                    }
                }
            }
            16 => self.free_the_held(),
            18 if self.weather.faults > 0.0 => cluster.controller(Controller::Down),
            19 if self.weather.faults > 0.0 => cluster.site.accounting = Accounting::Down,
            20..=23 => {
                cluster.controller(Controller::Up);
                cluster.site.accounting = Accounting::On;
            }
            17 => {
                let most = self.weather.skew.0;
                if most > 0 {
                    self.skew = self.rng.below(2 * most as u64) as i64 - most;
                }
            }
            _ => {}
        }
    }

    /// A person lets go on what a rule or he himself held.
    fn free_the_held(&mut self) {
        let families = self.world.policy.shards.iter().map(|shard| shard.id.family.as_str());
        breaker::close(&mut self.disk, families);
        for record in &mut self.disk.shards {
            if matches!(record.gate, Gate::Held { .. } | Gate::Refused { .. }) {
                record.gate = Gate::Open;
                record.failures = 0;
            }
            if matches!(record.why, Reason::NoFit { .. }) {
                record.min_tier = None;
            }
        }
    }

    fn calm(&mut self) {
        self.world.cluster.faults = Faults::none();
        self.world.cluster.controller(Controller::Up);
        self.world.cluster.site.accounting = Accounting::On;
        self.skew = 0;
        for job in std::mem::take(&mut self.strangers) {
            self.world.cluster.admin_cancels(job).expect("a job");
        }
        for (name, models) in &self.nodes {
            self.world.cluster.node_up(name).expect("a node");
            for (model, count) in models {
                self.world.cluster.set_gpus(name, model, *count).expect("a model");
            }
        }
    }

    fn tick(&mut self, rough: bool) {
        self.ticks += 1;
        self.world.state = self.disk.clone();
        let cut = rough && self.rng.chance(self.weather.cuts);
        let steps = cut.then(|| 1 + self.rng.below(9) as i64);
        let fails = rough && self.rng.chance(self.weather.faults / 10.0);
        let before = rules::look(&mut self.world.cluster);
        let decided = decided(&self.disk);
        // slurmctld may stall in the middle of a cycle, and do later what it was asked.
        let stalls = rough && !cut && self.weather.faults > 0.0 && self.rng.chance(0.05);
        let stalls = stalls.then(|| 1 + self.rng.below(6));
        let seed = self.seed ^ (u64::from(self.ticks) << 20);
        let trouble = Trouble { seed, steps, fails, stalls, skew: self.skew };
        let report = cycle(&mut self.world, &mut self.disk, &trouble, tick);
        for (i, gate) in decided {
            let record = &self.disk.shards[i];
            assert_eq!(record.gate, gate, "{}: a person said otherwise", record.id);
        }
        // Recounting the whole history is what costs; a charge that is wrong once stays wrong.
        match self.ticks % 4 {
            0 => rules::always(&mut self.world),
            _ => rules::no_overlaps(&self.world),
        }
        let Some(report) = report else {
            self.cut += 1;
            return;
        };
        if report.outcome == Outcome::Ok {
            rules::after_tick(&self.world, &before, &report);
            let quiet = self.weather.faults == 0.0 || !rough;
            if quiet && !fails {
                let again = self.world.plan_again();
                let once_more = self.world.plan_again();
                assert!(again == once_more, "same input, same plan");
                // What was put off by the submissions of one cycle goes on in the next.
                let mut whys = self.world.state.shards.iter().map(|record| &record.why);
                let more = whys.any(|why| matches!(why, Reason::SubmitBudget { .. }));
                // A job that was stopped has freed its GPUs.
                let stops = |action: &Action| matches!(action, Action::Cancel { .. });
                let more = more || report.plan.actions.iter().any(stops);
                // Looking once more for what is missing is a step of its own.
                let more = more || self.world.state.shards.iter().any(rules::is_looked_for);
                let more = more || rules::reorders(&self.world, &report);
                // A job that has just come into own is put in order there once its priority is seen.
                let order = |action: &&Action| {
                    !matches!(action, Action::Update { purpose: Purpose::Order, .. })
                };
                let again: Vec<String> =
                    again.actions.iter().filter(order).map(rules::in_short).collect();
                assert!(
                    more || rules::cut(&report) || again.is_empty(),
                    "planning again: {again:?}"
                );
            }
        }
        if let Outcome::Failed(why) = &report.outcome {
            assert!(!why.contains("breaks its own rules"), "{why}");
        }
    }
}

/// What a person said: no cycle may say otherwise, whatever becomes of the job. Helpers follow the
/// shard that they help.
fn decided(state: &State) -> Vec<(usize, Gate)> {
    let by_a_person = |gate: &Gate| {
        matches!(gate, Gate::Cancelled { .. } | Gate::Held { why: HeldWhy::Person { .. }, .. })
    };
    let shards = state.shards.iter().enumerate().filter(|(_, r)| r.id.helper_number().is_none());
    let gates = shards.map(|(i, record)| (i, record.gate.clone()));
    gates.filter(|(_, gate)| by_a_person(gate)).collect()
}

/// Runs these seeds, at least so many ticks; a failing one says which it was, and BABYSIT_SEEDS=7..8
/// runs it alone (or many more than usual).
pub fn campaign(name: &str, seeds: std::ops::Range<u64>, weather: Weather, at_least: u32) {
    #[allow(clippy::disallowed_methods, reason = "how a person picks the seeds of a test run")]
    let wish = std::env::var("BABYSIT_SEEDS").ok();
    let wish = wish.map(|text| {
        let (from, to) = text.split_once("..").expect("BABYSIT_SEEDS=from..to");
        from.parse().expect("a seed")..to.parse().expect("a seed")
    });
    let usual = wish.is_none();
    let (mut ticks, mut cut) = (0, 0);
    let (mut seeds_run, mut shards, mut jobs, mut charged) = (0, 0, 0, 0);
    let mut told: BTreeMap<String, u32> = BTreeMap::new();
    for seed in wish.unwrap_or(seeds) {
        let mut trial = Trial::new(seed, weather);
        if let Err(cause) = catch_unwind(AssertUnwindSafe(|| trial.run())) {
            println!("{name}: seed {seed} failed at tick {} ({weather:?})", trial.ticks);
            let last = trial.world.journal.len().saturating_sub(25);
            for event in &trial.world.journal[last..] {
                let shard = event.shard.as_ref().map_or(String::new(), |id| id.to_string());
                println!("  {} {shard} {:?}", event.at.0 - T0.0, event.what);
            }
            resume_unwind(cause);
        }
        for event in &trial.world.journal {
            let text = format!("{:?}", event.what);
            let word = text.split([' ', '(']).next().unwrap_or_default();
            *told.entry(word.to_owned()).or_default() += 1;
        }
        ticks += trial.ticks;
        cut += trial.cut;
        seeds_run += 1;
        let World { state, cluster, .. } = &trial.world;
        shards += state.shards.len();
        jobs += cluster.history().iter().filter(|job| job.comment.starts_with("babysit:")).count();
        charged += state.shards.iter().map(|record| record.ran.0).sum::<u64>();
    }
    println!("{name}: {ticks} ticks, {cut} of them cut; {told:?}");
    // Each run has been asked so, or would have panicked.
    println!(
        "{name}: {seeds_run} seeds; duplicates: 0 of {jobs} jobs; rows done twice: 0; shards: all {shards} \
         done or cancelled; charges: {charged} GPU-seconds, each as its run"
    );
    if usual {
        // A campaign in which nothing of this happened would prove nothing.
        for word in [
            "Reserved",
            "ReservationReleased",
            "ReservationShrank",
            "KeptOff",
            "Charged",
            "MinTierRaised",
            "NoFit",
            "Moved",
            "BackedOff",
            "Started",
        ] {
            assert!(told.contains_key(word), "{name}: never {word}");
        }
        assert!(ticks >= at_least, "{name}: only {ticks} ticks");
        assert!(weather.cuts == 0.0 || cut * 20 > ticks, "{name}: only {cut} cut");
    }
}
