//! A recorded cycle as lines of text: a part begins with `#`, everything in it is a line each, so
//! that what stays the same from cycle to cycle is whole lines.

use std::io::{self, BufRead, BufReader, Seek};
use std::rc::Rc;

use serde::Deserialize;

use super::super::clock::Clock;
use super::super::recording::{Given, Held, bad};
use super::asked::PolicyHead;
use super::form::Form;
use super::seen::{Lists, SeenHead};
use super::{Unreadable, decode, encode};
use crate::model::observation::Observation;
use crate::model::policy::Policy;
use crate::model::state::State;

/// Hands each line to `push`, without its end.
pub(in crate::store) fn write(
    given: &Given<'_>,
    push: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut line = Vec::new();
    macro_rules! each {
        ($part:literal, $nouns:expr) => {
            push($part)?;
            for noun in $nouns {
                line.clear();
                noun.spell(&mut line);
                push(&line)?;
            }
        };
    }
    push(b"#policy")?;
    PolicyHead::spell(given.policy, &mut line);
    push(&line)?;
    each!(b"#shards", &given.policy.shards);
    push(b"#state")?;
    state(given.before.held(), push)?;
    let seen = given.seen;
    push(b"#seen")?;
    line.clear();
    SeenHead::spell(seen, &mut line);
    push(&line)?;
    each!(b"#jobs", &seen.cluster.jobs);
    each!(b"#nodes", &seen.cluster.nodes);
    let past = seen.accounting.as_ref().and_then(|answer| answer.as_ref().ok());
    each!(b"#past", past.into_iter().flatten());
    let read = seen.progress.iter().enumerate();
    let read = read.filter_map(|(i, reading)| Some((i, reading.clone()?)));
    each!(b"#progress", &read.collect::<Vec<_>>());
    each!(b"#logs", &seen.logs);
    push(b"#plan")?;
    given.plan.lines().try_for_each(|line| push(line.as_bytes()))
}

fn noun_of_line<'a, T: Form>(line: &'a [u8]) -> Result<T, serde_json::Error>
where
    T::Disk<'a>: Deserialize<'a>,
{
    serde_json::from_slice(line).map(T::from_disk)
}

fn state(held: &Held, push: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    match held {
        Held::State(state) => {
            let bytes = encode(state, state.generation)?;
            bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).try_for_each(push)
        }
        Held::File(file, clock) => {
            let mut file = file;
            file.rewind()?;
            for line in BufReader::new(file).split(b'\n') {
                push(&line?)?;
            }
            let Some(clock) = clock else { return Ok(()) };
            push(b"#clock")?;
            push(clock)
        }
    }
}

/// The parts of a document, read back.
pub(in crate::store) struct Document {
    pub policy: Policy,
    pub state: State,
    pub seen: Observation,
    pub plan: String,
}

pub(in crate::store) fn read(lines: &[Rc<[u8]>]) -> io::Result<Document> {
    let mut part: &[u8] = b"";
    let (mut policy, mut head) = (None, None);
    let (mut shards, mut lists) = (Vec::new(), Lists::default());
    let (mut state, mut clock, mut plan) = (Vec::new(), None, String::new());
    for (number, line) in lines.iter().enumerate() {
        let line: &[u8] = line;
        if line.starts_with(b"#") {
            part = line;
            continue;
        }
        let at = |error: serde_json::Error| {
            let part = String::from_utf8_lossy(part);
            bad(format_args!("{part} (line {} of the cycle): {error}", number + 1))
        };
        match part {
            b"#policy" => {
                policy = Some(serde_json::from_slice::<PolicyHead<'_>>(line).map_err(at)?)
            }
            b"#shards" => shards.push(noun_of_line(line).map_err(at)?),
            b"#state" => {
                state.extend_from_slice(line);
                state.push(b'\n');
            }
            b"#clock" => clock = Some(noun_of_line::<Clock>(line).map_err(at)?),
            b"#seen" => head = Some(serde_json::from_slice::<SeenHead<'_>>(line).map_err(at)?),
            b"#jobs" => lists.jobs.push(noun_of_line(line).map_err(at)?),
            b"#nodes" => lists.nodes.push(noun_of_line(line).map_err(at)?),
            b"#past" => lists.past.push(noun_of_line(line).map_err(at)?),
            b"#progress" => lists.progress.push(noun_of_line(line).map_err(at)?),
            b"#logs" => lists.logs.push(noun_of_line(line).map_err(at)?),
            b"#plan" => {
                plan.push_str(&String::from_utf8_lossy(line));
                plan.push('\n');
            }
            other => {
                let other = String::from_utf8_lossy(other);
                return Err(bad(format_args!("a part that this build does not know: {other}")));
            }
        }
    }
    let missing = |what| bad(format_args!("it holds no {what}"));
    let policy = policy.ok_or_else(|| missing("policy"))?.with(shards);
    let mut state = decode(&state).map_err(|fault| match fault {
        Unreadable::Newer(version, minor) => {
            bad(format_args!("its state is of version {version}.{minor}"))
        }
        Unreadable::Damaged(what) => bad(format_args!("#state: {what}")),
    })?;
    if clock.is_some_and(|clock| !clock.set(&mut state)) {
        return Err(bad("#clock: it is of another state"));
    }
    let head = head.ok_or_else(|| missing("observation"))?;
    let seen = head.with(lists, policy.shards.len()).map_err(bad)?;
    Ok(Document { policy, state, seen, plan })
}
