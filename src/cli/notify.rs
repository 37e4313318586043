//! Runs the notify hook, after a cycle and without its lock: whatever the hook does, the cycle is over.

use std::time::Duration;

use crate::engine::Checkpoint;
use crate::model::notice::{DeliveryEnd, Message};
use crate::model::request::Asked;
use crate::output::format::cut;
use crate::output::notify::{MessageView, view};
use crate::planning::event::{Event, What};
use crate::planning::notices;
use crate::slurm::real::RealSlurm;

use super::checkpoint::Keep;
use super::context::{Campaign, Context};
use super::exit::Stop;

/// Characters of a variable: Linux starts no program with one of 128 KiB.
const LONGEST: usize = 16_000;

/// The saved state has the message as in hand. That it is told at most once does not depend on what
/// happens here.
pub fn deliver(
    cx: &Context,
    campaign: &Campaign,
    slurm: &RealSlurm,
    instance: &str,
    message: &Message,
) {
    let policy = &campaign.loaded.policy;
    let Some(hook) = &policy.notify else { return };
    let view = view(&policy.project, instance, message);
    let asked = match serde_json::to_vec(&view) {
        Ok(mut bytes) => {
            bytes.push(b'\n');
            let limit = Duration::from_secs(hook.timeout.0.unsigned_abs());
            slurm.hook(&hook.command, &bytes, env(cx, &view), limit)
        }
        Err(error) => Asked::Failed(format!("no JSON could be made: {error}")),
    };
    let events = message.events();
    let (end, what) = match asked {
        Asked::Done => (DeliveryEnd::Delivered, What::Notified { events }),
        Asked::Failed(said) => {
            cx.talk.say(&format!("babysit: the notify hook failed: {said}"));
            (DeliveryEnd::Failed(said.clone()), What::NotifyFailed { events, said })
        }
    };
    if let Err(Stop::Fault(_, fault)) = note(cx, campaign, message.number, end, what) {
        cx.talk
            .aside(&format!("babysit: how the notify hook ended is not noted: {}", fault.message));
    }
}

/// Beside what every command gets: settings of the hook's own from the crontab, such as
/// `BABYSIT_MAIL_TO`, and what a few lines of shell need of the message.
fn env(cx: &Context, view: &MessageView) -> Vec<(String, String)> {
    let theirs = cx.surroundings.env.iter().filter(|(name, _)| name.starts_with("BABYSIT_"));
    let theirs = theirs.map(|(name, value)| (name.clone(), value.clone()));
    let ours = [
        ("KIND", view.kind.to_owned()),
        ("ID", view.id.clone()),
        ("TITLE", cut(&view.title, LONGEST)),
        ("TEXT", cut(&view.text, LONGEST)),
    ];
    theirs.chain(ours.map(|(name, value)| (format!("BABYSIT_NOTIFY_{name}"), value))).collect()
}

fn note(
    cx: &Context,
    campaign: &Campaign,
    number: u64,
    end: DeliveryEnd,
    what: What,
) -> Result<(), Stop> {
    let (mut locked, mut state) = cx.lock_patiently(campaign)?;
    notices::delivered(&mut state, number, end);
    let mut keep = Keep { locked: &mut locked, trouble: None };
    keep.save(&mut state).map_err(|error| Stop::failed("state", format!("{error:#}")))?;
    keep.journal(&[Event { at: (cx.clock)(), shard: None, what }]);
    Ok(())
}
