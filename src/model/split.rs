//! Shards whose rows several jobs may share: the shard itself, and its helpers. A helper is a shard
//! of its own in policy and state while a cycle plans, so that every rule about jobs is one for it
//! too; it has no rows, cost, cap or time of its own.

use std::borrow::Cow;
use std::path::PathBuf;

use super::id::ShardId;
use super::policy::{Policy, Shard};

/// How the rows of a shard are shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Most jobs that work on the shard at once, its own included; 2 or more.
    pub workers: u32,
    /// The folder of the claims on its rows.
    pub claims: PathBuf,
}

impl ShardId {
    /// The nth job's, from 2 on. No name in shards.toml holds a `~`.
    pub fn helper(&self, n: u32) -> ShardId {
        ShardId { family: self.family.clone(), shard: format!("{}~{n}", self.shard).into() }
    }

    /// The name of the shard that this one is, or helps.
    pub fn shard_helped(&self) -> &str {
        self.shard.split_once('~').map_or(self.shard.as_str(), |(shard, _)| shard)
    }

    /// 2 for the first helper, whose shard's own job is the first; `None`: it is none.
    pub fn helper_number(&self) -> Option<u32> {
        self.shard.split_once('~').and_then(|(_, n)| n.parse().ok())
    }

    pub fn is_helper(&self) -> bool {
        self.shard.contains('~')
    }

    pub fn helps(&self, other: &ShardId) -> bool {
        self.is_helper() && self.family == other.family && other.shard == self.shard_helped()
    }
}

impl Shard {
    /// Helpers that it may have.
    pub fn helpers(&self) -> usize {
        match (&self.split, self.helps) {
            (Some(split), None) => split.workers.saturating_sub(1) as usize,
            _ => 0,
        }
    }
}

impl Policy {
    /// Shards that shards.toml names. They come first; helpers, where a cycle plans, after them.
    pub fn named(&self) -> usize {
        self.shards.partition_point(|shard| shard.helps.is_none())
    }

    /// The policy that a cycle plans by: with the helpers of every shard that may have some, in the
    /// order of their shards.
    pub fn with_helpers(&self) -> Cow<'_, Policy> {
        let named = self.named();
        if named < self.shards.len() || self.shards.iter().all(|shard| shard.helpers() == 0) {
            return Cow::Borrowed(self);
        }
        let helper = |(i, shard): (usize, &Shard), n: usize| Shard {
            id: shard.id.helper(n as u32 + 2),
            helps: Some(i),
            ..shard.clone()
        };
        let each = self.shards.iter().enumerate();
        let helpers: Vec<Shard> =
            each.flat_map(|at| (0..at.1.helpers()).map(move |n| helper(at, n))).collect();
        let mut whole = self.clone();
        whole.shards.extend(helpers);
        Cow::Owned(whole)
    }
}
