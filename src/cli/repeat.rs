//! `babysit loop`: a tick, a sleep, and again. Each tick takes the lock and reads shards.toml anew,
//! as cron's would.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::engine::Outcome;
use crate::model::policy::Policy;
use crate::model::state::State;
use crate::planning::notices;
use crate::progress::Behind;

use super::context::Context;
use super::cycle::{self, Cycle, news, tell_outcome};
use super::exit::{Exit, Stop};

/// A signal ends the sleep within this.
const STEP: Duration = Duration::from_millis(100);

pub fn run(cx: &Context, every: Duration, until_done: bool) -> Result<Exit, Stop> {
    let asked_to_end = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&asked_to_end)).map_err(|error| {
            Stop::failed("signal", format!("signal {signal} cannot be listened to: {error}"))
        })?;
    }
    // What is wrong the first time would be wrong for ever; later it may be an edit half done.
    let mut campaign = cx.campaign()?;
    let mut trouble = String::new();
    let mut behind = Behind::default();
    while !asked_to_end.load(Ordering::Relaxed) {
        match cycle::run(cx, &campaign, &mut behind) {
            Ok(cycle) => {
                tell(cx, &cycle)?;
                let over = until_done && cycle.report.outcome == Outcome::Ok;
                if let Some(exit) =
                    over.then(|| end(&campaign.loaded.policy, &cycle.state)).flatten()
                {
                    return Ok(exit);
                }
            }
            Err(Stop::Fault(Exit::Skipped, fault)) => {
                cx.talk.aside(&format!("babysit: {}", fault.message));
            }
            Err(stop) => return Err(stop),
        }
        sleep(every, &asked_to_end);
        match cx.campaign() {
            Ok(read) => {
                campaign = read;
                trouble.clear();
            }
            Err(Stop::Fault(_, fault)) if fault.message != trouble => {
                cx.talk.say(&format!("{}\nbabysit: going on with it as it was", fault.message));
                trouble = fault.message;
            }
            Err(_) => {}
        }
    }
    cx.talk.aside("babysit: asked to end, the tick in hand is finished");
    Ok(Exit::Done)
}

fn tell(cx: &Context, cycle: &Cycle) -> Result<(), Stop> {
    tell_outcome(cx, cycle);
    cx.talk.result(&news(&cycle.report))
}

/// `None`: some shard can still make progress by itself.
fn end(policy: &Policy, state: &State) -> Option<Exit> {
    let end = notices::standstill(policy, state)?;
    Some(if end.not_done > 0 { Exit::Person } else { Exit::Done })
}

fn sleep(length: Duration, asked_to_end: &AtomicBool) {
    let mut left = length;
    while !left.is_zero() && !asked_to_end.load(Ordering::Relaxed) {
        let step = left.min(STEP);
        std::thread::sleep(step);
        left -= step;
    }
}
