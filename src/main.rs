//! Parses the command line, runs it, prints the error once, ends with its exit code.
//!
//! The one clock and the one source of randomness are here; everything else is handed them.

use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::process::ExitCode;

use babysit::cli::args::Cli;
use babysit::cli::context::Context;
use babysit::cli::exit::{Exit, Stop};
use babysit::cli::talk::{self, Talk};
use babysit::config::Surroundings;
use babysit::model::units::Time;
use babysit::output::fault::Fault;
use babysit::output::format;

fn main() -> ExitCode {
    let (json, ended) = match Cli::read(std::env::args_os()).map(Cli::settled) {
        Ok(cli) => (cli.global.json, run(&cli)),
        Err(error) => return unparsed(&error),
    };
    match ended {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(Stop::ClosedPipe) => ExitCode::SUCCESS,
        Err(Stop::Fault(exit, fault)) => {
            talk::error(&fault, json);
            ExitCode::from(exit.code())
        }
    }
}

fn run(cli: &Cli) -> Result<Exit, Stop> {
    let surroundings = Surroundings::from_process()?;
    let fixed = surroundings.var("BABYSIT_NOW").map(moment).transpose()?;
    let clock = || fixed.unwrap_or_else(now);
    // The standard library seeds its hash maps from the system's randomness; that is all it takes.
    let seed = || RandomState::new().hash_one(std::process::id());
    let context = Context {
        global: &cli.global,
        surroundings: &surroundings,
        talk: Talk::new(&cli.global, &surroundings),
        clock: &clock,
        seed: &seed,
    };
    babysit::cli::run(&context, &cli.command)
}

#[allow(clippy::disallowed_methods, reason = "the one clock")]
fn now() -> Time {
    Time(chrono::Utc::now().timestamp())
}

/// `BABYSIT_NOW`, for tests: epoch seconds, or ISO-8601.
fn moment(text: &str) -> Result<Time, Stop> {
    let epoch = text.parse::<i64>().ok().map(Time);
    epoch.or_else(|| format::moment(text)).ok_or_else(|| {
        Stop::usage(
            format!("BABYSIT_NOW is `{text}`, which is no moment"),
            "unset it; it is for tests",
        )
    })
}

/// Help and version, or what is wrong with the command line.
fn unparsed(error: &clap::Error) -> ExitCode {
    let json = error.use_stderr() && std::env::args_os().any(|arg| arg == "--json");
    if json {
        let message = error.to_string();
        let message = message.trim().trim_start_matches("error: ").to_owned();
        let hint = Some("`babysit --help` lists the commands".to_owned());
        talk::error(&Fault { kind: "usage", message, hint }, true);
    } else if error.print().is_ok() {
        // Help that nobody asked for ends without one.
        if !error.to_string().ends_with('\n') {
            writeln!(std::io::stderr()).unwrap_or_default();
        }
    } else {
        // Nobody reads: the exit code is all that is left to say it with.
        std::io::stderr().flush().unwrap_or_default();
    }
    ExitCode::from(if error.use_stderr() { Exit::Usage } else { Exit::Done }.code())
}
