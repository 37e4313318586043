//! Tables with a separator that nobody can have written into a field.
//!
//! Job names and comments of strangers may hold any byte, newlines and control characters too. The
//! separator therefore ends in a tag that is new with every call: a text that was written before the
//! call cannot contain it, so no field can break a row or forge one.
//! This file knows no field of Slurm's: only cells.

use memchr::memchr_iter;

/// Unit separator: one byte that no sane name holds, so that the tag can be short.
const UNIT: char = '\u{1f}';

/// A separator of its own for each call.
#[derive(Debug, Clone)]
pub struct Tags {
    state: u64,
}

impl Tags {
    /// `seed`: anything that differs from run to run.
    pub fn new(seed: u64) -> Tags {
        Tags { state: seed }
    }

    pub fn next_separator(&mut self) -> String {
        // Weyl sequence, then a mix in which every bit of the state reaches every bit of the tag.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        for shift in [30, 27, 31] {
            mixed = (mixed ^ (mixed >> shift)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        }
        format!("{UNIT}{:08x}", mixed >> 32)
    }
}

/// How rows end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEnd {
    /// A separator behind every cell, then a newline: `-O a:|,b:|`.
    SeparatorNewline,
    /// No separator behind the last cell: `sacct -P`. The last cell must be one that users cannot write.
    Newline,
}

/// Calls `each` with the cells of every row. An error where the text is no whole table of `width`.
pub fn for_each(
    text: &str,
    separator: &str,
    width: usize,
    end: RowEnd,
    mut each: impl FnMut(&[&str]) -> Result<(), String>,
) -> Result<(), String> {
    match end {
        RowEnd::SeparatorNewline => {
            let mut table = Table::new(separator, width);
            table.feed(text.as_bytes(), &mut each);
            table.end()
        }
        RowEnd::Newline => for_each_line(text, separator, width, each),
    }
}

const NO_TABLE: &str = "a table needs a separator and two columns";
const NOTHING: &str = "it printed nothing, not even a header";

/// A table of [`RowEnd::SeparatorNewline`], read while it is being printed. What its rows say may be
/// used only when [`Table::end`] found it whole.
#[derive(Debug)]
pub struct Table {
    separator: String,
    width: usize,
    /// Rows so far.
    number: u64,
    /// What is no whole row yet.
    rest: Vec<u8>,
    /// The first one; nothing behind it is read.
    fault: Option<String>,
}

impl Table {
    pub fn new(separator: &str, width: usize) -> Table {
        let fault = (separator.is_empty() || width < 2).then(|| NO_TABLE.to_owned());
        Table { separator: separator.to_owned(), width, number: 0, rest: Vec::new(), fault }
    }

    /// Calls `each` with the cells of every row that these bytes, cut anywhere, make whole.
    pub fn feed(&mut self, bytes: &[u8], each: &mut dyn FnMut(&[&str]) -> Result<(), String>) {
        if self.fault.is_some() {
            return;
        }
        // The beginning of a separator may have come before.
        let from = self.rest.len().saturating_sub(self.separator.len() - 1);
        self.rest.extend_from_slice(bytes);
        let fresh = self.rest.get(from..).unwrap_or_default();
        let is_separator = |bytes: &[u8]| bytes == self.separator.as_bytes();
        let Some(last) = fresh.windows(self.separator.len()).rposition(is_separator) else {
            return;
        };
        let behind = self.rest.split_off(from + last + self.separator.len());
        let cells = std::mem::take(&mut self.rest);
        // Checked as a whole, which is many times as fast as to look for the first byte that is wrong.
        let cells = match std::str::from_utf8(&cells) {
            Ok(text) => text.into(),
            Err(_) => String::from_utf8_lossy(&cells),
        };
        let used = match self.whole_rows(&cells, each) {
            Ok(used) => used,
            Err(fault) => return self.fault = Some(fault),
        };
        self.rest.extend_from_slice(cells.as_bytes().get(used..).unwrap_or_default());
        self.rest.extend_from_slice(&behind);
    }

