//! Runs over time: one line a shard, coloured by lane, with a sign for how each run ended.

use super::axis::Axis;
use super::chart::{Table, figure, key, swatch};
use super::markup::{El, classed, el};
use super::rows::{Row, Rows, bar};

/// Pixels of a line.
const LINE: u32 = 24;
const INSET: u32 = 5;
/// Shorter bars than this share of the axis are drawn that long, so that they can be seen.
const SHORTEST: f64 = 0.0015;

/// Where a run was; colour and texture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    Own,
    Extra,
    /// No lanes, or not known.
    Other,
    /// Not a run: GPUs that were kept for it.
    Reserved,
}

/// How a run ended; a sign of its own shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Running,
    Completed,
    Preempted,
    Failed,
    Cancelled,
    Unknown,
}

impl Where {
    const ALL: [Where; 4] = [Where::Own, Where::Extra, Where::Other, Where::Reserved];

    fn class(self) -> &'static str {
        match self {
            Where::Own => "own",
            Where::Extra => "extra",
            Where::Other => "other",
            Where::Reserved => "reserved",
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Where::Own => "in own",
            Where::Extra => "in extra",
            Where::Other => "run",
            Where::Reserved => "GPUs reserved",
        }
    }
}

impl End {
    const ALL: [End; 6] =
        [End::Running, End::Completed, End::Preempted, End::Failed, End::Cancelled, End::Unknown];

    pub fn word(self) -> &'static str {
        match self {
            End::Running => "running",
            End::Completed => "ended by itself",
            End::Preempted => "preempted",
            End::Failed => "failed",
            End::Cancelled => "cancelled",
            End::Unknown => "ended, not known how",
        }
    }

    /// Around its own middle.
    fn sign(self) -> El {
        let path = |class, d| classed("path", class).at("d", d);
        match self {
            End::Running => path("sign good", "M-3 -5L5 0L-3 5Z"),
            End::Completed => classed("circle", "sign good").at("r", 4),
            End::Preempted => path("sign warn", "M0 -6L6 0L0 6L-6 0Z"),
            End::Failed => path("cross", "M-4 -4L4 4M-4 4L4 -4"),
            End::Cancelled => path("sign plain", "M-4 -4H4V4H-4Z"),
            End::Unknown => classed("circle", "sign open").at("r", 4),
        }
    }
}

pub struct Bar {
    pub from: f64,
    pub to: f64,
    pub place: Where,
    /// `None`: there is no end to tell of.
    pub end: Option<End>,
    /// All of it in words.
    pub says: String,
}

pub struct Gantt {
    pub id: String,
    pub title: String,
    pub says: String,
    pub x: Axis,
    /// Name, figure, bars.
    pub rows: Vec<(String, String, Vec<Bar>)>,
    pub table: Table,
}

impl Gantt {
    pub fn figure(self) -> El {
        let Gantt { id, title, says, x, rows, table } = self;
        let legend = legend(&rows);
        let row = |(name, figure, bars): (String, String, Vec<Bar>)| {
            let x = x.clone();
            let drawn = move |y| bars.iter().flat_map(|bar| drawn(&x, bar, y)).collect();
            Row { name, figure, bad: false, drawn: Box::new(drawn) }
        };
        let rows = rows.into_iter().map(row).collect();
        let plot = Rows { id, title, says, height: LINE, x: x.clone(), mark: None, rows }.plot();
        figure(legend, plot, table)
    }
}

fn drawn(x: &Axis, run: &Bar, y: u32) -> Vec<El> {
    let long = x.place(run.to) - x.place(run.from) >= SHORTEST;
    let class = format!("run {}", run.place.class());
    let mut rect = bar(x, run.from, run.to, y, (INSET, LINE), &class);
    if !long {
        rect = rect.at("stroke-width", 2);
    }
    let mut all = vec![rect.put(el("title").text(run.says.clone()))];
    if let Some(end) = run.end {
        let sign = el("svg").at("x", x.percent(run.to)).at("y", y + LINE / 2);
        all.push(sign.at("class", "at").put(end.sign()));
    }
    all
}

/// Only what occurs.
fn legend(rows: &[(String, String, Vec<Bar>)]) -> Vec<(El, String)> {
    let bars = || rows.iter().flat_map(|(.., bars)| bars);
    let places = Where::ALL.into_iter().filter(|place| bars().any(|bar| bar.place == *place));
    let ends = End::ALL.into_iter().filter(|end| bars().any(|bar| bar.end == Some(*end)));
    let sign = |end: End| {
        let middle = el("svg").at("x", 12).at("y", 6).at("class", "at").put(end.sign());
        key().put(middle)
    };
    places
        .map(|place| (swatch(&format!("run {}", place.class())), place.word().to_owned()))
        .chain(ends.map(|end| (sign(end), end.word().to_owned())))
        .collect()
}
