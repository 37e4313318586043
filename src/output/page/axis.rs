//! Scales and their ticks: a value's place on an axis, from 0 to 1, and what is written there.

use chrono::{DateTime, Utc};

use crate::model::units::Time;

use super::super::format::short_day;
use super::markup::{El, classed};

/// Ticks of a wide screen; every other one is left out on a narrow one.
const TICKS: f64 = 8.0;

/// From left to right.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    ticks: Vec<(f64, String)>,
}

/// So that the highest line does not lie on the frame.
const HEADROOM: f64 = 1.05;

const MINUTE: f64 = 60.0;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;

impl Axis {
    /// Seconds since 1970, in UTC.
    pub fn of_time(from: Time, to: Time) -> Axis {
        let (low, high) = (from.0 as f64, (to.0.max(from.0 + 60)) as f64);
        let steps = [10.0 * MINUTE, 30.0 * MINUTE, HOUR, 2.0 * HOUR, 3.0 * HOUR, 6.0 * HOUR]
            .into_iter()
            .chain([12.0 * HOUR, DAY, 2.0 * DAY, 7.0 * DAY, 14.0 * DAY, 28.0 * DAY]);
        let fits = |step: &f64| (high - low) / step <= TICKS;
        let step = steps.clone().find(fits).unwrap_or((high - low) / TICKS);
        let ticks = marks(low, high, step);
        let label = |(n, at): (usize, f64)| (at, moment(at, step, n == 0));
        Axis { low, high, ticks: ticks.into_iter().enumerate().map(label).collect() }
    }

    /// Hours from 0.
    pub fn of_hours(to: f64) -> Axis {
        let high = to.max(1.0);
        let steps = [1.0, 2.0, 3.0, 6.0, 12.0, 24.0, 48.0, 96.0, 168.0];
        let step = steps.into_iter().find(|s| high / s <= TICKS).unwrap_or(high / TICKS);
        let label = |at: f64| (at, format!("{at:.0} h"));
        Axis { low: 0.0, high, ticks: marks(0.0, high, step).into_iter().map(label).collect() }
    }

    /// From 0 to a little more than `most`.
    pub fn from_zero(most: f64, label: &dyn Fn(f64) -> String) -> Axis {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let high = most * HEADROOM;
        let label = |at: f64| (at, label(at));
        let ticks = marks(0.0, high, round_step(most / 5.0));
        Axis { low: 0.0, high, ticks: ticks.into_iter().map(label).collect() }
    }

    /// 0 to 1; what lies beyond the ends is put at them.
    pub fn place(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    pub fn percent(&self, value: f64) -> String {
        percent(self.place(value))
    }

    pub fn ticks(&self) -> impl Iterator<Item = f64> {
        self.ticks.iter().map(|(at, _)| *at)
    }

    /// The labels below a plot.
    pub fn below(&self) -> El {
        let label = |(n, (at, text)): (usize, &(f64, String))| {
            let place = self.place(*at);
            // What a narrow screen leaves out first, and what next.
            let rank = match n % 4 {
                0 => "",
                2 => "mid ",
                _ => "minor ",
            };
            let side = match place {
                ..0.04 => "first",
                0.96.. => "last",
                _ => "",
            };
            let class = format!("{rank}{side}");
            let label = classed("span", &class).at("style", format!("left:{}", percent(place)));
            label.text(text.clone())
        };
        let ticks = self.ticks.iter().enumerate().map(label);
        classed("div", "x").at("aria-hidden", "true").all(ticks)
    }

    /// The labels left of a plot.
    pub fn beside(&self) -> El {
        let label = |(at, text): &(f64, String)| {
            let place = format!("bottom:{}", percent(self.place(*at)));
            classed("span", "").at("style", place).text(text.clone())
        };
        classed("div", "y").at("aria-hidden", "true").all(self.ticks.iter().map(label))
    }
}

/// `12.34%`
pub fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

fn marks(low: f64, high: f64, step: f64) -> Vec<f64> {
    let first = (low / step).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last.min(first + 40)).map(|n| n as f64 * step).collect()
}

/// 1, 2 or 5 times a power of ten.
fn round_step(about: f64) -> f64 {
    let power = 10f64.powf(about.log10().floor());
    let times = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|t| t * power >= about * 0.999);
    times.unwrap_or(10.0) * power
}

/// `15:00`; the day where one begins, and at the first tick.
fn moment(at: f64, step: f64, first: bool) -> String {
    let Some(time) = DateTime::<Utc>::from_timestamp(at as i64, 0) else { return String::new() };
    let midnight = (at as i64).rem_euclid(86_400) == 0;
    if step >= DAY || midnight {
        time.format("%-d %b").to_string()
    } else if first {
        short_day(Time(at as i64))
    } else {
        time.format("%H:%M").to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_at_round_moments_and_name_the_day() {
        // 2026-11-03 15:00 UTC
        let axis = Axis::of_time(Time(1_793_718_000), Time(1_793_718_000 + 20 * 3600));
        assert_eq!(
            labels(&axis),
            ["3 Nov 15:00", "18:00", "21:00", "4 Nov", "03:00", "06:00", "09:00"]
        );
        let month = Axis::of_time(Time(1_793_718_000), Time(1_793_718_000 + 30 * 86_400));
        assert!(labels(&month).iter().all(|label| !label.contains(':')), "{month:?}");
    }

    #[test]
    fn an_axis_from_zero_holds_all_and_has_a_few_round_ticks() {
        for (most, last) in [(671.0, "600"), (0.0, "1"), (420.0, "400"), (0.7, "0.6"), (8.0, "8")] {
            let axis = Axis::from_zero(most, &|at| format!("{}", (at * 10.0).round() / 10.0));
            assert_eq!(labels(&axis).last(), Some(&last), "{axis:?}");
            assert!((3..=7).contains(&axis.ticks.len()), "{axis:?}");
            assert!(axis.place(most) < 1.0);
        }
    }

    #[test]
    fn a_campaign_of_no_length_has_an_axis() {
        let axis = Axis::of_time(Time(1_793_718_000), Time(1_793_718_000));
        assert_eq!(axis.percent(1_793_718_000.0), "0%");
        assert_eq!(axis.percent(f64::MAX), "100%");
    }
}
