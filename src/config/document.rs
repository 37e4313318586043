//! shards.toml as a tree with lines. Every fault is collected, none stops the reading: a field that
//! is wrong is `Bad`, and whoever needs it goes without.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::Fault;
use super::keys::unknown_key_hint;
use super::values::{self, Parsed, Wrong};

/// Faults of one file that are told. Where there are more, it is mostly one mistake many times, or no
/// file of ours.
pub(super) const MOST_FAULTS: usize = 1000;

/// What is said beside the first [`MOST_FAULTS`].
pub(super) fn too_many() -> Fault {
    let text = format!("has more faults than the {MOST_FAULTS} that are told here");
    Fault { line: None, key: String::new(), text, hint: Some("correct these first".to_owned()) }
}

/// Collects faults, and knows the line of every key.
#[derive(Debug, Default)]
pub(super) struct Sink {
    pub faults: Vec<Fault>,
    pub warnings: Vec<Fault>,
    /// By dotted key.
    pub lines: BTreeMap<String, usize>,
    /// Byte offset of each line's beginning, but the first.
    starts: Vec<usize>,
}

impl Sink {
    pub fn new(text: &str) -> Sink {
        let starts = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Sink { starts: starts.collect(), ..Sink::default() }
    }

    /// Notes the line of every key of the document, as far as they take no more than `room` bytes: of a
    /// key that is kilobytes long each one below it would have its own copy.
    pub fn index(&mut self, table: &DeTable<'_>, room: usize) {
        let mut room = room;
        self.index_below("", table, &mut room);
    }

    fn index_below(&mut self, prefix: &str, table: &DeTable<'_>, room: &mut usize) {
        for (key, value) in table {
            let length = prefix.len() + 1 + key.get_ref().len();
            let Some(left) = room.checked_sub(length) else { return };
            *room = left;
            let path = dotted(prefix, key.get_ref());
            if let DeValue::Table(inner) = value.get_ref() {
                self.index_below(&path, inner, room);
            }
            let line = self.line_at(key.span().start);
            self.lines.insert(path, line);
        }
    }

    /// From 1.
    pub fn line_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset) + 1
    }

    /// From 1, in characters.
    pub fn column_at(&self, text: &str, offset: usize) -> usize {
        let line = self.line_at(offset);
        let start = line.checked_sub(2).and_then(|i| self.starts.get(i)).copied().unwrap_or(0);
        text.get(start..offset).map_or(0, |before| before.chars().count()) + 1
    }

    /// The line of a key, or of the nearest table around it.
    pub fn line_of(&self, key: &str) -> Option<usize> {
        line_in(&self.lines, key)
    }

    pub fn fault(&mut self, key: &str, text: impl Into<String>, hint: impl Into<String>) {
        let line = self.line_of(key);
        self.add(line, key, Wrong { text: text.into(), hint: Some(hint.into()) });
    }

    pub fn warn(&mut self, key: &str, text: impl Into<String>, hint: impl Into<String>) {
        if self.warnings.len() >= MOST_FAULTS {
            return;
        }
        let (key, text, hint) = (key.to_owned(), text.into(), Some(hint.into()));
        self.warnings.push(Fault { line: self.line_of(&key), key, text, hint });
    }

    /// No more faults are taken in.
    fn is_full(&self) -> bool {
        self.faults.len() >= MOST_FAULTS
    }

    pub fn all_faults(self) -> Vec<Fault> {
        let is_full = self.is_full();
        self.faults.into_iter().chain(is_full.then(too_many)).collect()
    }

    fn add(&mut self, line: Option<usize>, key: &str, wrong: Wrong) {
        if self.is_full() {
            return;
        }
        let key = key.to_owned();
        self.faults.push(Fault { line, key, text: wrong.text, hint: wrong.hint });
    }

    /// The value, or its faults noted under `key`.
    pub fn accept<T>(&mut self, line: Option<usize>, key: &str, parsed: Parsed<T>) -> Option<T> {
        match parsed {
            Ok(value) => Some(value),
            Err(all) => {
                all.into_iter().for_each(|wrong| self.add(line, key, wrong));
                None
            }
        }
    }
}

/// The line of a key, or of the nearest table around it.
pub(super) fn line_in(lines: &BTreeMap<String, usize>, key: &str) -> Option<usize> {
    let mut key = key;
    loop {
        match (lines.get(key), key.rsplit_once('.')) {
            (Some(line), _) => return Some(*line),
            (None, Some((outer, _))) => key = outer,
            (None, None) => return None,
        }
    }
}

pub(super) fn dotted(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

/// A key's value: not there, there and wrong (already told), or there.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Field<T> {
    #[default]
    Absent,
    Bad,
    Set(T),
}

impl<T> Field<T> {
    pub fn get(&self) -> Option<&T> {
        match self {
            Field::Set(value) => Some(value),
            Field::Absent | Field::Bad => None,
        }
    }

    pub fn is_absent(&self) -> bool {
        matches!(self, Field::Absent)
    }

    /// For keys that may be left out; one that is wrong has stopped the whole file already.
    pub fn optional(self) -> Option<T> {
        match self {
            Field::Set(value) => Some(value),
            Field::Absent | Field::Bad => None,
        }
    }

    pub fn or(self, default: T) -> T {
        self.optional().unwrap_or(default)
    }

    fn of(value: Option<T>) -> Field<T> {
        value.map_or(Field::Bad, Field::Set)
    }
}

