//! The placed shards of a shards.toml as a placement campaign: all of them wait when it begins.

use crate::model::policy::{Policy, Shard, SubmitMode};
use crate::model::state::State;
use crate::model::units::Secs;
use crate::planning::alike;
use crate::planning::measure::rows_left;
use crate::sim::Rng;

use super::forecast::goes_on;
use super::lab_mix::{Arrival, seconds};
use super::placing::Field;
use super::setting::ROW_CV;
use super::site::Site;

/// Days after which a campaign counts as one that never ends.
const LONGEST: u32 = 100;

/// What is simulated, but for the luck of a seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    pub field: Field,
    pub site: Site,
    shards: Vec<Arrival>,
    rows: Vec<u32>,
    /// Shards that no placement there could hold.
    pub too_wide: usize,
}

/// Does any shard wait for babysit to place it?
pub fn any(policy: &Policy) -> bool {
    policy.shards.iter().any(is_placed)
}

/// Families with such shards, in the order of shards.toml.
pub fn families(policy: &Policy) -> Vec<String> {
    let placed = policy.shards.iter().filter(|shard| is_placed(shard));
    let mut names: Vec<String> = placed.map(|shard| shard.id.family.to_string()).collect();
    names.dedup();
    names
}

/// Do all?
pub fn all(policy: &Policy) -> bool {
    policy.shards.iter().all(is_placed)
}

fn is_placed(shard: &Shard) -> bool {
    shard.submit == SubmitMode::Placed
}

impl Placed {
    /// `rest`: only the rows that are left, as the forecast has them. `None`: no tick has seen any GPUs yet.
    pub fn of(policy: &Policy, state: &State, rest: bool) -> Option<Placed> {
        let site = Site::of(policy, state)?;
        let field = Field { days: LONGEST, warm_up: 0, ..Field::default() };
        let mut placed = Placed { field, site, shards: Vec::new(), rows: Vec::new(), too_wide: 0 };
        for (shard, record) in policy.shards.iter().zip(&state.shards) {
            let rows = if rest { rows_left(shard, record) } else { shard.rows };
            if !is_placed(shard) || rows == 0 || (rest && !goes_on(shard, record)) {
                continue;
            }
            let min_tier = record.min_tier.or(shard.min_tier);
            let fit = alike::fit(policy, shard, min_tier, &state.learned.placements);
            if !fit.iter().any(|placements| placements.up) {
                placed.too_wide += 1;
                continue;
            }
            let length = Secs(shard.row_time.0.saturating_mul(i64::from(rows)));
            placed.rows.push(rows);
            placed.shards.push(Arrival {
                at: Secs(0),
                lab: shard.lab.to_string(),
                gpus: shard.gpus,
                runs: length,
                limit: length,
                min_tier,
            });
        }
        Some(placed)
    }

    /// Shards that take part.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// How long each takes under a seed's luck: many rows vary less, all in all, than few.
    pub fn jobs(&self, seed: u64) -> Vec<Arrival> {
        let mut rng = Rng::stream(seed, 21);
        let pairs = self.shards.iter().zip(&self.rows);
        pairs
            .map(|(job, rows)| {
                let hours = job.runs.as_f64() / 3600.0;
                let drawn = rng.lognormal_cv(hours, ROW_CV / f64::from(*rows).sqrt());
                Arrival { runs: seconds(drawn).max(Secs(1)), ..job.clone() }
            })
            .collect()
    }
}
