//! The command line, as clap reads it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

/// Keeps resumable GPU shards moving on a Slurm cluster.
#[derive(Debug, Parser)]
#[command(name = "babysit", version, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub struct Global {
    /// shards.toml to use [default: $BABYSIT_CONFIG, else shards.toml here or in a parent folder]
    #[arg(long, global = true, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// State file to use [default: $BABYSIT_STATE, else `state` in shards.toml, else your state folder]
    #[arg(long, global = true, value_name = "PATH")]
    pub state: Option<PathBuf>,
    /// Machine output on stdout, also for errors
    #[arg(long, global = true)]
    pub json: bool,
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Say more on stderr
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Say nothing but results and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check shards.toml, its files, and the cluster; changes nothing
    Check,
    /// One cycle: look, decide, submit, move, cancel
    Tick {
        /// Print the exact command lines instead of running them
        #[arg(long)]
        dry_run: bool,
    },
    /// Tick again and again, until SIGINT or SIGTERM
    Loop {
        /// Time from one tick to the next
        #[arg(long, value_name = "TIME", default_value = "60s", value_parser = length)]
        every: Duration,
        /// End when no shard can still make progress
        #[arg(long)]
        until_done: bool,
    },
    /// One line a shard, totals, and what needs a person; asks Slurm nothing
    Status {
        /// Family, family/shard, a pattern such as 'find/*', or a state such as running
        filter: Vec<String>,
        /// Exit with 3 when a person is needed
        #[arg(long)]
        check: bool,
        /// Draw anew every two seconds, until interrupted
        #[arg(long, conflicts_with = "check")]
        watch: bool,
    },
    /// Why a shard is (not) running
    Why { shard: String },
    /// What each lab is charged, one by one, and how its reservations fared
    Usage { lab: Option<String> },
    /// Cost caps
    Cap {
        #[command(subcommand)]
        command: Cap,
    },
    /// No further submissions; what is in Slurm goes on
    Hold(Targets),
    /// Undo a hold
    Release(Targets),
    /// Cancel for good: ends the job, and it is never submitted again
    Cancel(Targets),
    /// Clear a failure count and queue again
    Retry(Targets),
    /// What Slurm and the state disagree on; settles what it can prove
    Reconcile,
    /// Whether ticks can work here, and the crontab line to install
    Doctor,
    /// What was decided, why, and what came of it
    Log { shard: Option<String> },
}

#[derive(Debug, Args)]
pub struct Targets {
    /// Family, family/shard, or a pattern such as 'find/*'
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum Cap {
    /// Set the cap of a family's shards, or of one shard, in dollars
    Set { target: String, amount: String },
    /// The caps in force, and who set them
    Show,
}

/// `60s`, `5m`, `1h`, or seconds without a unit; at least a second.
fn length(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..) {
        Some("" | "s") => 1,
        Some("m" | "min") => 60,
        Some("h") => 3600,
        _ => return Err("write it as 60s, 5m or 1h".into()),
    };
    match digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)) {
        Some(seconds @ 1..=86_400) => Ok(Duration::from_secs(seconds)),
        Some(_) => Err("from 1s to 24h".into()),
        None => Err("write it as 60s, 5m or 1h".into()),
    }
}
