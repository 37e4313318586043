//! Times, lengths of time and money as people read them; one style everywhere.

use chrono::{DateTime, Utc};

use super::spark::BARS;
use crate::model::units::{Money, Secs, Time, Usage};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// `2d 4h`, `3h 12m`, `45m`, `30s`, as shards.toml writes them. Two units at most, cut off, not
/// rounded up.
pub fn span(length: Secs) -> String {
    let s = length.0.max(0);
    let two = |n: i64, unit: char, rest: i64, small: char| match rest {
        0 => format!("{n}{unit}"),
        rest => format!("{n}{unit} {rest}{small}"),
    };
    match s {
        DAY.. => two(s / DAY, 'd', s % DAY / HOUR, 'h'),
        HOUR.. => two(s / HOUR, 'h', s % HOUR / MINUTE, 'm'),
        MINUTE.. => format!("{}m", s / MINUTE),
        _ => format!("{s}s"),
    }
}

/// `47m ago`; a moment that lies ahead (two hosts' clocks) is `just now`.
pub fn ago(then: Time, now: Time) -> String {
    match now.since(then) {
        Secs(0) => "just now".to_owned(),
        length => format!("{} ago", span(length)),
    }
}

/// Whole seconds of a computed length; what is no number is 0.
pub fn secs(seconds: f64) -> Secs {
    Secs(seconds.clamp(0.0, 1e15) as i64)
}

/// ISO-8601, UTC, whole seconds.
pub fn iso(at: Time) -> String {
    match DateTime::<Utc>::from_timestamp(at.0, 0) {
        Some(at) => at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        // Beyond year 262 000: a broken clock, shown as it is.
        None => format!("@{}", at.0),
    }
}

/// `14:20 UTC`, and with its day where that is not within these hours.
pub fn clock(at: Time, now: Time) -> String {
    if at.since(now) > Secs::hours(20) {
        return day_and_minute(at);
    }
    let iso = iso(at);
    iso.get(11..16).map_or(iso.clone(), |minutes| format!("{minutes} UTC"))
}

/// What `iso` wrote; `None` where it is nothing of the kind.
pub fn moment(text: &str) -> Option<Time> {
    DateTime::parse_from_rfc3339(text).ok().map(|at| Time(at.timestamp()))
}

/// `3 Nov 2026, 15:00 UTC`
pub fn day_and_minute(at: Time) -> String {
    match DateTime::<Utc>::from_timestamp(at.0, 0) {
        Some(at) => at.format("%-d %b %Y, %H:%M UTC").to_string(),
        None => iso(at),
    }
}

/// `3 Nov 15:00`, where the year and the zone stand elsewhere.
pub fn short_day(at: Time) -> String {
    match DateTime::<Utc>::from_timestamp(at.0, 0) {
        Some(at) => at.format("%-d %b %H:%M").to_string(),
        None => iso(at),
    }
}

/// `$25`, `$12.30`; an amount per row keeps three digits, since rows cost cents.
pub fn dollars(amount: Money) -> String {
    format!("${}", plain(amount))
}

/// The same without the sign, for cells: `25`, `12.30`, `190`.
pub fn plain(amount: Money) -> String {
    let dollars = amount.dollars();
    if amount.0 % 1_000_000_000 == 0 { format!("{dollars:.0}") } else { format!("{dollars:.2}") }
}

/// With cents, also where there are none: `0.00`, `12.30`; from 1000 on without.
pub fn spent(amount: Money) -> String {
    let dollars = amount.dollars();
    if dollars >= 999.995 { format!("{dollars:.0}") } else { format!("{dollars:.2}") }
}

pub fn per_row(dollars: f64) -> String {
    if dollars < 1.0 { format!("${dollars:.3}") } else { format!("${dollars:.2}") }
}

/// Rows an hour: `4.0`, `36`, `1800`.
pub fn rate(rows_per_hour: f64) -> String {
    if rows_per_hour <= 0.0 {
        return "0".to_owned();
    }
    if rows_per_hour < 9.95 { format!("{rows_per_hour:.1}") } else { format!("{rows_per_hour:.0}") }
}

