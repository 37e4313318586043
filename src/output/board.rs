//! `babysit status --watch` on a whole screen: families that open and close, a cursor, a filter. Values
//! and keys in, lines out; only what is on the screen is made, so that ten thousand shards are no work.

use std::collections::BTreeSet;

use super::format::{count, cut};
use super::heading::head;
use super::paint::Tone;
use super::steps::steps;
use super::table::{Look, shard_lines, sorted};
use super::totals::{rate_line, total_lines};
use super::view::{ShardView, Status};
use super::word::Word;

/// More shards than this, and the families begin closed.
const OPEN_AT_FIRST: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Toggle,
    ToggleAll,
    /// Begins to type a filter.
    Filter,
    Escape,
    Erase,
    Type(char),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Board {
    /// `None`: as at first.
    open: Option<BTreeSet<String>>,
    cursor: usize,
    top: usize,
    filter: String,
    pub typing: bool,
    /// Lines of the body when it was last drawn.
    page: usize,
}

/// A line of the body.
enum Line<'a> {
    Family(&'a str, Vec<&'a ShardView>),
    Shard(&'a ShardView),
}

impl Board {
    pub fn key(&mut self, key: Key, status: &Status) {
        if self.typing {
            match key {
                Key::Type(c) => self.filter.push(c),
                Key::Erase => self.filter.truncate(self.filter.len() - self.last_char()),
                Key::Toggle => self.typing = false,
                Key::Escape => {
                    self.typing = false;
                    self.filter.clear();
                }
                _ => {}
            }
            // Few that are found are shown at once.
            self.open = None;
            return;
        }
        let page = self.page.max(1);
        match key {
            Key::Up => self.cursor = self.cursor.saturating_sub(1),
            Key::Down => self.cursor += 1,
            Key::PageUp => self.cursor = self.cursor.saturating_sub(page),
            Key::PageDown => self.cursor += page,
            Key::First => self.cursor = 0,
            Key::Last => self.cursor = usize::MAX,
            Key::Filter => self.typing = true,
            Key::Escape => {
                self.filter.clear();
                self.open = None;
            }
            Key::Toggle => self.toggle(status),
            Key::ToggleAll => {
                let all: BTreeSet<String> =
                    status.shards.iter().map(|view| view.family.clone()).collect();
                let some = all.iter().any(|family| self.is_open(family, status));
                self.open = Some(if some { BTreeSet::new() } else { all });
            }
            Key::Erase | Key::Type(_) => {}
        }
        let last = self.lines(status).len().saturating_sub(1);
        self.cursor = self.cursor.min(last);
    }

    fn last_char(&self) -> usize {
        self.filter.chars().next_back().map_or(0, char::len_utf8)
    }

    fn toggle(&mut self, status: &Status) {
        let family = match self.lines(status).get(self.cursor) {
            Some(Line::Family(family, _)) => (*family).to_owned(),
            Some(Line::Shard(view)) => view.family.clone(),
            None => return,
        };
        let families = status.shards.iter().map(|view| view.family.clone());
        let mut open: BTreeSet<String> =
            families.filter(|family| self.is_open(family, status)).collect();
        if !open.remove(&family) {
            open.insert(family);
        }
        self.open = Some(open);
    }

    fn is_found(&self, view: &ShardView) -> bool {
        view.id.contains(&self.filter) || view.state.text().contains(&self.filter)
    }

    fn found<'a>(&'a self, status: &'a Status) -> impl Iterator<Item = &'a ShardView> {
        status.shards.iter().filter(|view| self.is_found(view))
    }

    fn is_open(&self, family: &str, status: &Status) -> bool {
        match &self.open {
            None => self.found(status).nth(OPEN_AT_FIRST).is_none(),
            Some(open) => open.contains(family),
        }
    }

