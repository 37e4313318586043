//! ADAPTER: counting rows and money in the user's files.

use crate::model::observation::{Measured, Seen};
use crate::model::policy::Shard;

/// Reads the files of the shards it is given.
pub trait Progress {
    /// One answer per shard, in order.
    fn measure(&mut self, shards: &[&Shard]) -> Vec<Seen<Measured>>;
    /// The last lines of a job's output, most `lines`, cleaned of control characters; empty where
    /// there is no such file.
    fn log_tail(
        &mut self,
        shard: &Shard,
        job: crate::model::id::JobId,
        lines: usize,
    ) -> Vec<String>;
}
