//! `babysit simulate`: policies side by side, as a table and as `babysit/simulate/v1`.

use serde::Serialize;

use super::layout::{Cell, Columns, Side, wrap};
use super::paint::{Paint, Tone};

pub const SCHEMA: &str = "babysit/simulate/v1";

/// A mean with half the width of its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mean {
    pub mean: f64,
    /// `null` where a single value tells nothing of its spread.
    pub plus_minus: Option<f64>,
    pub n: usize,
}

/// Lengths in hours, money in dollars.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulation {
    pub schema: &'static str,
    pub scenario: String,
    pub scenario_says: String,
    /// Whose shards: a path, or the field's own.
    pub shards_of: String,
    pub shards: usize,
    pub rows: u64,
    pub own_gpus: u32,
    pub own_gpus_held_by_others: u32,
    pub park_own: usize,
    pub tick_every_seconds: i64,
    pub never_after_hours: f64,
    pub seeds_asked: u64,
    /// Seeds that every policy ran; fewer than asked after an interruption.
    pub seeds: usize,
    pub policies: Vec<PolicyView>,
    pub differences: Vec<Difference>,
    /// `null` for the field's campaign.
    pub yours: Option<Yours>,
}

/// What shards.toml has, among the policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Yours {
    /// The policy that is as shards.toml has it.
    pub policy: String,
    /// Families whose jobs are pilots by it, and families that it splits.
    pub pilots: Vec<String>,
    pub split: Vec<String>,
    /// Families whose shards babysit places, which wait in Slurm's queue here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placed: Vec<String>,
}

impl Yours {
    /// Which policy shards.toml is, and what becomes of its pilots and splits under the others.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut told = vec![match self.policy.as_str() {
            "yours" => "yours is your shards.toml as it stands".to_owned(),
            same => format!("your shards.toml as it stands is {same}"),
        }];
        if !self.pilots.is_empty() {
            let mine = if self.policy == "pilots" { "" } else { ", as set there under yours" };
            told.push(format!(
                "{}: pilots with pilot = \"any\" under pilots{mine}, usual jobs under the others",
                self.pilots.join(", ")
            ));
        }
        if !self.split.is_empty() {
            let mine = if self.policy == "split" { "" } else { " and yours" };
            told.push(format!(
                "{}: rows shared under split{mine}, one job a shard under the others",
                self.split.join(", ")
            ));
        }
        if !self.placed.is_empty() {
            told.push(format!(
                "{}: babysit places them, and here they wait in Slurm's queue; `simulate --compare \
                 field,best` places them on the GPUs that the last tick saw",
                self.placed.join(", ")
            ));
        }
        told
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyView {
    pub name: String,
    pub says: String,
    pub ended: usize,
    /// Campaigns that had not ended after `never_after_hours`; in no mean.
    pub never_ended: usize,
    pub makespan: Option<Mean>,
    pub bound: Option<Mean>,
    pub times_bound: Option<Mean>,
    pub mean_completion: Option<Mean>,
    pub preemptions: Option<Mean>,
    pub lost_rows: Option<Mean>,
    /// GPU-hours that stood idle while a shard waited.
    pub idle_gpu_hours: Option<Mean>,
    pub gpu_hours: Option<Mean>,
    /// `null` where no price is known.
    pub cost: Option<Mean>,
    /// Shards that their cap stopped; they count as ended there.
    pub stopped_by_cap: Option<Mean>,
    pub wait_of_others: Option<Mean>,
}

/// The same seeds under two policies: what the first took more than the second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    pub policy: String,
    pub against: String,
    pub longer_by: Option<Mean>,
    /// Dollars; `null` where no price is known.
    pub dearer_by: Option<Mean>,
    pub more_rows_lost: Option<Mean>,
}

pub fn text(s: &Simulation, width: Option<usize>, paint: Paint) -> String {
    let head = format!(
        "{} shards, {} rows ({}); scenario {}: {}; own has {} GPUs, {} of them another session's; \
         K = {}; {} seed(s), mean and 95 % interval, hours",
        s.shards,
        s.rows,
        s.shards_of,
        s.scenario,
        s.scenario_says,
        s.own_gpus,
        s.own_gpus_held_by_others,
        s.park_own,
        s.seeds
    );
    let mut out = wrap(&head, 0, width);
    if s.seeds == 0 {
        out.push_str("\nno campaign was finished\n");
        return out;
    }
    out.push('\n');
    let columns = Columns {
        heads: vec![
            ("POLICY", Side::Left),
            ("MAKESPAN", Side::Right),
            ("X BOUND", Side::Right),
            ("MEAN END", Side::Right),
            ("LOST ROWS", Side::Right),
            ("IDLE GPU-H", Side::Right),
            ("COST", Side::Right),
            ("OTHERS WAIT", Side::Right),
            ("NEVER", Side::Right),
        ],
        rows: s.policies.iter().map(row).collect(),
    };
    out.push_str(&columns.render(None, paint));
    for policy in &s.policies {
        if let Some(capped) = policy.stopped_by_cap.filter(|capped| capped.mean > 0.0) {
            let line = format!("{}: a cap stops {:.1} shards", policy.name, capped.mean);
            out.push_str(&wrap(&line, 0, width));
        }
    }
    let mut told: Vec<String> = s.differences.iter().filter_map(sentence).collect();
    told.extend(s.yours.iter().flat_map(Yours::sentences));
    if !told.is_empty() {
        out.push('\n');
        told.iter().for_each(|line| out.push_str(&wrap(line, 0, width)));
    }
    out
}

