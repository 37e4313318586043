//! The report's charts over time: rows, runs, GPUs, labs, incidents.

use std::collections::BTreeMap;

use crate::model::policy::Lane;
use crate::model::state::State;
use crate::model::units::{Time, Usage};

use super::super::forecast::Forecast;
use super::super::format::{count, day_and_minute, secs, span_words};
use super::super::view::Status;
use super::axis::Axis;
use super::chart::{Table, figure};
use super::gantt::{Bar, End, Gantt, Where};
use super::history::{History, Run, Trouble};
use super::lines::{Band, Line, Lines, Mark, Points};
use super::markup::{El, el};
use super::nothing;
use super::strips::{self, Happened, Strip};

/// Lines of a chart of shards; of more shards those are drawn that had most tries.
pub const SHARDS_SHOWN: usize = 40;
/// Of one shard, the last ones.
const RUNS_SHOWN: usize = 80;
const PLACEMENTS_SHOWN: usize = 16;
const LABS_SHOWN: usize = 6;
/// Rows of a table behind a chart: a page is for looking, `--json` for reading all.
const TABLE: usize = 200;
/// Parts of the time for which a mean is drawn, where there are more changes than that.
const PARTS: usize = 300;

/// What the charts are drawn from.
pub struct Past<'a> {
    pub history: &'a History,
    pub status: &'a Status,
    pub state: &'a State,
    pub forecast: Option<&'a Forecast>,
    pub now: Time,
    /// All of the past, and nothing else.
    pub x: Axis,
}

fn at(time: Time) -> f64 {
    time.0 as f64
}

