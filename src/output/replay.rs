//! `babysit replay`: whether a past campaign is planned again as it was, and what other policies
//! would have asked for (`babysit/replay/v1`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::format::count;
use super::layout::{Cell, Columns, Side, wrap};
use super::paint::{Paint, Tone};

pub const SCHEMA: &str = "babysit/replay/v1";

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replay {
    pub schema: &'static str,
    /// The recording.
    pub path: String,
    pub project: Option<String>,
    /// Cycles that were planned again.
    pub cycles: u64,
    pub from: Option<String>,
    pub to: Option<String>,
    /// Every version of babysit that wrote in it.
    pub recorded_by: BTreeSet<String>,
    pub this_is: &'static str,
    /// Every plan came out as it was.
    pub same: bool,
    pub different: u64,
    pub first_difference: Option<Difference>,
    /// What could not be read, with its place.
    pub damage: Vec<String>,
    pub policies: Vec<PolicyView>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    pub at: String,
    pub place: String,
    pub diff: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyView {
    pub name: String,
    /// Jobs by what was asked for them.
    pub asked: BTreeMap<&'static str, u64>,
    /// Cycles in which something else was asked than as recorded.
    pub cycles_that_differ: u64,
    pub first_at: Option<String>,
}

/// What is not simulated must not be taken for a forecast.
const NO_SIMULATION: &str = "Jobs by what each policy asks for in the cycles above, each of which \
    starts from what really was. What would have come of it is not simulated, and what is not done \
    is asked for again in the next cycle; `babysit simulate` follows a policy to its end.";

pub fn text(replay: &Replay, width: Option<usize>, paint: Paint) -> String {
    let cycles = count(replay.cycles, "cycle");
    let when = match (&replay.from, &replay.to) {
        (Some(from), Some(to)) if from != to => format!(", {from} to {to}"),
        (Some(at), _) => format!(", {at}"),
        (None, _) => String::new(),
    };
    let mut out = match replay.different {
        0 => format!("{cycles} planned again, all the same{when}\n"),
        n => format!("{cycles} planned again, {n} not the same{when}\n"),
    };
    let others: Vec<&str> =
        replay.recorded_by.iter().map(String::as_str).filter(|v| *v != replay.this_is).collect();
    if !others.is_empty() {
        let text = format!(
            "recorded by babysit {}, and this is {}: plans may differ because the rules do",
            others.join(", "),
            replay.this_is
        );
        out.push_str(&wrap(&text, 0, width));
    }
    if let Some(Difference { at, place, diff }) = &replay.first_difference {
        out.push_str(&format!(
            "\nthe first, at {at} ({place}):\n--- recorded\n+++ planned again\n"
        ));
        diff.iter().for_each(|line| out.push_str(&format!("{line}\n")));
    }
    if !replay.policies.is_empty() {
        out.push('\n');
        out.push_str(&wrap(NO_SIMULATION, 0, width));
        out.push('\n');
        out.push_str(&table(&replay.policies).render(None, paint));
    }
    out
}

fn table(policies: &[PolicyView]) -> Columns {
    let kinds: BTreeSet<&'static str> =
        policies.iter().flat_map(|policy| policy.asked.keys().copied()).collect();
    let mut heads = vec![("POLICY", Side::Left)];
    heads.extend(kinds.iter().map(|kind| (*kind, Side::Right)));
    heads.extend([("CYCLES THAT DIFFER", Side::Right), ("FIRST", Side::Left)]);
    let row = |policy: &PolicyView| {
        let mut row = vec![Cell::tone(policy.name.clone(), Tone::Strong)];
        let asked = |kind| policy.asked.get(kind).copied().unwrap_or_default();
        row.extend(kinds.iter().map(|kind| Cell::new(asked(kind).to_string())));
        row.push(Cell::new(policy.cycles_that_differ.to_string()));
        row.push(Cell::new(policy.first_at.clone().unwrap_or("-".to_owned())));
        row
    };
    Columns { heads, rows: policies.iter().map(row).collect() }
}

/// Lines of what stays, around a difference.
const AROUND: usize = 3;
/// So many lines that are the same again end a difference.
const SAME_AGAIN: usize = 3;
/// Longest difference that is shown as one, in lines.
const LONGEST: usize = 200;

/// The first difference of two texts: the lines that enclose it, what goes, what comes. Empty where
/// they are equal.
pub fn first_difference(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let begin = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    if begin == old.len() && begin == new.len() {
        return Vec::new();
    }
    let (gone, come) = until_same_again(&old, &new, begin);
    let from = begin.saturating_sub(AROUND);
    let mut out = vec![format!("@@ line {} @@", begin + 1)];
    let mut show = |sign: char, lines: Option<&[&str]>| {
        out.extend(lines.unwrap_or_default().iter().map(|line| format!("{sign}{line}")));
    };
    show(' ', Some(&enclosing(&old, from)));
    show(' ', old.get(from..begin));
    show('-', old.get(begin..begin + gone));
    show('+', new.get(begin..begin + come));
    let after = begin + gone;
    show(' ', old.get(after..old.len().min(after + AROUND)));
    out
}

/// The lines above, each less indented than the next: which action of the plan it is in.
fn enclosing<'t>(lines: &[&'t str], below: usize) -> Vec<&'t str> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut least = lines.get(below).map_or(0, |line| indent(line));
    let mut found = Vec::new();
    for line in lines.iter().take(below).rev() {
        if indent(line) < least {
            least = indent(line);
            found.push(*line);
        }
    }
    found.reverse();
    found
}

/// How many lines of each go before both go on alike.
fn until_same_again(old: &[&str], new: &[&str], begin: usize) -> (usize, usize) {
    let (left_old, left_new) = (old.len() - begin, new.len() - begin);
    for both in 1..=LONGEST.min(left_old + left_new) {
        for gone in both.saturating_sub(left_new)..=both.min(left_old) {
            let come = both - gone;
            if same_again(old.get(begin + gone..), new.get(begin + come..)) {
                return (gone, come);
            }
        }
    }
    (left_old.min(LONGEST), left_new.min(LONGEST))
}

fn same_again(old: Option<&[&str]>, new: Option<&[&str]>) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return false };
    let enough = old.len().min(new.len()) >= SAME_AGAIN || old.len() == new.len();
    enough && old.iter().zip(new).take(SAME_AGAIN).all(|(old, new)| old == new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &[&str]) {
        let lines = |text: &str| text.replace(' ', "\n").replace('_', " ");
        assert_eq!(first_difference(&lines(old), &lines(new)), expected);
    }

    #[test]
    fn the_first_difference_is_shown_with_what_is_around_it() {
        check("a b", "a b", &[]);
        check(
            "a b c d e f g",
            "a b c d X f g",
            &["@@ line 5 @@", " b", " c", " d", "-e", "+X", " f", " g"],
        );
        check("a b", "a b c", &["@@ line 3 @@", " a", " b", "+c"]);
        check("a b c d e", "b c d e", &["@@ line 1 @@", "-a", " b", " c", " d"]);
        check("a", "b", &["@@ line 1 @@", "-a", "+b"]);
    }

    #[test]
    fn only_the_first_difference_is_shown_and_what_encloses_it() {
        check(
            "p _q __1 __2 __3 __4 __5 __6 __7 __8 __9",
            "p _q __1 __2 __3 __4 __X __6 __7 __8 __Y",
            &[
                "@@ line 7 @@",
                " p",
                "  q",
                "   2",
                "   3",
                "   4",
                "-  5",
                "+  X",
                "   6",
                "   7",
                "   8",
            ],
        );
    }
}
