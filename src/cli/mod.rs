//! The commands: wiring only. What is decided is decided in planning; what is said, in output.

mod archive;
pub mod args;
mod cap;
mod check;
mod check_cluster;
mod check_rows;
mod checkpoint;
mod complete;
mod completions;
pub mod context;
mod cron;
mod crontab;
pub mod cycle;
mod doctor;
mod doctor_cluster;
mod exec;
pub mod exit;
pub mod figures;
mod forecast;
pub mod help;
mod init;
mod log;
mod man;
mod meant;
mod notify;
mod page;
mod reconcile;
mod recording;
mod repeat;
mod replay;
mod report;
mod row;
mod scenario;
mod screen;
mod simulate;
mod simulate_page;
mod simulate_placed;
mod simulate_placement;
mod simulate_show;
mod slurm;
mod status;
pub mod talk;
mod target;
mod tick;
mod usage;
mod why;
mod wishes;

use crate::planning::person::Wish;
use args::Command;
use context::Context;
use exit::{Exit, Stop};

/// Runs one command. What it has to say is printed; its error is the caller's to print.
pub fn run(cx: &Context, command: &Command) -> Result<Exit, Stop> {
    match command {
        Command::Init { force } => init::run(cx, *force),
        Command::Check => check::run(cx),
        Command::Tick { dry_run: false } => tick::run(cx),
        Command::Tick { dry_run: true } => tick::dry_run(cx),
        Command::Loop { every, until_done } => repeat::run(cx, *every, *until_done),
        Command::Status { forecast: true, scenario, .. } => {
            forecast::run(cx, &scenario::Chosen::of(scenario)?)
        }
        Command::Status { filter, watch: true, .. } => status::watch(cx, filter),
        Command::Status { filter, check, .. } => status::run(cx, filter, *check),
        Command::Usage { lab } => usage::run(cx, lab.as_deref()),
        Command::Why { target } => why::run(cx, target.as_deref()),
        Command::Cap { command: args::Cap::Set { target, amount } } => cap::set(cx, target, amount),
        Command::Cap { command: args::Cap::Show } => cap::show(cx),
        Command::Row { command } => row::run(cx, command),
        Command::Hold(targets) => wishes::run(cx, Wish::Hold, &targets.targets),
        Command::Release(targets) => wishes::run(cx, Wish::Release, &targets.targets),
        Command::Cancel(targets) => wishes::run(cx, Wish::Cancel, &targets.targets),
        Command::Retry(targets) => wishes::run(cx, Wish::Retry, &targets.targets),
        Command::Reconcile { take_up } => reconcile::run(cx, take_up.as_deref()),
        Command::Doctor => doctor::run(cx),
        Command::Cron(asked) => cron::run(cx, asked),
        Command::Simulate(args::Simulate { show: true, .. }) => simulate_show::run(cx),
        Command::Report { out, scenario } => report::run(cx, out, &scenario::Chosen::of(scenario)?),
        Command::Simulate(asked) => simulate::run(cx, asked),
        Command::Archive { out_dir, dry_run } => archive::run(cx, out_dir, *dry_run),
        Command::Completions { shell } => completions::run(cx, *shell),
        Command::Complete { words } => complete::run(cx, words),
        Command::Man { out_dir } => man::run(cx, out_dir.as_deref()),
        Command::Replay { journal, policies } => replay::run(cx, journal.as_deref(), policies),
        Command::Log(asked) => log::run(cx, asked),
        Command::Exec(asked) => exec::run(cx, asked),
    }
}
