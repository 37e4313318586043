//! The order of placements that spares wide ones (`[policy] placement_order = "guard"`): best tier
//! first, but last of all those that a wider shard now in the queue could use.

use crate::model::policy::{PlaceOrder, Policy};
use crate::model::state::State;

use super::placement::{Placement, fits};

/// Which placements are wanted by wider shards.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// Width and lowest tier of shards in the queue, each once.
    kinds: Vec<(u32, Option<u32>, usize)>,
}

impl Guard {
    /// Guards nothing where the order is by tier alone.
    pub fn new(policy: &Policy, state: &State, queue: &[usize]) -> Guard {
        let mut kinds: Vec<(u32, Option<u32>, usize)> = Vec::new();
        if policy.rules.place.order == PlaceOrder::Guard {
            for &i in queue {
                let (Some(shard), Some(record)) = (policy.shards.get(i), state.shards.get(i))
                else {
                    continue;
                };
                let kind = (shard.gpus, record.min_tier.or(shard.min_tier));
                if !kinds.iter().any(|(gpus, min, _)| (*gpus, *min) == kind) {
                    kinds.push((kind.0, kind.1, i));
                }
            }
        }
        Guard { kinds }
    }

    /// GPUs of the widest shard that could use the placement and is wider than this one; 0: nobody
    /// would miss it.
    pub fn wanted_by(&self, policy: &Policy, gpus: u32, at: &Placement) -> u32 {
        let wider = self.kinds.iter().filter(|(width, ..)| *width > gpus);
        let could = |(_, min, i): &&(u32, Option<u32>, usize)| {
            policy.shards.get(*i).is_some_and(|shard| fits(policy, shard, *min, at))
        };
        wider.filter(could).map(|(width, ..)| *width).max().unwrap_or(0)
    }
}
