//! `babysit simulate -o FILE`: policies side by side as pictures: bars with intervals, how the work
//! went down, and who ran where in one campaign.

use crate::model::cluster::EndWord;
use crate::model::policy::Lane;

use super::super::simulate::{Mean, PolicyView, Simulation, Yours, mean, sentence};
use super::axis::Axis;
use super::bars::{self, means, panel};
use super::chart::Table;
use super::gantt::{Bar, End, Gantt, Where};
use super::lines::{Band, Line, Lines, Mark, Points};
use super::markup::{El, classed, el};
use super::{Page, Section};

/// What was left to do over all seeds, and how one campaign went. Hours and GPU-hours.
pub struct PolicyPicture {
    /// Hour, and GPU-hours left: of nine of ten campaigns at least, the middle, at most.
    pub left: Vec<(f64, f64, f64, f64)>,
    pub one: Option<One>,
}

/// One campaign of that policy.
pub struct One {
    pub seed: u64,
    pub left: Points,
    /// Had every GPU that was there always worked.
    pub least: Points,
    /// Shard, lane, from, to, and Slurm's word for the end.
    pub runs: Vec<(String, Lane, f64, f64, EndWord)>,
}

/// A figure of each policy.
type Figure = fn(&PolicyView) -> Option<Mean>;

const FIGURES: [(&str, &str, &str, Figure, usize); 8] = [
    (
        "bound",
        "Times the bound",
        "Makespan over the least that was possible with that seed's luck; 1 is perfect.",
        |p| p.times_bound,
        2,
    ),
    ("makespan", "Makespan", "Hours until the last row.", |p| p.makespan, 1),
    ("completion", "Mean end of a shard", "Hours.", |p| p.mean_completion, 1),
    ("lost", "Rows lost to preemptions", "Rows in flight that are done again.", |p| p.lost_rows, 1),
    ("idle", "Idle while a shard waited", "GPU-hours.", |p| p.idle_gpu_hours, 1),
    ("gpu-hours", "GPU-hours used", "Starts and lost rows included.", |p| p.gpu_hours, 1),
    ("money", "Cost", "Dollars.", |p| p.cost, 0),
    (
        "others",
        "Wait of others in own",
        "Hours until a visitor's job starts.",
        |p| p.wait_of_others,
        1,
    ),
];

pub fn page(s: &Simulation, pictures: &[PolicyPicture]) -> String {
    let mut sections = vec![bars_of(s)];
    let told: Vec<String> = s.differences.iter().filter_map(sentence).collect();
    if !told.is_empty() {
        let says = "The same seeds under two policies, so luck is left out of it.";
        let list = told.into_iter().map(|line| el("li").text(line));
        let section = Section::new("differences", "Paired differences").says(says);
        sections.push(section.put(el("ul").all(list)));
    }
    if pictures.iter().any(|picture| picture.one.is_some()) {
        sections.push(burn_down(s, pictures));
        sections.push(runs(s, pictures));
    }
    let best = s
        .policies
        .iter()
        .filter_map(|policy| Some((policy, policy.times_bound?)))
        .min_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let best = best.map_or(String::new(), |(policy, times)| {
        format!(" Nearest to the bound: {}, {} times.", policy.name, mean(Some(times), 2))
    });
    let yours = s.yours.iter().flat_map(Yours::sentences).map(|text| format!(" {text}."));
    let yours = yours.collect::<String>();
    Page {
        title: format!("{} shards, scenario {}", s.shards, s.scenario),
        kind: "Simulated policies",
        lead: format!(
            "{} rows of {}; {}. Own has {} GPUs, {} of them another session's; K = {}. {} seeds of \
             each policy.{best}{yours}",
            s.rows,
            s.shards_of,
            s.scenario_says,
            s.own_gpus,
            s.own_gpus_held_by_others,
            s.park_own,
            s.seeds
        ),
        tiles: Vec::new(),
        sections,
        foot: format!(
            "Made by `babysit simulate` {}: the real tick on a simulated cluster. A tick every {} \
             minutes; a campaign that had not ended after {:.0} h never ends, and is in no mean.",
            env!("CARGO_PKG_VERSION"),
            s.tick_every_seconds / 60,
            s.never_after_hours
        ),
    }
    .write()
}

