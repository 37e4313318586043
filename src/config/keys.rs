//! Every key of the grammar, by section, and the guess at what a wrong one was meant to be.

use super::near::did_you_mean;

/// Section as written in a header, and the keys it takes. `NAME` stands for a name of the user's.
pub const SECTIONS: &[(&str, &[&str])] = &[
    ("", TOP),
    ("slurm", SLURM),
    ("own", OWN),
    ("extra", EXTRA),
    ("tiers.NAME", TIER),
    ("backfill", BACKFILL),
    ("policy", POLICY),
    ("hooks", HOOKS),
    ("labs.NAME", LAB),
    ("families.NAME", FAMILY),
    ("families.NAME.shard.NAME", SHARD),
    ("families.NAME.done", DONE),
    ("families.NAME.cost", COST),
];

pub(super) const TOP: &[&str] = &[
    "project", "state", "logs", "slurm", "own", "extra", "tiers", "backfill", "policy", "hooks",
    "labs", "families",
];
pub(super) const SLURM: &[&str] =
    &["bin_dir", "timeout", "partition", "account", "args", "babysit"];
pub(super) const OWN: &[&str] = &["qos", "partition", "account", "gpus", "park"];
pub(super) const EXTRA: &[&str] = &["qos", "partition", "account"];
pub(super) const TIER: &[&str] = &["rank", "tflops", "gres", "partition", "max_gpus"];
pub(super) const BACKFILL: &[&str] = &["qos", "name", "partition", "user", "stop"];
pub(super) const POLICY: &[&str] = &[
    "preset",
    "lanes",
    "own_share",
    "reserve",
    "reserve_at",
    "r3",
    "placement_order",
    "reservation_charge",
    "max_failures",
    "backoff",
    "settle",
    "submit_settle",
    "max_submits_per_tick",
    "newcomer",
    "breaker",
    "node_deaths",
    "node_rest",
    "restart_stalled",
    "tick_budget",
    "journal_observations",
];
pub(super) const HOOKS: &[&str] = &["notify", "timeout"];
pub(super) const LAB: &[&str] = &[];
pub(super) const FAMILY: &[&str] = &[
    "lab",
    "command",
    "script",
    "workdir",
    "gpus",
    "cpus",
    "mem",
    "min_tier",
    "submit",
    "pilot",
    "args",
    "time",
    "rows",
    "row_time",
    "done",
    "cost",
    "cap",
    "oom",
    "restart_stalled",
    "split",
    "shards",
    "shard",
];
/// A family's keys, without the two at the end that make the list of its shards.
pub(super) const SHARD: &[&str] = FAMILY.split_at(FAMILY.len() - 2).0;
pub(super) const DONE: &[&str] = &["glob", "jsonl", "key"];
pub(super) const COST: &[&str] = &["jsonl", "field", "gpu_hour"];

/// The same for a scenario file of `simulate`.
pub const SCENARIO_SECTIONS: &[(&str, &[&str])] = &[
    ("", SCENARIO),
    ("own", SCENARIO_OWN),
    ("extra", SCENARIO_EXTRA),
    ("visitors", SCENARIO_VISITORS),
];

pub(super) const SCENARIO: &[&str] = &[
    "name",
    "says",
    "begins",
    "tick_every",
    "never_after",
    "start",
    "row_spread",
    "own",
    "extra",
    "visitors",
    "row_time",
];
pub(super) const SCENARIO_OWN: &[&str] = &["gpus", "held"];
pub(super) const SCENARIO_EXTRA: &[&str] = &["mean", "life", "at_begin", "by_hour"];
pub(super) const SCENARIO_VISITORS: &[&str] = &["per_hour", "stay"];

/// The hint for an unknown key: a near one of this section, else the section that has it.
pub(super) fn unknown_key_hint(word: &str, known: &[&str]) -> Option<String> {
    did_you_mean(word, known.iter().copied()).or_else(|| {
        // Of the grammar that this section is of: other files have other homes.
        let of_scenario = SCENARIO_SECTIONS.iter().any(|(_, keys)| *keys == known);
        let sections = if of_scenario { SCENARIO_SECTIONS } else { SECTIONS };
        let homes: Vec<String> = sections
            .iter()
            .filter(|(_, keys)| keys.contains(&word))
            .map(|(section, _)| match *section {
                "" => "at the top, before the first [section]".to_owned(),
                section => format!("in [{section}]"),
            })
            .collect();
        if homes.is_empty() {
            match known {
                [] => Some("no key belongs here: the header alone is the whole entry".to_owned()),
                known => Some(format!("known here: {}", known.join(", "))),
            }
        } else {
            Some(format!("it belongs {}", homes.join(" or ")))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_takes_every_key_of_its_family_but_the_lists() {
        let rest: Vec<_> = FAMILY.iter().filter(|k| !SHARD.contains(k)).collect();
        assert_eq!(rest, [&"shards", &"shard"]);
    }
}
