//! The shards of a shards.toml on a simulated cluster, in seconds: no Slurm, no root. The planning,
//! the state and the table are babysit's own; only the cluster and the clock are not real.
//!
//! `cargo run --example simulated [shards.toml [FOLDER [HOURS]]]`
//!
//! With FOLDER the state and the journal are kept there, after HOURS or at the end, and each command
//! that only looks can be tried on them: `babysit --state FOLDER/state.json report`, say.

use std::path::{Path, PathBuf};
use std::time::Duration;

use babysit::cli::figures::figures;
use babysit::config;
use babysit::model::units::{Money, Secs, Time};
use babysit::output::format::span;
use babysit::output::journal::{self, line};
use babysit::output::paint::Paint;
use babysit::output::table::{Look, render};
use babysit::output::view::status;
use babysit::sim::{Cluster, Event, Rng, Table};
use babysit::store::Store;
use babysit::study::World;

/// 2026-11-03 15:00 UTC; any moment would do.
const BEGINS: Time = Time(1_793_718_000);
const TICK: Secs = Secs::minutes(10);
/// A picture of everything so often.
const PICTURE: Secs = Secs::hours(12);
const LIMIT: Secs = Secs::hours(240);
/// Of the own lane's eight GPUs another session holds half.
const MODEL: &str = "rtx4090";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).map_or("shards.toml".into(), PathBuf::from);
    let folder = std::env::args().nth(2).map(PathBuf::from);
    let limit = match std::env::args().nth(3) {
        Some(hours) => Secs::hours(hours.parse()?),
        None => LIMIT,
    };
    let policy = config::load(&path)?.policy;
    let mut rng = Rng::new(1);
    let mut cluster = Cluster::at(BEGINS)
        .node("node1", &[(MODEL, 8)])
        .qos("extra", 10, None, &[])
        .qos("own", 100, Some(8), &["extra"]);
    cluster.add_job_of("another-session", "own", "gpu:4", None)?;
    // Extra GPUs: each is there for some hours, then somebody else's for some hours.
    for n in 0..3 {
        let mut at = BEGINS;
        while at.since(BEGINS) < LIMIT {
            let node = format!("spare{n}");
            cluster.plan(at, Event::GpuComes { node: node.clone(), model: MODEL.to_owned() });
            at = at + Secs::minutes(30 + rng.exponential(180.0) as i64);
            cluster.plan(at, Event::GpuGoes { node });
            at = at + Secs::minutes(20 + rng.exponential(120.0) as i64);
        }
    }
    for shard in &policy.shards {
        let mean = shard.row_time.as_f64();
        let rows = (0..shard.rows).map(|_| Secs(rng.lognormal_cv(mean, 0.4) as i64 + 1));
        let table = Table::of(rows.collect::<Vec<_>>()).start_cost(Secs::minutes(6));
        cluster.work.add(&shard.id.to_string(), table.row_cost(Money(150_000_000)));
    }
    let mut world = World::new(policy, cluster, "you", 1);
    world.advance(Secs(5));
    println!(
        "A SIMULATED cluster: {} shards, a tick every ten minutes\n",
        world.policy.shards.len()
    );
    let mut next = Secs(0);
    loop {
        let report = world.tick();
        let passed = world.now().since(BEGINS);
        for event in report.events.iter().filter(|event| event.what.is_news()) {
            println!("{}", line(event));
        }
        let over = world.state.shards.iter().all(|r| r.finished.is_some() && r.live().is_none());
        if passed >= next || over {
            next = Secs(passed.0 + PICTURE.0);
            picture(&world, passed);
        }
        if over || passed >= limit {
            return folder.map_or(Ok(()), |folder| keep(&world, &folder));
        }
        world.advance(TICK);
    }
}

fn keep(world: &World, folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::at(folder.join("state.json"));
    let mut locked = store.of_project(&world.policy.project).lock(Duration::ZERO)?;
    locked.save(&world.state)?;
    locked.journal(&world.journal.iter().map(journal::json).collect::<Vec<_>>())?;
    println!(
        "\nkept; look at it with: BABYSIT_NOW={} babysit --state {} status",
        world.now().0,
        locked.store().path().display()
    );
    Ok(())
}

fn picture(world: &World, passed: Secs) {
    let (policy, state, now) = (&world.policy, &world.state, world.now());
    let seen = status(policy, state, &figures(policy, state), now, |_, _| true);
    let look = Look { width: Some(110), paint: Paint::OFF, now };
    println!("\n--- after {} ---\n{}", span(passed), render(&seen, &look));
}
