//! The invariants of the policy on random clusters, labs, strangers and breakdowns; every command
//! healthy in the first, faults and clock steps in the others. A failing case prints its seed.

#[path = "scenarios/bills.rs"]
mod bills;
#[path = "scenarios/chance.rs"]
mod chance;
#[path = "scenarios/cutting.rs"]
mod cutting;
#[allow(dead_code, reason = "shared with the scenarios")]
#[path = "scenarios/harness.rs"]
mod harness;
#[path = "scenarios/labs.rs"]
mod labs;
#[allow(dead_code, reason = "shared with the scenarios")]
#[path = "scenarios/prose.rs"]
mod prose;
#[allow(dead_code, reason = "shared with the scenarios")]
#[path = "scenarios/rules.rs"]
mod rules;

use babysit::model::units::Secs;
use chance::{Weather, campaign};

#[test]
fn healthy_commands_on_a_restless_cluster() {
    let weather = Weather { faults: 0.0, cuts: 0.0, skew: Secs(0), ticks: 60 };
    campaign("healthy", 0..40, weather, 3_500);
}

#[test]
fn every_command_fails_now_and_then() {
    let weather = Weather { faults: 0.05, cuts: 0.0, skew: Secs(300), ticks: 60 };
    campaign("now and then", 1_000..1_035, weather, 3_000);
}

#[test]
fn every_command_fails_at_thirty_percent() {
    let weather = Weather { faults: 0.3, cuts: 0.0, skew: Secs(1800), ticks: 80 };
    campaign("thirty percent", 2_000..2_040, weather, 3_500);
}
