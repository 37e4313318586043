//! `babysit doctor`: can ticks work here, from cron too? Tries everything for real; changes nothing
//! but for files of its own that it removes again.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::output::crontab::EACH_MINUTE;
use crate::output::doctor::{Check, Health, json, text, worst};
use crate::output::notify::trouble;

use super::context::{Campaign, Context};
use super::crontab;
use super::doctor_cluster as cluster;
use super::exit::{Exit, Stop};
use super::slurm;

/// Less room than this, and a state of some thousand shards may not find place.
const LITTLE_ROOM: u64 = 64 << 20;

pub fn run(cx: &Context) -> Result<Exit, Stop> {
    let campaign = cx.campaign()?;
    let slurm = slurm::real(&campaign.loaded.policy, cx.surroundings, (cx.seed)());
    let mut checks = vec![fine("config", campaign.loaded.path.display().to_string())];
    checks.extend(files(&campaign));
    checks.extend(cluster::checks(cx, &campaign, &slurm));
    checks.extend(hook(cx, &campaign));
    let crontab = crontab::of(cx, &campaign, &slurm, EACH_MINUTE, None)?;
    if cx.talk.json {
        cx.talk.result_json(&json(&checks, &crontab))?;
    } else {
        cx.talk.result(&text(&checks, &crontab))?;
    }
    Ok(match worst(&checks) {
        Health::Fine => Exit::Done,
        Health::Look => Exit::Person,
        Health::Broken => Exit::Failed,
    })
}

pub(super) fn fine(name: &'static str, text: String) -> Check {
    Check { name, health: Health::Fine, text, next: None }
}

pub(super) fn wrong(name: &'static str, health: Health, text: String, next: &str) -> Check {
    Check { name, health, text, next: Some(next.to_owned()) }
}

/// Whether the notify hook is there, and how the last message fared.
fn hook(cx: &Context, campaign: &Campaign) -> Option<Check> {
    let hook = campaign.loaded.policy.notify.as_ref()?;
    let words = shell_words::split(&hook.command).unwrap_or_default();
    // A bare word may be a builtin of the shell or on the crontab's PATH: only a tick can tell.
    let named = words.first().map(Path::new).filter(|program| program.is_absolute());
    let runs = |path: &Path| {
        path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    if let Some(path) = named.filter(|path| !runs(path)) {
        let text = format!("{} is no program that can be started", path.display());
        let next = "correct `notify` under [hooks] in shards.toml, or `chmod +x` it";
        return Some(wrong("notify", Health::Look, text, next));
    }
    let last = campaign.store.read().ok().flatten().and_then(|state| state.notices.last);
    let trouble = last.as_ref().and_then(|last| trouble(last, hook, (cx.clock)()));
    Some(match trouble {
        Some(text) => wrong("notify", Health::Look, text, "run it by hand: docs/hooks.md"),
        None => fine("notify", hook.command.clone()),
    })
}

/// The state, and what its file system can do.
fn files(campaign: &Campaign) -> Vec<Check> {
    let store = &campaign.store;
    let path = store.path().display();
    let mut checks = vec![match store.read() {
        Ok(None) => fine("state", format!("{path}: none yet, the first tick makes it")),
        Ok(Some(state)) => {
            let by = if state.host.is_empty() { "?" } else { &state.host };
            fine("state", format!("{path}: generation {}, last saved by {by}", state.generation))
        }
        Err(error) => wrong("state", Health::Broken, error.to_string(), "see `babysit reconcile`"),
    }];
    let trial = match store.trial() {
        Ok(trial) => trial,
        Err(error) => {
            let next = "no tick can work: put the state elsewhere with `state` in shards.toml";
            checks.push(wrong("file system", Health::Broken, error.to_string(), next));
            return checks;
        }
    };
    checks.push(if trial.locks_hold {
        let how = match trial.is_shared {
            true => "locking works on this host; other hosts are told by the lock's content",
            false => "locking works; a local disk, so tick from this host only",
        };
        fine("locking", how.to_owned())
    } else {
        let text = "a second babysit would get the lock while the first one holds it".to_owned();
        let next = "put the state on another file system, with `state` in shards.toml";
        wrong("locking", Health::Broken, text, next)
    });
    let room = format!("written, synced, renamed and read back; {} MiB free", trial.room >> 20);
    checks.push(if trial.room < LITTLE_ROOM {
        let next = "make room: without it no intent can be saved, and nothing is submitted";
        wrong("disk", Health::Look, room, next)
    } else {
        fine("disk", room)
    });
    checks
}
