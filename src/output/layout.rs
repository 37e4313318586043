//! Columns of text: as wide as their widest cell, one blank between them, the last one cut at the
//! width of the screen. Where they do not fit, those of least worth are left out.

use super::format::{cut, cut_front};
use super::paint::{Paint, Tone};

/// A column is never cut to fewer characters than this.
const LEAST: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
}

impl Cell {
    pub fn new(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), tone: Tone::Plain }
    }
    pub fn tone(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { text: text.into(), tone }
    }
}

/// Columns with a heading each; every row has as many cells.
pub struct Columns {
    pub heads: Vec<(&'static str, Side)>,
    pub rows: Vec<Vec<Cell>>,
}

impl Columns {
    pub fn widths(&self) -> Vec<usize> {
        let widest = |(i, (head, _)): (usize, &(&str, Side))| {
            let cells = self.rows.iter().filter_map(|row| row.get(i));
            cells.map(|cell| cell.text.chars().count()).chain([head.len()]).max().unwrap_or(0)
        };
        self.heads.iter().enumerate().map(widest).collect()
    }

    /// Columns left for the last one on a screen of `width`.
    pub fn room_for_last(&self, width: usize) -> usize {
        let widths = self.widths();
        let taken: usize = widths.iter().rev().skip(1).map(|w| w + 1).sum();
        width.saturating_sub(taken)
    }

    /// Leaves columns out, by their headings in the order of `least_worth`, until the last column has
    /// `room` on a screen of `width`. Where that is not enough, the first one loses its beginning: names
    /// differ at their end.
    pub fn fit(&mut self, width: usize, room: usize, least_worth: &[&str]) {
        for head in least_worth {
            if self.room_for_last(width) >= room {
                return;
            }
            while let Some(i) = self.heads.iter().position(|(name, _)| name == head) {
                self.heads.remove(i);
                for row in self.rows.iter_mut().filter(|row| i < row.len()) {
                    row.remove(i);
                }
            }
        }
        let widths = self.widths();
        let taken: usize = widths.iter().rev().skip(1).map(|w| w + 1).sum();
        let lacking = (taken + room).saturating_sub(width);
        let first = widths.first().copied().unwrap_or(0);
        let keep = first.saturating_sub(lacking).max(LEAST);
        for cell in self.rows.iter_mut().filter_map(|row| row.first_mut()) {
            cell.text = cut_front(&cell.text, keep);
        }
    }

    /// `width`: of the screen; `None`: nothing is cut.
    pub fn render(&self, width: Option<usize>, paint: Paint) -> String {
        let widths = self.widths();
        let room = width.map_or(usize::MAX, |width| self.room_for_last(width));
        let last = self.heads.len().saturating_sub(1);
        let mut out = String::new();
        let heads: Vec<Cell> =
            self.heads.iter().map(|(head, _)| Cell::tone(*head, Tone::Strong)).collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let mut line = String::new();
            for (i, cell) in row.iter().enumerate() {
                let text = if i == last { cut(&cell.text, room) } else { cell.text.clone() };
                let pad = widths.get(i).copied().unwrap_or(0).saturating_sub(text.chars().count());
                let pad = " ".repeat(pad);
                let painted = paint.put(cell.tone, &text);
                match self.heads.get(i).map(|(_, side)| side) {
                    Some(Side::Right) => line.extend([pad, painted]),
                    _ => line.extend([painted, pad]),
                }
                line.push(' ');
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// Words wrapped at `width`, every line indented; a word longer than a line is not broken.
pub fn wrap(text: &str, indent: usize, width: Option<usize>) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(indent).max(20));
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let indent = " ".repeat(indent);
    lines.iter().map(|line| format!("{indent}{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_column_is_cut() {
        let columns = Columns {
            heads: vec![("SHARD", Side::Left), ("N", Side::Right), ("WHY", Side::Left)],
            rows: vec![
                vec![Cell::new("restore/s0"), Cell::new("7"), Cell::new("a long sentence of why")],
                vec![Cell::new("find/s1"), Cell::new("12"), Cell::new("short")],
            ],
        };
        let text = columns.render(Some(26), Paint::OFF);
        assert_eq!(text, "SHARD       N WHY\nrestore/s0  7 a long sent…\nfind/s1    12 short\n");
        assert!(text.lines().all(|line| line.chars().count() <= 26));
    }

    #[test]
    fn what_matters_least_is_left_out_first() {
        let columns = || Columns {
            heads: vec![("SHARD", Side::Left), ("GPU", Side::Right), ("TRY", Side::Right)]
                .into_iter()
                .chain([("WHY", Side::Left)])
                .collect(),
            // The last column may come later, as its text depends on its room.
            rows: vec![vec![Cell::new("a-long-family/s0"), Cell::new("1"), Cell::new("2")]],
        };
        for (width, heads) in [
            (40, "SHARD            GPU TRY WHY"),
            (28, "SHARD            GPU WHY"),
            (22, "SHARD            WHY"),
            (19, "SHARD         WHY"),
            (1, "SHARD    WHY"),
        ] {
            let mut columns = columns();
            columns.fit(width, 5, &["TRY", "GPU"]);
            columns.rows[0].push(Cell::new("why"));
            let text = columns.render(None, Paint::OFF);
            assert_eq!(text.lines().next(), Some(heads), "{width}");
        }
        let mut columns = columns();
        columns.fit(19, 5, &["TRY", "GPU"]);
        assert_eq!(columns.rows[0][0].text, "…ng-family/s0");
    }

    #[test]
    fn colour_takes_no_width() {
        let columns = Columns {
            heads: vec![("A", Side::Left), ("B", Side::Left)],
            rows: vec![vec![Cell::tone("x", Tone::Bad), Cell::new("y")]],
        };
        let text = columns.render(None, Paint { colour: true });
        assert!(text.ends_with("\u{1b}[1;31mx\u{1b}[0m y\n"), "{text:?}");
    }

    #[test]
    fn words_are_wrapped_and_none_is_broken() {
        assert_eq!(wrap("one two three four five", 2, Some(22)), "  one two three four\n  five\n");
    }
}
