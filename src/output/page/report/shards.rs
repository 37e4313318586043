//! The shards in tables: by family, and one by one.

use std::collections::BTreeMap;

use crate::output::format::{secs, span};
use crate::output::table::order;
use crate::output::view::{ShardView, Status};
use crate::output::word::Word;

use super::super::Section;
use super::super::chart::Table;
use super::LISTED;

pub(super) fn section(status: &Status) -> Section {
    let mut families: BTreeMap<&str, [u64; 6]> = BTreeMap::new();
    for shard in &status.shards {
        let sum = families.entry(&shard.family).or_default();
        let counts = [
            1,
            u64::from(shard.state == Word::Done),
            u64::from(shard.state == Word::Running),
            u64::from(shard.needs_person),
            u64::from(shard.rows.done),
            u64::from(shard.rows.total),
        ];
        sum.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
    }
    let row = |(name, counts): (&&str, &[u64; 6])| {
        let cells = counts.iter().map(u64::to_string);
        [(*name).to_owned()].into_iter().chain(cells).collect()
    };
    let by_family = Table {
        caption: "By family".into(),
        heads: vec![
            ("Family", false),
            ("Shards", true),
            ("Done", true),
            ("Running", true),
            ("Need a person", true),
            ("Rows done", true),
            ("Rows", true),
        ],
        rows: families.iter().take(LISTED).map(row).collect(),
    };
    let mut sorted: Vec<&ShardView> = status.shards.iter().collect();
    sorted.sort_by_key(|shard| order(shard));
    let row = |shard: &&ShardView| {
        vec![
            shard.id.clone(),
            shard.state.text().to_owned(),
            format!("{}/{}", shard.rows.done, shard.rows.total),
            shard.eta_seconds.map_or("-".to_owned(), |eta| span(secs(eta))),
            shard.attempts.to_string(),
            shard.why.clone(),
        ]
    };
    let more = sorted.len().saturating_sub(LISTED);
    let each = Table {
        caption: match more {
            0 => "each shard, what needs a person first".into(),
            _ => format!("the first {LISTED} shards, what needs a person first"),
        },
        heads: vec![
            ("Shard", false),
            ("State", false),
            ("Rows", true),
            ("Done in", true),
            ("Tries", true),
            ("Why", false),
        ],
        rows: sorted.iter().take(LISTED).map(row).collect(),
    };
    let section = Section::new("shards", "Shards").put(by_family.open());
    match more {
        0 => section.put(each.details()),
        _ => section
            .put(each.details())
            .says(format!("{more} more are not listed: `babysit status --json` has them all.")),
    }
}
