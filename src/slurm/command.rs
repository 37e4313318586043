//! The one place that starts processes.
//!
//! A command of Slurm's may hang for ever (a stopped munged), print without end, or leave a child
//! behind that keeps its pipes open. So every command gets its own process group and a deadline, and
//! writes into anonymous memory instead of pipes: nothing of it can hold us past the deadline.
//! This file knows no Slurm: it must not read what a command printed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// Bytes that one command may print; ten times what squeue says of 200 000 jobs.
pub const MOST_OUTPUT: u64 = 256 << 20;
/// Between TERM and KILL: enough for a command to say that it was interrupted.
const GRACE: Duration = Duration::from_secs(2);
/// For a killed process to be gone; one that hangs in the kernel (dead NFS) is left behind.
const LAST_WAIT: Duration = Duration::from_secs(3);
/// How often a running command's output is measured against [`MOST_OUTPUT`].
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The same where its output is read meanwhile: what is left to read when it ends is what it prints
/// in this time. Each look costs a tenth of a millisecond of a processor that the command may need.
const FOLLOW_EVERY: Duration = Duration::from_millis(4);
/// Bytes read at once of an output that is followed.
const PIECE: usize = 1 << 17;

/// What is to be started.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Program (a path) and arguments.
    pub argv: &'a [String],
    /// The whole environment; nothing is inherited.
    pub env: &'a [(String, String)],
    /// Standard input; empty without.
    pub stdin: Option<&'a [u8]>,
    pub deadline: Duration,
}

/// What came of a command that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub end: End,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// It printed more than [`MOST_OUTPUT`] and was ended; the rest is missing.
    pub overflow: bool,
    pub elapsed: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Code(i32),
    Signal(i32),
    /// Ended by us at its deadline.
    TimedOut,
}

/// The command could not be started at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound(pub String);

/// Is given an output piece by piece.
pub type Hear<'a> = &'a mut dyn FnMut(&[u8]);

/// Runs one command to its end or its deadline.
pub fn run(call: &Call<'_>) -> Result<Outcome, NotFound> {
    run_with(call, None)
}

/// The same for a long output: `hear` is given it piece by piece while the command still prints, and
/// the outcome has none of it. Only the outcome tells what that was worth.
pub fn follow(call: &Call<'_>, hear: Hear<'_>) -> Result<Outcome, NotFound> {
    run_with(call, Some(hear))
}

fn run_with(call: &Call<'_>, mut hear: Option<Hear<'_>>) -> Result<Outcome, NotFound> {
    let Some((program, arguments)) = call.argv.split_first() else {
        return Err(NotFound("an empty command line".to_owned()));
    };
    let wrong = |what: &str, error: io::Error| NotFound(format!("{program}: {what}: {error}"));
    let begin = Instant::now();
    let outputs = memory(b"").and_then(|out| Ok((out, memory(b"")?)));
    let (stdout, stderr) = outputs.map_err(|e| wrong("no memory for its output", e))?;
    let child = start(program, arguments, call, &stdout, &stderr)
        .map_err(|e| wrong("cannot be started", e))?;

    let unread = |e| wrong("its output cannot be read", e);
    let look_every = if hear.is_some() { FOLLOW_EVERY } else { LOOK_EVERY };
    let mut heard = 0;
    let mut overflow = false;
    let end = loop {
        let left = call.deadline.saturating_sub(begin.elapsed());
        match child.wait_timeout(left.min(look_every)) {
            Ok(Some(output)) => {
                let status = output.status;
                break match (status.code(), status.signal()) {
                    (Some(code), _) => End::Code(code),
                    (None, signal) => End::Signal(signal.unwrap_or(0)),
                };
            }
            Ok(None) => {
                overflow = size(&stdout) > MOST_OUTPUT || size(&stderr) > MOST_OUTPUT;
                if overflow || left.is_zero() {
                    end_group(&child);
                    break End::TimedOut;
                }
                if let Some(hear) = &mut hear
                    && let Err(error) = pass_on(&stdout, &mut heard, hear)
                {
                    end_group(&child);
                    return Err(unread(error));
                }
            }
            // Its end cannot be learned: the same as a command that does not answer.
            Err(_) => {
                end_group(&child);
                break End::TimedOut;
            }
        }
    };
    overflow |= size(&stdout) > MOST_OUTPUT || size(&stderr) > MOST_OUTPUT;
    let kept = match &mut hear {
        Some(hear) => pass_on(&stdout, &mut heard, hear).map(|()| Vec::new()),
        None => contents(&stdout),
    };
    Ok(Outcome {
        end,
        stdout: kept.map_err(unread)?,
        stderr: contents(&stderr).map_err(unread)?,
        overflow,
        elapsed: begin.elapsed(),
    })
}

