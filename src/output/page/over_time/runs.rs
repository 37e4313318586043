//! The runs of each shard over time.

use std::collections::BTreeMap;

use crate::model::policy::Lane;
use crate::output::format::{count, day_and_minute, secs, span};

use super::super::chart::Table;
use super::super::gantt::{Bar, End, Gantt, Where};
use super::super::history::Run;
use super::super::markup::{El, el};
use super::super::nothing;
use super::{Past, SHARDS_SHOWN, TABLE, at};

/// Of one shard, the last ones.
const RUNS_SHOWN: usize = 80;

impl Past<'_> {
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
        span(run.to.since(run.from))
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
        span(secs(run.to.since(run.from).as_f64())),
        end,
    ]
}
