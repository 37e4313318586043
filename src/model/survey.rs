//! What a cluster tells a newcomer of itself (`babysit init`), with the gaps.

use super::cluster::Node;
use super::observation::Seen;

#[derive(Debug, Clone, PartialEq)]
pub struct Survey {
    pub nodes: Seen<Vec<Node>>,
    /// Where a job goes that names no partition; `None`: there is none, or it was not learned.
    pub default_partition: Option<String>,
    /// Every QOS of the cluster.
    pub qos: Seen<Vec<Qos>>,
    /// Names of those that this user may use; empty: the associations leave it open.
    pub allowed: Seen<Vec<String>>,
    /// The user's accounts.
    pub accounts: Seen<Vec<String>>,
}

/// A QOS with what makes it a lane.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Qos {
    pub name: String,
    /// GPUs that all its jobs together may hold.
    pub gpus: Option<u32>,
    /// GPUs that one user's jobs in it may hold.
    pub gpus_per_user: Option<u32>,
    /// Whose jobs its own may end.
    pub preempts: Vec<String>,
}
