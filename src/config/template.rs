//! Texts with `{shard}` and the like in them: read once, filled in for each shard.
//!
//! `{name}` is a placeholder, `{{` ... `}}` braces meant as such. Everything that shells and globs
//! use braces for stays as it is: `${HOME}`, `{a,b}`, `{1..3}`, `{}`.

use std::borrow::Cow;

use super::near::did_you_mean;
use super::values::{Parsed, Wrong, wrong};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hole {
    Project,
    Family,
    Shard,
    Index,
    Rows,
    Gpus,
}

const HOLES: &[(&str, Hole)] = &[
    ("project", Hole::Project),
    ("family", Hole::Family),
    ("shard", Hole::Shard),
    ("index", Hole::Index),
    ("rows", Hole::Rows),
    ("gpus", Hole::Gpus),
];

/// What reads the text in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// A shell: it expands variables, and values are quoted for it.
    Shell,
    /// The file system, by way of babysit: nothing expands anything.
    Path,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Hole(Hole),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Template {
    parts: Vec<Part>,
    reader: Reader,
}

/// What a shard puts in the holes.
pub(super) struct Fill<'a> {
    pub project: &'a str,
    pub family: &'a str,
    pub shard: &'a str,
    pub index: u32,
    pub rows: u32,
    pub gpus: u32,
}

impl Template {
    pub fn parse(text: &str, reader: Reader) -> Parsed<Template> {
        if reader == Reader::Path {
            refuse_expansion(text)?;
        }
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut faults = Vec::new();
        let mut open = 0usize;
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if let Some(tail) = rest.strip_prefix("${") {
                let length = variable_length(tail);
                let (variable, after) = rest.split_at_checked(2 + length).unwrap_or((rest, ""));
                plain.push_str(variable);
                rest = after;
            } else if let Some(tail) = rest.strip_prefix("{{") {
                open += 1;
                plain.push('{');
                rest = tail;
            } else if let Some(tail) = rest.strip_prefix("}}").filter(|_| open > 0) {
                open -= 1;
                plain.push('}');
                rest = tail;
            } else if let Some((word, after)) = placeholder(rest) {
                match HOLES.iter().find(|(name, _)| *name == word) {
                    Some((_, hole)) => {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                        parts.push(Part::Hole(*hole));
                    }
                    None => faults.push(unknown(word)),
                }
                rest = after;
            } else {
                plain.push(c);
                rest = rest.get(c.len_utf8()..).unwrap_or("");
            }
        }
        if open > 0 {
            faults.push(Wrong {
                text: "`{{` without its `}}`".to_owned(),
                hint: Some("close it, or write a single `{`".to_owned()),
            });
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        parts.push(Part::Text(plain));
        Ok(Template { parts, reader })
    }

    /// Comes out differently for each shard of a family.
    pub fn tells_shards_apart(&self) -> bool {
        self.parts.iter().any(|p| matches!(p, Part::Hole(Hole::Shard | Hole::Index)))
    }

    /// Bytes of a text filled in, where names are not very long.
    fn usual_length(&self) -> usize {
        let length = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Hole(_) => 12,
        };
        self.parts.iter().map(length).sum()
    }

    pub fn fill(&self, fill: &Fill<'_>) -> String {
        let mut out = String::with_capacity(self.usual_length());
        for part in &self.parts {
            let value = match part {
                Part::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Part::Hole(Hole::Project) => Cow::Borrowed(fill.project),
                Part::Hole(Hole::Family) => Cow::Borrowed(fill.family),
                Part::Hole(Hole::Shard) => Cow::Borrowed(fill.shard),
                Part::Hole(Hole::Index) => Cow::Owned(fill.index.to_string()),
                Part::Hole(Hole::Rows) => Cow::Owned(fill.rows.to_string()),
                Part::Hole(Hole::Gpus) => Cow::Owned(fill.gpus.to_string()),
            };
            match self.reader {
                Reader::Shell => out.push_str(&shell_words::quote(&value)),
                // Names and numbers hold nothing that a glob takes for a pattern.
                Reader::Path => out.push_str(&value),
            }
        }
        out
    }
}

fn refuse_expansion(text: &str) -> Parsed<()> {
    let variable = text
        .split('$')
        .skip(1)
        .any(|after| after.starts_with(|c: char| c == '{' || c == '_' || c.is_ascii_alphabetic()));
    if variable {
        return wrong(
            format!("{text:?} holds a shell variable, which no shell fills in here"),
            "write the path out; relative paths start at the folder of shards.toml",
        );
    }
    if text.starts_with('~') {
        return wrong(
            format!("{text:?} starts with `~`, which no shell fills in here"),
            "write the whole path",
        );
    }
    Ok(())
}

