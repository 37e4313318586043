//! GPUs in use over time: by placement, and by family.

use std::collections::BTreeMap;

use crate::model::units::Time;

use super::super::chart::{Table, figure};
use super::super::gantt::End;
use super::super::history::Run;
use super::super::lines::Points;
use super::super::markup::El;
use super::super::nothing;
use super::super::strips::{self, Strip};
use super::{Past, at};

const PLACEMENTS_SHOWN: usize = 16;
/// Parts of the time for which a mean is drawn, where there are more changes than that.
const PARTS: usize = 300;

impl Past<'_> {
    pub(super) fn families(&self) -> El {
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
}
