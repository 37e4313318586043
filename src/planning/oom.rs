//! GPU out-of-memory (policy.md section 6): the shard's minimum tier goes up by one rank, and its
//! fit set changes by itself. Read from the log of this very attempt; the node's own memory running
//! out is told apart by Slurm's OUT_OF_MEMORY (slurm.md "Ending").

use regex::RegexSet;

use crate::model::cluster::EndWord;
use crate::model::policy::{Policy, Shard};
use crate::model::state::{End, EndHow, HeldWhy, ShardRecord};
use crate::model::units::Time;

use super::event::What;
use super::retry;

/// What the usual frameworks print when a GPU has no memory left. "CUDA error" alone is not among
/// them: most of those are something else.
const KNOWN: [&str; 8] = [
    r"CUDA out of memory",
    r"CUDA error: out of memory",
    r"torch\.(cuda\.)?OutOfMemoryError",
    r"CUDA_ERROR_OUT_OF_MEMORY",
    r"cudaErrorMemoryAllocation",
    r"CUBLAS_STATUS_ALLOC_FAILED",
    r"HIP out of memory",
    r"RESOURCE_EXHAUSTED: Out of memory",
];

/// Did this end come from a full GPU? A job that Slurm ended for host memory is not asked.
pub fn is_gpu_oom(shard: &Shard, end: &End, log: &str) -> bool {
    if log.is_empty() || end.how == EndHow::Word(EndWord::OutOfMemory) {
        return false;
    }
    let patterns = KNOWN.iter().copied().chain(shard.oom.iter().map(String::as_str));
    // The user's patterns were checked when shards.toml was read.
    RegexSet::new(patterns).is_ok_and(|set| set.is_match(log))
}

/// Raises the minimum tier above the one it ran on; on the top tier a person must decide.
pub fn escalate(
    policy: &Policy,
    shard: &Shard,
    record: &mut ShardRecord,
    end: &End,
    now: Time,
) -> Option<What> {
    let ran = end.tier.as_deref().and_then(|name| policy.tiers.iter().find(|t| t.name == name));
    let before = record.min_tier.or(shard.min_tier);
    let floor = ran.map(|tier| tier.rank).max(before);
    let next = policy.tiers.iter().find(|tier| floor.is_none_or(|rank| tier.rank > rank));
    match next {
        Some(tier) => {
            record.min_tier = Some(tier.rank);
            Some(What::MinTierRaised { tier: tier.name.clone() })
        }
        None => {
            let told = "out of GPU memory on the highest tier there is".to_owned();
            retry::hold(record, HeldWhy::TopTier, told, now)
        }
    }
}
