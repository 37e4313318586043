//! `babysit hold`, `release`, `cancel`, `retry`.

use serde_json::json;

use crate::engine::Checkpoint;
use crate::model::request::Asked;
use crate::model::state::{Gate, State};
use crate::planning::breaker;
use crate::planning::event::{Event, What};
use crate::planning::person::{Answer, Wish, wish};
use crate::slurm::Slurm;

use super::checkpoint::Keep;
use super::context::{Campaign, Context};
use super::exit::{Exit, Stop};
use super::slurm;
use super::target;

pub fn run(cx: &Context, wanted: Wish, targets: &[String]) -> Result<Exit, Stop> {
    let campaign = cx.campaign()?;
    let policy = &campaign.loaded.policy;
    let chosen = target::shards(policy, targets)?;
    let (mut locked, mut state) = cx.lock_patiently(&campaign)?;
    let (now, by) = ((cx.clock)(), cx.who());
    let mut answers = Vec::new();
    for &i in &chosen {
        let (shard, record) = (&policy.shards[i], &mut state.shards[i]);
        answers.push((shard.id.clone(), wish(wanted, shard, record, &by, now)));
    }
    // A person who says "try again" means the family's breaker, too.
    let closed = if wanted == Wish::Retry {
        let families = chosen.iter().map(|&i| policy.shards[i].id.family.as_str());
        breaker::close(&mut state, families)
    } else {
        Vec::new()
    };
    for (id, answer) in &mut answers {
        if closed.iter().any(|family| id.family == *family) && matches!(answer, Answer::Already(_))
        {
            *answer = Answer::Done("is tried again, with its family".into());
        }
    }
    let event = |(id, answer): &(_, Answer)| match answer {
        Answer::Done(text) => {
            let what = What::Person { by: by.clone(), did: text.clone() };
            Some(Event { at: now, shard: Some(Clone::clone(id)), what })
        }
        Answer::Already(_) | Answer::Refused(_) => None,
    };
    let mut events: Vec<Event> = answers.iter().filter_map(event).collect();
    events.extend(closed.iter().map(|family| breaker::closed(family, &by, now)));
    if !events.is_empty() {
        let mut keep = Keep { locked: &mut locked, trouble: None };
        keep.save(&mut state).map_err(|error| Stop::failed("state", format!("{error:#}")))?;
        keep.journal(&events);
    }
    // After the save: a crash in between leaves a cancelled shard, whose job the next tick ends.
    let trouble =
        if wanted == Wish::Cancel { scancel(cx, &campaign, &state, &chosen) } else { None };
    let refused = answers.iter().any(|(_, answer)| matches!(answer, Answer::Refused(_)));
    tell(cx, &answers)?;
    if let Some(trouble) = trouble {
        cx.talk.say(&format!("babysit: scancel: {trouble}; the next tick asks again"));
    }
    Ok(if refused { Exit::Failed } else { Exit::Done })
}

fn tell(cx: &Context, answers: &[(crate::model::id::ShardId, Answer)]) -> Result<(), Stop> {
    let parts = |answer: &Answer| match answer {
        Answer::Done(text) => ("done", text.clone()),
        Answer::Already(text) => ("already", text.clone()),
        Answer::Refused(text) => ("refused", text.clone()),
    };
    if cx.talk.json {
        let list = answers.iter().map(|(id, answer)| {
            let (outcome, text) = parts(answer);
            json!({ "id": id.to_string(), "outcome": outcome, "text": text })
        });
        return cx.talk.result_json(&json!({
            "schema": "babysit/wishes/v1", "shards": list.collect::<Vec<_>>(),
        }));
    }
    let line =
        |(id, answer): &(crate::model::id::ShardId, Answer)| format!("{id} {}\n", parts(answer).1);
    cx.talk.result(&answers.iter().map(line).collect::<String>())
}

/// Ends the jobs of cancelled shards now. Only those that this user's own attempt was last seen
/// as; the next tick verifies, and asks again where it must.
fn scancel(cx: &Context, campaign: &Campaign, state: &State, chosen: &[usize]) -> Option<String> {
    let me = rustix::process::getuid().as_raw();
    let ours = |&i: &usize| {
        let record = state.shards.get(i)?;
        let live = record.live()?;
        let cancelled = matches!(record.gate, Gate::Cancelled { .. });
        (cancelled && live.attempt.uid == me && !live.state.is_over()).then_some(live.job)
    };
    let jobs: Vec<_> = chosen.iter().filter_map(ours).collect();
    if jobs.is_empty() {
        return None;
    }
    let mut slurm = slurm::real(&campaign.loaded.policy, cx.surroundings, (cx.seed)());
    match slurm.cancel(&jobs) {
        Asked::Done => None,
        Asked::Failed(text) => Some(text),
    }
}