/// One table of the document, its unknown keys already told.
pub(super) struct Section<'a> {
    /// Dotted; empty for the whole document.
    pub key: String,
    /// `None` where the section is absent, or is no table (told).
    table: Option<&'a DeTable<'a>>,
    pub present: bool,
}

impl<'a> Section<'a> {
    pub fn root(sink: &mut Sink, table: &'a DeTable<'a>, known: &[&str]) -> Section<'a> {
        let section = Section { key: String::new(), table: Some(table), present: true };
        section.refuse_unknown(sink, known);
        section
    }

    /// The table under `name`; an empty one where there is none.
    pub fn section(&self, sink: &mut Sink, name: &str, known: &[&str]) -> Section<'a> {
        let key = dotted(&self.key, name);
        match self.value(name) {
            Some(value) => Section::of(sink, key, value.get_ref(), known),
            None => Section { key, table: None, present: false },
        }
    }

    pub fn of(sink: &mut Sink, key: String, value: &'a DeValue<'a>, known: &[&str]) -> Section<'a> {
        let DeValue::Table(table) = value else {
            let line = sink.line_of(&key);
            let example = match key.rsplit('.').next() {
                Some("done") => "{ glob = \"runs/{shard}/row_*.json\" }".to_owned(),
                Some("cost") => "{ jsonl = \"runs/{shard}.jsonl\", field = \"usd\" }".to_owned(),
                _ => format!("[{key}]"),
            };
            sink.accept(line, &key, values::wrong_type::<()>(value, "a table", &example));
            return Section { key, table: None, present: true };
        };
        let section = Section { key, table: Some(table), present: true };
        section.refuse_unknown(sink, known);
        section
    }

    /// What is under `name` was no table, which has been told.
    pub fn is_broken(&self) -> bool {
        self.present && self.table.is_none()
    }

    fn refuse_unknown(&self, sink: &mut Sink, known: &[&str]) {
        for (key, _) in self.table.into_iter().flatten() {
            let word: &str = key.get_ref();
            if !known.contains(&word) && !sink.is_full() {
                let line = Some(sink.line_at(key.span().start));
                let hint = unknown_key_hint(word, known);
                let unknown = Wrong { text: "unknown key".to_owned(), hint };
                sink.add(line, &dotted(&self.key, word), unknown);
            }
        }
    }

    pub fn value(&self, name: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table?.get(name)
    }

    /// Tables under `name`, in the order of the file, each under a name of the user's.
    pub fn children(&self, sink: &mut Sink, name: &str) -> Vec<(String, &'a DeValue<'a>)> {
        let key = dotted(&self.key, name);
        let Some(value) = self.value(name) else { return Vec::new() };
        let DeValue::Table(table) = value.get_ref() else {
            let line = sink.line_of(&key);
            let parsed =
                values::wrong_type::<()>(value.get_ref(), "a table", &format!("[{key}.NAME]"));
            sink.accept(line, &key, parsed);
            return Vec::new();
        };
        let mut children: Vec<_> = table.iter().collect();
        children.sort_by_key(|(key, _)| key.span().start);
        let mut named = Vec::new();
        for (child, value) in children {
            let line = Some(sink.line_at(child.span().start));
            if let Some(name) = sink.accept(line, &key, values::name(child.get_ref())) {
                named.push((name, value.get_ref()));
            }
        }
        named
    }

    pub fn read<T>(
        &self,
        sink: &mut Sink,
        name: &str,
        parse: impl FnOnce(&DeValue<'_>) -> Parsed<T>,
    ) -> Field<T> {
        let Some(value) = self.value(name) else { return Field::Absent };
        let line = Some(sink.line_at(value.span().start));
        Field::of(sink.accept(line, &dotted(&self.key, name), parse(value.get_ref())))
    }

    /// A list of texts, each checked, each fault at its own line; `distinct` refuses repetitions.
    pub fn read_list(
        &self,
        sink: &mut Sink,
        name: &str,
        distinct: bool,
        check: impl Fn(&str) -> Parsed<String>,
    ) -> Field<Vec<String>> {
        let Some(value) = self.value(name) else { return Field::Absent };
        let key = dotted(&self.key, name);
        let DeValue::Array(array) = value.get_ref() else {
            let line = Some(sink.line_at(value.span().start));
            let parsed =
                values::wrong_type(value.get_ref(), "a list of texts", "[\"...\", \"...\"]");
            return Field::of(sink.accept(line, &key, parsed));
        };
        let mut seen = BTreeSet::new();
        let mut list = Some(Vec::new());
        for element in array {
            let line = Some(sink.line_at(element.span().start));
            let checked = values::text(element.get_ref()).and_then(|text| check(&text));
            let checked = checked.and_then(|text| match distinct && !seen.insert(text.clone()) {
                true => values::wrong(format!("{text:?} is there twice"), "take one out"),
                false => Ok(text),
            });
            match (sink.accept(line, &key, checked), &mut list) {
                (Some(text), Some(list)) => list.push(text),
                _ => list = None,
            }
        }
        Field::of(list)
    }

    /// Says that a key without a default is missing; silent where the table itself is broken.
    pub fn require<T>(&self, sink: &mut Sink, name: &str, field: &Field<T>, hint: &str) {
        if field.is_absent() && !self.is_broken() {
            sink.fault(&dotted(&self.key, name), "is missing", hint);
        }
    }
}
