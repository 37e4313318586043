//! The usage of each lab over time.

use std::collections::BTreeMap;

use crate::model::units::{Time, Usage};
use crate::output::format::usage;
use crate::output::view::LabView;

use super::super::axis::Axis;
use super::super::chart::Table;
use super::super::lines::{Line, Lines};
use super::super::markup::El;
use super::super::nothing;
use super::{Past, at};

const LABS_SHOWN: usize = 6;

impl Past<'_> {
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
        let line = |(n, lab): (usize, &&LabView)| {
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
        let row = |lab: &&LabView| {
            vec![
                lab.name.clone(),
                lab.rank.to_string(),
                usage(lab.usage),
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
            id: "chart-labs".into(),
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
    fn large_numbers_are_short() {
        let shown = [0.0, 950.0, 1234.0, 56_780.0, 2.5e6, 3e9].map(short);
        assert_eq!(shown, ["0", "950", "1.2 k", "57 k", "2.5 M", "3 G"]);
    }
}
