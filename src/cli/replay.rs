//! `babysit replay [JOURNAL]`: plans a recorded campaign again. Needs neither Slurm nor, where the
//! recording is named, a shards.toml; writes nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::output::format::iso;
use crate::output::replay::{Difference, PolicyView, Replay, SCHEMA, first_difference, text};
use crate::store::recording::{self, Recorded};
use crate::study::replay::{Cycle, Rival, Tally, plan_again, rivals};

use super::context::Context;
use super::exit::{Exit, Stop};
use super::simulate::named;

/// Folders of recordings end so.
const ENDING: &str = "recording";

pub fn run(cx: &Context, journal: Option<&Path>, policies: &[String]) -> Result<Exit, Stop> {
    let path = match journal {
        Some(path) => recording_in(path),
        None => cx.campaign()?.store.recording_path(),
    };
    let others = match policies {
        [] => Vec::new(),
        names => named(names, &rivals(), |rival| rival.name())?,
    };
    let cycles = recording::read(&path).map_err(|error| {
        let message = format!("{}: no recording can be read: {error}", path.display());
        let hint = "ticks record beside the state file unless `journal_observations = false`; name \
                    that folder, or one of its .gz files";
        Stop::new(Exit::Failed, "recording", message, Some(hint.to_owned()))
    })?;
    let (mut replay, mut tallies) = (nothing(&path), vec![Tally::default(); others.len() + 1]);
    for cycle in cycles {
        match cycle {
            Ok(cycle) => again(&cycle, &others, &mut replay, &mut tallies),
            Err(damage) => replay.damage.push(damage.to_string()),
        }
    }
    replay.same = replay.different == 0;
    if !others.is_empty() {
        let names = std::iter::once("as recorded").chain(others.iter().map(Rival::name));
        replay.policies = names.zip(&tallies).map(|(name, tally)| view(name, tally)).collect();
    }
    for damage in &replay.damage {
        cx.talk.insist(&format!("babysit: {damage}"));
    }
    if cx.talk.json {
        cx.talk.result_json(&replay)?;
    } else {
        cx.talk.result(&text(&replay, cx.talk.width, cx.talk.paint))?;
    }
    Ok(if replay.same && replay.damage.is_empty() { Exit::Done } else { Exit::Failed })
}

/// The folder of a journal stands for the one recording in it.
fn recording_in(path: &Path) -> PathBuf {
    let folder = match path.file_name() {
        Some(name) if name == "journal.jsonl" => path.parent().unwrap_or(path),
        _ => path,
    };
    let ends = |path: &PathBuf| path.extension().is_some_and(|end| end == ENDING);
    if ends(&folder.to_owned()) {
        return folder.to_owned();
    }
    let inside = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut inside: Vec<PathBuf> = inside.map(|entry| entry.path()).filter(ends).collect();
    match (inside.pop(), inside.is_empty()) {
        (Some(only), true) => only,
        _ => folder.to_owned(),
    }
}

fn nothing(path: &Path) -> Replay {
    Replay {
        schema: SCHEMA,
        path: path.display().to_string(),
        project: None,
        cycles: 0,
        from: None,
        to: None,
        recorded_by: BTreeSet::new(),
        this_is: env!("CARGO_PKG_VERSION"),
        same: true,
        different: 0,
        first_difference: None,
        damage: Vec::new(),
        policies: Vec::new(),
    }
}

fn again(recorded: &Recorded, others: &[Rival], replay: &mut Replay, tallies: &mut [Tally]) {
    let Recorded { policy, state, seen, now, seed, plan, version, place } = recorded;
    let cycle = Cycle { state, seen, now: *now, seed: *seed };
    let own = plan_again(policy, &cycle);
    let at = iso(*now);
    replay.cycles += 1;
    replay.project.get_or_insert_with(|| policy.project.clone());
    replay.from.get_or_insert_with(|| at.clone());
    replay.recorded_by.insert(version.clone());
    let diff = first_difference(plan, &own.spelled_out());
    if !diff.is_empty() {
        replay.different += 1;
        let place = place.clone();
        replay.first_difference.get_or_insert(Difference { at: at.clone(), place, diff });
    }
    replay.to = Some(at);
    let mut tallies = tallies.iter_mut();
    if let Some(first) = tallies.next() {
        first.count(&own, &own, *now);
    }
    for (rival, tally) in others.iter().zip(tallies) {
        tally.count(&plan_again(&rival.of(policy), &cycle), &own, *now);
    }
}

fn view(name: &str, tally: &Tally) -> PolicyView {
    PolicyView {
        name: name.to_owned(),
        asked: tally.jobs.clone(),
        cycles_that_differ: tally.different,
        first_at: tally.first.map(iso),
    }
}
