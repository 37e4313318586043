//! Bars from zero: money against caps, and means with their intervals.

use super::axis::Axis;
use super::chart::{Table, figure, swatch};
use super::markup::{El, classed, el};
use super::rows::{Row, Rows, bar};

/// Pixels.
const LINE: u32 = 26;
const INSET: u32 = 6;

/// What was spent of a cap, and what will have been.
pub struct Money {
    pub name: String,
    pub figure: String,
    /// Shares of the cap.
    pub spent: f64,
    pub projected: f64,
    pub bad: bool,
}

/// Beyond this share of the cap bars end at the edge: one that is far off must not hide the rest.
const WIDEST: f64 = 2.0;

pub fn caps(id: &str, title: &str, says: &str, rows: Vec<Money>, table: Table) -> El {
    let most = rows.iter().map(|row| row.projected.max(row.spent)).fold(1.0, f64::max).min(WIDEST);
    let x = Axis::from_zero(most, &|share| format!("{:.0} %", share * 100.0));
    let legend = [
        ("spent", "spent"),
        ("projected", "projected, until its last row"),
        ("overproj", "over its cap, or will be"),
    ];
    let row = |money: Money| {
        let Money { name, figure, spent, projected, bad } = money;
        let x = x.clone();
        let drawn = move |y| {
            let (now, later) = if bad { ("over", "overproj") } else { ("spent", "projected") };
            vec![
                bar(&x, spent, projected.max(spent), y, (INSET, LINE), later),
                bar(&x, 0.0, spent, y, (INSET, LINE), now),
            ]
        };
        Row { name, figure, bad, drawn: Box::new(drawn) }
    };
    let any_bad = rows.iter().any(|row| row.bad);
    let rows = rows.into_iter().map(row).collect();
    let plot = Rows {
        id: id.to_owned(),
        title: title.to_owned(),
        says: says.to_owned(),
        height: LINE,
        x: x.clone(),
        mark: Some((1.0, "cap")),
        rows,
    };
    let shown = legend.iter().filter(|(class, _)| any_bad || *class != "overproj");
    let legend = shown.map(|(class, text)| (swatch(class), (*text).to_owned())).collect();
    figure(legend, plot.plot(), table)
}

/// A mean and its interval.
pub struct Mean {
    pub name: String,
    pub figure: String,
    pub mean: f64,
    pub half: f64,
}

pub fn means(id: &str, title: &str, says: &str, from_one: bool, means: Vec<Mean>) -> El {
    let most = means.iter().map(|mean| mean.mean + mean.half).fold(0.0, f64::max);
    let digits = if most < 3.0 { 1 } else { 0 };
    let x = Axis::from_zero(most, &|at| format!("{at:.digits$}"));
    let row = |mean: Mean| {
        let Mean { name, figure, mean, half } = mean;
        let x = x.clone();
        let drawn = move |y| {
            let mut all = vec![bar(&x, 0.0, mean, y, (INSET, LINE), "mean")];
            if half > 0.0 {
                all.extend(whisker(&x, (mean - half).max(0.0), mean + half, y));
            }
            all
        };
        Row { name, figure, bad: false, drawn: Box::new(drawn) }
    };
    let rows = means.into_iter().map(row).collect();
    let (id, title, says) = (id.to_owned(), title.to_owned(), says.to_owned());
    let mark = from_one.then_some((1.0, "bound"));
    Rows { id, title, says, height: LINE, x: x.clone(), mark, rows }.plot()
}

/// From end to end, with a stop at each.
fn whisker(x: &Axis, low: f64, high: f64, y: u32) -> Vec<El> {
    let middle = y + LINE / 2;
    let line = |from: f64, to: f64, up: u32, down: u32| {
        classed("line", "whisker")
            .at("x1", x.percent(from))
            .at("x2", x.percent(to))
            .at("y1", up)
            .at("y2", down)
    };
    vec![
        line(low, high, middle, middle),
        line(low, low, middle - 5, middle + 5),
        line(high, high, middle - 5, middle + 5),
    ]
}

/// A small chart under a heading of its own.
pub fn panel(title: &str, says: &str, plot: El) -> El {
    let head = el("h3").text(title);
    el("div").put(head).put(classed("p", "soft").text(says)).put(el("figure").put(plot))
}
