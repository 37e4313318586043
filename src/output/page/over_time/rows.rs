//! Finished rows over time, and the forecast of the rest.

use crate::model::units::Time;
use crate::output::format::day_and_minute;

use super::super::axis::Axis;
use super::super::chart::Table;
use super::super::lines::{Band, Line, Lines, Mark, Points};
use super::super::markup::El;
use super::super::nothing;
use super::{Past, TABLE, at};

impl Past<'_> {
    pub fn rows(&self) -> El {
        let totals = &self.status.totals;
        let mut points: Points = self.history.totals.iter().map(|t| (at(t.at), t.rows)).collect();
        points.push((at(self.now), totals.rows_done as f64));
        let begins = self.history.begins().unwrap_or(self.now);
        if points.len() < 2 && self.forecast.is_none() {
            return nothing(
                "Nothing to draw yet: babysit notes the totals every ten minutes while a shard runs.",
            );
        }
        let ahead = self.forecast.map(|f| f.rows_done.as_slice()).unwrap_or_default();
        // A few futures take much longer than nearly all; drawn to their end they would be most of the picture.
        let enough = self.forecast.and_then(|f| f.all_done_in).map_or(0.0, |range| range.high);
        let end = ahead.iter().position(|r| r.seconds >= enough).map_or(ahead.len(), |n| n + 1);
        let ahead = ahead.get(..end).unwrap_or_default();
        let later = |seconds: f64| self.now.0 as f64 + seconds;
        let ends = ahead.last().map_or(at(self.now), |last| later(last.seconds));
        let x = Axis::of_time(begins, Time(ends.max(at(self.now)) as i64));
        let y = Axis::from_zero(totals.rows_total.max(1) as f64, &|rows| format!("{rows:.0}"));
        let mut lines = vec![Line {
            name: "finished rows".into(),
            look: 1,
            points: points.clone(),
            steps: false,
        }];
        let mut bands = Vec::new();
        if !ahead.is_empty() {
            lines.push(Line {
                name: "forecast, the middle".into(),
                look: 2,
                points: ahead.iter().map(|r| (later(r.seconds), r.done.median)).collect(),
                steps: false,
            });
            bands.push(Band {
                name: "nine of ten simulated futures".into(),
                look: 2,
                points: ahead.iter().map(|r| (later(r.seconds), r.done.low, r.done.high)).collect(),
            });
        }
        let row = |time: f64, what: &str, rows: String| {
            vec![day_and_minute(Time(time as i64)), what.to_owned(), rows]
        };
        let seen = points.iter().map(|(time, rows)| row(*time, "counted", format!("{rows:.0}")));
        let coming = ahead.iter().map(|r| {
            let text = format!("{:.0} ({:.0} to {:.0})", r.done.median, r.done.low, r.done.high);
            row(later(r.seconds), "forecast", text)
        });
        let rows = every(seen.collect(), TABLE / 2).into_iter().chain(every(coming.collect(), 60));
        let until = match ahead.last() {
            Some(last) => format!(
                " The forecast: {:.0} rows, or in nine of ten futures {:.0} to {:.0}, by {}.",
                last.done.median,
                last.done.low,
                last.done.high,
                day_and_minute(Time(later(last.seconds) as i64))
            ),
            None => String::new(),
        };
        let says = format!(
            "{} of {} rows are finished, from {} to {}.{until}",
            totals.rows_done,
            totals.rows_total,
            day_and_minute(begins),
            day_and_minute(self.now)
        );
        Lines {
            id: "chart-rows".into(),
            title: "Finished rows over time".into(),
            says,
            x,
            y,
            lines,
            bands,
            marks: vec![Mark { name: "now".into(), at: at(self.now) }],
            table: Table {
                caption: "finished rows over time".into(),
                heads: vec![("When", false), ("What", false), ("Rows", true)],
                rows: rows.collect(),
            },
        }
        .figure()
    }
}

/// At most so many of them, evenly, the last among them.
fn every<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let each = all.len().div_ceil(most.max(1)).max(1);
    let last = all.len().saturating_sub(1);
    let kept = all.into_iter().enumerate().filter(|(n, _)| n % each == 0 || *n == last);
    kept.map(|(_, one)| one).collect()
}
