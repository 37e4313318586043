//! How large a shards.toml may be: what reads it takes memory by its words and tables, not by its bytes.
//!
//! The TOML reader lays every word and sign out before the tree, and gives each table room for eleven
//! keys. So that memory is reckoned up first, of which nothing is kept, and a file that is something else
//! is refused. Shards with sections of their own are what a large campaign is made of, and pay for theirs.

use std::path::Path;

use toml_parser::Source;
use toml_parser::lexer::{Token, TokenKind};

use super::fault::Faults;
use super::whole;

/// Thousands of shards by name are some hundred KiB.
pub(super) const MOST_BYTES: u64 = 4 << 20;

/// Bytes for reading any file, ...
const READER: usize = 8 << 20;
/// ... for each byte of it, ...
const FACTOR: usize = 8;
/// ... and for each section of a family or shard: a header and four keys.
const SECTION: usize = 4608;
/// Sections that are counted so. Ten thousand shards are the most that a campaign is known to have.
const MOST_SECTIONS: usize = 12_000;

/// What the reader takes, measured (tests/fuzz.rs): a word, sign, blank or line end, ...
const OF_PART: usize = 72;
/// ... a table with a key, ...
const OF_TABLE: usize = 1200;
/// ... and a key.
const OF_KEY: usize = 112;

/// Of a file up to here all faults of its TOML are told: there may be one at every part, of up to 240
/// bytes, and one at every byte of a word, of up to 140.
const FEW_PARTS: usize = 24 << 10;
const FEW_BYTES: usize = 60 << 10;

/// What reading a file takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Need {
    parts: usize,
    tables: usize,
    keys: usize,
    /// Headers `[families.`.
    sections: usize,
}

impl Need {
    fn bytes(self) -> usize {
        let Need { parts, tables, keys, sections: _ } = self;
        parts * OF_PART + tables * OF_TABLE + keys * OF_KEY
    }

    fn of(text: &str) -> Need {
        let mut need = Need::default();
        let word = |token: Token| text.get(token.span().start()..token.span().end());
        // The names of the last header, and of the one that is read.
        let (mut last, mut header): (Names<'_>, Option<Names<'_>>) = Default::default();
        let (mut line_begins, mut before) = (true, TokenKind::Newline);
        // A dot in a number is none between keys.
        let mut number = false;
        for token in Source::new(text).lex() {
            need.parts += 1;
            let kind = token.kind();
            match (kind, &mut header) {
                (TokenKind::LeftSquareBracket, None) if line_begins => header = Some([None; 8]),
                (TokenKind::RightSquareBracket, Some(path)) => {
                    let same = path.iter().zip(&last).take_while(|(a, b)| a.is_some() && a == b);
                    let same = same.count();
                    need.tables += path.iter().flatten().count().saturating_sub(same).max(1);
                    need.keys += 1;
                    need.sections += usize::from(path.first() == Some(&Some("families")));
                    last = *path;
                    header = None;
                }
                (TokenKind::Newline, Some(_)) => header = None,
                (TokenKind::Dot, Some(path)) if path.iter().all(Option::is_some) => {
                    need.tables += 1
                }
                (TokenKind::Dot, None) if !number => need.tables += 1,
                (TokenKind::LeftCurlyBracket, _) => need.tables += 1,
                (TokenKind::Equals, _) => need.keys += 1,
                (TokenKind::Dot | TokenKind::Whitespace, _) => {}
                (_, Some(path)) => {
                    if let Some(free) = path.iter_mut().find(|name| name.is_none()) {
                        *free = word(token);
                    }
                }
                _ => {}
            }
            if kind == TokenKind::Whitespace {
                continue;
            }
            number = kind == TokenKind::Atom && before == TokenKind::Equals;
            line_begins = kind == TokenKind::Newline;
            before = kind;
        }
        need
    }
}

/// The names of a header, as far as ours go; the deepest is a shard's `done`.
type Names<'a> = [Option<&'a str>; 8];

pub(super) fn is_small(text: &str) -> bool {
    text.len() <= FEW_PARTS || (text.len() <= FEW_BYTES && Need::of(text).parts <= FEW_PARTS)
}

/// # Errors
/// It is larger than any campaign needs.
pub(super) fn fits(path: &Path, text: &str) -> Result<(), Faults> {
    // No byte takes more than half a table.
    if text.len() * OF_TABLE / 2 <= READER {
        return Ok(());
    }
    let need = Need::of(text);
    let most = READER + FACTOR * text.len() + SECTION * need.sections.min(MOST_SECTIONS);
    if need.bytes() <= most {
        return Ok(());
    }
    let Need { parts, tables, sections, .. } = need;
    let said = format!(
        "has {parts} words and signs and {tables} tables, more than a file of this size with {sections} \
         sections of families and shards may have"
    );
    let hint = format!(
        "if it is a {}, name many shards by `shards = N`, and give a family what its shards have in common",
        name(path)
    );
    Err(whole(path, said, &hint))
}

pub(super) fn too_large(path: &Path) -> Faults {
    let text = format!("is larger than {} MiB, so it is no {}", MOST_BYTES >> 20, name(path));
    whole(path, text, "correct the path")
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keys_and_sections_are_counted() {
        let check = |text: &str, tables: usize, keys: usize, sections: usize| {
            let need = Need::of(text);
            assert_eq!(
                (need.tables, need.keys, need.sections),
                (tables, keys, sections),
                "{text:?}"
            );
        };
        check("", 0, 0, 0);
        check("[families.find]\nrows = 44\ncap = 15.5\n", 2, 3, 1);
        check("[families.find.shard.s0]\n  [ families.find.shard.s1 ]\n", 5, 2, 2);
        check("[families.a.b]\n[families.c.b]\n", 5, 2, 2);
        check("[labs]\nfamilies = 1\na = [families]\n", 1, 3, 0);
        check("a.b.c = { d = 1, 2.3 = 1.5 }\n", 4, 3, 0);
        check("[a.b.c.d.e.f.g.h.i.j]\n", 10, 1, 0);
        check("[a\n[b]\n", 1, 1, 0);
    }

    #[test]
    fn as_many_sections_as_a_campaign_may_have_fit_and_other_things_of_that_size_do_not() {
        let path = Path::new("/lab/shards.toml");
        let keys = "rows = 44\ncap = 15.0\nlab = \"BCG\"\ngpus = 2\n\n";
        let shard = |i: usize| format!("[families.find.shard.s{i:05}]\n{keys}");
        let text: String = (0..10_000).map(shard).collect();
        assert!(fits(path, &text).is_ok());
        let names: String = (0..10_000).map(|i| format!("\"shard{i}\", ")).collect();
        assert!(fits(path, &format!("[families.find]\nshards = [{names}]\n")).is_ok());
        let other = text.replace("[families.", "[labs.");
        let fault = fits(path, &other).expect_err("too large").to_string();
        assert!(fault.contains("words and signs and 10003 tables, more than"), "{fault}");
        assert!(fault.contains("shards = N"), "{fault}");
        assert!(!is_small(&other) && is_small("rows = 44\n"));
    }
}
