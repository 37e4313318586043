//! `babysit why SHARD`: what the last cycle saw, and what was decided since.

use serde_json::json;

use crate::output::{evidence, view};

use super::context::Context;
use super::exit::{Exit, Stop};
use super::figures::figures;
use super::target;

pub fn run(cx: &Context, shard: &str) -> Result<Exit, Stop> {
    let campaign = cx.campaign()?;
    let policy = &campaign.loaded.policy;
    let i = target::one(policy, shard)?;
    let state = cx.look(&campaign)?;
    let now = (cx.clock)();
    let status = view::status(policy, &state, &figures(policy, &state), now, |at, _| at == i);
    let (Some(view), Some(record), Some(shard)) =
        (status.shards.first(), state.shards.get(i), policy.shards.get(i))
    else {
        return Err(Stop::failed("state", format!("nothing is known of {shard}")));
    };
    let found = evidence::evidence(policy, &state, shard, record, view, now);
    if cx.talk.json {
        let list: Vec<_> =
            found.iter().map(|e| json!({ "label": e.label, "text": e.text })).collect();
        cx.talk.result_json(&json!({
            "schema": "babysit/why/v1",
            "id": view.id,
            "state": view.state,
            "why": view.why,
            "why_code": view.why_code,
            "evidence": list,
            "shard": view,
        }))?;
    } else {
        cx.talk.result(&evidence::text(&view.id, &view.why, &found))?;
    }
    Ok(Exit::Done)
}
