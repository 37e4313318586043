//! What a shard's work costs, as far as shards.toml or the rows so far tell.

use crate::model::policy::{CostIn, Policy, Shard};
use crate::model::state::{ShardRecord, State};
use crate::model::units::Money;

/// What a shard's work costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Price {
    Row(Money),
    GpuHour(Money),
}

impl Price {
    pub const NONE: Price = Price::Row(Money::ZERO);

    pub fn is_known(self) -> bool {
        self != Price::NONE
    }
}

/// By shard: the price of a GPU-hour where shards.toml has one, else what a row cost so far in the
/// shard, else in its family, else in the whole campaign.
pub(super) fn prices(policy: &Policy, state: &State) -> Vec<Price> {
    let pairs = || policy.shards.iter().zip(&state.shards);
    let mean = |of: &dyn Fn(&Shard) -> bool| {
        let paid = |record: &ShardRecord| record.progress.spent.filter(|s| *s > Money::ZERO);
        let by_row = |shard: &Shard| matches!(shard.cost, Some(CostIn::Jsonl { .. }));
        let (mut rows, mut spent) = (0i64, 0i64);
        for (_, record) in pairs().filter(|(shard, _)| by_row(shard) && of(shard)) {
            if let Some(money) = paid(record) {
                rows += i64::from(record.progress.rows);
                spent = spent.saturating_add(money.0);
            }
        }
        (rows > 0).then(|| Price::Row(Money(spent / rows)))
    };
    let price = |shard: &Shard| match shard.cost {
        Some(CostIn::GpuHour(price)) => Price::GpuHour(price),
        None => Price::NONE,
        Some(CostIn::Jsonl { .. }) => mean(&|other| other.id == shard.id)
            .or_else(|| mean(&|other| other.id.family == shard.id.family))
            .or_else(|| mean(&|_| true))
            .unwrap_or(Price::NONE),
    };
    policy.shards.iter().map(price).collect()
}
