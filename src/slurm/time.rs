//! Slurm's ways to write a moment and a length of time.
//!
//! Asked with SLURM_TIME_FORMAT=%s and TZ=UTC0; a Slurm that ignores the first is read as UTC.

use chrono::NaiveDateTime;

use super::rows::shown;
use crate::model::units::{Secs, Time};

/// Words for "there is none".
const ABSENT: [&str; 11] = [
    "",
    "n/a",
    "unknown",
    "none",
    "(null)",
    "invalid",
    "not_set",
    "unlimited",
    "infinite",
    "partition_limit",
    "0",
];

fn is_absent(text: &str) -> bool {
    ABSENT.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Epoch seconds or ISO 8601 without a zone. An error where it is neither a moment nor absent.
pub fn moment(text: &str) -> Result<Option<Time>, String> {
    let text = text.trim();
    if text != "0"
        && text.bytes().all(|b| b.is_ascii_digit())
        && let Ok(seconds) = text.parse::<i64>()
    {
        return Ok(Some(Time(seconds)));
    }
    if is_absent(text) {
        return Ok(None);
    }
    NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S")
        .map(|at| Some(Time(at.and_utc().timestamp())))
        .map_err(|_| format!("{} is no time", shown(text)))
}

/// `D-HH:MM:SS` and what Slurm leaves off it from the left, in seconds.
pub fn length(text: &str) -> Result<Option<Secs>, String> {
    let text = text.trim();
    if is_absent(text) {
        return Ok(None);
    }
    seconds(text)
        .map(|s| Some(Secs(s)))
        .ok_or_else(|| format!("{} is no length of time", shown(text)))
}

fn seconds(text: &str) -> Option<i64> {
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (number(days)?, clock),
        None => (0, text),
    };
    let mut parts = clock.split(':').map(number);
    let (first, second, third) = (parts.next()??, parts.next(), parts.next());
    if parts.next().is_some() {
        return None;
    }
    // With days the first part is hours; without, the last part is seconds, and one alone is minutes.
    let (h, m, s) = match (text.contains('-'), second, third) {
        (_, Some(m), Some(s)) => (first, m?, s?),
        (true, Some(m), None) => (first, m?, 0),
        (true, None, None) => (first, 0, 0),
        (false, Some(s), None) => (0, first, s?),
        (false, None, None) => (0, first, 0),
        (_, None, Some(_)) => return None,
    };
    Some(days * 86_400 + h * 3600 + m * 60 + s)
}

/// At most nine digits, so that no sum of ours can overflow.
fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let check = |text, expected: Result<Option<i64>, ()>| {
            assert_eq!(moment(text).map(|t| t.map(|t| t.0)).map_err(|_| ()), expected, "{text:?}");
        };
        check("1795955109", Ok(Some(1_795_955_109)));
        check("2026-11-29T12:25:09", Ok(Some(1_795_955_109)));
        check("4068-01-01T00:00:00", Ok(Some(66_206_505_600)));
        for absent in ["N/A", "Unknown", "NONE", "None", "0", "", "(null)"] {
            check(absent, Ok(None));
        }
        for bad in ["11:37:14", "29.11. 12:25", "99999999999999999999", "-5", "tomorrow"] {
            check(bad, Err(()));
        }
    }

    #[test]
    fn lengths() {
        let check = |text, expected: Result<Option<i64>, ()>| {
            assert_eq!(length(text).map(|t| t.map(|t| t.0)).map_err(|_| ()), expected, "{text:?}");
        };
        check("365-00:00:00", Ok(Some(31_536_000)));
        check("2-03:04:05", Ok(Some(183_845)));
        check("1-02", Ok(Some(93_600)));
        check("1-02:03", Ok(Some(93_780)));
        check("02:00:00", Ok(Some(7200)));
        check("5:00", Ok(Some(300)));
        check("30", Ok(Some(1800)));
        for absent in ["UNLIMITED", "INVALID", "NOT_SET", "Partition_Limit", "N/A"] {
            check(absent, Ok(None));
        }
        for bad in ["1:2:3:4", "1-", "a:b", "-1:00", "9999999999"] {
            check(bad, Err(()));
        }
    }
}
