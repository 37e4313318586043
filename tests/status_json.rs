//! The contract's `status --json`, key by key.

mod common;

use common::{afternoon, fresh, policy};
use serde_json::Value;

fn status(state: &babysit::model::state::State) -> Value {
    let policy = policy();
    let status = common::status(&policy, state);
    serde_json::to_value(status).expect("plain data")
}

fn has_keys(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "no `{key}` in {value}");
    }
}

#[test]
fn every_name_of_the_contract_is_there() {
    let json = status(&afternoon().1);
    has_keys(
        &json,
        &["schema", "project", "generated_at", "last_tick", "shards", "labs", "totals"],
    );
    has_keys(&json["last_tick"], &["at", "outcome", "reason", "skipped_in_a_row"]);
    for shard in json["shards"].as_array().expect("a list") {
        has_keys(
            shard,
            &[
                "id",
                "family",
                "shard",
                "lab",
                "state",
                "why",
                "gpus",
                "rows",
                "rows_per_hour",
                "seconds_per_row",
                "remaining_seconds",
                "eta",
                "cost",
                "job",
                "reservation",
                "attempts",
                "failures",
                "preemptions",
                "min_tier",
            ],
        );
        has_keys(&shard["rows"], &["done", "total"]);
        has_keys(&shard["cost"], &["spent", "cap", "per_row", "projected"]);
    }
    has_keys(
        &json["shards"][1]["job"],
        &["id", "qos", "state", "node", "tier", "submitted_at", "started_at"],
    );
    has_keys(&json["labs"][0], &["name", "usage", "running_gpus", "rank"]);
    has_keys(
        &json["totals"],
        &[
            "shards",
            "done",
            "running",
            "pending",
            "waiting",
            "needs_person",
            "rows_done",
            "rows_total",
            "rows_per_hour",
            "eta",
            "spent",
            "projected",
            "ceiling",
        ],
    );
    assert_eq!(json["schema"], "babysit/status/v1");
    assert_eq!(json["generated_at"], "2025-11-02T15:00:00Z");
}

#[test]
fn totals_are_the_sums_of_the_lines() {
    let json = status(&afternoon().1);
    let lines = json["shards"].as_array().expect("a list");
    let sum = |of: &dyn Fn(&Value) -> f64| lines.iter().map(of).sum::<f64>();
    let totals = &json["totals"];
    let close = |a: f64, key: &str| {
        let b = totals[key].as_f64().expect("a number");
        assert!((a - b).abs() < 1e-6, "{key}: {a} {b}");
    };
    close(sum(&|s| s["rows"]["done"].as_f64().unwrap_or(0.0)), "rows_done");
    close(sum(&|s| s["cost"]["spent"].as_f64().unwrap_or(0.0)), "spent");
    close(sum(&|s| s["cost"]["projected"].as_f64().unwrap_or(0.0)), "projected");
    close(sum(&|s| s["rows_per_hour"].as_f64().unwrap_or(0.0)), "rows_per_hour");
    // F7: 4 x 25 + 8 x 40.
    close(420.0, "ceiling");
    let etas = lines.iter().filter_map(|s| s["eta"].as_str());
    assert_eq!(totals["eta"].as_str(), etas.max());
}

#[test]
fn a_projection_that_passes_its_cap_is_marked_before_it_gets_there() {
    let json = status(&afternoon().1);
    let marked: Vec<&str> = json["shards"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|s| s["cost"]["will_pass_cap"] == true && s["state"] != "over-cap")
        .filter_map(|s| s["id"].as_str())
        .collect();
    assert_eq!(marked, ["restore/s3"]);
}

#[test]
fn before_the_first_tick_nothing_is_made_up() {
    let json = status(&fresh(&policy()));
    assert!(json["last_tick"].is_null());
    assert_eq!(json["totals"]["waiting"], 12);
    assert_eq!(json["totals"]["spent"], 0.0);
    assert!(json["shards"][0]["cost"]["per_row"].is_null());
    assert_eq!(json["shards"][0]["rate_is_configured"], true);
}