impl Past<'_> {
    pub fn rows(&self) -> El {
        let totals = &self.status.totals;
        let mut points: Points = self.history.totals.iter().map(|t| (at(t.at), t.rows)).collect();
        points.push((at(self.now), f64::from(totals.rows_done)));
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
        let y = Axis::from_zero(f64::from(totals.rows_total.max(1)), &|rows| format!("{rows:.0}"));
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
            id: "chart-rows",
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

    /// The shards whose runs are drawn: all, or those with most tries.
    fn drawn(&self) -> Vec<&str> {
        let mut shards: Vec<_> = self.status.shards.iter().collect();
        if shards.len() > SHARDS_SHOWN {
            shards.sort_by_key(|s| std::cmp::Reverse((s.needs_person, s.failures, s.attempts)));
            shards.truncate(SHARDS_SHOWN);
        }
        shards.iter().map(|shard| shard.id.as_str()).collect()
    }

    pub fn runs(&self) -> Vec<El> {
        if self.history.runs.is_empty() {
            return vec![nothing("No shard has run yet.")];
        }
        let mut by_shard: BTreeMap<&str, Vec<Bar>> = BTreeMap::new();
        for run in &self.history.runs {
            by_shard.entry(&run.id).or_default().push(bar(run));
        }
        for kept in &self.history.kept {
            let what = if kept.led_to_a_start { "until it started" } else { "without a start" };
            by_shard.entry(&kept.id).or_default().push(Bar {
                from: at(kept.from),
                to: at(kept.to),
                place: Where::Reserved,
                end: None,
                says: format!("{}: {} reserved, {what}", kept.id, count(kept.gpus, "GPU")),
            });
        }
        let tries: BTreeMap<&str, u32> =
            self.status.shards.iter().map(|s| (s.id.as_str(), s.attempts)).collect();
        let row = |id: &str| {
            let mut bars = by_shard.remove(id).unwrap_or_default();
            bars.drain(..bars.len().saturating_sub(RUNS_SHOWN));
            let n = tries.get(id).copied().unwrap_or(0);
            let figure = if n == 1 { "1 try".to_owned() } else { format!("{n} tries") };
            (id.to_owned(), figure, bars)
        };
        let drawn = self.drawn();
        let rows: Vec<_> = drawn.into_iter().map(row).collect();
        let mut ends: BTreeMap<End, u32> = BTreeMap::new();
        for run in &self.history.runs {
            *ends.entry(run.end).or_default() += 1;
        }
        let ends: Vec<String> = ends.iter().map(|(end, n)| format!("{n} {}", end.word())).collect();
        let says =
            format!("{}: {}.", count(self.history.runs.len() as u64, "run"), ends.join(", "));
        let mut parts = vec![el("p").text(says.clone())];
        if self.status.shards.len() > rows.len() {
            parts.push(el("p").text(format!(
                "All runs by family; below them the {} of {} shards that needed most tries.",
                rows.len(),
                self.status.shards.len()
            )));
            parts.push(self.families());
        }
        let last = self.history.runs.iter().rev().take(TABLE).map(listed);
        parts.push(
            Gantt {
                id: "chart-runs".into(),
                title: "Runs of each shard over time".into(),
                says,
                x: self.x.clone(),
                rows,
                table: Table {
                    caption: "the last runs, newest first".into(),
                    heads: vec![
                        ("Shard", false),
                        ("Try", true),
                        ("Lane", false),
                        ("Node", false),
                        ("GPUs", true),
                        ("From", false),
                        ("Length", true),
                        ("How it ended", false),
                    ],
                    rows: last.collect(),
                },
            }
            .figure(),
        );
        parts
    }

    fn families(&self) -> El {
        let family = |run: &Run| run.id.split('/').next().unwrap_or_default().to_owned();
        let title = "GPUs in use over time, by family";
        self.strips("chart-families", title, "GPUs of each family", &family)
    }

    pub fn gpus(&self) -> El {
        if self.history.runs.is_empty() {
            return nothing("No GPU has been in use yet.");
        }
        let placement = |run: &Run| {
            let node = run.node.as_deref().unwrap_or("node not known");
            match &run.tier {
                Some(tier) => format!("{node} {tier}"),
                None => node.to_owned(),
            }
        };
        let title = "GPUs in use over time, by placement";
        self.strips("chart-gpus", title, "GPUs of each placement", &placement)
    }

    /// GPUs in use over time: in all, and by what `name` says of each run.
    fn strips(
        &self,
        id: &'static str,
        title: &str,
        caption: &str,
        name: &dyn Fn(&Run) -> String,
    ) -> El {
        let mut groups: BTreeMap<String, Vec<&Run>> = BTreeMap::new();
        for run in &self.history.runs {
            groups.entry(name(run)).or_default().push(run);
        }
        let seconds = |runs: &[&Run]| -> i64 {
            runs.iter().map(|run| run.to.since(run.from).0 * i64::from(run.gpus)).sum()
        };
        let mut groups: Vec<(String, Vec<&Run>)> = groups.into_iter().collect();
        // Runs of no length at all took no GPU from anybody.
        groups.retain(|(_, runs)| seconds(runs) > 0);
        groups.sort_by_key(|(_, runs)| std::cmp::Reverse(seconds(runs)));
        let others: Vec<&Run> = groups
            .iter()
            .skip(PLACEMENTS_SHOWN)
            .flat_map(|(_, runs)| runs.iter().copied())
            .collect();
        let left = groups.len().saturating_sub(PLACEMENTS_SHOWN);
        groups.truncate(PLACEMENTS_SHOWN);
        if left > 0 {
            groups.push((format!("{left} others"), others));
        }
        let all = self.history.runs.iter().collect();
        groups.insert(0, ("all".to_owned(), all));
        let mut rows = Vec::new();
        let mut drawn = Vec::new();
        for (name, runs) in &groups {
            let steps = in_use(runs);
            let most = steps.iter().map(|(_, gpus)| *gpus).fold(0.0, f64::max);
            let live = runs.iter().filter(|run| run.end == End::Running);
            let now: u32 = live.map(|run| run.gpus).sum();
            let hours = seconds(runs) as f64 / 3600.0;
            rows.push(vec![
                name.clone(),
                now.to_string(),
                format!("{most:.0}"),
                format!("{hours:.1}"),
                runs.len().to_string(),
            ]);
            drawn.push(Strip {
                name: name.clone(),
                figure: format!("now {now}, most {most:.0}"),
                steps: smooth(steps),
                full: most,
            });
        }
        let first = rows.first().cloned().unwrap_or_default();
        let says = match first.as_slice() {
            [_, now, most, hours, _] => format!(
                "{now} GPUs in use now, {most} at most, {hours} GPU-hours so far. Each line is \
                 filled at its own most."
            ),
            _ => String::new(),
        };
        let plot = strips::plot(id, title, &says, &self.x, drawn);
        let table = Table {
            caption: caption.to_owned(),
            heads: vec![
                ("Name", false),
                ("GPUs now", true),
                ("Most", true),
                ("GPU-hours", true),
                ("Runs", true),
            ],
            rows,
        };
        figure(Vec::new(), plot, table)
    }

    pub fn labs(&self) -> El {
        let mut charges: BTreeMap<&str, Vec<(Time, Usage)>> = BTreeMap::new();
        for record in self.state.shards.iter().chain(&self.state.orphans) {
            for charge in &record.charges {
                let amount = charge.gpu_seconds.weighted(charge.weight);
                charges.entry(&charge.lab).or_default().push((charge.at, amount));
            }
        }
        let mut labs: Vec<_> = self.status.labs.iter().collect();
        labs.sort_by(|a, b| b.usage.total_cmp(&a.usage));
        let begins = self.history.begins().unwrap_or(self.now);
        let line = |(n, lab): (usize, &&super::super::view::LabView)| {
            let mut charged = charges.remove(lab.name.as_str()).unwrap_or_default();
            charged.sort_unstable_by_key(|(at, _)| *at);
            let mut sum = Usage::default();
            let mut points = vec![(at(begins), 0.0)];
            points.extend(charged.into_iter().map(|(when, amount)| {
                sum += amount;
                (at(when), sum.tflop_seconds())
            }));
            points.push((at(self.now), lab.usage));
            Line { name: lab.name.clone(), look: n + 1, points, steps: true }
        };
        let lines: Vec<Line> = labs.iter().take(LABS_SHOWN).enumerate().map(line).collect();
        let most = labs.first().map_or(0.0, |lab| lab.usage);
        if most <= 0.0 {
            return nothing("Nothing is charged yet: a run is charged when it ends.");
        }
        let row = |lab: &&super::super::view::LabView| {
            vec![
                lab.name.clone(),
                lab.rank.to_string(),
                super::super::format::usage(lab.usage),
                format!("{:.0} %", lab.share * 100.0),
                lab.running_gpus.to_string(),
            ]
        };
        let says = labs
            .iter()
            .map(|lab| format!("{} {} ({:.0} %)", lab.name, short(lab.usage), lab.share * 100.0));
        let says =
            format!("Usage so far, in TFLOP-seconds: {}.", says.collect::<Vec<_>>().join(", "));
        Lines {
            id: "chart-labs",
            title: "Usage of each lab over time".into(),
            says,
            x: self.x.clone(),
            y: Axis::from_zero(most, &short),
            lines,
            bands: Vec::new(),
            marks: Vec::new(),
            table: Table {
                caption: "usage of each lab".into(),
                heads: vec![
                    ("Lab", false),
                    ("Rank", true),
                    ("Usage (TFLOP-s)", true),
                    ("Share", true),
                    ("GPUs now", true),
                ],
                rows: labs.iter().map(row).collect(),
            },
        }
        .figure()
    }

    pub fn incidents(&self) -> El {
        let all = &self.history.incidents;
        if all.is_empty() {
            return nothing(match self.history.since {
                Some(_) => "None: no tick was skipped, nothing was refused, held or stalled.",
                None => "The journal is empty or lost, so none can be told.",
            });
        }
        let kinds = Trouble::ALL.into_iter().filter_map(|trouble| {
            let of = all.iter().filter(|i| i.trouble == trouble);
            let times: Vec<_> = of.map(|i| (at(i.from), at(i.to.min(self.now)))).collect();
            let kind = trouble.name().to_owned();
            (!times.is_empty()).then_some(Happened { kind, times })
        });
        let kinds: Vec<Happened> = kinds.collect();
        let says: Vec<String> =
            kinds.iter().map(|kind| format!("{} {}", kind.times.len(), kind.kind)).collect();
        let says = format!("{}.", says.join(", "));
        let row = |incident: &super::history::Incident| {
            let mut when = day_and_minute(incident.from);
            if incident.times > 1 {
                let length = span_words(incident.to.since(incident.from));
                when.push_str(&format!(" ({} times in {length})", incident.times));
            }
            let shard = incident.shard.clone().unwrap_or_default();
            vec![when, incident.trouble.name().to_owned(), shard, incident.text.clone()]
        };
        let table = Table {
            caption: "the last incidents, newest first".into(),
            heads: vec![("When", false), ("What", false), ("Shard", false), ("In words", false)],
            rows: all.iter().rev().take(TABLE).map(row).collect(),
        };
        let plot = strips::dots("chart-incidents", "Incidents over time", &says, &self.x, kinds);
        figure(Vec::new(), plot, table)
    }
}