#[allow(clippy::disallowed_methods)] // this is the place
fn start(
    program: &str,
    arguments: &[String],
    call: &Call<'_>,
    stdout: &File,
    stderr: &File,
) -> io::Result<duct::Handle> {
    let env: HashMap<String, String> = call.env.iter().cloned().collect();
    let command = duct::cmd(program, arguments)
        .full_env(env)
        .unchecked()
        .stdout_file(stdout.try_clone()?)
        .stderr_file(stderr.try_clone()?)
        .before_spawn(|command| {
            command.process_group(0);
            Ok(())
        });
    let command = match call.stdin {
        Some(bytes) => command.stdin_file(memory(bytes)?),
        None => command.stdin_null(),
    };
    command.start()
}

/// An anonymous file in memory that begins with `bytes`, to be read from its start.
fn memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("babysit", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    io::Seek::rewind(&mut file)?;
    Ok(file)
}

fn size(file: &File) -> u64 {
    file.metadata().map_or(0, |data| data.len())
}

/// Read by position: the offset is shared with whoever still writes.
fn contents(file: &File) -> io::Result<Vec<u8>> {
    let length = size(file).min(MOST_OUTPUT);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Hands on what was printed behind the first `heard` bytes, as far as it is there now.
fn pass_on(file: &File, heard: &mut u64, hear: Hear<'_>) -> io::Result<()> {
    let until = size(file).min(MOST_OUTPUT);
    let mut piece = Vec::new();
    while *heard < until {
        let length = usize::try_from(until - *heard).unwrap_or(PIECE).min(PIECE);
        piece.resize(length, 0);
        file.read_exact_at(&mut piece, *heard)?;
        *heard += piece.len() as u64;
        hear(&piece);
    }
    Ok(())
}

/// TERM, a short grace, KILL, for the whole group. The leader is not reaped in between, so that its
/// number cannot become somebody else's.
fn end_group(child: &duct::Handle) {
    let pids = child.pids();
    let leader = pids.first().and_then(|pid| i32::try_from(*pid).ok()).and_then(Pid::from_raw);
    if let Some(leader) = leader {
        // An error here means that the group is gone already, which is what is wanted.
        kill_process_group(leader, Signal::TERM).ok();
        let begin = Instant::now();
        while begin.elapsed() < GRACE && !has_ended(leader) {
            std::thread::sleep(Duration::from_millis(20));
        }
        kill_process_group(leader, Signal::KILL).ok();
    }
    // Reaps it; a process that even KILL does not end is left to init.
    child.wait_timeout(LAST_WAIT).ok();
}

fn has_ended(leader: Pid) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(leader), look), Ok(None))
}

