//! Cost against caps, by shard and by family.

use std::collections::BTreeMap;

use crate::output::format::{count, per_row};
use crate::output::view::{ShardView, Status};
use crate::output::word::Word;

use super::super::chart::Table;
use super::super::markup::el;
use super::super::over_time::SHARDS_SHOWN;
use super::super::{Section, bars, nothing};
use super::{LISTED, money_text};

/// Shards of a large campaign that are shown one by one: those nearest to their caps.
const WORST: usize = 20;

pub(super) fn section(status: &Status) -> Section {
    let capped: Vec<&ShardView> =
        status.shards.iter().filter(|s| s.cost.cap.is_some_and(|cap| cap > 0.0)).collect();
    let section = Section::new("cost", "Cost against caps");
    if capped.is_empty() {
        return section.put(nothing("No shard has a cap."));
    }
    let mut sorted = capped.clone();
    sorted.sort_by(|a, b| share_of_cap(b).total_cmp(&share_of_cap(a)));
    let over = capped.iter().filter(|s| is_bad(s)).count();
    let says = match over {
        0 => format!("{}, none of which reaches its cap.", count(capped.len() as u64, "shard")),
        n => format!(
            "{n} of {} reached the cap, or will before the last row.",
            count(capped.len() as u64, "shard")
        ),
    };
    let section = section
        .says(format!("{says} Each bar is in parts of its own cap: the line is where it stops."));
    let many = capped.len() > SHARDS_SHOWN;
    let families = many.then(|| {
        let bars = families(&capped);
        let title = "Cost against caps, by family";
        bars::caps("chart-families-cost", title, &says, bars, family_costs(&capped))
    });
    let shown = sorted.iter().take(if many { WORST } else { SHARDS_SHOWN });
    let bars = shown.map(|shard| {
        let cap = shard.cost.cap.unwrap_or(1.0);
        let projected = shard.cost.projected.unwrap_or(shard.cost.spent);
        bars::Money {
            name: shard.id.clone(),
            figure: figures(shard.cost.spent, projected, cap),
            spent: shard.cost.spent / cap,
            projected: projected / cap,
            bad: is_bad(shard),
        }
    });
    let row = |shard: &&ShardView| {
        let amount = |amount: Option<f64>| amount.map_or("-".to_owned(), money_text);
        let cost = &shard.cost;
        vec![
            shard.id.clone(),
            money_text(cost.spent),
            amount(cost.cap),
            cost.per_row.map_or("-".to_owned(), per_row),
            amount(cost.projected),
            format!("{:.0} %", share_of_cap(shard) * 100.0),
        ]
    };
    let table = Table {
        caption: "shards, nearest to their caps first".into(),
        heads: vec![
            ("Shard", false),
            ("Spent", true),
            ("Cap", true),
            ("A row", true),
            ("Projected", true),
            ("Of its cap", true),
        ],
        rows: sorted.iter().take(LISTED).map(row).collect(),
    };
    let title = "Cost of each shard against its cap";
    let chart = bars::caps("chart-cost", title, &says, bars.collect(), table);
    let nearest = many.then(|| el("p").text(format!("The {WORST} shards nearest to their caps:")));
    section.all(families).all(nearest).put(chart)
}

fn figures(spent: f64, projected: f64, cap: f64) -> String {
    let (spent, cap) = (money_text(spent), money_text(cap));
    format!("{spent} → {} of {cap}", money_text(projected))
}

fn share_of_cap(shard: &ShardView) -> f64 {
    let most = shard.cost.projected.unwrap_or(0.0).max(shard.cost.spent);
    shard.cost.cap.filter(|cap| *cap > 0.0).map_or(0.0, |cap| most / cap)
}

fn is_bad(shard: &ShardView) -> bool {
    shard.cost.will_pass_cap || shard.state == Word::OverCap
}

/// Spent, projected, caps, and how many are over or will be, by family.
fn by_family<'a>(capped: &[&'a ShardView]) -> BTreeMap<&'a str, (f64, f64, f64, u32)> {
    let mut families: BTreeMap<&str, (f64, f64, f64, u32)> = BTreeMap::new();
    for shard in capped {
        let sum = families.entry(&shard.family).or_default();
        sum.0 += shard.cost.spent;
        sum.1 += shard.cost.projected.unwrap_or(shard.cost.spent);
        sum.2 += shard.cost.cap.unwrap_or(0.0);
        sum.3 += u32::from(is_bad(shard));
    }
    families
}

fn families(capped: &[&ShardView]) -> Vec<bars::Money> {
    let bar = |(name, (spent, projected, cap, over)): (&str, (f64, f64, f64, u32))| bars::Money {
        name: name.to_owned(),
        figure: figures(spent, projected, cap),
        spent: spent / cap,
        projected: projected / cap,
        bad: over > 0,
    };
    by_family(capped).into_iter().map(bar).take(SHARDS_SHOWN).collect()
}

fn family_costs(capped: &[&ShardView]) -> Table {
    let row = |(name, (spent, projected, cap, over)): (&str, (f64, f64, f64, u32))| {
        vec![
            name.to_owned(),
            money_text(spent),
            money_text(projected),
            money_text(cap),
            over.to_string(),
        ]
    };
    Table {
        caption: "cost of each family".into(),
        heads: vec![
            ("Family", false),
            ("Spent", true),
            ("Projected", true),
            ("Caps", true),
            ("Shards over, or will be", true),
        ],
        rows: by_family(capped).into_iter().map(row).take(LISTED).collect(),
    }
}
