//! Which shards a word on the command line means.

use globset::GlobBuilder;

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

/// The shards that `target` names; empty where it names none.
pub fn matching(policy: &Policy, target: &str) -> Result<Vec<usize>, Stop> {
    let glob = GlobBuilder::new(target).literal_separator(true).build().map_err(|error| {
        Stop::usage(format!("`{target}` is no pattern: {error}"), "quote it: 'find/*'")
    })?;
    let glob = glob.compile_matcher();
    let hit = |id: &ShardId| {
        if target.contains('/') { glob.is_match(id.to_string()) } else { glob.is_match(&id.family) }
    };
    let shards = policy.shards.iter().enumerate();
    Ok(shards.filter(|(_, shard)| hit(&shard.id)).map(|(i, _)| i).collect())
}

/// Exactly one shard.
pub fn one(policy: &Policy, target: &str) -> Result<usize, Stop> {
    let found = policy.shards.iter().position(|shard| shard.id.to_string() == target);
    let of_family = policy.shards.iter().find(|shard| shard.id.family == target);
    found.ok_or_else(|| match of_family {
        Some(shard) => {
            let hint = format!("name one of its shards, such as `{}`", shard.id);
            Stop::usage(format!("`{target}` is a family"), &hint)
        }
        None => unknown(policy, target),
    })
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

fn unknown(policy: &Policy, target: &str) -> Stop {
    let mut names: Vec<String> = policy.shards.iter().map(|shard| shard.id.to_string()).collect();
    names.extend(policy.shards.iter().map(|shard| shard.id.family.clone()));
    let hint = nearest(&names, target).unwrap_or_else(|| {
        "name a family or family/shard of shards.toml; `babysit status` lists them".into()
    });
    Stop::usage(format!("no shard is called `{target}`"), &hint)
}

/// "did you mean", where some name is near enough to what was typed.
pub fn nearest<'a>(names: impl IntoIterator<Item = &'a String>, typed: &str) -> Option<String> {
    let likeness = |name: &String| strsim::jaro_winkler(name, typed);
    let nearest = names.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    nearest.filter(|name| likeness(name) > 0.8).map(|name| format!("did you mean `{name}`?"))
}
