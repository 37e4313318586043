//! `babysit log [SHARD]`: the journal as sentences.

use serde_json::Value;

use crate::output::journal;

use super::context::Context;
use super::exit::{Exit, Stop};
use super::target;

/// Of the journal's end; some fifty thousand decisions.
const BYTES: u64 = 16 << 20;

pub fn run(cx: &Context, shard: Option<&str>) -> Result<Exit, Stop> {
    let campaign = cx.campaign()?;
    let policy = &campaign.loaded.policy;
    let wanted = match shard {
        Some(shard) => Some(target::shards(policy, &[shard.to_owned()])?),
        None => None,
    };
    let names: Option<Vec<String>> = wanted.map(|chosen| {
        chosen.iter().filter_map(|&i| Some(policy.shards.get(i)?.id.to_string())).collect()
    });
    let path = campaign.store.journal_path();
    let lines = campaign.store.journal_tail(BYTES).map_err(|error| {
        Stop::failed("journal", format!("{} cannot be read: {error}", path.display()))
    })?;
    let text = |line: &Value, key: &str| line.get(key).and_then(Value::as_str).map(str::to_owned);
    let ours = |line: &&Value| {
        let project = text(line, "project").is_none_or(|project| project == policy.project);
        let named = names
            .as_ref()
            .is_none_or(|names| text(line, "shard").is_some_and(|shard| names.contains(&shard)));
        project && named
    };
    let lines: Vec<&Value> = lines.iter().filter(ours).collect();
    if cx.talk.json {
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        cx.talk.result(&lines)?;
    } else {
        let lines = lines.iter().filter_map(|line| journal::recall(line));
        cx.talk.result(&lines.map(|line| line + "\n").collect::<String>())?;
    }
    Ok(Exit::Done)
}
