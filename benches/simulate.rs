//! How many campaigns a core simulates in a second: twelve shards for some 60 hours, a tick every
//! ten minutes. `cargo bench --bench simulate [SEEDS] [POLICY...]`; the issues ask for 1 000. Beside
//! it, where all policies run, the model of scripts/reference-lanes, which has no cycle to run, in the
//! same units.

use std::process::Command;
use std::sync::atomic::AtomicBool;

use babysit::study::method::{METHODS, by_name};
use babysit::study::scenario::Scenario;
use babysit::study::setting::Setting;
use babysit::study::{Luck, run_with};

fn main() {
    let seeds: u64 = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(60);
    let named: Vec<_> = std::env::args().filter_map(|arg| by_name(&arg)).collect();
    let methods = if named.is_empty() { &METHODS[..] } else { &named };
    let setting = Setting::field(Scenario::Seed);
    let mut all = 0.0;
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
    }
    let count = seeds as f64 * methods.len() as f64;
    let rate = count / all;
    println!("{:9} {rate:7.0} campaigns a second of a core", "all");
    if !named.is_empty() {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/reference-lanes");
    #[allow(clippy::disallowed_methods)] // a bench starts what it is compared with
    let said = Command::new(script).args(["--speed", "--seeds", "60"]).output();
    let text = said.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    match text.ok().and_then(|text| text.parse::<f64>().ok()) {
        Some(python) => println!("reference {python:7.0}, ratio {:.1}", rate / python),
        None => println!("reference: scripts/reference-lanes did not run"),
    }
}

/// Seconds that this thread has been on a CPU: others on the machine do not count.
fn on_cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds: f64 = text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    nanoseconds / 1e9
}
