//! `babysit log [TARGET..]`: the journal as sentences, and on as it grows.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use serde_json::Value;

use crate::config;
use crate::model::policy::Policy;
use crate::model::units::Time;
use crate::output::format;
use crate::output::journal::{KINDS, recall};
use crate::output::log::{Of, Wanted};
use crate::store::Lines;

use super::args::Log;
use super::context::{Campaign, Context};
use super::exit::{Exit, Stop};
use super::target::{self, did_you_mean};

/// How soon a new line is shown.
const LOOK: Duration = Duration::from_millis(300);
/// Lines before the new ones, where `--follow` does not say.
const LAST: usize = 10;

pub fn run(cx: &Context, asked: &Log) -> Result<Exit, Stop> {
    let campaign = cx.campaign()?;
    let wanted = wanted(cx, &campaign.loaded.policy, asked)?;
    let mut lines = campaign.store.journal();
    let most = asked.lines.or(asked.follow.then_some(LAST));
    let mut last = VecDeque::new();
    let mut any = false;
    each(&mut lines, |line| {
        let Some(text) = text_of(cx, &wanted, &line) else { return Ok(()) };
        any = true;
        let Some(most) = most else { return cx.talk.result(&text) };
        last.push_back(text);
        while last.len() > most {
            last.pop_front();
        }
        Ok(())
    })?;
    if !any {
        cx.talk.aside("babysit: the journal has no such line yet");
    }
    cx.talk.result(&last.into_iter().collect::<String>())?;
    if !asked.follow {
        return Ok(Exit::Done);
    }
    loop {
        std::thread::sleep(LOOK);
        each(&mut lines, |line| match text_of(cx, &wanted, &line) {
            Some(text) => cx.talk.result(&text),
            None => Ok(()),
        })?;
    }
}

/// All that is still there of this project, oldest first.
pub(super) fn everything(campaign: &Campaign) -> Result<Vec<Value>, Stop> {
    let project = campaign.loaded.policy.project.clone();
    let wanted = Wanted { project, ..Wanted::default() };
    let mut all = Vec::new();
    each(&mut campaign.store.journal(), |line| {
        all.extend(wanted.shows(&line).then_some(line));
        Ok(())
    })?;
    Ok(all)
}

fn each(lines: &mut Lines, mut show: impl FnMut(Value) -> Result<(), Stop>) -> Result<(), Stop> {
    for line in lines {
        let line = line.map_err(|error| {
            Stop::failed("journal", format!("the journal cannot be read: {error}"))
        })?;
        show(line)?;
    }
    Ok(())
}

/// What is shown of a line; nothing of one that was not asked for.
fn text_of(cx: &Context, wanted: &Wanted, line: &Value) -> Option<String> {
    if !wanted.shows(line) {
        return None;
    }
    if cx.talk.json {
        return Some(format!("{line}\n"));
    }
    recall(line).map(|text| text + "\n")
}

fn wanted(cx: &Context, policy: &Policy, asked: &Log) -> Result<Wanted, Stop> {
    let of = match &asked.targets[..] {
        [] => None,
        targets => {
            let chosen = target::shards(policy, targets)?;
            let ids = chosen.iter().filter_map(|&i| Some(policy.shards.get(i)?.id.to_string()));
            Some(Of { shards: ids.collect(), families: targets.iter().cloned().collect() })
        }
    };
    let kinds: Result<BTreeSet<&'static str>, Stop> = asked.kind.iter().map(|k| kind(k)).collect();
    let now = (cx.clock)();
    let moment = |flag: &str, text: &Option<String>| match text {
        Some(text) => moment(text, now).map(Some).ok_or_else(|| {
            let text =
                format!("{flag} is `{text}`, which is neither a length of time nor a moment");
            Stop::usage(
                text,
                "2h, 1d12h, 2026-11-02, 2026-11-02T15:00 or 2026-11-02T15:00:00Z; UTC",
            )
        }),
        None => Ok(None),
    };
    Ok(Wanted {
        project: policy.project.clone(),
        of,
        kinds: kinds?,
        since: moment("--since", &asked.since)?,
        until: moment("--until", &asked.until)?,
    })
}

fn kind(word: &str) -> Result<&'static str, Stop> {
    KINDS.into_iter().find(|kind| kind.eq_ignore_ascii_case(word)).ok_or_else(|| {
        let hint =
            did_you_mean(word, KINDS).unwrap_or_else(|| format!("kinds: {}", KINDS.join(", ")));
        Stop::usage(format!("no line is of kind `{word}`"), &hint)
    })
}

/// `2h`: so long ago. Else a moment as the journal writes it, whose end may be left out.
fn moment(text: &str, now: Time) -> Option<Time> {
    if let Some(length) = config::length(text).filter(|_| !text.is_empty()) {
        // The journal is younger than 1970.
        return Some((now - length).max(Time(0)));
    }
    let rest = "0000-01-01T00:00:00Z".get(text.len()..);
    let whole = match (text.len(), rest) {
        // A day, a minute, a second, each with what is left out of it.
        (10 | 16 | 19, Some(rest)) => format!("{text}{rest}").replacen(' ', "T", 1),
        _ => text.to_owned(),
    };
    format::moment(&whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::units::Secs;

    #[test]
    fn a_moment_is_a_length_of_time_ago_or_as_the_journal_has_it() {
        let now = Time(1_793_718_000); // 2026-11-03T15:00:00Z
        for (text, ago) in [
            ("2h", 7200),
            ("1d12h", 129_600),
            ("2026-11-03T15:00:00Z", 0),
            ("2026-11-03T14:59:59", 1),
            ("2026-11-03T14:00", 3600),
            ("2026-11-03 14:00", 3600),
            ("2026-11-03", 54_000),
            ("2026-11-03T17:00:00+02:00", 0),
        ] {
            assert_eq!(moment(text, now), Some(now - Secs(ago)), "{text}");
        }
        assert_eq!(moment("99999999999d", now), Some(Time(0)));
        for bad in ["", "soon", "2026-13-01", "2026-11", "2 h", "-2h", "15:00"] {
            assert_eq!(moment(bad, now), None, "{bad}");
        }
    }
}
