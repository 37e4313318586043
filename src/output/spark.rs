//! The rows per hour of the last hours as a line of little bars.

use crate::model::units::{Secs, Time};

/// Low to high; `format::ascii` has a sign of ASCII for each.
pub const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Bars of the line; what lies further back than a day is for the report.
const WIDTH: i64 = 24;
const LONGEST: Secs = Secs::hours(24);
/// Shorter than this, a bar would tell of single rows.
const SHORTEST: Secs = Secs::hours(1);

/// Finished rows of the whole campaign at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub at: Time,
    pub rows: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Spark {
    pub bars: String,
    /// Of all bars together.
    pub length: Secs,
    /// Rows an hour of the highest bar.
    pub most: f64,
}

/// `points` in the order of time. `None`: they do not reach back far enough.
pub fn spark(points: &[Point], now: Time) -> Option<Spark> {
    let length = now.since(points.first()?.at).min(LONGEST);
    if length < SHORTEST {
        return None;
    }
    let edge = |i: i64| now - Secs(length.0 * (WIDTH - i) / WIDTH);
    let hours = length.as_f64() / WIDTH as f64 / 3600.0;
    let rates: Vec<f64> = (0..WIDTH)
        .map(|i| (rows_at(points, edge(i + 1)) - rows_at(points, edge(i))).max(0.0) / hours)
        .collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    let bar = |rate: &f64| {
        let level = if most > 0.0 { (rate / most * 7.0).round() as usize } else { 0 };
        BARS.get(level).copied().unwrap_or('█')
    };
    Some(Spark { bars: rates.iter().map(bar).collect(), length, most })
}

/// Between two points the rows are taken to have come evenly.
fn rows_at(points: &[Point], at: Time) -> f64 {
    let after = points.partition_point(|point| point.at <= at);
    let (before, next) = (after.checked_sub(1).and_then(|i| points.get(i)), points.get(after));
    match (before, next) {
        (Some(a), Some(b)) => {
            let part = at.since(a.at).as_f64() / b.at.since(a.at).as_f64().max(1.0);
            a.rows as f64 + part * (b.rows as f64 - a.rows as f64)
        }
        (Some(only), None) | (None, Some(only)) => only.rows as f64,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(hours: i64, rows: u64) -> Point {
        Point { at: Time(hours * 3600), rows }
    }

    #[test]
    fn a_bar_an_hour_and_the_highest_is_full() {
        // Ten rows an hour, a pause of six hours, then twenty an hour.
        let points = [point(0, 0), point(12, 120), point(18, 120), point(24, 240)];
        let spark = spark(&points, Time(24 * 3600)).expect("a day");
        assert_eq!(spark.bars, format!("{}{}{}", "▅".repeat(12), "▁".repeat(6), "█".repeat(6)));
        assert_eq!((spark.length, spark.most), (Secs::hours(24), 20.0));
    }

    #[test]
    fn too_short_a_past_and_rows_that_went_down_are_no_bars() {
        assert_eq!(spark(&[point(0, 3)], Time(1800)), None);
        assert_eq!(spark(&[], Time(1800)), None);
        let back = spark(&[point(0, 100), point(3, 40)], Time(3 * 3600)).expect("three hours");
        assert_eq!((back.bars, back.most), ("▁".repeat(24), 0.0));
    }
}
