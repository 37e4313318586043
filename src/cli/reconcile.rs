//! `babysit reconcile`: takes the backup over where the state is damaged or gone (only here, and
//! never silently), then settles with Slurm what can be proved.

use serde_json::json;

use crate::engine::{self, Hands, Outcome};
use crate::output::{differences, format, journal};
use crate::progress::Behind;
use crate::store::{Locked, StoreError};

use super::checkpoint::Keep;
use super::context::{Campaign, Context};
use super::cycle;
use super::exit::{Exit, Stop};
use super::slurm;

pub fn run(cx: &Context, take_up: Option<&str>) -> Result<Exit, Stop> {
    let campaign = cx.campaign()?;
    let policy = &*campaign.loaded.policy.with_helpers();
    let (mut locked, taken_over) = open(cx, &campaign)?;
    if let Some(text) = &taken_over {
        cx.talk.insist(&format!("babysit: {text}"));
    }
    let found = locked.load()?;
    let mut state = cx.aligned(&campaign, found);
    let budget = cycle::budget(policy);
    let mut slurm = slurm::real(policy, cx.surroundings, (cx.seed)()).with_budget(budget);
    let mut files =
        cycle::files(locked.store().read_cache().as_deref(), budget, &mut Behind::default())?;
    let mut keep = Keep { locked: &mut locked, trouble: None };
    let now = (cx.clock)();
    let mut hands = Hands {
        policy,
        slurm: &mut slurm,
        progress: &mut files,
        checkpoint: &mut keep,
        now,
        seed: (cx.seed)(),
    };
    let done = engine::reconcile(&mut hands, &mut state, take_up);
    match &done.outcome {
        Outcome::Ok => {}
        Outcome::Skipped(why) => {
            let message = format!("Slurm cannot be asked, so nothing was compared: {why}");
            return Err(Stop::new(Exit::Skipped, "skipped", message, None));
        }
        Outcome::Failed(why) => return Err(Stop::failed("reconcile", why.clone())),
    }
    if let Some(instance) = &done.taken_up {
        cx.talk.insist(&format!(
            "babysit: the jobs of instance {} were taken up. Should another babysit of this project \
             still be at work, end it now: two would act on the same jobs",
            format::one_line(instance)
        ));
    }
    let person = done.left.iter().any(|difference| difference.needs_person());
    if cx.talk.json {
        cx.talk.result_json(&json!({
            "schema": differences::SCHEMA,
            "taken_over": taken_over,
            "taken_up": done.taken_up,
            "found": differences::json(&done.found, now),
            "settled": done.events.iter().map(journal::json).collect::<Vec<_>>(),
            "left": differences::json(&done.left, now),
            "needs_person": person,
        }))?;
    } else {
        let mut text: String =
            done.events.iter().map(|event| format!("{}\n", journal::line(event))).collect();
        text.push_str(&differences::text(&done.left, now));
        if text.is_empty() {
            text = "Slurm and the state agree\n".to_owned();
        }
        cx.talk.result(&text)?;
    }
    Ok(if person { Exit::Person } else { Exit::Done })
}

/// The locked state; where it cannot be read and has a good backup, that in its place.
fn open(cx: &Context, campaign: &Campaign) -> Result<(Locked, Option<String>), Stop> {
    let mut locked = cx.locked_patiently(campaign)?;
    let trouble = match locked.load() {
        Ok(_) => return Ok((locked, None)),
        Err(error @ (StoreError::Damaged { .. } | StoreError::Vanished { .. })) => error,
        Err(error) => return Err(error.into()),
    };
    if !campaign.store.backup_path().is_file() {
        return Err(trouble.into());
    }
    let state = locked.take_over_backup()?;
    let when = state.last_tick.as_ref().map_or("never".to_owned(), |tick| format::iso(tick.at));
    let text = format!(
        "{} was taken over (generation {}, last tick {when}); a damaged state stays beside it as \
         .damaged",
        campaign.store.backup_path().display(),
        state.generation
    );
    Ok((locked, Some(text)))
}