    /// How many bytes of `text`, which ends with a separator, are whole rows.
    fn whole_rows(
        &mut self,
        text: &str,
        each: &mut dyn FnMut(&[&str]) -> Result<(), String>,
    ) -> Result<usize, String> {
        let mut row: Vec<&str> = Vec::with_capacity(self.width);
        let (mut at, mut used) = (0, 0);
        for piece in pieces(text, &self.separator) {
            if at == text.len() {
                break;
            }
            at += piece.len() + self.separator.len();
            row.push(match (row.is_empty(), self.number, piece.strip_prefix('\n')) {
                (false, ..) => piece,
                // Banners of a site's wrapper may stand before the header.
                (true, 0, _) => piece.rsplit('\n').next().unwrap_or(piece),
                (true, _, Some(cell)) => cell,
                (true, number, None) => return Err(format!("row {number} has too many fields")),
            });
            if row.len() == self.width {
                each(&row)?;
                self.number += 1;
                row.clear();
                used = at;
            }
        }
        Ok(used)
    }

    /// An error where that was no whole table.
    pub fn end(self) -> Result<(), String> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let rest = String::from_utf8_lossy(&self.rest);
        match &*rest {
            "" if self.number == 0 => Err(NOTHING.to_owned()),
            "\n" if self.number > 0 => Ok(()),
            rest if rest.contains(&self.separator) => {
                Err(format!("it breaks off in row {}", self.number + 1))
            }
            _ => Err(format!("it breaks off after row {}", self.number)),
        }
    }
}

/// [`for_each`] of [`RowEnd::Newline`].
fn for_each_line(
    text: &str,
    separator: &str,
    width: usize,
    mut each: impl FnMut(&[&str]) -> Result<(), String>,
) -> Result<(), String> {
    if separator.is_empty() || width < 2 {
        return Err(NO_TABLE.to_owned());
    }
    if text.is_empty() {
        return Err(NOTHING.to_owned());
    }
    let mut row: Vec<&str> = Vec::with_capacity(width);
    let mut number = 0_u64;
    let mut pieces = pieces(text, separator).peekable();
    while let Some(piece) = pieces.next() {
        let is_last = pieces.peek().is_none();
        if row.len() + 1 == width {
            let Some((cell, next)) = piece.split_once('\n') else {
                return Err(format!("it breaks off in row {}", number + 1));
            };
            row.push(cell);
            each(&row)?;
            number += 1;
            row.clear();
            if is_last {
                return match next {
                    "" => Ok(()),
                    _ => Err(format!("it breaks off after row {number}")),
                };
            }
            row.push(next);
            continue;
        }
        if is_last {
            return Err(format!("it breaks off in row {}", number + 1));
        }
        row.push(match number == 0 && row.is_empty() {
            true => piece.rsplit('\n').next().unwrap_or(piece),
            false => piece,
        });
    }
    Err(format!("it breaks off after row {number}"))
}

/// `text.split(separator)`, for a separator whose first byte is rare: that one is looked for, and only
/// where it is found the rest is compared. A queue of ten thousand jobs has 250 000 cells.
fn pieces<'t>(text: &'t str, separator: &str) -> impl Iterator<Item = &'t str> {
    let separator = separator.as_bytes();
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let bytes = text.as_bytes();
        let is_whole = |at: &usize| bytes.get(*at..).is_some_and(|b| b.starts_with(separator));
        let found = separator.first().and_then(|b| memchr_iter(*b, bytes).find(is_whole));
        let Some(at) = found else { return rest.take() };
        rest = text.get(at + separator.len()..);
        text.get(..at)
    })
}

/// Empty where Slurm means "none", and where the text holds what no name of ours can hold: control
/// characters, or bytes that are no UTF-8.
pub fn own_text(cell: &str) -> String {
    let plain = cell.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    let strange =
        !plain && cell.chars().any(|c| c.is_control() || c == char::REPLACEMENT_CHARACTER);
    if strange || cell == "(null)" { String::new() } else { cell.to_owned() }
}

/// A cell as it is named in a fault: its beginning, with control characters escaped.
pub fn shown(cell: &str) -> String {
    const MOST: usize = 60;
    let begin: String = cell.chars().take(MOST).collect();
    let more = if begin.len() < cell.len() { "..." } else { "" };
    format!("{begin:?}{more}")
}

