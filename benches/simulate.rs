//! How many campaigns a core simulates in a second: twelve shards for some 60 hours, a tick every
//! ten minutes. `cargo bench --bench simulate [SEEDS] [POLICY...]`; the issues ask for 1 000. Beside
//! it, where all policies run, the model of scripts/reference-lanes in the same units: as it goes by
//! itself, from event to event, and as a plain script goes, from tick to tick.

use std::process::Command;
use std::sync::atomic::AtomicBool;

use babysit::study::method::{METHODS, by_name};
use babysit::study::scenario::Scenario;
use babysit::study::setting::Setting;
use babysit::study::{Luck, run_with};

/// The policies of scripts/reference-lanes --speed.
const REFERENCE: [&str; 4] = ["own-only", "v3", "v4", "v4.1"];

fn main() {
    let seeds: u64 = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(60);
    let named: Vec<_> = std::env::args().filter_map(|arg| by_name(&arg)).collect();
    let methods = if named.is_empty() { &METHODS[..] } else { &named };
    let setting = Setting::field(Scenario::Seed);
    let (mut all, mut field) = (0.0, 0.0);
    // Drawn once for all policies, as `simulate` does.
    let begun = on_cpu();
    let lucks: Vec<Luck> = (1..=seeds).map(|seed| Luck::of(&setting, seed)).collect();
    let drawn = (on_cpu() - begun) / methods.len() as f64;
    let never = AtomicBool::new(false);
    for method in methods {
        let begun = on_cpu();
        for luck in &lucks {
            run_with(&setting, method, luck, &never).expect("it adds up");
        }
        let took = on_cpu() - begun + drawn;
        println!("{:9} {:7.0} campaigns a second of a core", method.name, seeds as f64 / took);
        all += took;
        field += if REFERENCE.contains(&method.name) { took } else { 0.0 };
    }
    let count = seeds as f64 * methods.len() as f64;
    let rate = count / all;
    println!("{:9} {rate:7.0} campaigns a second of a core", "all");
    if !named.is_empty() {
        return;
    }
    // The reference knows the field's four policies alone, so it is held against the same four too.
    let of_field = seeds as f64 * REFERENCE.len() as f64 / field;
    println!("{:9} {of_field:7.0} campaigns a second of a core", "field");
    for (name, ways) in
        [("event-stepped", &["--speed"][..]), ("tick-stepped", &["--speed", "--each-tick"])]
    {
        match reference(ways) {
            Some(python) => println!(
                "{name} reference {python:.0} a second, ratio {:.1} of all, {:.1} of the same policies",
                rate / python,
                of_field / python
            ),
            None => println!("{name} reference: scripts/reference-lanes did not run"),
        }
    }
}

/// Campaigns that the Python model simulates in a second.
fn reference(ways: &[&str]) -> Option<f64> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/reference-lanes");
    #[allow(clippy::disallowed_methods)] // a bench starts what it is compared with
    let said = Command::new(script).args(ways).args(["--seeds", "60"]).output().ok()?;
    String::from_utf8_lossy(&said.stdout).trim().parse().ok()
}

/// Seconds that this thread has been on a CPU: others on the machine do not count.
fn on_cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds: f64 = text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    nanoseconds / 1e9
}