fn lane_of(run: &Run) -> Where {
    match run.lane {
        Some(Lane::Own) => Where::Own,
        Some(Lane::Extra) => Where::Extra,
        // Of a job that asked for both lanes Slurm does not say in which it runs.
        Some(Lane::Both) | None => Where::Other,
    }
}

fn bar(run: &Run) -> Bar {
    let place = lane_of(run);
    let node = run.node.as_deref().map_or(String::new(), |node| format!(" on {node}"));
    let says = format!(
        "{}, try {} {}{node}: {}, {} after {}",
        run.id,
        run.attempt,
        place.word(),
        day_and_minute(run.from),
        run.end.word(),
        span_words(run.to.since(run.from))
    );
    Bar { from: at(run.from), to: at(run.to), place, end: Some(run.end), says }
}

fn listed(run: &Run) -> Vec<String> {
    let end = match &run.word {
        Some(word) => format!("{} ({word})", run.end.word()),
        None => run.end.word().to_owned(),
    };
    vec![
        run.id.clone(),
        run.attempt.to_string(),
        run.lane.map_or("-", Lane::word).to_owned(),
        run.node.clone().unwrap_or_else(|| "-".to_owned()),
        run.gpus.to_string(),
        day_and_minute(run.from),
        span_words(secs(run.to.since(run.from).as_f64())),
        end,
    ]
}

