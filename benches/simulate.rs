//! How many campaigns a core simulates in a second: twelve shards for some 60 hours, a tick every
//! ten minutes. `cargo bench --bench simulate [SEEDS]`; the issues ask for 1 000.

use std::time::Instant;

use babysit::study::method::METHODS;
use babysit::study::run;
use babysit::study::scenario::Scenario;
use babysit::study::setting::Setting;

fn main() {
    let seeds: u64 = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(60);
    let setting = Setting::field(Scenario::Seed);
    let mut all = 0.0;
    for method in METHODS {
        let begun = Instant::now();
        for seed in 1..=seeds {
            run(&setting, &method, seed).expect("it adds up");
        }
        let took = begun.elapsed().as_secs_f64();
        println!("{:9} {:7.0} campaigns a second", method.name, seeds as f64 / took);
        all += took;
    }
    let count = seeds as f64 * METHODS.len() as f64;
    println!("{:9} {:7.0} campaigns a second", "all", count / all);
}
