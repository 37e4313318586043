//! `babysit cap show`.

use crate::model::policy::Policy;
use crate::model::state::{CapTarget, State};
use crate::model::units::{Money, Time};

use super::format::{ago, dollars, spent};
use super::layout::{Cell, Columns, Side};
use super::paint::Paint;
use super::view::ShardView;

pub const SCHEMA: &str = "babysit/caps/v1";

/// Sum of the caps in force; `None` where a shard has none.
pub fn ceiling(policy: &Policy, state: &State) -> Option<Money> {
    policy.shards.iter().map(|shard| state.cap_of(&shard.id, shard.cap)).sum::<Option<Money>>()
}

/// Where a shard's cap comes from.
fn origin(policy: &Policy, state: &State, i: usize, now: Time) -> String {
    let id = &policy.shards[i].id;
    let own = state.caps.get(&CapTarget::Shard(id.clone()));
    match own.or_else(|| state.caps.get(&CapTarget::Family(id.family.to_string()))) {
        Some(set) => format!("set by {}, {}", set.by, ago(set.at, now)),
        None if policy.shards[i].cap.is_some() => "shards.toml".to_owned(),
        None => "-".to_owned(),
    }
}

/// One line a shard and the ceiling; `views` has one per shard of the policy, in order.
pub fn text(policy: &Policy, state: &State, views: &[ShardView], now: Time) -> String {
    let amount = |dollars: f64| spent(Money::from_dollars(dollars).unwrap_or_default());
    let row = |(i, view): (usize, &ShardView)| {
        let cap = state.cap_of(&policy.shards[i].id, policy.shards[i].cap);
        vec![
            Cell::new(view.id.clone()),
            Cell::new(amount(view.cost.spent)),
            Cell::new(view.cost.projected.map_or("-".to_owned(), amount)),
            Cell::new(cap.map_or("none".to_owned(), spent)),
            Cell::new(if view.cost.will_pass_cap { "!" } else { "" }),
            Cell::new(origin(policy, state, i, now)),
        ]
    };
    let columns = Columns {
        heads: vec![
            ("SHARD", Side::Left),
            ("SPENT", Side::Right),
            ("PROJECTED", Side::Right),
            ("CAP", Side::Right),
            ("", Side::Left),
            ("FROM", Side::Left),
        ],
        rows: views.iter().enumerate().map(row).collect(),
    };
    let ceiling = match ceiling(policy, state) {
        Some(ceiling) => format!("ceiling {}", dollars(ceiling)),
        None => "no ceiling: not every shard has a cap".to_owned(),
    };
    format!("{}\n{ceiling}\n", columns.render(None, Paint::OFF))
}

pub fn json(policy: &Policy, state: &State, views: &[ShardView]) -> serde_json::Value {
    let shard = |(i, view): (usize, &ShardView)| {
        let id = &policy.shards[i].id;
        let own = state.caps.get(&CapTarget::Shard(id.clone()));
        let set = own.or_else(|| state.caps.get(&CapTarget::Family(id.family.to_string())));
        serde_json::json!({
            "id": view.id,
            "spent": view.cost.spent,
            "projected": view.cost.projected,
            "cap": view.cost.cap,
            "set_by": set.map(|set| set.by.clone()),
            "set_at": set.map(|set| super::format::iso(set.at)),
        })
    };
    serde_json::json!({
        "schema": SCHEMA,
        "shards": views.iter().enumerate().map(shard).collect::<Vec<_>>(),
        "ceiling": ceiling(policy, state).map(Money::dollars),
    })
}
