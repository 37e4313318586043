//! `babysit cap set` and `cap show`.

use serde_json::json;

use crate::engine::Checkpoint;
use crate::model::state::{CapSet, CapTarget, State};
use crate::model::units::Money;
use crate::output::format::dollars;
use crate::output::{caps, view};
use crate::planning::event::{Event, What};

use super::checkpoint::Keep;
use super::context::Context;
use super::exit::{Exit, Stop};
use super::figures::figures;
use super::target;

pub fn set(cx: &Context, target: &str, amount: &str) -> Result<Exit, Stop> {
    let amount = positive(amount)?;
    let campaign = cx.campaign()?;
    let policy = &campaign.loaded.policy;
    let target = target::cap(policy, target)?;
    let (mut locked, mut state) = cx.lock_patiently(&campaign)?;
    let (now, by) = ((cx.clock)(), cx.who());
    let configured = |id| policy.shards.iter().find(|s| s.id == id).and_then(|s| s.cap);
    let (name, old, shard) = match &target {
        CapTarget::Shard(id) => {
            (id.to_string(), state.cap_of(id, configured(id.clone())), Some(id.clone()))
        }
        CapTarget::Family(family) => {
            let set = state.caps.get(&target).map(|set| set.amount);
            let first = policy.shards.iter().find(|s| s.id.family == *family);
            (family.clone(), set.or(first.and_then(|s| s.cap)), None)
        }
    };
    let old = old.map_or("none".to_owned(), dollars);
    let keeps = own_caps(&state, &target);
    state.caps.insert(target, CapSet { amount, by: by.clone(), at: now });
    let text = format!("cap of {name} set: {old} -> {}", dollars(amount));
    let what = What::Person { by: by.clone(), did: text.clone() };
    let mut events = vec![Event { at: now, shard, what }];
    // The rule itself, so that status tells the truth before the next tick.
    crate::planning::caps::caps(policy, &mut state, now, &mut events);
    let mut keep = Keep { locked: &mut locked, trouble: None };
    keep.save(&mut state).map_err(|error| Stop::failed("state", format!("{error:#}")))?;
    keep.journal(&events);
    let ceiling = caps::ceiling(policy, &state);
    if cx.talk.json {
        cx.talk.result_json(&json!({
            "schema": "babysit/cap/v1", "target": name, "cap": amount.dollars(), "by": by,
            "ceiling": ceiling.map(Money::dollars),
        }))?;
        return Ok(Exit::Done);
    }
    let ceiling = ceiling.map_or("no ceiling: not every shard has a cap".to_owned(), |ceiling| {
        format!("ceiling of all shards: {}", dollars(ceiling))
    });
    let rest: String = events
        .iter()
        .skip(1)
        .map(|event| format!("{}\n", crate::output::journal::line(event)))
        .collect();
    cx.talk.result(&format!("{text}\n{keeps}{rest}{ceiling}\n"))?;
    Ok(Exit::Done)
}

/// A cap set for one shard wins over its family's, which surprises whoever forgot it.
fn own_caps(state: &State, target: &CapTarget) -> String {
    let CapTarget::Family(family) = target else { return String::new() };
    let line = |(target, set): (&CapTarget, &CapSet)| match target {
        CapTarget::Shard(id) if id.family == *family => {
            Some(format!("{id} keeps its own cap {}, set by {}\n", dollars(set.amount), set.by))
        }
        CapTarget::Shard(_) | CapTarget::Family(_) => None,
    };
    state.caps.iter().filter_map(line).collect()
}

fn positive(text: &str) -> Result<Money, Stop> {
    let number = text.trim().trim_start_matches('$').parse::<f64>().ok();
    number.and_then(Money::from_dollars).filter(|money| *money > Money::ZERO).ok_or_else(|| {
        Stop::usage(format!("`{text}` is no cap"), "write an amount of dollars above 0, such as 40")
    })
}

pub fn show(cx: &Context) -> Result<Exit, Stop> {
    let campaign = cx.campaign()?;
    let policy = &campaign.loaded.policy;
    let state = cx.look(&campaign)?;
    let now = (cx.clock)();
    let status = view::status(policy, &state, &figures(policy, &state), now, |_, _| true);
    if cx.talk.json {
        cx.talk.result_json(&caps::json(policy, &state, &status.shards))?;
    } else {
        cx.talk.result(&caps::text(policy, &state, &status.shards, now))?;
    }
    Ok(Exit::Done)
}
