//! The output of jobs, as far as it is shown or searched: bounded, and clean of what would act on
//! a terminal.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::open::{failed, open};
use crate::model::observation::Seen;

/// How much of the end of a log is looked at for its last lines.
const TAIL: u64 = 64 << 10;

/// A line is shown up to this many characters.
const MAX_SHOWN: usize = 500;

/// The last `lines` lines that are not blank, cleaned; none where there is no such file.
pub(super) fn tail(path: &Path, lines: usize) -> Seen<Vec<String>> {
    let text = log_since(path, TAIL)?;
    let mut last: Vec<String> = text
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(lines)
        .map(|line| line.chars().take(MAX_SHOWN).collect())
        .collect();
    last.reverse();
    Ok(last)
}

/// The last `max_bytes` of a job's output, cleaned, from a line's beginning; empty where there is
/// no such file. Each job has an output file of its own, so this is one attempt's alone.
pub fn log_since(path: &Path, max_bytes: u64) -> Seen<String> {
    let Some((file, meta)) = open(path)? else { return Ok(String::new()) };
    let start = meta.len().saturating_sub(max_bytes);
    let bytes = read_from(file, start, max_bytes).map_err(|error| failed(path, &error))?;
    let whole = if start == 0 {
        bytes.as_slice()
    } else {
        let newline = bytes.iter().position(|byte| *byte == b'\n');
        newline.and_then(|at| bytes.get(at + 1..)).unwrap_or(&bytes)
    };
    let lines: Vec<String> = String::from_utf8_lossy(whole).split('\n').map(clean).collect();
    Ok(lines.join("\n"))
}

fn read_from(mut file: impl Read + Seek, start: u64, most: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// One line as it would stand on a screen: what a progress bar wrote over is gone, and so are
/// terminal escapes, control characters and those that turn the direction of reading.
fn clean(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    let line = line.rsplit('\r').next().unwrap_or(line);
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_until_final(&mut chars),
            '\t' => out.push(' '),
            c if c.is_control() || turns_reading(c) => {}
            c => out.push(c),
        }
    }
    out
}

fn skip_escape(chars: &mut std::str::Chars<'_>) {
    match chars.next() {
        Some('[') => skip_until_final(chars),
        // Titles, links and the like: up to BEL or ESC \.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let mut before = ' ';
            for c in chars {
                if c == '\u{7}' || c == '\u{9c}' || (before == '\u{1b}' && c == '\\') {
                    return;
                }
                before = c;
            }
        }
        // Choice of a character set: one more character.
        Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
            chars.next();
        }
        _ => {}
    }
}

fn skip_until_final(chars: &mut std::str::Chars<'_>) {
    chars.find(|c| ('\u{40}'..='\u{7e}').contains(c));
}

fn turns_reading(c: char) -> bool {
    matches!(
        c,
        '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_as_a_screen_would_show_it() {
        for (raw, shown) in [
            ("\u{1b}[1;31mError\u{1b}[0m: \tno\u{7}", "Error:  no"),
            (" 10%|#   \r 50%|##  \r100%|####\r", "100%|####"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b\u{1b}(Bc", "abc"),
            ("\u{1b}]never ended", ""),
            ("\u{9b}2Ja\u{0}b\u{1b}", "ab"),
            ("x\u{202e}y", "xy"),
            ("Zürich 東京", "Zürich 東京"),
        ] {
            assert_eq!(clean(raw), shown, "{raw:?}");
        }
    }
}
