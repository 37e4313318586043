//! Lines over time, with bands around them.

use super::axis::{Axis, percent};
use super::chart::{
    Table, figure, levels, line_at, path, picture, stretched, stroke, swatch, uprights,
};
use super::markup::{El, classed};

/// Pixels.
const HEIGHT: u32 = 260;
/// More points than a screen has columns show nothing more.
const POINTS: usize = 700;

pub type Points = Vec<(f64, f64)>;

/// One line. `look` is 1 to 6: colour and dash together, so that colour is never the only cue.
pub struct Line {
    pub name: String,
    pub look: usize,
    pub points: Points,
    /// It stays where it is until the next point.
    pub steps: bool,
}

/// The room between two lines.
pub struct Band {
    pub name: String,
    pub look: usize,
    /// Position, lower and upper end.
    pub points: Vec<(f64, f64, f64)>,
}

/// An upright line with a name.
pub struct Mark {
    pub name: String,
    pub at: f64,
}

pub struct Lines {
    pub id: String,
    pub title: String,
    pub says: String,
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
    pub bands: Vec<Band>,
    pub marks: Vec<Mark>,
    pub table: Table,
}

impl Lines {
    pub fn figure(self) -> El {
        let Lines { id, title, says, x, y, lines, bands, marks, table } = self;
        let spot = |(at, value): (f64, f64)| (x.place(at), y.place(value));
        let band = |band: &Band| {
            let points = thin(&band.points);
            let up = points.iter().map(|(at, _, high)| spot((*at, *high)));
            let down = points.iter().rev().map(|(at, low, _)| spot((*at, *low)));
            let d = format!("{}Z", path(up.chain(down)));
            classed("path", &format!("band s{}", band.look)).at("d", d)
        };
        let line = |line: &Line| {
            let points = thin(&line.points).into_iter().map(spot);
            let d = if line.steps { path(stairs(points)) } else { path(points) };
            classed("path", &format!("line s{}", line.look)).at("d", d)
        };
        let ends = lines.iter().filter_map(|line| {
            let (x, y) = spot(*line.points.last()?);
            let class = format!("dot s{}", line.look);
            Some(
                classed("circle", &class)
                    .at("cx", percent(x))
                    .at("cy", percent(1.0 - y))
                    .at("r", 4),
            )
        });
        let upright = |mark: &Mark| line_at(&x.percent(mark.at), "mark");
        let stretched = stretched().all(bands.iter().map(band)).all(lines.iter().map(line));
        let svg = picture(&id, &title, &says, HEIGHT)
            .all(levels(&y))
            .all(uprights(&x))
            .put(stretched)
            .all(marks.iter().map(upright))
            .all(ends);
        let named = |mark: &Mark| {
            let place = x.place(mark.at);
            let class = if place > 0.7 { "left" } else { "" };
            let style = format!("left:{}", percent(place));
            classed("span", class).at("style", style).text(mark.name.clone())
        };
        let names = classed("div", "marks").at("aria-hidden", "true").all(marks.iter().map(named));
        let plot = classed("div", "plot")
            .put(y.beside())
            .put(classed("div", "area").put(names).put(svg))
            .put(x.below());
        let legend = lines
            .iter()
            .map(|line| (stroke(&format!("line s{}", line.look)), line.name.clone()))
            .chain(bands.iter().map(|b| (swatch(&format!("band s{}", b.look)), b.name.clone())))
            .collect();
        figure(legend, plot, table)
    }
}

/// At most so many points, the last among them.
fn thin<T: Copy>(points: &[T]) -> Vec<T> {
    let each = points.len().div_ceil(POINTS).max(1);
    let kept = points.iter().enumerate();
    let last = points.len().saturating_sub(1);
    kept.filter(|(n, _)| n % each == 0 || *n == last).map(|(_, point)| *point).collect()
}

/// Each point, and before it one on the level of the point before.
pub fn stairs(points: impl Iterator<Item = (f64, f64)>) -> impl Iterator<Item = (f64, f64)> {
    let mut level = None;
    points.flat_map(move |(x, y)| {
        let before = level.replace(y).map(|level| (x, level));
        before.into_iter().chain([(x, y)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_points_are_thinned_and_the_last_one_stays() {
        let points: Points = (0..5000).map(|n| (f64::from(n), 1.0)).collect();
        let kept = thin(&points);
        assert!(kept.len() <= POINTS + 1, "{}", kept.len());
        assert_eq!(kept.last(), points.last());
        assert_eq!(thin::<(f64, f64)>(&[]), []);
    }

    #[test]
    fn stairs_stay_on_a_level_until_the_next_point() {
        let found: Points = stairs([(0.0, 0.0), (1.0, 5.0), (3.0, 6.0)].into_iter()).collect();
        assert_eq!(found, [(0.0, 0.0), (1.0, 0.0), (1.0, 5.0), (3.0, 5.0), (3.0, 6.0)]);
    }
}
