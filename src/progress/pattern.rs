//! File name patterns: `*` and `?` stay within a name and, as in a shell, do not match a leading
//! dot: a program's `.row_3.json.tmp` is no row. `**` goes any number of folders down. `[a-z]` and
//! `{a,b}` work. Nothing here looks at a file.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::open::gap;
use crate::model::observation::{Gap, GapKind, Seen};

/// A pattern, taken apart.
pub(super) struct Pattern {
    /// The part before the first wildcard.
    pub folder: PathBuf,
    pub rest: Rest,
}

pub(super) enum Rest {
    /// One test for each name of the path.
    Names(Vec<Part>),
    /// `**`, or braces over a slash: the path below `folder` as a whole.
    Below { matcher: GlobMatcher, hidden: bool },
}

pub(super) enum Part {
    Literal(OsString),
    /// Only `*` and `?`: a matcher that costs nothing to make, for thousands of patterns.
    Simple(Vec<u8>),
    Full(GlobMatcher, bool),
}

impl Pattern {
    pub(super) fn parse(pattern: &str) -> Seen<Pattern> {
        let mut names: Vec<&str> = pattern.split('/').collect();
        // The last name is never part of the folder, wildcard or not.
        let literal = names.iter().take_while(|name| !is_wild(name)).count().min(names.len() - 1);
        let wild = names.split_off(literal);
        let folder = match names.as_slice() {
            [] => PathBuf::from("."),
            [""] => PathBuf::from("/"),
            names => PathBuf::from(names.join("/")),
        };
        let full = |text: &str| {
            GlobBuilder::new(text)
                .literal_separator(true)
                .backslash_escape(true)
                .build()
                .map(|glob| glob.compile_matcher())
                .map_err(|error| gap(GapKind::Unreadable, Path::new(pattern), error.to_string()))
        };
        let below = wild.contains(&"**") || wild.iter().any(|name| has_open_brace(name));
        let rest = if below {
            let hidden = wild.iter().any(|name| name.starts_with('.'));
            Rest::Below { matcher: full(&wild.join("/"))?, hidden }
        } else {
            let part = |name: &&str| {
                Ok(if !is_wild(name) {
                    Part::Literal(OsString::from(name))
                } else if name.contains(['[', ']', '{', '}', '\\']) {
                    Part::Full(full(name)?, name.starts_with('.'))
                } else {
                    Part::Simple(name.as_bytes().to_vec())
                })
            };
            Rest::Names(wild.iter().map(part).collect::<Result<_, Gap>>()?)
        };
        Ok(Pattern { folder, rest })
    }
}

fn is_wild(name: &str) -> bool {
    name.contains(['*', '?', '[', ']', '{', '}', '\\'])
}

fn has_open_brace(name: &str) -> bool {
    name.matches('{').count() != name.matches('}').count()
}

impl Part {
    pub(super) fn matches(&self, name: &[u8]) -> bool {
        match self {
            Part::Literal(text) => text.as_bytes() == name,
            Part::Simple(pattern) => {
                (name.first() != Some(&b'.') || pattern.first() == Some(&b'.'))
                    && matches_simply(pattern, name)
            }
            Part::Full(matcher, hidden) => {
                (name.first() != Some(&b'.') || *hidden)
                    && matcher.is_match(Path::new(OsStr::from_bytes(name)))
            }
        }
    }

    /// What every name that matches begins with.
    pub(super) fn prefix(&self) -> &[u8] {
        match self {
            Part::Literal(text) => text.as_bytes(),
            Part::Simple(pattern) => {
                let length = pattern.iter().take_while(|b| !matches!(b, b'*' | b'?')).count();
                pattern.get(..length).unwrap_or_default()
            }
            Part::Full(..) => b"",
        }
    }
}

/// `*` is any run of bytes, `?` one character. Goes back to the last `*` only, so that the time
/// is bounded by the product of the lengths.
fn matches_simply(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some(b'?') => {
                p += 1;
                n += 1;
                // The other bytes of one UTF-8 character.
                while name.get(n).is_some_and(|byte| byte & 0xc0 == 0x80) {
                    n += 1;
                }
                continue;
            }
            Some(byte) if name.get(n) == Some(byte) => {
                p += 1;
                n += 1;
                continue;
            }
            _ => {}
        }
        match &mut star {
            Some((after, from)) => {
                *from += 1;
                (p, n) = (*after + 1, *from);
            }
            None => return false,
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}