/// GPUs in use from each moment on.
fn in_use(runs: &[&Run]) -> Points {
    let mut changes: Vec<(Time, i64)> = runs
        .iter()
        .flat_map(|run| [(run.from, i64::from(run.gpus)), (run.to, -i64::from(run.gpus))])
        .collect();
    // Ends before starts: a GPU that changes hands is one GPU.
    changes.sort_unstable();
    let mut gpus = 0;
    let mut points: Points = Vec::new();
    for (moment, change) in changes {
        gpus += change;
        match points.last_mut().filter(|(last, _)| *last == at(moment)) {
            Some((_, last)) => *last = gpus as f64,
            None => points.push((at(moment), gpus as f64)),
        }
    }
    points
}

/// Where there are more changes than can be seen: means over equal parts of the time.
fn smooth(points: Points) -> Points {
    let ends = points.first().zip(points.last()).map(|(a, b)| (a.0, b.0));
    let Some((begin, end)) = ends.filter(|(a, b)| points.len() > 2 * PARTS && b > a) else {
        return points;
    };
    let part = (end - begin) / PARTS as f64;
    let mut sums = vec![0.0; PARTS];
    for pair in points.windows(2) {
        let [(from, gpus), (to, _)] = pair else { continue };
        let mut at = *from;
        while at < *to {
            let n = (((at - begin) / part) as usize).min(PARTS - 1);
            let until = if n + 1 == PARTS { *to } else { to.min(begin + (n + 1) as f64 * part) };
            if let Some(sum) = sums.get_mut(n) {
                *sum += gpus * (until - at);
            }
            // A part that rounding made empty is left behind.
            at = if until > at { until } else { at + part * 1e-6 };
        }
    }
    let mean = |(n, sum): (usize, &f64)| (begin + n as f64 * part, sum / part);
    sums.iter().enumerate().map(mean).chain([(end, 0.0)]).collect()
}

/// At most so many of them, evenly, the last among them.
fn every<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let each = all.len().div_ceil(most.max(1)).max(1);
    let last = all.len().saturating_sub(1);
    let kept = all.into_iter().enumerate().filter(|(n, _)| n % each == 0 || *n == last);
    kept.map(|(_, one)| one).collect()
}

/// `950`, `1.2 k`, `34 M`
fn short(number: f64) -> String {
    let (unit, divided) = match number {
        1e12.. => (" T", number / 1e12),
        1e9.. => (" G", number / 1e9),
        1e6.. => (" M", number / 1e6),
        1e3.. => (" k", number / 1e3),
        _ => ("", number),
    };
    if divided < 10.0 && divided.fract() > 0.05 {
        format!("{divided:.1}{unit}")
    } else {
        format!("{divided:.0}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothing_keeps_the_gpu_hours() {
        let points: Points = (0..2001).map(|n| (f64::from(n) * 7.0, f64::from(n % 5))).collect();
        let area = |points: &Points| -> f64 {
            points.windows(2).map(|w| w[0].1 * (w[1].0 - w[0].0)).sum()
        };
        let smoothed = smooth(points.clone());
        assert!(smoothed.len() <= PARTS + 1);
        assert!((area(&points) / area(&smoothed) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn large_numbers_are_short() {
        let shown = [0.0, 950.0, 1234.0, 56_780.0, 2.5e6, 3e9].map(short);
        assert_eq!(shown, ["0", "950", "1.2 k", "57 k", "2.5 M", "3 G"]);
    }
}
