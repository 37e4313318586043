//! Names of things: shards, Slurm jobs, attempts.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// `family/shard`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId {
    pub family: Name,
    pub shard: Name,
}

impl ShardId {
    pub fn new(family: &str, shard: &str) -> ShardId {
        ShardId { family: family.into(), shard: shard.into() }
    }

    /// Reads `family/shard`; `None` where it is not of that form.
    pub fn parse(text: &str) -> Option<ShardId> {
        let (family, shard) = text.split_once('/')?;
        // A helper of a shard: only babysit itself makes such names (split.rs).
        let name = match shard.split_once('~') {
            Some((name, n)) if n.bytes().all(|b| b.is_ascii_digit()) && !n.is_empty() => name,
            _ => shard,
        };
        (is_name(family) && is_name(name)).then(|| ShardId::new(family, shard))
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.family, self.shard)
    }
}

/// Half of a shard's id. Records, events and actions all carry ids: a copy shares the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name(text.into())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Name {
        Name(text.into())
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == **other
    }
}

impl PartialEq<String> for Name {
    fn eq(&self, other: &String) -> bool {
        *self.0 == **other
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Slurm's raw job id (an array element has one of its own once it is split off).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Letters, digits and `_ . -`, neither empty nor only dots, at most 64 long: safe as a file name,
/// in a job name and in a shell.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.bytes().any(|b| b != b'.')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// Who a job of ours is, on Slurm's side: the contract's job name and comment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Token {
    pub name: String,
    pub comment: String,
}

impl Token {
    pub fn new(project: &str, instance: &str, id: &ShardId, attempt: u32, nonce: &str) -> Token {
        let ShardId { family, shard } = id;
        let attempt = attempt.to_string();
        Token {
            name: [project, ".", family, ".", shard, ".a", &attempt].concat(),
            comment: ["babysit:", instance, ":", family, "/", shard, ":a", &attempt, ":", nonce]
                .concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_their_folder_are_refused() {
        for bad in ["", ".", "..", "../x", "a/b", "a b", "ä", "a;b", "$x"] {
            assert!(!is_name(bad), "{bad:?}");
        }
        for good in ["s0", "find_2", "a.b-c", "..x"] {
            assert!(is_name(good), "{good:?}");
        }
    }
}
