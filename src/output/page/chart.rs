//! What every chart has: a plot with labels around it that keep their size on any screen, a legend,
//! a description for those who hear it, and its numbers as a table.

use super::axis::{Axis, percent};
use super::markup::{El, classed, el};

/// A plot with its legend above and its numbers below.
pub fn figure(legend: Vec<(El, String)>, plot: El, table: Table) -> El {
    let mut figure = el("figure");
    if !legend.is_empty() {
        let item = |(key, text): (El, String)| {
            el("li").put(key.at("aria-hidden", "true")).put(el("span").text(text))
        };
        figure = figure.put(classed("ul", "legend").all(legend.into_iter().map(item)));
    }
    figure.put(plot).put(table.details())
}

/// A picture of its own size in pixels, as wide as there is room; places on it are percentages.
pub fn picture(id: &str, title: &str, says: &str, height: u32) -> El {
    let (name, more) = (format!("{id}-t"), format!("{id}-d"));
    el("svg")
        .at("xmlns", "http://www.w3.org/2000/svg")
        .at("role", "img")
        .at("aria-labelledby", format!("{name} {more}"))
        .at("width", "100%")
        .at("height", height)
        .put(el("title").at("id", name).text(title))
        .put(el("desc").at("id", more).text(says))
}

/// A part of a picture that is stretched with it: 1000 by 1000, from the top left.
pub fn stretched() -> El {
    el("svg")
        .at("viewBox", "0 0 1000 1000")
        .at("preserveAspectRatio", "none")
        .at("width", "100%")
        .at("height", "100%")
}

/// Upright lines of the grid.
pub fn uprights(axis: &Axis) -> impl Iterator<Item = El> {
    axis.ticks().map(|at| line_at(&axis.percent(at), "grid"))
}

pub fn line_at(x: &str, class: &str) -> El {
    classed("line", class).at("x1", x).at("x2", x).at("y1", "0").at("y2", "100%")
}

/// Level lines of the grid.
pub fn levels(axis: &Axis) -> impl Iterator<Item = El> {
    axis.ticks().map(|at| {
        let y = percent(1.0 - axis.place(at));
        classed("line", "grid").at("x1", "0").at("x2", "100%").at("y1", &y).at("y2", y)
    })
}

/// A path through these places (0 to 1, from the bottom left), on a stretched part.
pub fn path(places: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut text = String::new();
    for (n, (x, y)) in places.into_iter().enumerate() {
        let sign = if n == 0 { 'M' } else { 'L' };
        text.push_str(&format!("{sign}{:.1} {:.1}", x * 1000.0, (1.0 - y) * 1000.0));
    }
    text
}

/// A swatch of a legend, of that class.
pub fn swatch(class: &str) -> El {
    let shape = classed("rect", class).at("x", 1).at("y", 1).at("width", 22).at("height", 10);
    key().put(shape)
}

/// A line of a legend.
pub fn stroke(class: &str) -> El {
    let line = classed("line", class).at("x1", 0).at("x2", 24).at("y1", 6).at("y2", 6);
    key().put(line)
}

pub fn key() -> El {
    classed("svg", "key").at("width", 24).at("height", 12)
}

/// The numbers of a chart, or a list.
pub struct Table {
    pub caption: String,
    /// Headings; true: numbers, which stand on the right.
    pub heads: Vec<(&'static str, bool)>,
    /// The first cell of each names the row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Folded away.
    pub fn details(self) -> El {
        let summary = format!("Table: {}", self.caption);
        el("details").put(el("summary").text(summary)).put(self.open())
    }

    pub fn open(self) -> El {
        let side = |n: usize| self.heads.get(n).is_some_and(|(_, number)| *number);
        let cell = |tag: &'static str, n: usize| if side(n) { classed(tag, "n") } else { el(tag) };
        let head =
            |(n, (text, _)): (usize, &(&str, bool))| cell("th", n).at("scope", "col").text(*text);
        let heads = el("tr").all(self.heads.iter().enumerate().map(head));
        let row = |row: &Vec<String>| {
            let one = |(n, text): (usize, &String)| match n {
                0 => cell("th", 0).at("scope", "row").text(text.clone()),
                n => cell("td", n).text(text.clone()),
            };
            el("tr").all(row.iter().enumerate().map(one))
        };
        let table = el("table")
            .put(el("caption").text(self.caption.clone()))
            .put(el("thead").put(heads))
            .put(el("tbody").all(self.rows.iter().map(row)));
        // Wide tables scroll by themselves, by keys too.
        classed("div", "scroll")
            .at("role", "region")
            .at("tabindex", "0")
            .at("aria-label", self.caption)
            .put(table)
    }
}
