//! The crontab line that ticks for one project, and a crontab with that line put in or taken out.

use serde_json::{Value, json};

use crate::model::units::Secs;

pub const SCHEMA: &str = "babysit/cron/v1";

/// When cron is to start a tick, unless somebody wishes otherwise.
pub const EACH_MINUTE: &str = "* * * * *";

/// What makes a tick work under cron's few variables.
///
/// All on one line, variables too: a line `NAME=value` of its own would count for the lines of others
/// that follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crontab {
    /// The five fields of cron.
    pub schedule: String,
    /// Absolute.
    pub program: String,
    pub config: String,
    /// Where it is not the one that a bare environment leads to.
    pub state: Option<String>,
    /// `NAME=value`, in order.
    pub env: Vec<(String, String)>,
    /// Absolute; appended to.
    pub log: Option<String>,
    /// By it the line is found again.
    pub project: String,
}

impl Crontab {
    pub fn line(&self) -> String {
        let Crontab { schedule, program, config, state, env, log, project } = self;
        let quote = |word: &str| shell_words::quote(word).into_owned();
        let mut words: Vec<String> = Vec::new();
        if !env.is_empty() {
            words.push("env".to_owned());
            words.extend(env.iter().map(|(name, value)| format!("{name}={}", quote(value))));
        }
        words.extend([quote(program), "--config".to_owned(), quote(config)]);
        words.extend(state.iter().flat_map(|state| ["--state".to_owned(), quote(state)]));
        words.push("tick".to_owned());
        let mut command = words.join(" ");
        if let Some(log) = log {
            command.push_str(&format!(" >>{} 2>&1", quote(log)));
        }
        // cron takes a bare % for a line's end.
        format!("{schedule} {}{}", command.replace('%', "\\%"), mark(project))
    }
}

/// The end of our line: a comment to the shell that runs it.
fn mark(project: &str) -> String {
    format!(" # babysit cron: {project}")
}

/// The five fields for a tick each `every`; `None` where cron cannot do that evenly.
pub fn schedule(every: Secs) -> Option<String> {
    const HOUR: i64 = 60;
    let minutes = every.0 / 60;
    if every.0 % 60 != 0 {
        return None;
    }
    match minutes {
        1 => Some(EACH_MINUTE.to_owned()),
        2..HOUR if HOUR % minutes == 0 => Some(format!("*/{minutes} * * * *")),
        HOUR => Some("0 * * * *".to_owned()),
        1440 => Some("0 0 * * *".to_owned()),
        _ if minutes > HOUR && minutes % HOUR == 0 && 24 % (minutes / HOUR) == 0 => {
            Some(format!("0 */{} * * *", minutes / HOUR))
        }
        _ => None,
    }
}

/// A crontab after a change of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    pub text: Vec<u8>,
    /// Our own lines that were there before, as they were.
    pub before: Vec<String>,
    /// Active lines without our mark that look as if they ticked, too.
    pub others: Vec<String>,
}

/// Puts `line` where this project's line was, else at the end; without one, takes that out. Every
/// other byte stays as it is.
pub fn merged(crontab: &[u8], project: &str, line: Option<&str>) -> Merged {
    let mark = mark(project);
    let mut merged = Merged { text: Vec::new(), before: Vec::new(), others: Vec::new() };
    let mut fresh = line;
    let put = |text: &mut Vec<u8>, line: &str| {
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    };
    for old in crontab.split_inclusive(|byte| *byte == b'\n') {
        let shown = String::from_utf8_lossy(old).trim_end().to_owned();
        if shown.ends_with(&mark) {
            merged.before.push(shown);
            if let Some(line) = fresh.take() {
                put(&mut merged.text, line);
            }
            continue;
        }
        let ticks = shown.contains("babysit ") && shown.ends_with(" tick");
        if ticks && !shown.trim_start().starts_with('#') {
            merged.others.push(shown);
        }
        merged.text.extend_from_slice(old);
    }
    if let Some(line) = fresh {
        // A last line without its end would swallow ours.
        if merged.text.last().is_some_and(|byte| *byte != b'\n') {
            merged.text.push(b'\n');
        }
        put(&mut merged.text, line);
    }
    merged
}

