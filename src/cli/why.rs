//! `babysit why [TARGET]`: what the last cycle saw, and what was decided since.

use serde_json::{Value, json};

use crate::model::policy::Policy;
use crate::model::state::State;
use crate::model::units::Time;
use crate::output::evidence::Evidence;
use crate::output::table::Look;
use crate::output::view::{ShardView, Status};
use crate::output::{causes, evidence, view};

use super::context::Context;
use super::exit::{Exit, Stop};
use super::figures::figures;
use super::target;

/// Causes that the campaign as a whole is shown with.
const TOP: usize = 3;
/// The same of a family, whose causes are few.
const ALL: usize = 12;

pub fn run(cx: &Context, target: Option<&str>) -> Result<Exit, Stop> {
    let campaign = cx.campaign()?;
    let policy = &campaign.loaded.policy;
    let chosen = match target {
        Some(target) => target::shards(policy, &[target.to_owned()])?,
        None => (0..policy.shards.len()).collect(),
    };
    let state = cx.look(&campaign)?;
    let now = (cx.clock)();
    let figures = figures(policy, &state);
    let wanted = |at: usize, _| chosen.binary_search(&at).is_ok();
    let status = view::status(policy, &state, &figures, now, wanted);
    let named = target.filter(|target| policy.shards.iter().any(|s| s.id.to_string() == *target));
    match (named, status.shards.as_slice()) {
        (Some(_), [view]) => one(cx, policy, &state, view, now),
        _ => many(cx, policy, &state, &status, target, now),
    }
}

fn one(
    cx: &Context,
    policy: &Policy,
    state: &State,
    view: &ShardView,
    now: Time,
) -> Result<Exit, Stop> {
    let found = found(policy, state, view, now);
    if cx.talk.json {
        cx.talk.result_json(&of_shard(view, &found))?;
    } else {
        cx.talk.result(&evidence::text(&view.id, &view.why, &found))?;
    }
    Ok(Exit::Done)
}

fn many(
    cx: &Context,
    policy: &Policy,
    state: &State,
    status: &Status,
    target: Option<&str>,
    now: Time,
) -> Result<Exit, Stop> {
    let causes = causes::causes(state, status, now);
    // Of the campaign the causes are enough; of a part of it, the worst case in full.
    let most = causes::most_held_back(&status.shards).filter(|_| target.is_some());
    let evidence = most.map(|view| found(policy, state, view, now)).unwrap_or_default();
    if cx.talk.json {
        cx.talk.result_json(&json!({
            "schema": "babysit/why-many/v1",
            "target": target,
            "totals": status.totals,
            "causes": causes,
            "most_held_back": most.map(|view| of_shard(view, &evidence)),
        }))?;
        return Ok(Exit::Done);
    }
    let look = Look { width: cx.talk.width, paint: cx.talk.paint, now };
    let shown = if target.is_some() { ALL } else { TOP };
    let mut text = causes::text(target.unwrap_or(&policy.project), status, &causes, shown, &look);
    if let Some(view) = most {
        text.push_str("\nheld back most:\n");
        text.push_str(&evidence::text(&view.id, &view.why, &evidence));
    }
    cx.talk.result(&text)?;
    Ok(Exit::Done)
}

fn found(policy: &Policy, state: &State, view: &ShardView, now: Time) -> Vec<Evidence> {
    let pairs = policy.shards.iter().zip(&state.shards);
    let mut pairs =
        pairs.filter(|(shard, _)| shard.id.family == view.family && shard.id.shard == view.shard);
    pairs.next().map_or_else(Vec::new, |(shard, record)| {
        evidence::evidence(policy, state, shard, record, view, now)
    })
}

fn of_shard(view: &ShardView, found: &[Evidence]) -> Value {
    let list: Vec<_> = found.iter().map(|e| json!({ "label": e.label, "text": e.text })).collect();
    json!({
        "schema": "babysit/why/v1",
        "id": view.id,
        "state": view.state,
        "why": view.why,
        "why_code": view.why_code,
        "evidence": list,
        "shard": view,
    })
}