fn bars_of(s: &Simulation) -> Section {
    let panel_of = |(id, title, says, of, digits): (&str, &str, &str, Figure, usize)| {
        let bar = |policy: &PolicyView| {
            let Mean { mean: value, plus_minus, .. } = of(policy)?;
            Some(bars::Mean {
                name: policy.name.clone(),
                figure: mean(of(policy), digits),
                mean: value,
                half: plus_minus.unwrap_or(0.0),
            })
        };
        let bars: Vec<bars::Mean> = s.policies.iter().filter_map(bar).collect();
        // A figure that is nothing for all says nothing.
        if bars.iter().all(|bar| bar.mean == 0.0) {
            return None;
        }
        let told: Vec<String> =
            bars.iter().map(|bar| format!("{} {}", bar.name, bar.figure)).collect();
        let told = format!("{}.", told.join(", "));
        let plot = means(&format!("chart-{id}"), title, &told, id == "bound", bars);
        Some(panel(title, says, plot))
    };
    let panels = FIGURES.into_iter().filter_map(panel_of);
    let row = |policy: &PolicyView| {
        let figures = FIGURES.into_iter().map(|(.., of, digits)| mean(of(policy), digits));
        let never = policy.never_ended.to_string();
        [policy.name.clone(), policy.says.clone()]
            .into_iter()
            .chain(figures)
            .chain([never])
            .collect()
    };
    let heads = FIGURES.into_iter().map(|(_, title, ..)| (title, true));
    let heads = [("Policy", false), ("What it does", false)].into_iter().chain(heads);
    let table = Table {
        caption: "all figures, means with their 95 % intervals".into(),
        heads: heads.chain([("Never ended", true)]).collect(),
        rows: s.policies.iter().map(row).collect(),
    };
    let names = s.policies.iter().map(|policy| {
        let name = el("strong").text(format!("{}: ", policy.name));
        el("li").put(name).text(policy.says.clone())
    });
    Section::new("policies", "Policies side by side")
        .put(el("ul").all(names))
        .says("Means over the seeds; the line across a bar's end is its 95 % interval.")
        .put(classed("div", "pair").all(panels))
        .put(table.details())
}

fn burn_down(s: &Simulation, pictures: &[PolicyPicture]) -> Section {
    let last = |picture: &PolicyPicture| {
        let bound = picture.one.iter().flat_map(|one| one.left.last());
        let band = picture.left.last().map(|(hour, ..)| *hour);
        bound.map(|(hour, _)| *hour).chain(band).fold(0.0, f64::max)
    };
    let hours = pictures.iter().map(last).fold(1.0, f64::max);
    let most = pictures.iter().flat_map(|p| p.left.first()).map(|(.., high)| *high);
    let most = most.fold(1.0, f64::max);
    let chart = |(n, (policy, picture)): (usize, (&PolicyView, &PolicyPicture))| {
        let one = picture.one.as_ref()?;
        let mut middle: Points =
            picture.left.iter().map(|(hour, _, middle, _)| (*hour, *middle)).collect();
        let end = middle.iter().position(|(_, left)| *left <= 0.0);
        middle.truncate(end.map_or(middle.len(), |n| n + 1));
        let band = picture.left.iter().map(|(hour, low, _, high)| (*hour, *low, *high)).collect();
        let line = |name: String, look, points| Line { name, look, points, steps: false };
        let end = one.left.last().map_or(0.0, |(hour, _)| *hour);
        let bound = one.least.last().map_or(0.0, |(hour, _)| *hour);
        let says = format!(
            "Work left under {}: in the middle campaign all is done after about {:.0} h; with seed \
             {} after {end:.0} h, where the GPUs that were there could have done it in {bound:.0} h.",
            policy.name,
            middle.last().map_or(0.0, |(hour, _)| *hour),
            one.seed
        );
        let row = |(hour, low, middle, high): &(f64, f64, f64, f64)| {
            [hour, low, middle, high].iter().map(|n| format!("{n:.0}")).collect()
        };
        let rows = picture.left.iter().step_by(4).map(row);
        let table = Table {
            caption: format!("GPU-hours left under {}", policy.name),
            heads: vec![("Hour", true), ("5 %", true), ("Middle", true), ("95 %", true)],
            rows: rows.collect(),
        };
        let figure = Lines {
            id: format!("chart-left-{n}"),
            title: format!("Work left under {}", policy.name),
            says,
            x: Axis::of_hours(hours),
            y: Axis::from_zero(most, &|left| format!("{left:.0}")),
            lines: vec![
                line("the middle of all campaigns".into(), 1, middle),
                line(format!("seed {}", one.seed), 2, one.left.clone()),
                line(format!("least possible with seed {}", one.seed), 3, one.least.clone()),
            ],
            bands: vec![Band { name: "nine of ten campaigns".into(), look: 1, points: band }],
            marks: vec![Mark { name: "bound".into(), at: bound }],
            table,
        }
        .figure();
        Some(el("div").put(el("h3").text(policy.name.clone())).put(figure))
    };
    let charts: Vec<El> = s.policies.iter().zip(pictures).enumerate().filter_map(chart).collect();
    Section::new("burn-down", "How the work goes down")
        .says(
            "GPU-hours of rows left, over the hours since the beginning. The bound takes rows for \
             splittable and visitors for absent, so nobody reaches it.",
        )
        .put(classed("div", "pair").all(charts))
}

