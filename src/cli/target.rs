//! Which shards a word on the command line means.

use globset::GlobBuilder;

use crate::config;
use crate::model::id::ShardId;
use crate::model::policy::Policy;
use crate::model::state::CapTarget;

use super::exit::Stop;

/// `family`, `family/shard` or a pattern of either, to shard indices in the policy's order.
pub fn shards(policy: &Policy, targets: &[String]) -> Result<Vec<usize>, Stop> {
    let mut chosen = vec![false; policy.shards.len()];
    for target in targets {
        let hits = matching(policy, target)?;
        if hits.is_empty() {
            return Err(unknown(policy, target));
        }
        hits.into_iter().for_each(|i| chosen[i] = true);
    }
    Ok((0..chosen.len()).filter(|i| chosen[*i]).collect())
}

/// The same for filters: `states` are among what an unknown word may have meant.
pub fn filtered(policy: &Policy, targets: &[String], states: &[&str]) -> Result<Vec<usize>, Stop> {
    for target in targets {
        if matching(policy, target)?.is_empty() {
            let families = policy.shards.iter().map(|shard| shard.id.family.as_str());
            return Err(match did_you_mean(target, states.iter().copied().chain(families)) {
                Some(hint) if !target.contains('/') => {
                    Stop::usage(format!("no shard, family or state is called `{target}`"), &hint)
                }
                _ => unknown(policy, target),
            });
        }
    }
    shards(policy, targets)
}

/// The shards that `target` names; empty where it names none.
pub fn matching(policy: &Policy, target: &str) -> Result<Vec<usize>, Stop> {
    let glob = GlobBuilder::new(target).literal_separator(true).build().map_err(|error| {
        Stop::usage(format!("`{target}` is no pattern: {error}"), "quote it: 'find/*'")
    })?;
    let glob = glob.compile_matcher();
    let hit = |id: &ShardId| {
        if target.contains('/') {
            glob.is_match(id.to_string())
        } else {
            glob.is_match(id.family.as_str())
        }
    };
    let shards = policy.shards.iter().enumerate();
    Ok(shards.filter(|(_, shard)| hit(&shard.id)).map(|(i, _)| i).collect())
}

/// A family or a shard, by its exact name.
pub fn cap(policy: &Policy, target: &str) -> Result<CapTarget, Stop> {
    if let Some(shard) = policy.shards.iter().find(|shard| shard.id.to_string() == target) {
        return Ok(CapTarget::Shard(shard.id.clone()));
    }
    if policy.shards.iter().any(|shard| shard.id.family == target) {
        return Ok(CapTarget::Family(target.to_owned()));
    }
    Err(unknown(policy, target))
}

/// A near name; else the shards whose bare name it is, without the family; else how to find one.
fn unknown(policy: &Policy, target: &str) -> Stop {
    let shards: Vec<String> = policy.shards.iter().map(|shard| shard.id.to_string()).collect();
    let families = policy.shards.iter().map(|shard| shard.id.family.as_str());
    let bare = || policy.shards.iter().find(|shard| shard.id.shard == target);
    let hint = did_you_mean(target, shards.iter().map(String::as_str).chain(families))
        .or_else(|| bare().map(|shard| format!("did you mean `{}`?", shard.id)))
        .unwrap_or_else(|| {
            "name a family or family/shard of shards.toml; `babysit status` lists them".into()
        });
    Stop::usage(format!("no shard is called `{target}`"), &hint)
}

/// ``did you mean `find`?``, where some name is near enough to what was typed.
pub fn did_you_mean<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    config::nearest(typed, names).map(|name| format!("did you mean `{name}`?"))
}
