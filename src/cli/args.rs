//! The command line, as clap reads it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, Args, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::output::word::Word;

/// Keeps resumable GPU shards moving on a Slurm cluster.
#[derive(Debug, Parser)]
#[command(name = "babysit", version, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// `status --state running`: where there is no such state file, the word of a state, or several
    /// with commas, is a filter.
    pub fn settled(mut self) -> Cli {
        let named = self.global.state.as_deref().filter(|path| !path.exists());
        let words = named.and_then(Path::to_str).map(|text| text.split(',').map(str::to_owned));
        let is_state = |word: &String| Word::ALL.iter().any(|known| known.text() == word);
        if let (Command::Status { filter, .. }, Some(words)) = (&mut self.command, words)
            && words.clone().all(|word| is_state(&word))
        {
            filter.extend(words);
            self.global.state = None;
        }
        self
    }

    /// Reads a command line; its `--help` teaches by examples.
    pub fn read(words: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
        let words: Vec<OsString> = words.collect();
        let read = super::help::command().try_get_matches_from(&words);
        let matches = read.map_err(|error| {
            let words: Vec<String> =
                words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            super::meant::better(error, &words)
        })?;
        Cli::from_arg_matches(&matches)
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
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
    /// Colours; auto: on a terminal, unless NO_COLOR is set
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
    /// Write a first shards.toml for this cluster: its GPU models, the QOS you may use
    Init {
        /// Replace a shards.toml that is there; the old one is kept beside it
        #[arg(long)]
        force: bool,
    },
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
        /// A full screen, drawn anew as things change; its last line names the keys, q ends it
        #[arg(short, long, conflicts_with = "check")]
        watch: bool,
        /// When the rest is done and what it costs: the middle and the 90 % range, by simulation
        #[arg(long, conflicts_with_all = ["check", "watch", "filter"])]
        forecast: bool,
        /// What the cluster is like in the forecast: none, scarce, seed, rich, diurnal, flaky, or a
        /// FILE.toml of yours
        #[arg(long, value_name = "NAME|FILE", default_value = "seed", requires = "forecast")]
        scenario: String,
    },
    /// Why a shard, a family or the whole campaign does not get on, and what would help
    Why {
        /// Shard, family, or a pattern such as 'find/*' [default: the whole campaign]
        target: Option<String>,
    },
    /// What each lab is charged, one by one, and how its reservations fared
    Usage {
        /// One lab [default: all]
        lab: Option<String>,
    },
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
    Reconcile {
        /// Take up the jobs of this instance, whose state is lost; never of one that still ticks
        #[arg(long, value_name = "INSTANCE")]
        take_up: Option<String>,
    },
    /// Whether ticks can work here, and the crontab line to install
    Doctor,
    /// The crontab line that ticks for this project; --install puts it into your crontab
    Cron(Cron),
    /// What was decided, why, and what came of it
    Log(Log),
    /// A past campaign planned again: as it was, or with other policies; asks Slurm nothing
    Replay {
        /// The recording: its folder, one of its files, or the journal's folder [default: this
        /// project's]
        journal: Option<PathBuf>,
        /// Also with these policies: own-only, v3, v4, v4.1, now, adaptive, both, skip, field, soft,
        /// earliest, shadow, guard, best
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        policies: Vec<String>,
    },
    /// The campaign on one page for a browser; asks Slurm nothing
    Report {
        /// Where to write it; `-` is stdout
        #[arg(short, long, value_name = "FILE", default_value = "report.html")]
        out: PathBuf,
        /// What the cluster is like in the forecast: none, scarce, seed, rich, diurnal, flaky, or a
        /// FILE.toml of yours
        #[arg(long, value_name = "NAME|FILE", default_value = "seed")]
        scenario: String,
    },
    /// Policies side by side on a simulated cluster; asks Slurm nothing
    Simulate(Simulate),
    /// Collect results, ledgers, state and journal in one folder, each copy verified; resumable
    Archive {
        /// The folder; it is named DIR_PARTIAL until every shard is done
        #[arg(long, value_name = "DIR")]
        out_dir: PathBuf,
        /// Say what would be copied; nothing is written
        #[arg(long)]
        dry_run: bool,
    },
    /// Inside a job of a split family: take the next row of the shard, or mark one as done
    Row {
        #[command(subcommand)]
        command: Row,
    },
    /// A pilot, started by its job: works on the longest shard that nobody has, then on the next
    Exec(Exec),
    /// A script that completes commands, flags, families and shards in your shell
    Completions {
        /// Whose completion it is
        shell: Shell,
    },
    /// The manual page, or with --out-dir one page a command
    Man {
        /// Write the pages into this folder
        #[arg(long, value_name = "DIR")]
        out_dir: Option<PathBuf>,
    },
    /// What the last word could become; asked by the scripts of `completions`
    #[command(name = "__complete", hide = true)]
    Complete {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
pub struct Exec {
    /// The folder of offers and claims, beside the state
    #[arg(long, value_name = "DIR")]
    pub pilots: PathBuf,
    /// The shard that the job was submitted for
    #[arg(long, value_name = "FAMILY/SHARD")]
    pub shard: String,
    /// Shards of this group only
    #[arg(long, value_name = "NAME")]
    pub group: String,
    /// The number of a claim of --shard, where no offer can be read
    #[arg(long, value_name = "N")]
    pub fence: u32,
    /// The job's comment
    #[arg(long, value_name = "TEXT")]
    pub token: String,
    /// The job's time limit, where Slurm does not tell it
    #[arg(long, value_name = "LIMIT")]
    pub time: Option<String>,
    /// What --shard runs
    #[arg(last = true, value_name = "COMMAND")]
    pub command: String,
}

#[derive(Debug, Args)]
pub struct Log {
    /// Family, family/shard, or a pattern such as 'find/*'
    #[arg(value_name = "TARGET")]
    pub targets: Vec<String>,
    /// Go on with each new line, until interrupted
    #[arg(short, long)]
    pub follow: bool,
    /// Of these kinds only, such as ended, submitted, held, over-cap
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub kind: Vec<String>,
    /// From then on: 2h (ago), 1d, 2026-11-02, 2026-11-02T15:00 (UTC)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Up to then
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// The last N of them [default: all; with --follow 10]
    #[arg(short = 'n', long, value_name = "N")]
    pub lines: Option<usize>,
}

#[derive(Debug, Args)]
pub struct Cron {
    /// Put the line into your crontab, in the place of the one that was there for this project
    #[arg(long)]
    pub install: bool,
    /// Take this project's line out of your crontab
    #[arg(long, conflicts_with = "install")]
    pub remove: bool,
    /// Time from one tick to the next: 1m, 5m, 1h, ...
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = length)]
    pub every: Duration,
    /// Append what a tick says to this file; without, cron mails it
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Simulate {
    /// What the cluster is like: none, scarce, seed, rich, diurnal, flaky, or a FILE.toml of yours
    #[arg(long, value_name = "NAME|FILE", default_value = "seed")]
    pub scenario: String,
    /// Campaigns of each policy; the same seed is the same luck for all
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seeds: u64,
    /// own-only, v3, v4, v4.1, now, adaptive, both, split, pilots, best, and yours, as your shards.toml
    /// has it; with --labs or --trace skip, field, soft, earliest, shadow, guard, best [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub policies: Vec<String>,
    /// In one line, what policy B would save against policy A; also `field`, the preset, which is now
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1, conflicts_with_all = ["policies", "labs", "trace"])]
    pub compare: Vec<String>,
    /// The rest of the campaign from where it stands, instead of the whole of it
    #[arg(long, conflicts_with_all = ["field", "labs", "trace"])]
    pub from_state: bool,
    /// The field report's twelve shards, also where there is a shards.toml
    #[arg(long)]
    pub field: bool,
    /// One campaign of your shards.toml as it goes: what each tick says, and status now and then
    #[arg(long, conflicts_with_all = ["field", "labs", "trace", "from_state"])]
    pub show: bool,
    /// Probability that a tick's probe fails, and the tick is skipped
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = probability)]
    pub probe_fails: f64,
    /// Placement: five labs whose jobs of 1 to 8 GPUs share a cluster of three tiers
    #[arg(long)]
    pub labs: bool,
    /// Placement, with the jobs of a trace: Standard Workload Format, or CSV with a header
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// GPU-hours offered over those there are [default: 0.85, of a trace 0.5]
    #[arg(long, value_name = "SHARE", value_parser = load)]
    pub load: Option<f64>,
    /// Days that are simulated [default: 28, of a trace its first 30]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=366))]
    pub days: Option<u32>,
    /// A faster tier does the same work in less time
    #[arg(long)]
    pub by_tier: bool,
    /// Write it as a page for a browser too; `-` is stdout
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

fn load(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|share| (0.01..=3.0).contains(share));
    number.ok_or_else(|| "from 0.01 to 3".to_owned())
}

/// From 0 to 0.9: with every probe failing no campaign ends.
fn probability(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|p| (0.0..=0.9).contains(p));
    number.ok_or_else(|| "from 0 to 0.9".to_owned())
}

#[derive(Debug, Args)]
pub struct Targets {
    /// Family, family/shard, or a pattern such as 'find/*'
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum Row {
    /// Print the number of a row that is this job's to do; exit with 3 where none is left
    Take {
        /// First mark this row, which the job has finished, as done
        #[arg(long, value_name = "ROW")]
        done: Option<u32>,
        /// Give no row out whose file is there; {row} is its number
        #[arg(long, value_name = "PATH")]
        unless: Option<String>,
    },
    /// Mark a row that this job took as done: it is never given out again
    Done { row: u32 },
}

#[derive(Debug, Subcommand)]
pub enum Cap {
    /// Set the cap of a family's shards, or of one shard, in dollars
    Set {
        /// Family or family/shard
        target: String,
        /// Dollars of each shard, such as 40 or 55.50
        #[arg(allow_hyphen_values = true)]
        amount: String,
    },
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
