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
use babysit::model::units::Secs;
use babysit::output::format::span;
use babysit::output::journal::{self, line};
use babysit::output::paint::Paint;
use babysit::output::table::{Look, render};
use babysit::output::view::status;
use babysit::store::Store;
use babysit::study::{World, sample};

/// A picture of everything so often.
const PICTURE: Secs = Secs::hours(12);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).map_or("shards.toml".into(), PathBuf::from);
    let folder = std::env::args().nth(2).map(PathBuf::from);
    let limit = match std::env::args().nth(3) {
        Some(hours) => Secs::hours(hours.parse()?),
        None => sample::LIMIT,
    };
    let policy = config::load(&path)?.policy;
    let mut world = sample::world(policy)?;
    println!(
        "A SIMULATED cluster: {} shards, a tick every ten minutes\n",
        world.policy.shards.len()
    );
    let mut next = Secs(0);
    loop {
        let report = world.tick();
        let passed = sample::passed(&world);
        for event in report.events.iter().filter(|event| event.what.is_news()) {
            println!("{}", line(event));
        }
        let over = sample::is_over(&world.state);
        if passed >= next || over {
            next = Secs(passed.0 + PICTURE.0);
            picture(&world, passed);
        }
        if over || passed >= limit {
            return folder.map_or(Ok(()), |folder| keep(&world, &folder));
        }
        world.advance(sample::EVERY);
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
