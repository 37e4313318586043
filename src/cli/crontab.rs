//! The crontab line for a campaign, and the user's crontab, read and replaced by crontab(1).

use std::path::Path;
use std::time::Duration;

use crate::output::crontab::{Crontab, Merged, gone, merged};
use crate::slurm::command::{Call, End, Outcome, run};
use crate::slurm::health::NEEDED;
use crate::slurm::real::RealSlurm;
use crate::store::{self, StoreError, Turn};

use super::context::{Campaign, Context};
use super::exit::{Exit, Stop};
use super::slurm;

/// crontab(1) reads or writes one small file.
const PATIENCE: Duration = Duration::from_secs(30);

/// Each time that another program writes between our write and our look is one.
const TRIES: u32 = 3;

const NO_CRON: &str = "`babysit loop --until-done` in tmux ticks without cron; docs/install.md has \
                       timers of systemd and of Slurm, too";

/// Absolute paths, and the variables that cron would not have.
pub fn of(
    cx: &Context,
    campaign: &Campaign,
    slurm: &RealSlurm,
    schedule: &str,
    log: Option<&Path>,
) -> Result<Crontab, Stop> {
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
    let crontab = Crontab {
        schedule: schedule.to_owned(),
        program: program.display().to_string(),
        config: campaign.loaded.path.display().to_string(),
        state: (!in_file).then(|| campaign.store.path().display().to_string()),
        env,
        log: log.map(|log| cx.surroundings.cwd.join(log).display().to_string()),
        project: campaign.loaded.policy.project.clone(),
    };
    if crontab.line().contains(char::is_control) {
        let message = "a path of this project holds a control character, which no crontab can hold";
        return Err(Stop::usage(message.to_owned(), "rename the file or folder"));
    }
    Ok(crontab)
}

/// Puts the project's line into the user's crontab, or takes it out; the crontab before, and what became
/// of it.
///
/// crontab(1) knows no change, only the whole: babysits take turns, and what any other program wrote
/// meanwhile is seen afterwards.
pub fn change(cx: &Context, project: &str, line: Option<&str>) -> Result<(Vec<u8>, Merged), Stop> {
    let _turn = turn(cx)?;
    let first = read(cx)?;
    let mut old = first.clone();
    for _ in 0..TRIES {
        let new = merged(&old, project, line);
        if new.text == old {
            let of_first = merged(&first, project, line);
            return Ok((first, of_first));
        }
        write(cx, &new.text)?;
        let now = read(cx)?;
        let gone = gone(&new.text, &now);
        if merged(&now, project, line).text != now {
            // Somebody else replaced it as a whole, or cron took nothing in.
            old = now;
        } else if gone.is_empty() {
            return Ok((first, new));
        } else {
            return Err(lost(&gone));
        }
    }
    Err(failed("crontab -", "it took the lines without a complaint, but does not show them now"))
}

/// Where there is no place for a lock, or none that can be locked, it goes without: the crontab is looked
/// at afterwards anyhow.
fn turn(cx: &Context) -> Result<Option<Turn>, Stop> {
    let Some(folder) = &cx.surroundings.state_dir else { return Ok(None) };
    let lock = folder.join("babysit").join("crontab.lock");
    match store::turn(&lock, PATIENCE) {
        Ok(turn) => Ok(Some(turn)),
        Err(StoreError::Busy { holder, .. }) => {
            let message = format!(
                "another babysit is changing your crontab: {holder} (lock {}); nothing was changed",
                lock.display()
            );
            Err(Stop::new(Exit::Skipped, "busy", message, Some("try it again then".to_owned())))
        }
        Err(error) => {
            cx.talk.say(&format!(
                "babysit: let no other babysit change your crontab at the same moment: {error}"
            ));
            Ok(None)
        }
    }
}

fn lost(gone: &[String]) -> Stop {
    let message = format!(
        "your crontab was changed by another program at the same moment, and has lost these lines:\n    {}",
        gone.join("\n    ")
    );
    let hint = "put them back with `crontab -e`, unless it was you who took them out";
    Stop::new(Exit::Failed, "crontab", message, Some(hint.to_owned()))
}

/// The user's crontab; empty where there is none.
fn read(cx: &Context) -> Result<Vec<u8>, Stop> {
    let outcome = crontab(cx, &["-l"], None)?;
    let said = said(&outcome);
    match outcome.end {
        End::Code(0) => Ok(outcome.stdout),
        // Each cron says so in these words, and by its exit code as for any other failure.
        End::Code(_) if outcome.stdout.is_empty() && said.contains("no crontab for") => {
            Ok(Vec::new())
        }
        _ => Err(failed("crontab -l", &said)),
    }
}

/// Replaces the user's crontab as a whole.
fn write(cx: &Context, text: &[u8]) -> Result<(), Stop> {
    let outcome = crontab(cx, &["-"], Some(text))?;
    match outcome.end {
        End::Code(0) => Ok(()),
        _ => Err(failed("crontab -", &said(&outcome))),
    }
}

fn crontab(cx: &Context, words: &[&str], stdin: Option<&[u8]>) -> Result<Outcome, Stop> {
    let env = slurm::environment(cx.surroundings).base(None);
    let path = env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
    let mut places = path.split(':').map(|folder| Path::new(folder).join("crontab"));
    let Some(program) = places.find(|place| place.is_file()) else {
        return Err(failed("crontab", "there is no program crontab on this host"));
    };
    let mut argv = vec![program.display().to_string()];
    argv.extend(words.iter().map(|word| (*word).to_owned()));
    let call = Call { argv: &argv, env: &env, stdin, deadline: PATIENCE };
    run(&call).map_err(|fault| failed("crontab", &fault.0))
}

fn failed(what: &str, said: &str) -> Stop {
    let message = format!("{what}: {said}");
    Stop::new(Exit::Failed, "crontab", message, Some(NO_CRON.to_owned()))
}

fn said(outcome: &Outcome) -> String {
    let text = String::from_utf8_lossy(&outcome.stderr);
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    match (first, outcome.end) {
        (Some(line), _) => line.to_owned(),
        (None, End::TimedOut) => "it gave no answer".to_owned(),
        (None, end) => format!("it said nothing ({end:?})"),
    }
}
