//! How much of each thing was in use over time: one small area a line, and dots for what happened.

use super::axis::Axis;
use super::chart::{path, picture};
use super::lines::stairs;
use super::markup::{El, classed, el};
use super::rows::{Row, Rows};

/// Pixels of a line, and of what is drawn in it.
const LINE: u32 = 34;
const DRAWN: u32 = 28;
const DOTS: u32 = 26;

/// One thing in use: its name, its figure, and how much from when on.
pub struct Strip {
    pub name: String,
    pub figure: String,
    pub steps: Vec<(f64, f64)>,
    /// What would fill the line.
    pub full: f64,
}

pub fn plot(id: &str, title: &str, says: &str, x: &Axis, strips: Vec<Strip>) -> El {
    let row = |strip: Strip| {
        let x = x.clone();
        let drawn = move |y| vec![area(&x, &strip.steps, strip.full, y)];
        Row { name: strip.name, figure: strip.figure, bad: false, drawn: Box::new(drawn) }
    };
    let rows = strips.into_iter().map(row).collect();
    let (id, title, says) = (id.to_owned(), title.to_owned(), says.to_owned());
    Rows { id, title, says, height: LINE, x: x.clone(), mark: None, rows }.plot()
}

fn area(x: &Axis, steps: &[(f64, f64)], full: f64, y: u32) -> El {
    let spot = |(at, value): &(f64, f64)| (x.place(*at), value / full.max(1.0));
    let (first, last) = (steps.first(), steps.last());
    let ends = first.zip(last).map(|((from, _), (to, _))| (x.place(*from), x.place(*to)));
    let (from, to) = ends.unwrap_or_default();
    let outline =
        [(from, 0.0)].into_iter().chain(stairs(steps.iter().map(spot))).chain([(to, 0.0)]);
    let d = format!("{}Z", path(outline));
    el("svg")
        .at("y", y + LINE - DRAWN)
        .at("width", "100%")
        .at("height", DRAWN)
        .at("viewBox", "0 0 1000 1000")
        .at("preserveAspectRatio", "none")
        .put(classed("path", "fill").at("d", d))
}

/// What happened: its kind, how often, and each time from and to (the same, where it was a moment).
pub struct Happened {
    pub kind: String,
    pub times: Vec<(f64, f64)>,
}

pub fn dots(id: &str, title: &str, says: &str, x: &Axis, kinds: Vec<Happened>) -> El {
    let row = |Happened { kind, times }: Happened| {
        let x = x.clone();
        let figure = times.len().to_string();
        let drawn = move |y| marks(&x, &times, y);
        Row { name: kind, figure, bad: false, drawn: Box::new(drawn) }
    };
    let rows = kinds.into_iter().map(row).collect();
    let (id, title, says) = (id.to_owned(), title.to_owned(), says.to_owned());
    Rows { id, title, says, height: DOTS, x: x.clone(), mark: None, rows }.plot()
}

/// Those that would cover each other are drawn once.
fn marks(x: &Axis, times: &[(f64, f64)], y: u32) -> Vec<El> {
    let mut drawn: Vec<El> = Vec::new();
    let mut last = f64::NEG_INFINITY;
    for (from, to) in times {
        if x.place(*to) - x.place(*from) > 0.004 {
            drawn.push(super::rows::bar(x, *from, *to, y, (8, DOTS), "spanmark"));
        } else if x.place(*from) - last > 0.002 {
            last = x.place(*from);
            let dot = classed("circle", "dotmark").at("cx", x.percent(*from));
            drawn.push(dot.at("cy", y + DOTS / 2).at("r", 5));
        }
    }
    drawn
}

/// A filled part of a line: what is done, and what is projected beyond it.
pub fn meter(id: &str, says: &str, part: f64, next: Option<f64>) -> El {
    let bar = |class: &str, share: f64| {
        let width = super::axis::percent(share.clamp(0.0, 1.0));
        classed("rect", class).at("width", width).at("height", 8).at("rx", 4)
    };
    picture(id, says, "", 8)
        .at("class", "meter")
        .put(bar("all", 1.0))
        .all(next.map(|next| bar("next", next)))
        .put(bar("part", part))
}