/// Active lines that are there no more, or fewer times.
pub fn gone(before: &[u8], now: &[u8]) -> Vec<String> {
    let lines = |crontab: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(crontab);
        let lines = text.lines().map(str::trim);
        // Some crons write comments of their own anew.
        lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
    };
    let mut left = lines(now);
    let mut gone = lines(before);
    gone.retain(|line| match left.iter().position(|other| other == line) {
        Some(at) => {
            left.swap_remove(at);
            false
        }
        None => true,
    });
    gone
}

/// What was done: `installed`, `unchanged`, `removed`, `absent`, or `shown`.
pub fn json(line: &str, did: &str, before: &[String]) -> Value {
    json!({ "schema": SCHEMA, "line": line, "did": did, "before": before })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crontab() -> Crontab {
        Crontab {
            schedule: "*/5 * * * *".into(),
            program: "/opt/my bin/babysit".into(),
            config: "/lab/100%/shards.toml".into(),
            state: Some("/lab/s.json".into()),
            env: vec![("SLURM_CONF".into(), "/etc/s.conf".into())],
            log: Some("/lab/tick log".into()),
            project: "oracle-plan".into(),
        }
    }

    #[test]
    fn the_line_survives_cron_and_its_shell() {
        assert_eq!(
            crontab().line(),
            "*/5 * * * * env SLURM_CONF=/etc/s.conf '/opt/my bin/babysit' --config \
             '/lab/100\\%/shards.toml' --state /lab/s.json tick >>'/lab/tick log' 2>&1 \
             # babysit cron: oracle-plan"
        );
        let plain = Crontab {
            schedule: EACH_MINUTE.into(),
            state: None,
            env: Vec::new(),
            log: None,
            program: "/usr/bin/babysit".into(),
            config: "/lab/shards.toml".into(),
            ..crontab()
        };
        assert_eq!(
            plain.line(),
            "* * * * * /usr/bin/babysit --config /lab/shards.toml tick # babysit cron: oracle-plan"
        );
    }

    #[test]
    fn cron_can_do_what_divides_an_hour_or_a_day() {
        let check = |seconds: i64, expected: Option<&str>| {
            assert_eq!(schedule(Secs(seconds)).as_deref(), expected, "{seconds} s");
        };
        check(30, None);
        check(60, Some("* * * * *"));
        check(90, None);
        check(300, Some("*/5 * * * *"));
        check(420, None);
        check(1800, Some("*/30 * * * *"));
        check(3600, Some("0 * * * *"));
        check(5400, None);
        check(4 * 3600, Some("0 */4 * * *"));
        check(5 * 3600, None);
        check(86_400, Some("0 0 * * *"));
        check(0, None);
    }

    #[test]
    fn lines_that_are_gone_are_found() {
        let check = |before: &str, now: &str, expected: &[&str]| {
            assert_eq!(gone(before.as_bytes(), now.as_bytes()), expected, "{before:?} {now:?}");
        };
        check("a\nb\n", "b\na", &[]);
        check("a\nb\na\n", "# new\na\nb\n", &["a"]);
        check("# dated 1\n\na \n", "# dated 2\na\n", &[]);
        check("a\nb\n", "", &["a", "b"]);
    }

    #[test]
    fn only_our_own_line_changes() {
        let other = "* * * * * x babysit tick # babysit cron: oracle-plan-2";
        let check = |before: &[u8], line: Option<&str>, after: &[u8], ours: usize| {
            let merged = merged(before, "oracle-plan", line);
            let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
            assert_eq!(shown(&merged.text), shown(after));
            assert_eq!(merged.text, after);
            assert_eq!(merged.before.len(), ours);
        };
        let old = "0 * * * * old # babysit cron: oracle-plan";
        check(b"", Some("new"), b"new\n", 0);
        check(b"MAILTO=me\n# a \xff note", Some("new"), b"MAILTO=me\n# a \xff note\nnew\n", 0);
        let mixed = format!("a\n{old}\n\n{other}\n#{old}  \nz\n");
        check(mixed.as_bytes(), Some("new"), format!("a\nnew\n\n{other}\nz\n").as_bytes(), 2);
        check(mixed.as_bytes(), None, format!("a\n\n{other}\nz\n").as_bytes(), 2);
        check(b"a\n", None, b"a\n", 0);
        let seen = merged(b"* * * * * /x/babysit --config y tick\n", "oracle-plan", None);
        assert_eq!(seen.others, ["* * * * * /x/babysit --config y tick"]);
    }
}
