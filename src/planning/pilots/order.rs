//! How long an offer stays what it is: until a claim is made, a job changes, or another shard is the
//! longest.

use super::super::lpt::Lpt;
use super::free;
use crate::model::policy::{Policy, Shard};
use crate::model::state::State;

/// The order of an offer, where rows that others finish may change it: one that has never run is taken
/// to be as fast as its family is.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    lpt: Lpt,
    free: Vec<usize>,
    /// Pilots whose time is limited look at the work that is left too.
    timed: bool,
}

impl Order {
    /// `None`: no row changes the offer.
    pub fn of_offer(policy: &Policy, state: &State) -> Option<Order> {
        if !policy.has_pilots() {
            return None;
        }
        let lpt = Lpt::new(policy, state);
        let free = free(policy, state, &lpt);
        let timed = policy.shards.iter().any(is_timed);
        let has_run = |i: &usize| state.shards.get(*i).is_some_and(|r| r.pace.rows > 0);
        let changes = !free.iter().all(has_run) && (timed || free.len() >= 2);
        changes.then_some(Order { lpt, free, timed })
    }

    /// Is it the same, now that some shard has more rows?
    pub fn stays(&mut self, policy: &Policy, state: &State) -> bool {
        self.lpt.renew(policy, state);
        !self.timed && self.lpt.is_sorted(policy, &self.free, |i| *i)
    }
}

/// Its jobs have an end that is known when they start.
fn is_timed(shard: &Shard) -> bool {
    let limit = |arg: &String| arg.starts_with("--time") || arg.starts_with("-t");
    shard.pilot && (shard.time.is_some() || shard.args.iter().any(limit))
}
