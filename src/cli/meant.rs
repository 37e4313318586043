//! A word that is no command of ours: the command that people of other tools mean by it. clap's own
//! guess goes by letters, and takes `submit` for `simulate`.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What is typed, and what does that here.
const MEANT: &[(&[&str], &str)] = &[
    (&["submit", "sbatch", "start", "run", "go", "once"], "tick"),
    (&["daemon", "watchdog", "serve"], "loop"),
    (&["list", "ls", "ps", "queue", "squeue", "show", "info", "watch", "top"], "status"),
    (&["forecast", "eta"], "status --forecast"),
    (&["explain", "reason"], "why"),
    (&["stop", "pause", "suspend"], "hold"),
    (&["resume", "continue", "unhold", "unpause"], "release"),
    (&["kill", "scancel", "abort", "delete", "rm"], "cancel"),
    (&["restart", "resubmit", "requeue", "rerun"], "retry"),
    (&["logs", "tail", "journal", "history"], "log"),
    (&["budget", "cost", "costs", "limit"], "cap show"),
    (&["install", "crontab", "schedule"], "cron --install"),
    (&["new", "create", "setup", "config"], "init"),
    (&["validate", "lint", "verify"], "check"),
    (&["backup", "export", "collect"], "archive"),
    (&["completion"], "completions"),
];

/// The same error, with what was meant; `words` are those of the command line.
pub fn better(mut error: Error, words: &[String]) -> Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let after_cap = words.iter().skip_while(|w| *w != "cap").nth(1) == Some(word);
    let meant = match after_cap {
        // `babysit cap find 40`
        true => Some(format!("set {word}")),
        false => MEANT
            .iter()
            .find(|(typed, _)| typed.contains(&word.as_str()))
            .map(|(_, command)| (*command).to_owned()),
    };
    if let Some(meant) = meant {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![meant]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::MEANT;
    use crate::cli::args::Cli;
    use crate::cli::help;

    fn said(line: &str) -> String {
        let words = line.split(' ').map(Into::into);
        Cli::read(words).expect_err("no command").to_string()
    }

    #[test]
    fn words_of_other_tools_lead_to_ours() {
        for (line, meant) in [
            ("babysit submit", "'tick'"),
            ("babysit --json start", "'tick'"),
            ("babysit ls", "'status'"),
            ("babysit resume find", "'release'"),
            ("babysit cap find 40", "'set find'"),
            ("babysit statsu", "'status'"),
        ] {
            assert!(said(line).contains(meant), "{line}: {}", said(line));
        }
    }

    #[test]
    fn none_of_them_is_a_command_and_each_leads_to_one() {
        let cli = help::command();
        for (typed, meant) in MEANT {
            assert!(typed.iter().all(|word| cli.find_subcommand(word).is_none()), "{typed:?}");
            let name = meant.split(' ').next().unwrap_or_default();
            assert!(cli.find_subcommand(name).is_some(), "{meant}");
        }
    }
}
