//! `babysit doctor`: can ticks work here, from cron too? Tries everything for real; changes nothing
//! but for files of its own that it removes again.

use crate::output::doctor::{Check, Crontab, Health, json, text, worst};
use crate::slurm::health::NEEDED;
use crate::slurm::real::RealSlurm;

use super::context::{Campaign, Context};
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
    let crontab = crontab(cx, &campaign, &slurm)?;
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

/// Absolute paths, and the variables that cron would not have.
fn crontab(cx: &Context, campaign: &Campaign, slurm: &RealSlurm) -> Result<Crontab, Stop> {
    let program = std::env::current_exe()
        .map_err(|error| Stop::failed("path", format!("babysit's own path is unknown: {error}")))?;
    let mut env = Vec::new();
    if let Some(conf) = cx.surroundings.var("SLURM_CONF") {
        env.push(("SLURM_CONF".to_owned(), conf.to_owned()));
    }
    let found = NEEDED.iter().find_map(|name| slurm.path_of(name).ok());
    let folder = found.as_deref().and_then(|path| path.rsplit_once('/')).map(|(dir, _)| dir);
    if let Some(folder) = folder.filter(|dir| !slurm.finds_without_path(dir)) {
        env.push(("PATH".to_owned(), format!("/usr/bin:/bin:{folder}")));
    }
    let in_file = campaign.loaded.state.is_some()
        && cx.global.state.is_none()
        && cx.surroundings.var("BABYSIT_STATE").is_none();
    Ok(Crontab {
        program: program.display().to_string(),
        config: campaign.loaded.path.display().to_string(),
        state: (!in_file).then(|| campaign.store.path().display().to_string()),
        env,
    })
}
