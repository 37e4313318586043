//! What `--help` says below the flags: examples, and the exit codes.

use clap::{Command, CommandFactory};

use super::args::Cli;
use super::exit::Exit;

/// Of one command.
pub struct Lesson {
    /// As typed after `babysit`; empty: babysit itself.
    pub command: &'static str,
    /// A command line, and what it does.
    pub examples: &'static [(&'static str, &'static str)],
    /// How it may end beside well, with a failure, or with a wrong command line.
    pub ends: &'static [(Exit, &'static str)],
}

const PERSON: (Exit, &str) = (Exit::Person, "a person is needed");
const BUSY: (Exit, &str) = (Exit::Skipped, "another tick holds the lock");
const NO_ROW: (Exit, &str) = (Exit::Person, "no row is left to take");
const SKIPPED: (Exit, &str) =
    (Exit::Skipped, "this cycle was skipped: a probe failed, or another tick holds the lock");

const fn lesson(
    command: &'static str,
    examples: &'static [(&'static str, &'static str)],
    ends: &'static [(Exit, &'static str)],
) -> Lesson {
    Lesson { command, examples, ends }
}

pub const LESSONS: &[Lesson] = &[
    lesson(
        "",
        &[
            ("babysit init", "write a first shards.toml for this cluster"),
            ("babysit check", "is it right, and can the cluster do it?"),
            ("babysit tick --dry-run", "the commands that a first tick would run"),
            ("babysit cron --install", "from now on cron ticks each minute"),
            ("babysit status", "where it stands, and what needs you"),
        ],
        &[PERSON, SKIPPED],
    ),
    lesson(
        "init",
        &[
            ("babysit init", "shards.toml in this folder, which must not have one"),
            ("babysit init --force", "a new one; the old stays as shards.toml.old"),
        ],
        &[],
    ),
    lesson(
        "check",
        &[
            ("babysit check", "every fault of shards.toml, with its line"),
            ("babysit check --json", "the same for a script"),
        ],
        &[(Exit::Person, "the cluster cannot do what is asked")],
    ),
    lesson(
        "tick",
        &[
            ("babysit tick --dry-run", "what a tick would do now; changes nothing"),
            ("babysit tick", "one cycle"),
            ("babysit tick -v", "one cycle that also says why it was skipped"),
        ],
        &[SKIPPED],
    ),
    lesson(
        "loop",
        &[
            ("babysit loop --until-done", "in tmux, where there is no cron"),
            ("babysit loop --every 5m", "less often"),
        ],
        &[PERSON],
    ),
    lesson(
        "status",
        &[
            ("babysit status", "all shards, totals, what needs a person"),
            ("babysit status find running", "those of a family that run"),
            ("babysit status --watch", "drawn anew every two seconds"),
            ("babysit status --check", "for a monitor: 3 when a person is needed"),
        ],
        &[(Exit::Person, "with --check: a person is needed")],
    ),
    lesson(
        "why",
        &[
            ("babysit why find/s0", "one sentence, then the evidence"),
            ("babysit why find/s0 --json", "the same for a script"),
        ],
        &[],
    ),
    lesson(
        "usage",
        &[("babysit usage", "the charges of all labs"), ("babysit usage BCG", "of one lab")],
        &[],
    ),
    lesson(
        "cap",
        &[
            ("babysit cap show", "the caps in force, and who set them"),
            ("babysit cap set find 40", "40 dollars for each shard of find"),
        ],
        &[BUSY],
    ),
    lesson(
        "cap set",
        &[
            ("babysit cap set find 40", "40 dollars for each shard of find"),
            ("babysit cap set find/s0 55.50", "for one shard, whatever its family's is"),
        ],
        &[BUSY],
    ),
    lesson(
        "cap show",
        &[
            ("babysit cap show", "the caps in force, and who set them"),
            ("babysit cap show --json", "the same for a script"),
        ],
        &[],
    ),
    lesson(
        "hold",
        &[
            ("babysit hold find", "nothing more of find is submitted"),
            ("babysit hold 'restore/s[0-3]'", "of four shards; patterns in quotes"),
        ],
        &[BUSY],
    ),
    lesson(
        "release",
        &[
            ("babysit release find", "find is submitted again"),
            ("babysit release 'restore/*'", "all shards of restore"),
        ],
        &[BUSY],
    ),
    lesson(
        "cancel",
        &[
            ("babysit cancel find/s3", "ends its job; there is no way back"),
            ("babysit hold find/s3", "what may be undone"),
        ],
        &[BUSY],
    ),
    lesson(
        "retry",
        &[
            ("babysit retry find/s1", "after its cause of failure was put right"),
            ("babysit retry find", "a family whose submissions were refused"),
        ],
        &[BUSY],
    ),
    lesson(
        "reconcile",
        &[
            ("babysit reconcile", "what Slurm and the state disagree on"),
            ("babysit reconcile --json", "the same for a script"),
            (
                "babysit reconcile --take-up 3527c15ceb8b",
                "the jobs of a state that is lost for good",
            ),
        ],
        &[PERSON, BUSY],
    ),
    lesson(
        "doctor",
        &[
            ("babysit doctor", "programs, paths, locks, QOS, clocks"),
            ("env -i HOME=$HOME babysit --config $PWD/shards.toml doctor", "as cron would see it"),
        ],
        &[(Exit::Person, "ticks work, but a person should look")],
    ),
    lesson(
        "cron",
        &[
            ("babysit cron", "print the line"),
            ("babysit cron --install", "put it into your crontab; other lines stay"),
            ("babysit cron --install --every 5m --log tick.log", "less often, and into a file"),
            ("babysit cron --remove", "take it out again"),
        ],
        &[],
    ),
    lesson(
        "log",
        &[
            ("babysit log", "what was decided, and what came of it"),
            ("babysit log find/s0 --since 2h", "of one shard, the last two hours"),
            ("babysit log --kind held,over-cap", "what needed a person"),
            ("babysit log -n 20 --follow", "the last ones, and each new one as it comes"),
        ],
        &[],
    ),
    lesson(
        "replay",
        &[
            ("babysit replay", "plan every recorded cycle of this campaign again"),
            (
                "babysit replay recording --policies now,v4",
                "a bug report, with two policies beside",
            ),
        ],
        &[],
    ),
    lesson(
        "report",
        &[
            ("babysit report", "report.html, for a browser"),
            ("babysit report -o /srv/www/oracle-plan.html", "where others can see it"),
        ],
        &[],
    ),
    lesson(
        "simulate",
        &[
            ("babysit simulate", "the policies on a hundred simulated campaigns"),
            ("babysit simulate --scenario scarce --seeds 20", "fewer, on a fuller cluster"),
            ("babysit simulate --labs --days 7", "placement for several labs"),
        ],
        &[],
    ),
    lesson(
        "archive",
        &[
            ("babysit archive --out-dir /archive/oracle-plan", "copies what is lacking there"),
            ("babysit archive --out-dir kept --dry-run", "what it would copy"),
        ],
        &[],
    ),
    lesson(
        "row",
        &[
            (
                "row=$(babysit row take) || exit 0",
                "in the program's loop: the next row, or the end",
            ),
            ("babysit row done 17", "after the files of row 17 are written"),
        ],
        &[NO_ROW],
    ),
    lesson(
        "row take",
        &[
            ("babysit row take", "a row that nobody else of this shard has"),
            ("babysit row take --done 17", "the same, after marking row 17 as done"),
            ("babysit row take --unless 'runs/s0/row_{row}.json'", "no row whose file is there"),
        ],
        &[NO_ROW],
    ),
    lesson(
        "row done",
        &[
            ("babysit row done 17", "row 17 is never given out again"),
            ("babysit row done 0", "the first of them: rows are numbered from 0"),
        ],
        &[],
    ),
    lesson(
        "exec",
        &[
            (
                "babysit exec --pilots /lab/state.json.pilots --shard find/s0 --group 'find gpus=1' --fence 1 --token babysit:abc:find/s0:a1:0badcafe -- 'python run.py'",
                "as the job script of a family with `pilot = true` has it",
            ),
            ("babysit tick --dry-run", "shows that job script, whole"),
        ],
        &[],
    ),
    lesson(
        "completions",
        &[
            ("source <(babysit completions bash)", "for this bash; a line for ~/.bashrc"),
            ("babysit completions fish", "for ~/.config/fish/completions/babysit.fish"),
        ],
        &[],
    ),
    lesson(
        "man",
        &[
            ("babysit man | man -l -", "read it"),
            ("babysit man --out-dir ~/.local/share/man/man1", "for `man babysit-tick`"),
        ],
        &[],
    ),
];

/// The command line, with the lessons.
pub fn command() -> Command {
    LESSONS.iter().fold(Cli::command(), |cli, lesson| {
        let words: Vec<&str> = lesson.command.split_whitespace().collect();
        taught(cli, &words, lesson)
    })
}

fn taught(command: Command, path: &[&str], lesson: &Lesson) -> Command {
    match path.split_first() {
        None => command.after_help(text(lesson)),
        Some((first, rest)) if command.find_subcommand(first).is_some() => {
            command.mut_subcommand(first, |inner| taught(inner, rest, lesson))
        }
        Some(_) => command,
    }
}

fn text(lesson: &Lesson) -> String {
    let mut out = "Examples:\n".to_owned();
    let longest = lesson.examples.iter().map(|(line, _)| line.len()).filter(|len| *len <= 50);
    let width = longest.max().unwrap_or(0);
    for (line, does) in lesson.examples {
        out.push_str(&format!("  {line:<width$}  # {does}\n"));
    }
    out.push_str("\nExit codes: 0 done, 1 it failed, 2 the command line or shards.toml is wrong");
    for (exit, why) in lesson.ends {
        out.push_str(&format!(", {} {why}", exit.code()));
    }
    out
}