/// TFLOP-seconds, or TFLOP/s: `56780`, `82.6`; whole thousandths, so that nothing is lost.
pub fn usage(tflop_seconds: f64) -> String {
    let text = format!("{tflop_seconds:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A part of the whole, 0 to 1; of nothing, 0.
pub fn share(part: Usage, whole: Usage) -> f64 {
    if whole.0 == 0 { 0.0 } else { part.0 as f64 / whole.0 as f64 }
}

/// `1 job`, `2 jobs`.
pub fn count(n: impl Into<u64>, noun: &str) -> String {
    match n.into() {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// `1st`, `2nd`, `11th`.
pub fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// Foreign text (Slurm's words, log lines) made safe for one line of a terminal.
pub fn one_line(text: &str) -> String {
    let clean: String =
        text.chars().map(|c| if c.is_control() || is_unseen(c) { ' ' } else { c }).collect();
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Characters that show nothing and change how others are shown: marks of direction, joiners,
/// tags. A log line could pass itself off as another one with them.
pub(super) fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// For a terminal whose locale has no UTF-8: our own signs as ASCII, foreign text as it is.
pub fn ascii(text: &str) -> String {
    const LEVELS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match BARS.iter().position(|bar| *bar == c) {
            Some(level) => out.push(LEVELS.get(level).copied().unwrap_or('#')),
            None if c == '…' => out.push('>'),
            None if c == '±' => out.push_str("+-"),
            None => out.push(c),
        }
    }
    out
}

/// At most `width` characters, the last of them an ellipsis where something was cut.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept.truncate(kept.trim_end().len());
    if width > 0 {
        kept.push('…');
    }
    kept
}

/// The same, with the beginning cut.
pub fn cut_front(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(length + 1 - width.max(1)).collect();
    format!("…{kept}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        for (seconds, text) in [
            (0, "0s"),
            (30, "30s"),
            (60, "1m"),
            (47 * 60 + 59, "47m"),
            (3600, "1h"),
            (3 * 3600 + 12 * 60, "3h 12m"),
            (2 * 86400 + 4 * 3600 + 59 * 60, "2d 4h"),
            (-5, "0s"),
        ] {
            assert_eq!(span(Secs(seconds)), text);
        }
    }

    #[test]
    fn times_are_utc_and_a_broken_clock_does_not_panic() {
        assert_eq!(iso(Time(1_700_000_000)), "2023-11-14T22:13:20Z");
        assert_eq!(iso(Time(i64::MAX)), format!("@{}", i64::MAX));
        assert_eq!(ago(Time(100), Time(40)), "just now");
    }

    #[test]
    fn money_keeps_the_digits_that_matter() {
        let money = |d| Money::from_dollars(d).expect("an amount");
        for (amount, want) in [(25.0, "$25"), (12.3, "$12.30"), (0.0, "$0"), (1234.5, "$1234.50")] {
            assert_eq!(dollars(money(amount)), want);
        }
        assert_eq!([spent(money(0.0)), spent(money(1234.5))], ["0.00", "1234"]);
        assert_eq!([per_row(0.08), per_row(1.5)], ["$0.080", "$1.50"]);
    }

    #[test]
    fn usage_keeps_every_thousandth() {
        let shown = [24_780.0, 82.6, 0.0, 0.001, 1000.0, 123_456_789.5].map(usage);
        assert_eq!(shown, ["24780", "82.6", "0", "0.001", "1000", "123456789.5"]);
    }

    #[test]
    fn foreign_text_cannot_drive_the_terminal() {
        assert_eq!(one_line("a\u{1b}[31m\tb\r\nc"), "a [31m b c");
        assert_eq!(cut("längere Zeile", 8), "längere…");
        assert_eq!(cut("kurz", 4), "kurz");
        assert_eq!([cut_front("family/s12", 5), cut_front("kurz", 4)], ["…/s12", "kurz"]);
        assert_eq!(
            [ordinal(1), ordinal(2), ordinal(11), ordinal(23)],
            ["1st", "2nd", "11th", "23rd"]
        );
    }
}
