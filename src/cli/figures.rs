//! The computed values that status, why and caps show, from policy and state alone.

use crate::model::policy::Policy;
use crate::model::state::State;
use crate::output::view::Figures;
use crate::planning::eta::etas;
use crate::planning::lpt::Lpt;
use crate::planning::measure::is_done;
use crate::planning::reason::standing;

/// `state` must have been aligned with `policy`.
pub fn figures(policy: &Policy, state: &State) -> Figures {
    let lpt = Lpt::new(policy, state);
    let pairs = || policy.shards.iter().zip(&state.shards);
    Figures {
        etas: etas(policy, state, &lpt),
        // What a person or a rule decided since the last cycle counts at once.
        reasons: pairs()
            .map(|(shard, record)| standing(shard, record).unwrap_or_else(|| record.why.clone()))
            .collect(),
        done: pairs().map(|(shard, record)| is_done(shard, record)).collect(),
        lpt,
    }
}
