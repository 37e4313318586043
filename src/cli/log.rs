//! `babysit log [SHARD]`: the journal as sentences.

use serde_json::Value;

use crate::output::journal;

use super::context::{Campaign, Context};
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
    let lines = campaign.store.journal_tail(BYTES).map_err(|error| unread(&campaign, &error))?;
    let lines = of_project(&campaign, lines);
    let wanted = |line: &&Value| {
        let named = |names: &Vec<String>| {
            text(line, "shard").is_some_and(|shard| names.iter().any(|name| name == shard))
        };
        names.as_ref().is_none_or(named)
    };
    let lines: Vec<&Value> = lines.iter().filter(wanted).collect();
    if cx.talk.json {
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        cx.talk.result(&lines)?;
    } else {
        let lines = lines.iter().filter_map(|line| journal::recall(line));
        cx.talk.result(&lines.map(|line| line + "\n").collect::<String>())?;
    }
    Ok(Exit::Done)
}

fn text<'a>(line: &'a Value, key: &str) -> Option<&'a str> {
    line.get(key).and_then(Value::as_str)
}

fn unread(campaign: &Campaign, error: &std::io::Error) -> Stop {
    let path = campaign.store.journal_path();
    Stop::failed("journal", format!("{} cannot be read: {error}", path.display()))
}

/// All that is still there, oldest first.
pub(super) fn everything(campaign: &Campaign) -> Result<Vec<Value>, Stop> {
    campaign.store.journal_whole().map_err(|error| unread(campaign, &error))
}

/// States that share a folder share a journal.
pub(super) fn of_project(campaign: &Campaign, mut lines: Vec<Value>) -> Vec<Value> {
    let project = &campaign.loaded.policy.project;
    lines.retain(|line| text(line, "project").is_none_or(|name| name == project));
    lines
}
