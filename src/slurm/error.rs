//! What Slurm's commands mean when they fail: by exit code and stderr, never by an empty stdout.

use crate::model::observation::{Gap, GapKind};
use crate::model::request::RefusalClass;

use super::command::{End, NotFound, Outcome};

/// Texts of a connection that broke at a time when the controller may have had the request already
/// (measured: the job exists, though sbatch says one of these).
const BROKEN: [&str; 17] = [
    "Socket timed out",
    "Zero Bytes were transmitted",
    "Connection reset",
    "Connection timed out",
    "Connection aborted",
    "Transport endpoint is not connected",
    "Broken pipe",
    "Insane message length",
    "Unexpected message received",
    "Header lengths are longer",
    "Protocol authentication error",
    "Incomplete message",
    "not responding, sleeping and retrying",
    "Interrupted system call",
    "Inappropriate ioctl for device",
    "Operation now in progress",
    "Resource temporarily unavailable",
];

/// Texts after which nothing was accepted, and the next request would fare no better.
const UNREACHED: [&str; 19] = [
    "Unable to contact slurm controller",
    "Unable to establish control machine address",
    "Munge encode failed",
    "Unable to process configuration file",
    "Could not establish a configuration source",
    "Connection refused",
    "No route to host",
    "Network is unreachable",
    "getaddrinfo() failed",
    "getaddrinfo() fAiled",
    "standby mode",
    "rate limit",
    "Rate limit",
    "Slurm job queue full",
    "Slurm temporarily unable to accept job",
    "Incompatible versions of client and server",
    "Problem talking to the database",
    "There is a problem talking to the database",
    "Plugin initialization failed",
];

/// More that only commands of the accounting say.
const ACCOUNTING: [&str; 4] =
    ["slurm_persist_conn_open", "_open_persist_conn", "Sending PersistInit msg", "DBD_GET_"];

/// What a cluster without accounting says.
const NO_ACCOUNTING: [&str; 2] = [
    "Slurm accounting storage is disabled",
    "You are not running a supported accounting_storage plugin",
];

fn says(stderr: &str, texts: &[&str]) -> bool {
    texts.iter().any(|text| stderr.contains(text))
}

/// The connection broke; what was asked may have been done.
pub fn is_broken(stderr: &str) -> bool {
    says(stderr, &BROKEN)
}

/// The controller was never reached.
pub fn is_unreached(stderr: &str) -> bool {
    says(stderr, &UNREACHED)
}

/// The line of stderr that says most: the first with `error` or `fatal` that is no mere advice. Empty
/// where there is none.
pub fn telling_line(stderr: &str) -> String {
    let mut lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_error = |line: &&str| {
        (line.contains("error") || line.contains("fatal") || line.contains("failed"))
            && !line.contains("If munged is up")
            && !line.contains("attempt number")
    };
    let line = lines.clone().find(is_error).or_else(|| lines.next()).unwrap_or("");
    line.chars().filter(|c| !c.is_control()).take(300).collect()
}

/// How a command ended, in words: for a person.
pub fn in_words(outcome: &Outcome) -> String {
    let stderr = String::from_utf8_lossy(&outcome.stderr);
    let end = match outcome.end {
        _ if outcome.overflow => {
            return "printed more than any cluster has to say, and was ended".to_owned();
        }
        End::Code(code) => format!("exit code {code}"),
        End::Signal(signal) => format!("ended by signal {signal}"),
        End::TimedOut => {
            format!("no answer within {} s, so it was ended", outcome.elapsed.as_secs())
        }
    };
    match telling_line(&stderr).as_str() {
        "" => end,
        line => format!("{end}: {line}"),
    }
}

/// A command that could not be found or started.
pub fn not_found(source: &str, NotFound(text): &NotFound) -> Gap {
    Gap { kind: GapKind::NotFound, source: source.to_owned(), detail: text.clone() }
}

/// stdout of a reading command as text, or why it is no reading.
pub fn reading(source: &str, run: Result<Outcome, NotFound>) -> Result<String, Gap> {
    let outcome = run.map_err(|error| not_found(source, &error))?;
    let stderr = String::from_utf8_lossy(&outcome.stderr);
    let kind = match outcome.end {
        _ if outcome.overflow => Some(GapKind::Unreadable),
        End::TimedOut => Some(GapKind::TimedOut),
        _ if says(&stderr, &NO_ACCOUNTING) => Some(GapKind::Off),
        End::Signal(_) => Some(GapKind::Failed),
        End::Code(code) if code != 0 => Some(GapKind::Failed),
        // rc 0 and no answer happens (sacct, when its database host has no address).
        End::Code(_) => (is_broken(&stderr)
            || is_unreached(&stderr)
            || says(&stderr, &ACCOUNTING)
            || stderr.contains(": fatal: "))
        .then_some(GapKind::Failed),
    };
    match kind {
        Some(kind) => Err(Gap { kind, source: source.to_owned(), detail: in_words(&outcome) }),
        None => Ok(String::from_utf8_lossy(&outcome.stdout).into_owned()),
    }
}

/// What a command that changes something said: an error tells a person what went wrong. Neither
/// proves anything about the jobs.
pub fn asked(name: &str, run: &Result<Outcome, NotFound>) -> Result<(), String> {
    match run {
        Ok(outcome) if outcome.end == End::Code(0) => Ok(()),
        Ok(outcome) => Err(format!("{name}: {}", in_words(outcome))),
        Err(NotFound(text)) => Err(text.clone()),
    }
}

/// An answer that cannot be one.
pub fn unreadable(source: &str, detail: String) -> Gap {
    Gap { kind: GapKind::Unreadable, source: source.to_owned(), detail }
}

/// Whose fault it is that a job's log folder cannot be made. Only what shards.toml or the folders
/// themselves say is the request's; a disk that is full, or a file server that is away, will be back.
pub fn of_folder(fault: &std::io::Error) -> RefusalClass {
    use std::io::ErrorKind as Kind;
    match fault.kind() {
        Kind::PermissionDenied
        | Kind::NotADirectory
        | Kind::AlreadyExists
        | Kind::NotFound
        | Kind::InvalidInput
        | Kind::InvalidFilename => RefusalClass::Request,
        _ => RefusalClass::Limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_folder_on_a_full_disk_is_no_fault_of_the_shard() {
        let of = |number| of_folder(&std::io::Error::from_raw_os_error(number));
        // ENOSPC, EDQUOT, ESTALE, EIO, ETIMEDOUT.
        for number in [28, 122, 116, 5, 110] {
            assert_eq!(of(number), RefusalClass::Limit, "{number}");
        }
        // EACCES, ENOTDIR, EEXIST, ENAMETOOLONG.
        for number in [13, 20, 17, 36] {
            assert_eq!(of(number), RefusalClass::Request, "{number}");
        }
    }

    #[test]
    fn the_line_that_says_most() {
        let check = |stderr, expected| assert_eq!(telling_line(stderr), expected);
        check("", "");
        check("Welcome\nsqueue: error: X\n", "squeue: error: X");
        check(
            "sbatch: error: If munged is up, restart with --num-threads=10\nsbatch: error: Munge encode failed: Y\n",
            "sbatch: error: Munge encode failed: Y",
        );
        check("Unexpected message received for job 74\n", "Unexpected message received for job 74");
    }
}
