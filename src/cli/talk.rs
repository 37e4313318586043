//! The one place that prints: results on stdout, talk on stderr.

use std::io::{ErrorKind, IsTerminal, Write};

use crate::config::Surroundings;
use crate::output::paint::Paint;
use crate::output::{fault, format};

use super::args::{Color, Global};
use super::exit::Stop;

pub struct Talk {
    pub json: bool,
    pub verbose: bool,
    pub quiet: bool,
    /// stdout is a terminal: a person is looking.
    pub terminal: bool,
    pub paint: Paint,
    /// Columns of the screen; `None`: nothing is cut.
    pub width: Option<usize>,
    /// The locale names a character set that is not UTF-8.
    pub ascii: bool,
}

impl Talk {
    pub fn new(global: &Global, s: &Surroundings) -> Talk {
        let terminal = std::io::stdout().is_terminal();
        let forced = s.var("CLICOLOR_FORCE").is_some_and(|v| v != "0");
        let colour = match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto if s.var("NO_COLOR").is_some() => false,
            Color::Auto => forced || (terminal && s.var("TERM") != Some("dumb")),
        };
        let columns = s.var("COLUMNS").and_then(|v| v.parse().ok()).filter(|n| *n > 0);
        let screen = || {
            let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
            terminal.then_some(usize::from(size.ws_col)).filter(|n| *n > 0)
        };
        Talk {
            json: global.json,
            verbose: global.verbose > 0,
            quiet: global.quiet,
            terminal,
            paint: Paint { colour },
            width: columns.or_else(screen),
            // As the C library picks it. Under cron none is set, and mail is UTF-8.
            ascii: ["LC_ALL", "LC_CTYPE", "LANG"]
                .iter()
                .find_map(|name| s.var(name))
                .is_some_and(|locale| !locale.to_lowercase().replace('-', "").contains("utf8")),
        }
    }

    /// A result.
    pub fn result(&self, text: &str) -> Result<(), Stop> {
        if self.ascii { self.put(&format::ascii(text)) } else { self.put(text) }
    }

    fn put(&self, text: &str) -> Result<(), Stop> {
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Stop::ClosedPipe),
            Err(error) => Err(Stop::failed("stdout", format!("stdout cannot be written: {error}"))),
        }
    }

    pub fn result_json(&self, value: &impl serde::Serialize) -> Result<(), Stop> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Stop::failed("json", format!("no JSON could be made: {error}")))?;
        self.put(&format!("{text}\n"))
    }

    /// Talk that can be done without.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            warn(text);
        }
    }

    /// What -q does not silence.
    pub fn insist(&self, text: &str) {
        warn(text);
    }

    /// Talk for somebody who looks on, and not for cron's mail.
    pub fn aside(&self, text: &str) {
        if self.verbose || (self.terminal && !self.quiet) {
            warn(text);
        }
    }
}

/// An error, once. With `json` it goes to stdout, where a script reads.
pub fn error(fault: &fault::Fault, json: bool) {
    if json {
        let mut stdout = std::io::stdout().lock();
        if writeln!(stdout, "{}", fault::json(fault)).is_ok() {
            return;
        }
    }
    warn(&fault::text(fault));
}

/// To stderr. Where that cannot be written there is nobody left to tell.
fn warn(text: &str) {
    writeln!(std::io::stderr().lock(), "{text}").unwrap_or_default();
}
