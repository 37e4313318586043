use babysit::study::{lab_mix::*, placing::*, trace};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let seeds: u64 = args[1].parse().unwrap();
    let load: f64 = args[2].parse().unwrap();
    let by_tier = args.get(3).is_some_and(|a| a == "tier");
    let text = args.get(4).map(|p| std::fs::read_to_string(p).unwrap());
    for placing in PLACINGS {
        let t = std::time::Instant::now();
        let mut sums: std::collections::BTreeMap<u32, (f64, f64, f64, f64, f64)> =
            Default::default();
        let (mut u, mut j, mut d, mut b, mut f) = (0.0, 0.0, 0.0, 0, 0);
        for seed in 1..=seeds {
            let (jobs, field) = match &text {
                None => (mix(seed, load, 28), Field { by_tier, ..Field::default() }),
                Some(t) => (
                    trace::scaled(&trace::read(t).unwrap().jobs, seed, load, 30),
                    Field { by_tier, days: 30, ..Field::default() },
                ),
            };
            let w = run(&field, &placing, &jobs).unwrap();
            for x in &w.widths {
                let e = sums.entry(x.gpus.unwrap_or(99)).or_default();
                e.0 += x.mean;
                e.1 += x.p95;
                e.2 = e.2.max(x.max);
                e.3 += x.not_started as f64;
                e.4 += x.jobs as f64;
            }
            u += w.utilization;
            j += w.jain;
            d += w.deviation;
            b += w.reservations;
            f += w.failed;
        }
        let n = seeds as f64;
        println!(
            "{} took {:.2}s/campaign util {:.3} jain {:.4} dev {:.4} begun {} failed {} ({:.2})",
            placing.name,
            t.elapsed().as_secs_f64() / n,
            u / n,
            j / n,
            d / n,
            b,
            f,
            f as f64 / b.max(1) as f64
        );
        for (w, e) in sums {
            println!(
                "   {w:3}: jobs {:.0} mean {:.2} p95 {:.1} max {:.1} not started {:.1}",
                e.4 / n,
                e.0 / n,
                e.1 / n,
                e.2,
                e.3 / n
            );
        }
    }
}
