//! Faults of all kinds at 30 % and cycles that are cut before or after any save and any effect:
//! no shard has two live jobs, no row is done twice, every GPU-second is charged once.

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
use chance::{Trial, Weather, campaign};

#[test]
fn cycles_are_cut_and_every_command_fails_at_thirty_percent() {
    let weather = Weather { faults: 0.3, cuts: 0.3, skew: Secs(600), ticks: 100 };
    campaign("torture", 5_000..5_040, weather, 4_000);
}

#[test]
fn cycles_are_cut_on_a_healthy_cluster() {
    let weather = Weather { faults: 0.0, cuts: 0.5, skew: Secs(0), ticks: 80 };
    campaign("cut only", 6_000..6_030, weather, 2_000);
}

/// Runs that found something once.
#[test]
fn what_was_wrong_once_stays_right() {
    let cut_only = Weather { faults: 0.0, cuts: 0.5, skew: Secs(0), ticks: 80 };
    // The charge of a reservation that a given-up start left behind came after the queue was made.
    Trial::new(30_217, cut_only).run();
    // A cycle was cut before it gave the rows of a job that had ended back, and nobody looked at them
    // again while their shard's own job waited.
    Trial::new(20_327, cut_only).run();
}
