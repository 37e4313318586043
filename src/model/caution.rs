//! What babysit is wary of for a while: families whose submissions were refused, nodes on which
//! jobs died, a controller that can take no more.

use std::collections::BTreeMap;

use super::id::ShardId;
use super::units::Time;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Caution {
    /// By family. No entry: its last submission was taken.
    pub breakers: BTreeMap<String, Breaker>,
    /// By name, of nodes with a death on their account.
    pub nodes: BTreeMap<String, NodeMarks>,
    /// Set while Slurm takes no submissions.
    pub overload: Option<Overload>,
}

/// Refusals of one family's submissions, in a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Breaker {
    pub refused: u32,
    /// What Slurm said last.
    pub said: String,
    /// Nothing of the family is submitted since then; a person closes it.
    pub open_since: Option<Time>,
}

/// Deaths that are charged to a node and not to the shards that died there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeMarks {
    pub deaths: Vec<Death>,
    /// Kept out of every submission until then.
    pub out_until: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Death {
    pub shard: ShardId,
    pub attempt: u32,
    pub at: Time,
    /// Slurm itself says that the node failed, or the shard has worked elsewhere since. Else the
    /// job merely died soon after its start, and may die elsewhere as well.
    pub sure: bool,
}

/// Slurm refused to take anything: back-off, doubled each time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Overload {
    pub in_a_row: u32,
    pub until: Time,
    pub said: String,
}