/// The digits at the start: `123` of `123_4`, `123_[2-9%3]`, `123+0`.
pub fn job_id(cell: &str) -> Result<u64, String> {
    let cell = cell.trim();
    let end = cell.find(|c: char| !c.is_ascii_digit()).unwrap_or(cell.len());
    let (digits, rest) = cell.split_at_checked(end).unwrap_or((cell, ""));
    let rest_fits = rest.is_empty() || rest.starts_with(['_', '+', '.']);
    let id = digits.parse().ok().filter(|id| rest_fits && *id > 0);
    id.ok_or_else(|| format!("{} is no job id", shown(cell)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_those_of_a_plain_split() {
        let separator = "\u{1f}ab";
        for text in [
            "",
            "x",
            "\u{1f}ab",
            "x\u{1f}ab",
            "\u{1f}abx",
            "\u{1f}\u{1f}ab\u{1f}aab\u{1f}a",
            "\u{1f}ab\u{1f}ab",
            "ü\u{1f}abé\u{1f}a",
            "\u{1f}",
        ] {
            let ours: Vec<&str> = pieces(text, separator).collect();
            assert_eq!(ours, text.split(separator).collect::<Vec<_>>(), "{text:?}");
        }
    }

    fn cells(text: &str, end: RowEnd) -> Result<String, String> {
        let mut rows = Vec::new();
        for_each(text, "|", 3, end, |row| {
            rows.push(row.join(" "));
            Ok(())
        })?;
        Ok(rows.join("; "))
    }

    #[test]
    fn whole_tables_are_read_and_all_others_are_told() {
        let check = |text: &str, expected: &str| {
            let read = cells(text, RowEnd::SeparatorNewline).unwrap_or_else(|e| e);
            assert_eq!(read, expected, "{text:?}");
        };
        check("A|B|C|\n", "A B C");
        check("A|B|C|\n1|x\ny|z|\n", "A B C; 1 x\ny z");
        check("Welcome\nA|B|C|\n", "A B C");
        check("", "it printed nothing, not even a header");
        check("\n", "it breaks off after row 0");
        check("A|B|C|", "it breaks off after row 1");
        check("A|B|C|\n1|x", "it breaks off in row 2");
        check("A|B|C|\n1|x|", "it breaks off in row 2");
        check("A|B|C|\n1|x|y|z|\n", "row 2 has too many fields");
    }

    #[test]
    fn a_table_in_pieces_is_the_same_table_wherever_it_is_cut() {
        let whole = "Hello\nA~:B~:C~:\n1~:x\ny~:\u{fc}~:\n2~:\u{20ac}~:~:\n".as_bytes();
        let broken = [whole, b"\xff~"].concat();
        let read = |pieces: &[&[u8]]| {
            let mut table = Table::new("~:", 3);
            let mut rows = Vec::new();
            for piece in pieces {
                table.feed(piece, &mut |row| {
                    rows.push(row.join(" "));
                    Ok(())
                });
            }
            (rows, table.end())
        };
        let expected = ["A B C", "1 x\ny \u{fc}", "2 \u{20ac} "].map(str::to_owned).to_vec();
        for (bytes, end) in
            [(whole, Ok(())), (&broken, Err("it breaks off after row 3".to_owned()))]
        {
            for cut in 0..=bytes.len() {
                let (front, back) = bytes.split_at(cut);
                assert_eq!(read(&[front, back]), (expected.clone(), end.clone()), "cut at {cut}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(read(&single), (expected.clone(), end.clone()));
        }
        // Without its last rows it would be whole: the exit code has to say that it is not.
        for length in 0..whole.len() {
            let text = whole.get(..length).unwrap_or_default();
            let (_, end) = read(&[text]);
            assert_eq!(end.is_ok(), text.ends_with(b"~:\n"), "cut off after {length} bytes");
        }
    }

    #[test]
    fn tables_without_a_last_separator() {
        let check = |text: &str, expected: &str| {
            let read = cells(text, RowEnd::Newline).unwrap_or_else(|e| e);
            assert_eq!(read, expected, "{text:?}");
        };
        check("A|B|C\n", "A B C");
        check("A|B|C\n1|x\ny|z\n2||\n", "A B C; 1 x\ny z; 2  ");
        check("A|B|C", "it breaks off in row 1");
        check("A|B|C\n1|x", "it breaks off in row 2");
        check("A|B|C\n1", "it breaks off after row 1");
    }

    #[test]
    fn separators_differ() {
        let mut tags = Tags::new(7);
        let (first, second) = (tags.next_separator(), tags.next_separator());
        assert_ne!(first, second);
        assert_ne!(first, Tags::new(8).next_separator());
        assert_eq!(first.len(), 9);
    }

    #[test]
    fn ids() {
        for good in ["123", "123_4", "123_[2-9%3]", "123+0", " 123 ", "123.batch"] {
            assert_eq!(job_id(good), Ok(123), "{good:?}");
        }
        for bad in ["", "0", "_1", "-1", "12a", "99999999999999999999999", "x123"] {
            assert!(job_id(bad).is_err(), "{bad:?}");
        }
    }
}
