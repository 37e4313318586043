//! Where a shard could be placed, now or once GPUs are free there. Shards that ask for the same have
//! the same places, which are looked up once a cycle.

use crate::model::policy::Policy;
use crate::model::state::State;

use super::placement::{Placement, fits};
use super::quick::QuickMap;

/// GPUs and lowest tier asked for.
type Class = (u32, Option<u32>);

/// Positions in the list of placements, by what is asked for.
#[derive(Debug, Clone, Default)]
pub struct FitPlaces {
    by_class: QuickMap<Class, Vec<usize>>,
}

impl FitPlaces {
    /// Those that are up, best tier first, but for the nodes that the shard is kept off.
    pub fn of(
        &mut self,
        policy: &Policy,
        state: &State,
        shard: usize,
        placements: &[Placement],
        shunned: &[String],
    ) -> Vec<usize> {
        let (Some(asks), Some(record)) = (policy.shards.get(shard), state.shards.get(shard)) else {
            return Vec::new();
        };
        let min = record.min_tier.or(asks.min_tier);
        let found = self.by_class.entry((asks.gpus, min)).or_insert_with(|| {
            let places = placements.iter().enumerate();
            let mut fit: Vec<(usize, u32)> = places
                .filter(|(_, p)| p.up && fits(policy, asks, min, p))
                .map(|(at, p)| (at, p.rank))
                .collect();
            fit.sort_by_key(|(_, rank)| std::cmp::Reverse(*rank));
            fit.into_iter().map(|(at, _)| at).collect()
        });
        let shuns =
            |at: &usize| placements.get(*at).is_some_and(|place| shunned.contains(&place.pin.node));
        found.iter().copied().filter(|at| shunned.is_empty() || !shuns(at)).collect()
    }
}