fn runs(s: &Simulation, pictures: &[PolicyPicture]) -> Section {
    let ends = pictures.iter().flat_map(|p| &p.one).flat_map(|one| &one.runs);
    let hours = ends.map(|(.., to, _)| *to).fold(1.0, f64::max);
    let chart = |(n, (policy, picture)): (usize, (&PolicyView, &PolicyPicture))| {
        let one = picture.one.as_ref()?;
        let mut rows: Vec<(String, String, Vec<Bar>)> = Vec::new();
        for (shard, lane, from, to, end) in &one.runs {
            let bar = Bar {
                from: *from,
                to: *to,
                place: match lane {
                    Lane::Own => Where::Own,
                    Lane::Extra => Where::Extra,
                    Lane::Both => Where::Other,
                },
                end: Some(match end {
                    EndWord::Completed => End::Completed,
                    EndWord::Preempted => End::Preempted,
                    _ => End::Failed,
                }),
                says: format!(
                    "{shard} in {}: hour {from:.1} to {to:.1}, {}",
                    lane.word(),
                    end.word()
                ),
            };
            match rows.iter_mut().find(|(name, ..)| name == shard) {
                Some((_, _, bars)) => bars.push(bar),
                None => rows.push((shard.clone(), String::new(), vec![bar])),
            }
        }
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        for (_, figure, bars) in &mut rows {
            *figure = match bars.len() {
                1 => "1 run".to_owned(),
                n => format!("{n} runs"),
            };
        }
        let preempted = one.runs.iter().filter(|(.., end)| *end == EndWord::Preempted).count();
        let says = format!("{} runs, {preempted} of them preempted.", one.runs.len());
        let row = |(shard, lane, from, to, end): &(String, Lane, f64, f64, EndWord)| {
            vec![
                shard.clone(),
                lane.word().to_owned(),
                format!("{from:.1}"),
                format!("{to:.1}"),
                end.word().to_owned(),
            ]
        };
        let table = Table {
            caption: format!("runs under {} with seed {}", policy.name, one.seed),
            heads: vec![
                ("Shard", false),
                ("Lane", false),
                ("From hour", true),
                ("To hour", true),
                ("End", false),
            ],
            rows: one.runs.iter().map(row).collect(),
        };
        let figure = Gantt {
            id: format!("chart-runs-{n}"),
            title: format!("Runs under {} with seed {}", policy.name, one.seed),
            says: says.clone(),
            x: Axis::of_hours(hours),
            rows,
            table,
        }
        .figure();
        let head = el("h3").text(format!("{}, seed {}", policy.name, one.seed));
        Some(el("div").put(head).put(classed("p", "soft").text(says)).put(figure))
    };
    let charts: Vec<El> = s.policies.iter().zip(pictures).enumerate().filter_map(chart).collect();
    Section::new("runs", "One campaign under each policy")
        .says("The same seed for all: the same rows, the same GPUs that come and go.")
        .all(charts)
}
