//! Values that are written as text: moments, money, shard ids, Slurm's end words.
//!
//! Written by hand rather than with a date crate: a state of 10 000 shards holds some 100 000
//! moments, and is read and written in every cycle.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::json;
use crate::model::cluster::EndWord;
use crate::model::id::ShardId;
use crate::model::units::{Money, Time};

/// `2026-10-03T18:52:00Z`; a moment outside the years 0 to 9999 is a bare number of seconds.
#[derive(Clone, Copy)]
pub(crate) struct Moment(pub Time);

/// Dollars as an exact decimal in quotes, `"12.345"`: a JSON number would be read as binary by the
/// tools people use on it, and the sum of a ledger has to survive to the last digit.
pub(super) struct Amount(pub Money);

/// `family/shard`.
pub(super) struct Name<'a>(pub Cow<'a, ShardId>);

/// Slurm's own word.
pub(super) struct Ending(pub EndWord);

const DAY: i64 = 86_400;
/// Days in 400 years, after which the calendar repeats itself; in a century and in four years within.
const CYCLE: i64 = 146_097;
const CENTURY: i64 = 36_524;
const FOUR_YEARS: i64 = 1461;
/// 0000-01-01T00:00:00Z and 9999-12-31T23:59:59Z, in seconds since 1970.
const FIRST: i64 = -62_167_219_200;
const LAST: i64 = 253_402_300_799;

/// Days since 1970-01-01 of a date in the Gregorian calendar, also before its time.
///
/// The year is taken to begin in March, so that the leap day is its last one.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 30.6 days a month, from March on: 0, 31, 61, 92, 122, 153, 184, 214, 245, 275, 306, 337.
    let before_month = (month * 306 + 5) / 10;
    // 719 468 days lie between 0000-03-01 and 1970-01-01.
    year * 365 + leap_days + before_month + day - 1 - 719_468
}

/// The inverse of `days_of`.
fn date_of(days: i64) -> (i64, i64, i64) {
    let from_march = days + 719_468;
    let (cycle, day) = (from_march.div_euclid(CYCLE), from_march.rem_euclid(CYCLE));
    // The leap day is the last of four years, and of 400: the last century and the last year of each
    // four may be a day longer than the others, so no number of theirs is beyond 3.
    let century = (day / CENTURY).min(3);
    let day = day - century * CENTURY;
    let (four, day) = (day / FOUR_YEARS, day % FOUR_YEARS);
    let single = (day / 365).min(3);
    let year = cycle * 400 + century * 100 + four * 4 + single;
    let day_of_year = day - single * 365;
    let month = (day_of_year * 10 + 4) / 306;
    let day = day_of_year - (month * 306 + 5) / 10 + 1;
    let calendar_month = (month + 2) % 12 + 1;
    (if calendar_month <= 2 { year + 1 } else { year }, calendar_month, day)
}

/// Days in a month, as `days_of` counts the days in a year.
fn length_of(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn digits(out: &mut [u8], mut number: i64) {
    for place in out.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

impl Moment {
    fn write(self, out: &mut [u8; 20]) -> Option<&str> {
        let Time(seconds) = self.0;
        if !(FIRST..=LAST).contains(&seconds) {
            return None;
        }
        let (year, month, day) = date_of(seconds.div_euclid(DAY));
        let clock = seconds.rem_euclid(DAY);
        *out = *b"0000-00-00T00:00:00Z";
        digits(&mut out[0..4], year);
        digits(&mut out[5..7], month);
        digits(&mut out[8..10], day);
        digits(&mut out[11..13], clock / 3600);
        digits(&mut out[14..16], clock / 60 % 60);
        digits(&mut out[17..19], clock % 60);
        std::str::from_utf8(out).ok()
    }

    pub(super) fn spell(self, out: &mut Vec<u8>) {
        match self.write(&mut [0; 20]) {
            Some(text) => json::text(text, out),
            None => json::number(self.0.0, out),
        }
    }

    fn parse(text: &str) -> Option<Moment> {
        let text: &[u8; 20] = text.as_bytes().try_into().ok()?;
        let signs = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')];
        if signs.iter().any(|(at, sign)| text[*at] != *sign) {
            return None;
        }
        let number = |from: usize, to: usize| {
            let digit =
                |sum: i64, b: &u8| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0'));
            text[from..to].iter().try_fold(0, digit)
        };
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let real = (1..=12).contains(&month)
            && (1..=length_of(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        let clock = hour * 3600 + minute * 60 + second;
        real.then(|| Moment(Time(days_of(year, month, day) * DAY + clock)))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.write(&mut [0; 20]) {
            Some(text) => f.write_str(text),
            None => write!(f, "{} s after 1970", self.0.0),
        }
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.write(&mut [0; 20]) {
            Some(text) => serializer.serialize_str(text),
            None => serializer.serialize_i64(self.0.0),
        }
    }
}

struct MomentVisitor;

impl Visitor<'_> for MomentVisitor {
    type Value = Moment;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a moment like 2026-10-03T18:52:00Z")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Moment, E> {
        Moment::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
    fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Moment, E> {
        Ok(Moment(Time(seconds)))
    }
    fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Moment, E> {
        i64::try_from(seconds)
            .map(|s| Moment(Time(s)))
            .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(seconds), &self))
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Moment, D::Error> {
        deserializer.deserialize_any(MomentVisitor)
    }
}

/// Billionths in a dollar: `Money`'s unit.
const BILLIONTHS: u64 = 1_000_000_000;

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Money(units) = self.0;
        let sign = if units < 0 { "-" } else { "" };
        let (whole, rest) = (units.unsigned_abs() / BILLIONTHS, units.unsigned_abs() % BILLIONTHS);
        let fraction = format!("{rest:09}");
        // Cents are always written: people read "12.00" as money.
        let shown = fraction.trim_end_matches('0').len().max(2);
        write!(f, "{sign}{whole}.{}", &fraction[..shown])
    }
}

