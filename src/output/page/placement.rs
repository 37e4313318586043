//! `babysit simulate --labs -o FILE`: placement policies as pictures: how long jobs of each width
//! wait, and what the GPUs did meanwhile.

use super::super::placement::{Placement, PlacingView, WidthView, number};
use super::super::simulate::Mean;
use super::bars::{self, means, panel};
use super::chart::Table;
use super::markup::{classed, el};
use super::{Page, Section};

type Share = fn(&PlacingView) -> Option<Mean>;

const SHARES: [(&str, &str, &str, Share); 4] = [
    ("used", "GPUs used by jobs", "Per cent of all GPU-hours.", |p| p.utilization),
    ("vain", "Reserved in vain", "Per cent: reserved without leading to a start.", |p| {
        p.reserved_in_vain
    }),
    ("jain", "Jain's index", "Of what labs got over what is fair; 100 is fair to all.", |p| p.jain),
    ("deviation", "Farthest from its fair share", "Per cent, of the lab that is farthest.", |p| {
        p.largest_deviation
    }),
];

pub fn page(p: &Placement) -> String {
    let tier = if p.by_tier { "; run times by tier" } else { "" };
    Page {
        title: format!("Placement at load {}", p.load),
        kind: "Simulated policies",
        lead: format!(
            "Jobs of {} on 40 GPUs, {} days of which the first {} do not count{tier}. {} seeds of \
             each policy.",
            p.jobs_of, p.days, p.warm_up_days, p.seeds
        ),
        tiles: Vec::new(),
        sections: vec![waits(p), shares(p)],
        foot: format!(
            "Made by `babysit simulate` {}: the real tick on a simulated cluster.",
            env!("CARGO_PKG_VERSION")
        ),
    }
    .write()
}

fn name_of(width: &WidthView) -> String {
    match width.gpus {
        Some(1) => "1 GPU".to_owned(),
        Some(gpus) => format!("{gpus} GPUs"),
        None => "all widths".to_owned(),
    }
}

fn waits(p: &Placement) -> Section {
    let widths = p.policies.first().map(|policy| policy.waits.as_slice()).unwrap_or_default();
    let panels = widths.iter().enumerate().map(|(n, width)| {
        let bar = |policy: &PlacingView| {
            let of = policy.waits.iter().find(|other| other.gpus == width.gpus)?;
            let Mean { mean, plus_minus, .. } = of.mean?;
            Some(bars::Mean {
                name: policy.name.clone(),
                figure: format!("{} h, p95 {} h", number(of.mean, 1), number(of.p95, 0)),
                mean,
                half: plus_minus.unwrap_or(0.0),
            })
        };
        let bars: Vec<bars::Mean> = p.policies.iter().filter_map(bar).collect();
        let told: Vec<String> =
            bars.iter().map(|bar| format!("{} {}", bar.name, bar.figure)).collect();
        let title = format!("Wait of jobs: {}", name_of(width));
        let plot = means(&format!("chart-wait-{n}"), &title, &told.join(", "), false, bars);
        panel(&name_of(width), "Mean wait in hours.", plot)
    });
    let rows = p.policies.iter().flat_map(|policy| {
        policy.waits.iter().map(|width| {
            vec![
                policy.name.clone(),
                name_of(width),
                number(width.jobs, 0),
                number(width.mean, 2),
                number(width.p95, 1),
                format!("{:.1}", width.max),
                number(width.not_started, 1),
            ]
        })
    });
    let table = Table {
        caption: "waits by width, in hours".into(),
        heads: vec![
            ("Policy", false),
            ("Width", false),
            ("Jobs", true),
            ("Mean", true),
            ("95 % wait at most", true),
            ("Longest", true),
            ("Never started", true),
        ],
        rows: rows.collect(),
    };
    let names = p.policies.iter().map(|policy| {
        let name = el("strong").text(format!("{}: ", policy.name));
        el("li").put(name).text(policy.says.clone())
    });
    Section::new("waits", "Waits by width")
        .put(el("ul").all(names))
        .says("The line across a bar's end is its 95 % interval.")
        .put(classed("div", "pair").all(panels))
        .put(table.details())
}

fn shares(p: &Placement) -> Section {
    let panels = SHARES.into_iter().map(|(id, title, says, of)| {
        let bar = |policy: &PlacingView| {
            let Mean { mean, plus_minus, n } = of(policy)?;
            let percent =
                Mean { mean: mean * 100.0, plus_minus: plus_minus.map(|half| half * 100.0), n };
            Some(bars::Mean {
                name: policy.name.clone(),
                figure: number(Some(percent), 1),
                mean: percent.mean,
                half: percent.plus_minus.unwrap_or(0.0),
            })
        };
        let bars: Vec<bars::Mean> = p.policies.iter().filter_map(bar).collect();
        let told: Vec<String> =
            bars.iter().map(|bar| format!("{} {}", bar.name, bar.figure)).collect();
        panel(title, says, means(&format!("chart-{id}"), title, &told.join(", "), false, bars))
    });
    let row = |policy: &PlacingView| {
        let shares = SHARES.into_iter().map(|(.., of)| number(of(policy), 3));
        [policy.name.clone()]
            .into_iter()
            .chain(shares)
            .chain([number(policy.reservations, 1), number(policy.reservations_failed, 1)])
            .collect()
    };
    let heads = SHARES.into_iter().map(|(_, title, ..)| (title, true));
    let table = Table {
        caption: "shares of 1, and reservations".into(),
        heads: [("Policy", false)]
            .into_iter()
            .chain(heads)
            .chain([("Reservations", true), ("Of them failed", true)])
            .collect(),
        rows: p.policies.iter().map(row).collect(),
    };
    Section::new("shares", "GPUs and fairness")
        .put(classed("div", "pair").all(panels))
        .put(table.details())
}
