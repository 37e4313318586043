use babysit::study::{many::*, method::*, scenario::*, setting::*};
use std::sync::atomic::AtomicBool;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let seeds: u64 = args[1].parse().unwrap();
    let scenario = Scenario::parse(&args[2]).unwrap();
    let setting = match args.get(3) {
        Some(h) => {
            let mut s = Setting::field(scenario);
            let h: f64 = h.parse().unwrap();
            if args.len() > 4 {
                s = Setting::field_at(scenario, h);
            } else {
                for w in &mut s.work {
                    if w.id.family == "find" {
                        w.row_hours = h;
                    }
                }
            }
            s
        }
        None => Setting::field(scenario),
    };
    let stop = AtomicBool::new(false);
    let t = std::time::Instant::now();
    let runs =
        run_all(&setting, &METHODS, &Orders { seeds, threads: 2, stop: &stop, done: &|_| {} })
            .unwrap();
    let took = t.elapsed().as_secs_f64();
    for (m, r) in METHODS.iter().zip(&runs) {
        let s = summary(r);
        let f = |e: Option<babysit::study::statistics::Estimate>| {
            e.map_or(String::new(), |e| format!("{:.3}±{:.3}", e.mean, e.half))
        };
        println!(
            "{:9} never {} bound {} make {} x {} compl {} lost {} idle {} gpuh {} $ {} others {} pre {}",
            m.name,
            s.never,
            f(s.bound),
            f(s.makespan),
            f(s.times_bound),
            f(s.completion),
            f(s.lost_rows),
            f(s.idle),
            f(s.gpu_hours),
            f(s.cost),
            f(s.others_wait),
            f(s.preemptions)
        );
    }
    println!("v4-v4.1 {:?}", longer_by(&runs[2], &runs[3]));
    println!("{:.2} campaigns/s/thread", seeds as f64 * METHODS.len() as f64 / took / 2.0);
}