impl Amount {
    pub(super) fn spell(&self, out: &mut Vec<u8>) {
        json::quoted(self, out);
    }

    fn parse(text: &str) -> Option<Amount> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !plain(whole) || !plain(fraction) || fraction.len() > 9 {
            return None;
        }
        let billionths: i128 = format!("{fraction:0<9}").parse().ok()?;
        let units = whole.parse::<i128>().ok()?.checked_mul(i128::from(BILLIONTHS))? + billionths;
        i64::try_from(if negative { -units } else { units }).ok().map(|u| Amount(Money(u)))
    }
}

/// Read by a parser from text.
macro_rules! as_text {
    ($ty:ident $(<$a:lifetime>)?, $parse:expr, $expecting:literal) => {
        impl<'de $(, $a)?> Deserialize<'de> for $ty $(<$a>)? {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<str>::deserialize(deserializer)?;
                let parse: fn(&str) -> Option<Self> = $parse;
                parse(&text).ok_or_else(|| {
                    de::Error::invalid_value(de::Unexpected::Str(&text), &$expecting)
                })
            }
        }
    };
}
as_text!(Amount, Amount::parse, "dollars like \"12.50\"");
as_text!(Name<'a>, |text| ShardId::parse(text).map(|id| Name(Cow::Owned(id))), "family/shard");
as_text!(
    Ending,
    |text| EndWord::ALL.into_iter().find(|w| w.word() == text).map(Ending),
    "one of Slurm's end words"
);

impl Name<'_> {
    pub(super) fn spell(id: &ShardId, out: &mut Vec<u8>) {
        if !json::is_plain(&id.family) || !json::is_plain(&id.shard) {
            return json::text(&id.to_string(), out);
        }
        out.push(b'"');
        out.extend_from_slice(id.family.as_bytes());
        out.push(b'/');
        out.extend_from_slice(id.shard.as_bytes());
        out.push(b'"');
    }
}

impl Ending {
    pub(super) fn spell(&self, out: &mut Vec<u8>) {
        json::text(self.0.word(), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        // As `date -u -d @N` prints them.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_791_053_520, "2026-10-03T18:52:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (FIRST, "0000-01-01T00:00:00Z"),
            (LAST, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(Moment(Time(seconds)).to_string(), text);
            assert_eq!(Moment::parse(text).map(|m| m.0), Some(Time(seconds)), "{text}");
        }
    }

    #[test]
    fn every_day_of_eight_centuries_comes_back() {
        let mut before = days_of(1599, 12, 31);
        for days in days_of(1600, 1, 1)..days_of(2400, 1, 1) {
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, month, day), days);
            assert_eq!(days, before + 1);
            before = days;
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for bad in [
            "",
            "2026-02-30T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00:00+",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00Zx",
        ] {
            assert!(Moment::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn money_is_exact() {
        for (units, text) in [
            (0, "0.00"),
            (80_000_000, "0.08"),
            (12_345_000_000, "12.345"),
            (1, "0.000000001"),
            (-500_000_000, "-0.50"),
            (i64::MAX, "9223372036.854775807"),
            (i64::MIN, "-9223372036.854775808"),
        ] {
            assert_eq!(Amount(Money(units)).to_string(), text);
            assert_eq!(Amount::parse(text).map(|a| a.0), Some(Money(units)), "{text}");
        }
        for bad in ["", ".", "1.", ".5", "1e3", "1,5", "+1", "--1", "1.0000000001", "9223372037"] {
            assert!(Amount::parse(bad).is_none(), "{bad}");
        }
    }
}
