//! The program of a shard, started and waited for by a pilot inside of its job. Beside `command.rs` the
//! only place that starts processes: that one is for commands that must end soon, this one for a
//! program that may run for days.
//!
//! It stays in the job's own process group. Slurm ends a job by its group on some clusters: a program
//! in another one would go on after its job, beside the next job of its shard.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgrp, getpid, kill_current_process_group, kill_process};

use super::real::make_folder;

/// How soon an end or a signal is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Exit codes of programs that a signal ended begin behind this, as shells have it.
const SIGNALLED: i32 = 128;

/// What is to be run.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// A shell command line; a login shell loads the user's profile for it, as for any job.
    pub command: &'a str,
    pub workdir: &'a Path,
    /// On top of the job's own environment.
    pub env: &'a [(String, String)],
    /// Where its output goes; `None`: where the job's own does.
    pub log: Option<&'a Path>,
}

/// Runs it to its end. `signals` is asked again and again for signals to pass on.
///
/// # Errors
/// It could not be started, or waited for.
pub fn run(program: &Program<'_>, signals: &mut dyn FnMut() -> Vec<i32>) -> Result<u8, String> {
    let wrong = |error: io::Error| format!("{:?} cannot be started: {error}", program.command);
    let mut child = start(program).map_err(wrong)?;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            let code = status.code().or(status.signal().map(|signal| SIGNALLED + signal));
            return Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
        }
        for signal in signals() {
            pass_on(&child, signal);
            // The group is ours too: that was our own.
            signals();
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

#[allow(clippy::disallowed_methods)] // beside `command.rs`, this is the place
fn start(program: &Program<'_>) -> io::Result<Child> {
    let mut command = std::process::Command::new("/bin/bash");
    command.args(["-l", "-c", program.command]).current_dir(program.workdir);
    command.envs(program.env.iter().map(|(name, value)| (name, value)));
    if let Some(path) = program.log {
        let log = log(path)?;
        command.stdout(log.try_clone()?).stderr(log);
    }
    command.stdin(std::process::Stdio::null()).spawn()
}

fn log(path: &Path) -> io::Result<File> {
    make_folder(&path.parent().map_or_else(PathBuf::new, Path::to_owned))?;
    OpenOptions::new().append(true).create(true).open(path)
}

/// To the whole job where we lead it, else to the program: a signal that Slurm sent to the batch
/// script alone has reached nobody else.
fn pass_on(child: &Child, signal: i32) {
    let Some(signal) = Signal::from_named_raw(signal) else { return };
    // An error means that it is gone already.
    if getpgrp() == getpid() {
        kill_current_process_group(signal).ok();
    } else if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        kill_process(pid, signal).ok();
    }
}
