//! `babysit simulate --show`: one campaign as it goes. The planning, the state and the table are
//! babysit's own; only the cluster and the clock are not real.

use crate::config;
use crate::engine::Outcome;
use crate::model::units::Secs;
use crate::output::format::{count, span};
use crate::output::journal::line;
use crate::output::table::{Look, render};
use crate::output::view::status;
use crate::study::World;
use crate::study::sample::{EVERY, LIMIT, is_over, passed, world};

use super::context::Context;
use super::exit::{Exit, Stop};
use super::figures::figures;
use super::scenario::may_simulate;

/// A picture of everything so often.
const PICTURE: Secs = Secs::hours(12);

pub fn run(cx: &Context) -> Result<Exit, Stop> {
    let path = config::find(cx.global.config.as_deref(), cx.surroundings)?;
    let policy = config::load(&path)?.policy;
    may_simulate(policy.shards.iter().map(|shard| shard.rows))?;
    let shards = count(policy.shards.len() as u64, "shard");
    let broken = |what: String| Stop::failed("simulate", what);
    let mut world = world(policy).map_err(broken)?;
    cx.talk.result(&format!(
        "A SIMULATED cluster: {shards} of {}, a tick every ten minutes\n\n",
        path.display()
    ))?;
    let mut next = Secs(0);
    loop {
        let report = world.tick();
        if let Outcome::Failed(why) = report.outcome {
            return Err(broken(format!("a tick failed: {why}")));
        }
        let at = passed(&world);
        for event in report.events.iter().filter(|event| event.what.is_news()) {
            cx.talk.result(&format!("{:>8}  {}\n", span(at), line(event)))?;
        }
        let over = is_over(&world.state);
        if at >= next || over {
            next = Secs(at.0 + PICTURE.0);
            cx.talk.result(&picture(cx, &world, at))?;
        }
        if over || at >= LIMIT {
            return end(cx, &world, over);
        }
        world.advance(EVERY);
    }
}

fn end(cx: &Context, world: &World, over: bool) -> Result<Exit, Stop> {
    let named = world.state.shards.iter().take(world.policy.named());
    let rows: u64 = named.map(|record| u64::from(record.progress.rows)).sum();
    let end = if over { "done" } else { "not done" };
    let (rows, at) = (count(rows, "row"), span(passed(world)));
    cx.talk.result(&format!("SIMULATED: {end} after {at}, {rows} finished\n"))?;
    Ok(Exit::Done)
}

fn picture(cx: &Context, world: &World, at: Secs) -> String {
    let (policy, state, now) = (&world.policy, &world.state, world.now());
    let seen = status(policy, state, &figures(policy, state), now, |_, _| true);
    let look = Look { width: cx.talk.width, paint: cx.talk.paint, now };
    format!("\n--- babysit status, after {} ---\n{}\n", span(at), render(&seen, &look))
}