fn unknown(word: &str) -> Wrong {
    let hint = did_you_mean(word, HOLES.iter().map(|(name, _)| *name)).map_or_else(
        || {
            let all: Vec<String> = HOLES.iter().map(|(name, _)| format!("{{{name}}}")).collect();
            format!("known are {}; braces meant as such are `{{{{{word}}}}}`", all.join(" "))
        },
        |guess| format!("{guess} (braces meant as such are `{{{{{word}}}}}`)"),
    );
    Wrong { text: format!("unknown placeholder {{{word}}}"), hint: Some(hint) }
}

/// `{word}` at the beginning: the word, and what follows.
pub(super) fn placeholder(text: &str) -> Option<(&str, &str)> {
    let (word, after) = text.strip_prefix('{')?.split_once('}')?;
    let first = word.chars().next()?;
    let is_word = (first == '_' || first.is_ascii_alphabetic())
        && word.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    is_word.then_some((word, after))
}

/// Bytes up to and with the brace that closes a `${` just read; all, where none does.
fn variable_length(text: &str) -> usize {
    let mut depth = 1usize;
    for (i, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    text.len()
}

/// `[backfill] stop`: its own four placeholders, filled in by whoever runs it.
pub(super) fn check_stop(text: &str) -> Parsed<String> {
    const KNOWN: [&str; 4] = ["jobid", "jobids", "node", "gpus"];
    let mut faults = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let tail = rest.get(at..).unwrap_or("");
        match placeholder(tail) {
            Some((word, after)) => {
                if !KNOWN.contains(&word) {
                    faults.push(Wrong {
                        text: format!("unknown placeholder {{{word}}}"),
                        hint: Some(did_you_mean(word, KNOWN).unwrap_or_else(|| {
                            "known are {jobid} {jobids} {node} {gpus}".to_owned()
                        })),
                    });
                }
                rest = after;
            }
            None => rest = tail.get(1..).unwrap_or(""),
        }
    }
    if faults.is_empty() { Ok(text.to_owned()) } else { Err(faults) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILL: Fill<'_> =
        Fill { project: "oracle-plan", family: "find", shard: "s3", index: 3, rows: 44, gpus: 2 };

    fn filled(text: &str, reader: Reader) -> Result<String, String> {
        match Template::parse(text, reader) {
            Ok(template) => Ok(template.fill(&FILL)),
            Err(all) => Err(all.into_iter().map(|w| w.text + ". ").collect()),
        }
    }

    #[test]
    fn braces_that_are_not_ours_stay() {
        let check = |text: &str, expected: &str| {
            assert_eq!(filled(text, Reader::Shell), Ok(expected.to_owned()), "{text}");
        };
        check(
            "run {project}.{family}.{shard} {index} {rows} {gpus}",
            "run oracle-plan.find.s3 3 44 2",
        );
        check("echo ${HOME} ${A:-${shard}} {shard}", "echo ${HOME} ${A:-${shard}} s3");
        check("echo {a,b} {1..3} {} { x; }", "echo {a,b} {1..3} {} { x; }");
        check("awk '{{print}}' {shard}", "awk '{print}' s3");
        check("echo '{{\"id\": \"{shard}\"}}'", "echo '{\"id\": \"s3\"}'");
        check("{{{shard}}}", "{s3}");
        check("a }} b", "a }} b");
        check("${unclosed {shard}", "${unclosed {shard}");
        check("größe {shard} ü", "größe s3 ü");
    }

    #[test]
    fn what_cannot_be_filled_in_is_told() {
        let check = |text: &str, reader: Reader, part: &str| {
            let message = filled(text, reader).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        };
        check("{shrd} {what}", Reader::Shell, "placeholder {shrd}. unknown placeholder {what}");
        check("{{shard", Reader::Shell, "without its");
        check("${HOME}/x", Reader::Path, "shell variable");
        check("$HOME/x", Reader::Path, "shell variable");
        check("~/x", Reader::Path, "`~`");
    }

    #[test]
    fn stop_has_placeholders_of_its_own() {
        assert!(check_stop("llmctl stop --node {node} --gpus {gpus} ${X} {jobids}").is_err());
        assert!(check_stop("llmctl stop --node {node} --gpus {gpus} {jobid} {jobids} {}").is_ok());
        let faults = check_stop("x {job_id}").expect_err("unknown");
        assert_eq!(faults[0].hint.as_deref(), Some("did you mean \"jobid\"?"));
    }
}