/// `now instead of v4.1: ends 2.1 h earlier (95 %: 1.6 to 2.6 h); ...`. The difference is that of
/// the last policy against the first.
pub fn savings(s: &Simulation) -> String {
    let Some(d) = s.differences.first().filter(|_| s.seeds > 0) else {
        return "no campaign was finished\n".to_owned();
    };
    let never: usize = s.policies.iter().map(|policy| policy.never_ended).sum();
    let mut parts = vec![
        saved(d.longer_by, "earlier", "later", |n| format!("{n:.1} h"))
            .map(|text| format!("ends {text}")),
        match d.dearer_by {
            Some(_) => saved(d.dearer_by, "less", "more", |n| format!("${n:.2}"))
                .map(|text| format!("costs {text}")),
            None => Some("no price is known".to_owned()),
        },
        saved(d.more_rows_lost, "fewer", "more", |n| format!("{n:.1}"))
            .map(|text| format!("rows lost to preemptions: {text}")),
    ];
    if never > 0 {
        parts.push(Some(format!("{never} campaigns never ended and are left out")));
    }
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!(
        "{} instead of {}: {} ({} seeds, scenario {}, {})\n",
        d.policy,
        d.against,
        parts.join("; "),
        s.seeds,
        s.scenario,
        s.shards_of
    )
}

/// `2.1 h earlier (95 %: 1.6 to 2.6 h)`; `mean` is what the new one takes more.
pub(super) fn saved(
    mean: Option<Mean>,
    less: &str,
    more: &str,
    shown: fn(f64) -> String,
) -> Option<String> {
    let Mean { mean, plus_minus, .. } = mean?;
    let (word, size) = if mean > 0.0 { (more, mean) } else { (less, -mean) };
    Some(match plus_minus {
        Some(half) if half == 0.0 && mean == 0.0 => "the same".to_owned(),
        Some(half) if half > size => {
            format!("{} {word} (±{}: not told apart)", shown(size), shown(half))
        }
        Some(half) => {
            format!(
                "{} {word} (95 %: {} to {})",
                shown(size),
                shown(size - half),
                shown(size + half)
            )
        }
        None => format!("{} {word}", shown(size)),
    })
}

fn row(policy: &PolicyView) -> Vec<Cell> {
    let never = match policy.never_ended {
        0 => Cell::new("-"),
        n => Cell::tone(n.to_string(), Tone::Bad),
    };
    vec![
        Cell::tone(policy.name.clone(), Tone::Strong),
        Cell::new(mean(policy.makespan, 1)),
        Cell::new(mean(policy.times_bound, 2)),
        Cell::new(mean(policy.mean_completion, 1)),
        Cell::new(mean(policy.lost_rows, 1)),
        Cell::new(mean(policy.idle_gpu_hours, 1)),
        Cell::new(policy.cost.map_or("-".to_owned(), |cost| format!("${:.0}", cost.mean))),
        Cell::new(mean(policy.wait_of_others, 1)),
        never,
    ]
}

pub(super) fn mean(mean: Option<Mean>, digits: usize) -> String {
    match mean {
        None => "-".to_owned(),
        Some(Mean { mean, plus_minus: None, .. }) => format!("{mean:.digits$}"),
        Some(Mean { mean, plus_minus: Some(half), .. }) => {
            format!("{mean:.digits$} ±{half:.digits$}")
        }
    }
}

/// `v4.1 ends 2.8 h before v4 (95 %: 2.3 to 3.3 h)`.
pub(super) fn sentence(d: &Difference) -> Option<String> {
    let Mean { mean, plus_minus, .. } = d.longer_by?;
    let (word, hours) = if mean < 0.0 { ("before", -mean) } else { ("after", mean) };
    let mut text = format!("{} ends {hours:.1} h {word} {}", d.policy, d.against);
    match plus_minus {
        Some(half) if half > mean.abs() => {
            text.push_str(&format!(" (±{half:.1} h: these seeds do not tell the two apart)"));
        }
        Some(half) => {
            text.push_str(&format!(" (95 %: {:.1} to {:.1} h)", hours - half, hours + half));
        }
        None => {}
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(mean: f64, half: Option<f64>) -> Option<String> {
        let longer_by = Some(Mean { mean, plus_minus: half, n: 9 });
        sentence(&Difference {
            policy: "v4.1".into(),
            against: "v4".into(),
            longer_by,
            dearer_by: None,
            more_rows_lost: None,
        })
    }

    #[test]
    fn a_difference_is_told_with_its_direction_and_whether_it_is_one() {
        let told = |mean, half| difference(mean, half).expect("a sentence");
        assert_eq!(told(-2.8, Some(0.5)), "v4.1 ends 2.8 h before v4 (95 %: 2.3 to 3.3 h)");
        assert_eq!(told(1.0, None), "v4.1 ends 1.0 h after v4");
        assert!(told(0.1, Some(0.5)).contains("do not tell the two apart"));
        let none = Difference {
            policy: "a".into(),
            against: "b".into(),
            longer_by: None,
            dearer_by: None,
            more_rows_lost: None,
        };
        assert_eq!(sentence(&none), None);
    }
}
