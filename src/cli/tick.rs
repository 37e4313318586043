//! `babysit tick [--dry-run]`

use std::mem::ManuallyDrop;

use serde_json::json;

use crate::engine::{self, Hands, Outcome, Report};
use crate::output::{journal, plan};
use crate::planning::both;
use crate::progress::Behind;

use super::checkpoint::Nothing;
use super::context::Context;
use super::cycle::{self, news, tell_outcome};
use super::exit::{Exit, Stop};
use super::slurm;

pub fn run(cx: &Context) -> Result<Exit, Stop> {
    // The process ends behind this, which gives all of it back at once; one by one, the texts of ten
    // thousand shards and jobs take a twentieth of the cycle.
    let done = match cycle::run_once(cx, cx.draft()?) {
        Ok(done) => ManuallyDrop::new(done),
        // cron mails what is printed, and the other tick does the work.
        Err(Stop::Fault(Exit::Skipped, fault)) if !cx.talk.json => {
            cx.talk.aside(&format!("babysit: {}", fault.message));
            return Ok(Exit::Skipped);
        }
        Err(stop) => return Err(stop),
    };
    let (_, cycle) = &*done;
    let Report { outcome, events, plan: _, seen: _, message: _ } = &cycle.report;
    if cx.talk.json {
        cx.talk.result_json(&json!({
            "schema": "babysit/tick/v1",
            "outcome": word(outcome),
            "reason": why(outcome),
            "events": events.iter().map(journal::json).collect::<Vec<_>>(),
        }))?;
        return Ok(exit(outcome));
    }
    let news = news(&cycle.report);
    tell_outcome(cx, cycle);
    if news.is_empty() && *outcome == Outcome::Ok {
        cx.talk.aside("babysit: nothing to do");
    }
    cx.talk.result(&news)?;
    Ok(exit(outcome))
}

/// Reads the state without a lock, asks Slurm, prints, changes nothing.
pub fn dry_run(cx: &Context) -> Result<Exit, Stop> {
    let campaign = cx.campaign()?;
    let policy = &*campaign.loaded.policy.with_helpers();
    let mut state = cx.look(&campaign)?;
    let budget = cycle::budget(policy);
    let mut slurm = slurm::real(policy, cx.surroundings, (cx.seed)()).with_budget(budget);
    let mut files =
        cycle::files(campaign.store.read_cache().as_deref(), budget, &mut Behind::default())?;
    let mut hands = Hands {
        policy,
        slurm: &mut slurm,
        progress: &mut files,
        checkpoint: &mut Nothing { pilots: campaign.store.pilots() },
        now: (cx.clock)(),
        seed: (cx.seed)(),
    };
    let report = engine::dry_run(&mut hands, &mut state);
    let lines = slurm::lines(&slurm, &report.plan);
    if both::is_unknown(policy, &state) {
        cx.talk.say(
            "babysit: not known yet: does this Slurm take one job in both lanes? A tick asks it; this plan \
             is that of `lanes = \"adaptive\"`",
        );
    }
    match &report.outcome {
        Outcome::Ok if cx.talk.json => cx.talk.result_json(&plan::json(&report.plan, &lines))?,
        Outcome::Ok => cx.talk.result(&plan::text(&report.plan, &lines))?,
        Outcome::Skipped(why) => {
            let message = format!("a tick would be skipped now: {why}");
            return Err(Stop::new(Exit::Skipped, "skipped", message, None));
        }
        Outcome::Failed(why) => return Err(Stop::failed("tick", why.clone())),
    }
    Ok(Exit::Done)
}

pub fn exit(outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Ok => Exit::Done,
        Outcome::Skipped(_) => Exit::Skipped,
        Outcome::Failed(_) => Exit::Failed,
    }
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Skipped(_) => "skipped",
        Outcome::Failed(_) => "failed",
    }
}

fn why(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Ok => None,
        Outcome::Skipped(why) | Outcome::Failed(why) => Some(why),
    }
}