/// The command line as a person would type it.
pub fn render(argv: &[String]) -> String {
    argv.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

/// One word for the shell, left alone where it is plain: `--qos=own` needs no quotes.
pub fn quote(word: &str) -> std::borrow::Cow<'_, str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-+=:,./@%".contains(&b);
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.into(),
        false => shell_words::quote(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, stdin: Option<&[u8]>, deadline: Duration) -> Outcome {
        let argv = ["/bin/sh", "-c", script].map(str::to_owned);
        let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        run(&Call { argv: &argv, env: &env, stdin, deadline }).expect("sh is there")
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(300);

    #[test]
    fn what_it_prints_and_how_it_ends_is_kept() {
        let outcome = shell("cat; echo oops >&2; exit 3", Some(b"in\xff"), LONG);
        assert_eq!(outcome.end, End::Code(3));
        assert_eq!(outcome.stdout, b"in\xff");
        assert_eq!(outcome.stderr, b"oops\n");
        assert_eq!(shell("kill -9 $$", None, LONG).end, End::Signal(9));
    }

    #[test]
    fn nothing_of_our_environment_gets_through() {
        let outcome = shell("/usr/bin/env", None, LONG);
        let names: Vec<_> = outcome.stdout.split(|b| *b == b'\n').collect();
        assert!(names.contains(&b"PATH=/usr/bin:/bin".as_slice()));
        assert!(!names.iter().any(|n| n.starts_with(b"HOME=") || n.starts_with(b"CARGO")));
    }

    #[test]
    fn a_hung_command_is_ended_with_its_whole_group() {
        // The shell ignores TERM, and its child writes its own number before it sleeps.
        let script = "trap '' TERM; sh -c 'echo $$; exec sleep 1000' & wait; wait";
        let outcome = shell(script, None, SHORT);
        assert_eq!(outcome.end, End::TimedOut);
        let text = String::from_utf8_lossy(&outcome.stdout).trim().to_owned();
        // It was orphaned, so it goes when the kernel gets round to it; it would stay for 1000 s.
        let lives = || {
            let status = std::fs::read_to_string(format!("/proc/{text}/status"));
            status.is_ok_and(|status| !status.contains("State:\tZ"))
        };
        let gone = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            !lives()
        });
        assert!(!text.is_empty() && gone, "{text} lives");
    }

    #[test]
    fn a_grandchild_that_keeps_the_output_open_holds_nobody() {
        let outcome = shell("setsid sleep 30 & echo $!", None, LONG);
        assert_eq!(outcome.end, End::Code(0));
        let pid = String::from_utf8_lossy(&outcome.stdout).trim().parse().expect("a number");
        let sleeper = Pid::from_raw(pid).expect("not 0");
        // It would be gone if its end had been waited for.
        rustix::process::kill_process(sleeper, Signal::KILL).expect("it still runs");
    }

    #[test]
    fn an_output_that_is_followed_is_heard_whole_and_in_order() {
        let script = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo row $i; sleep 0.002; done; \
                      head -c 300000 /dev/zero; echo oops >&2; exit 4";
        let argv = ["/bin/sh", "-c", script].map(str::to_owned);
        let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let call = Call { argv: &argv, env: &env, stdin: None, deadline: LONG };
        let mut heard = Vec::new();
        let outcome = follow(&call, &mut |piece| heard.extend_from_slice(piece)).expect("runs");
        assert_eq!((outcome.end, outcome.stderr), (End::Code(4), b"oops\n".to_vec()));
        assert_eq!(outcome.stdout, b"");
        assert_eq!(heard, run(&call).expect("runs").stdout);
        assert!(heard.starts_with(b"row 1\nrow 2\n") && heard.ends_with(b"\0"));
    }

    #[test]
    fn output_without_end_is_cut_and_told() {
        let outcome = shell("exec cat /dev/zero", None, LONG);
        assert!(outcome.overflow);
        assert_eq!(outcome.end, End::TimedOut);
        assert_eq!(outcome.stdout.len() as u64, MOST_OUTPUT);
    }

    #[test]
    fn command_lines_for_people() {
        let argv = ["sbatch", "--qos=own", "a b", "it's", ""].map(str::to_owned);
        assert_eq!(render(&argv), r#"sbatch --qos=own 'a b' 'it'\''s' ''"#);
        assert_eq!(shell_words::split(&render(&argv)).as_deref(), Ok(argv.as_slice()));
    }

    #[test]
    fn what_cannot_be_started_says_why() {
        let argv = ["/nowhere/squeue".to_owned()];
        let call = Call { argv: &argv, env: &[], stdin: None, deadline: LONG };
        let NotFound(text) = run(&call).expect_err("not there");
        assert!(text.starts_with("/nowhere/squeue: cannot be started"), "{text}");
    }
}
