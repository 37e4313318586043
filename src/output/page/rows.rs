//! Charts of one line a thing: names on the left, what is drawn in the middle, figures on the right.

use super::axis::Axis;
use super::chart::{line_at, picture, uprights};
use super::markup::{El, classed};

/// Characters of a figure that fits beside a chart on a telephone.
const SHORT: usize = 9;

/// One thing: its name, its figure, and what stands in its line, drawn for the top of that line.
pub struct Row {
    pub name: String,
    pub figure: String,
    /// It is worth a look.
    pub bad: bool,
    /// By the y of the line's top, in pixels.
    pub drawn: Box<dyn Fn(u32) -> Vec<El>>,
}

pub struct Rows {
    pub id: String,
    pub title: String,
    pub says: String,
    /// Pixels of a line.
    pub height: u32,
    pub x: Axis,
    /// An upright line at this value, with a name.
    pub mark: Option<(f64, &'static str)>,
    pub rows: Vec<Row>,
}

impl Rows {
    pub fn plot(self) -> El {
        let Rows { id, title, says, height, x, mark, rows } = self;
        let column = |class: &str, text: fn(&Row) -> &String| {
            let line = |row: &Row| {
                let class = if row.bad { "bad" } else { "" };
                let style = format!("height:{height}px;line-height:{height}px");
                let text = text(row);
                classed("div", class).at("style", style).at("title", text).text(text.clone())
            };
            classed("div", class).at("aria-hidden", "true").all(rows.iter().map(line))
        };
        // A narrow screen has room for the short ones only; the table has them all.
        let long = rows.iter().any(|row| row.figure.chars().count() > SHORT);
        let figures = if long { "figures long" } else { "figures" };
        let drawn = rows.iter().zip(0..).flat_map(|(row, n)| (row.drawn)(n * height));
        let upright = mark.map(|(at, _)| line_at(&x.percent(at), "mark"));
        let svg = picture(&id, &title, &says, height * rows.len() as u32)
            .all(uprights(&x))
            .all(drawn)
            .all(upright);
        let named = mark.map(|(at, name)| {
            let style = format!("left:{}", x.percent(at));
            classed("span", "left").at("style", style).text(name)
        });
        let names = named.map(|name| classed("div", "marks").at("aria-hidden", "true").put(name));
        classed("div", "rows")
            .put(column("names", |row| &row.name))
            .put(classed("div", "area").all(names).put(svg))
            .put(column(figures, |row| &row.figure))
            .put(x.below())
    }
}

/// A bar of a line of this height: from, to (places on the axis), inside the line by `inset`.
pub fn bar(x: &Axis, from: f64, to: f64, y: u32, (inset, height): (u32, u32), class: &str) -> El {
    let (left, right) = (x.place(from), x.place(to));
    classed("rect", class)
        .at("x", super::axis::percent(left))
        .at("width", super::axis::percent((right - left).max(0.0)))
        .at("y", y + inset)
        .at("height", height - 2 * inset)
}