    /// Families by what is most urgent in them, each with its shards where it is open.
    fn lines<'a>(&self, status: &'a Status) -> Vec<Line<'a>> {
        let mut families: Vec<(&str, Vec<&ShardView>)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for view in sorted(&status.shards).into_iter().filter(|view| self.is_found(view)) {
            let place = *places.entry(view.family.as_str()).or_insert_with(|| {
                families.push((&view.family, Vec::new()));
                families.len() - 1
            });
            if let Some((_, shards)) = families.get_mut(place) {
                shards.push(view);
            }
        }
        let mut lines = Vec::new();
        for (family, shards) in families {
            let open = self.is_open(family, status);
            lines.push(Line::Family(family, shards.clone()));
            if open {
                lines.extend(shards.into_iter().map(Line::Shard));
            }
        }
        lines
    }

    /// Exactly `height` lines, none wider than the screen.
    pub fn render(&mut self, status: &Status, look: &Look, height: usize) -> Vec<String> {
        let width = look.width.unwrap_or(80);
        let above: Vec<String> = head(status, look).lines().map(str::to_owned).collect();
        let narrow = |text: &str| cut(text, width);
        let lines = self.lines(status);
        self.cursor = self.cursor.min(lines.len().saturating_sub(1));
        let plain = Look { paint: super::paint::Paint::OFF, ..*look };
        // What to type for the shard under the cursor, where there is something.
        let mut below: Vec<String> = vec![match lines.get(self.cursor) {
            Some(Line::Shard(view)) => to_type(view, look, width),
            _ => String::new(),
        }];
        below.extend(total_lines(&status.totals, &plain).lines().map(narrow));
        below.extend(rate_line(status, &plain).lines().map(narrow));
        below.push(self.help(width, look));
        // The shards' heading takes one more.
        let room = height.saturating_sub(above.len() + below.len() + 1).max(1);
        self.page = room;
        // A list that became short begins at its top.
        self.top = self.top.min(lines.len().saturating_sub(room));
        self.top = self.top.min(self.cursor).max((self.cursor + 1).saturating_sub(room));
        let body = self.body(&lines, status, look, room);
        let mut all: Vec<String> = above.into_iter().chain(body).collect();
        all.truncate(height.saturating_sub(below.len()));
        all.resize(height.saturating_sub(below.len()), String::new());
        all.extend(below);
        all.truncate(height);
        all
    }

    fn body(&self, lines: &[Line<'_>], status: &Status, look: &Look, room: usize) -> Vec<String> {
        let width = look.width.unwrap_or(80);
        let shown: Vec<&Line<'_>> = lines.iter().skip(self.top).take(room).collect();
        let shards: Vec<&ShardView> = shown
            .iter()
            .filter_map(|line| match line {
                Line::Shard(view) => Some(*view),
                Line::Family(..) => None,
            })
            .collect();
        let inner = Look { width: Some(width.saturating_sub(2)), ..*look };
        let table = shard_lines(&shards, &inner);
        let mut rows = table.lines();
        let heading = rows.next().unwrap_or_default().to_owned();
        let mut out = vec![if shards.is_empty() { String::new() } else { format!("  {heading}") }];
        for (line, n) in shown.into_iter().zip(self.top..) {
            let mark = if n == self.cursor { '>' } else { ' ' };
            out.push(match line {
                Line::Shard(_) => format!("{mark} {}", rows.next().unwrap_or_default()),
                Line::Family(family, views) => {
                    let sign = if self.is_open(family, status) { '-' } else { '+' };
                    let text = cut(&format!("{mark}{sign} {}", summary(family, views)), width);
                    let person = views.iter().any(|view| view.needs_person);
                    look.paint.put(if person { Tone::Bad } else { Tone::Strong }, &text)
                }
            });
        }
        if lines.is_empty() {
            out.push("no shard matches".to_owned());
        }
        out
    }

    fn help(&self, width: usize, look: &Look) -> String {
        let text = match (self.typing, self.filter.as_str()) {
            (true, filter) => format!("filter: {filter}_   Enter: keep it, Esc: all shards"),
            (false, "") => {
                "q quit  up/down move  Enter open/close  a all  / filter  g/G ends".to_owned()
            }
            (false, filter) => format!("filter: {filter}   / change it, Esc: all shards, q quit"),
        };
        look.paint.put(Tone::Faint, &cut(&text, width))
    }
}

fn to_type(view: &ShardView, look: &Look, width: usize) -> String {
    let steps = steps(std::slice::from_ref(view), look.now);
    let next = steps.first().and_then(|step| step.next.first());
    let text = next.map_or(String::new(), |next| cut(&format!("  -> {next}"), width));
    look.paint.put(Tone::Cool, &text)
}

/// `restore: 8 shards, 1 needs a person, 312 of 495 rows, 5 running`
fn summary(family: &str, views: &[&ShardView]) -> String {
    let mut parts = vec![format!("{family}: {}", count(views.len() as u64, "shard"))];
    match views.iter().filter(|view| view.needs_person).count() {
        0 => {}
        1 => parts.push("1 needs a person".to_owned()),
        n => parts.push(format!("{n} need a person")),
    }
    let done: u64 = views.iter().map(|view| u64::from(view.rows.done)).sum();
    let total: u64 = views.iter().map(|view| u64::from(view.rows.total)).sum();
    parts.push(format!("{done} of {total} rows"));
    for word in [Word::Running, Word::Pending, Word::Waiting, Word::Backoff, Word::Done] {
        let n = views.iter().filter(|view| view.state == word && !view.needs_person).count();
        if n > 0 {
            parts.push(format!("{n} {}", word.text()));
        }
    }
    parts.join(", ")
}
