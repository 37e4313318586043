//! The order of placements that spares wide ones (`[policy] placement_order = "guard"`): best tier
//! first, but last of all those where wider shards of the queue will start; and of equal ones the
//! fullest, so that whole nodes stay whole for the wide ones still to come.
//!
//! Only where they will start: to spare every placement that they could use would leave the fast
//! nodes to them for as long as any of them waits, and small shards run on the slow ones.

use super::bad_nodes;
use super::fit_places::FitPlaces;
use super::placement::Placement;
use super::shadow::Shadow;
use super::submit::Moment;
use crate::model::state::State;

/// Which placements are spared, for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// By placement: GPUs of the widest shard that will start there.
    widest: Vec<u32>,
}

impl Guard {
    /// Looks ahead by the ends of what runs: the widest choose first, and each takes its earliest
    /// start.
    pub fn new(
        moment: &Moment<'_>,
        state: &State,
        queue: &[usize],
        placements: &[Placement],
        mut ends: Shadow,
        places: &mut FitPlaces,
    ) -> Guard {
        let Moment { policy, now, .. } = *moment;
        let mut widest = vec![0; placements.len()];
        let mut wide: Vec<(usize, u32)> = queue
            .iter()
            .filter_map(|&i| policy.shards.get(i).map(|shard| (i, shard.gpus)))
            .collect();
        let narrowest = wide.iter().map(|(_, gpus)| *gpus).min().unwrap_or(0);
        // Nobody is narrower, so nobody spares them anything.
        wide.retain(|(_, gpus)| *gpus > narrowest);
        wide.sort_by_key(|(_, gpus)| std::cmp::Reverse(*gpus));
        for (i, gpus) in wide {
            // All of them are spared for somebody by now, and for none that is narrower.
            if !widest.contains(&0) {
                break;
            }
            let shunned = bad_nodes::shunned(policy, state, i, placements, now);
            let fit = places.of(policy, state, i, placements, &shunned);
            let target = ends.waits(i, gpus, &fit).and_then(|(at, _)| widest.get_mut(at));
            if let Some(spared) = target {
                *spared = gpus.max(*spared);
            }
        }
        Guard { widest }
    }

    /// GPUs of the widest shard that will start there and is wider than this one; 0: nobody would
    /// miss it.
    pub fn wanted_by(&self, gpus: u32, at: usize) -> u32 {
        self.widest.get(at).copied().filter(|widest| *widest > gpus).unwrap_or(0)
    }
}
