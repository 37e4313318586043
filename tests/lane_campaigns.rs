//! Campaigns of two lanes: the same luck for every policy, and figures that a reference model gave.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use babysit::model::policy::LaneRules;
use babysit::model::units::Money;
use babysit::study::many::{Orders, longer_by, run_all, summary};
use babysit::study::method::{METHODS, Method, by_name};
use babysit::study::run;
use babysit::study::scenario::Scenario;
use babysit::study::setting::{Price, Setting};

fn method(name: &str) -> Method {
    by_name(name).expect("a policy")
}

/// Six short shards, so that a campaign takes no time.
fn small(scenario: Scenario) -> Setting {
    let mut setting = Setting::field(scenario);
    setting.work.truncate(6);
    setting.work.iter_mut().for_each(|work| work.rows = work.rows.div_ceil(8));
    setting
}

#[test]
fn every_policy_in_every_scenario_conserves_rows_gpu_seconds_and_money() {
    for scenario in Scenario::ALL {
        for method in METHODS {
            for seed in 1..=3 {
                let setting = Setting {
                    limit: babysit::model::units::Secs::hours(80),
                    ..small(scenario.clone())
                };
                let ran = run(&setting, &method, seed).expect("it adds up");
                if let Some(m) = ran.measures {
                    // The bound takes the longest shard for one that no two jobs share.
                    assert!(
                        m.makespan >= ran.bound - 1e-9 || method.split,
                        "{scenario:?} {}: {ran:?}",
                        method.name
                    );
                    assert!(m.completion <= m.makespan && m.idle >= 0.0, "{ran:?}");
                }
            }
        }
    }
}

#[test]
fn a_seed_is_one_run_and_its_luck_is_the_same_for_every_policy() {
    let setting = small(Scenario::Seed);
    let again = |name| run(&setting, &method(name), 7).expect("a run");
    assert_eq!(again("v4.1"), again("v4.1"));
    assert_eq!(again("v3").bound, again("own-only").bound);
    let other = run(&setting, &method("v4.1"), 8).expect("a run");
    assert_ne!(other, again("v4.1"));
}

#[test]
fn what_waits_in_extra_alone_may_never_end_and_is_counted() {
    // Seven shards on four GPUs of own, and no extra GPU ever: v3 promotes three of them for good.
    let mut setting = small(Scenario::None);
    setting.limit = babysit::model::units::Secs::hours(40);
    let runs: Vec<_> =
        (1..=2).map(|seed| run(&setting, &method("v3"), seed).expect("a run")).collect();
    let seen = summary(&runs);
    assert_eq!((seen.never, seen.ended), (2, 0));
    assert!(seen.makespan.is_none());
    let all_end = run(&setting, &method("own-only"), 1).expect("a run");
    assert!(all_end.measures.is_some());
}

#[test]
fn failing_probes_cost_time_and_nothing_else() {
    let mut setting = small(Scenario::Seed);
    setting.probe_fails = 0.5;
    let ran = run(&setting, &method("now"), 2).expect("it adds up");
    assert!(ran.measures.is_some());
}

#[test]
fn campaigns_on_several_threads_are_those_of_one() {
    let setting = small(Scenario::Flaky);
    let methods = [method("v4"), method("now")];
    let go = AtomicBool::new(false);
    let told = Mutex::new(Vec::new());
    let done = |n| told.lock().expect("nobody panicked").push(n);
    let orders = |threads| Orders { seeds: 3, threads, stop: &go, done: &done };
    let one = run_all(&setting, &methods, &orders(1)).expect("runs");
    assert_eq!(one, run_all(&setting, &methods, &orders(3)).expect("runs"));
    assert_eq!(one[1][2], run(&setting, &method("now"), 3).expect("a run"));
    let mut told = told.into_inner().expect("nobody panicked");
    told.sort_unstable();
    assert_eq!(told, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]);
}

#[test]
fn a_stop_leaves_seeds_that_ran_under_every_policy() {
    let setting = small(Scenario::Seed);
    let methods = [method("v3"), method("v4")];
    let stop = AtomicBool::new(false);
    let done = |n| {
        if n == 3 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let orders = Orders { seeds: 50, threads: 1, stop: &stop, done: &done };
    let runs = run_all(&setting, &methods, &orders).expect("runs");
    assert_eq!(runs.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    let difference = longer_by(&runs[0], &runs[1]).expect("a pair");
    assert_eq!((difference.n, difference.half), (1, f64::INFINITY));
}

/// Extra GPUs stand together where a shard wants several, so that it can start in either lane.
#[test]
fn shards_of_several_gpus_run_in_both_lanes_and_add_up() {
    for scenario in [Scenario::None, Scenario::Rich] {
        let mut setting = small(scenario);
        setting.work[0].gpus = 4;
        setting.work[1].gpus = 2;
        setting.work[1].price = Price::GpuHour(Money(2_000_000_000));
        for name in ["own-only", "v4.1", "now"] {
            let ran = run(&setting, &method(name), 2).expect("it adds up");
            let measures = ran.measures.expect("it ends");
            assert!(measures.makespan >= ran.bound - 1e-9, "{name}: {ran:?}");
            // Two GPUs for some hours, and the rows of the others.
            assert!(measures.cost > Money(10_000_000_000), "{name}: {measures:?}");
        }
    }
}

/// A cap ends a shard's part of the campaign: babysit does not submit it again, and nobody comes.
#[test]
fn a_cap_stops_a_shard_and_the_others_end() {
    let mut setting = small(Scenario::Seed);
    setting.work[1].cap = Some(Money(1_000_000_000));
    let measures =
        run(&setting, &method("v4.1"), 1).expect("it adds up").measures.expect("it ends");
    assert!((measures.capped - 1.0).abs() < 1e-9, "{measures:?}");
    let without = run(&small(Scenario::Seed), &method("v4.1"), 1).expect("it adds up");
    assert!(measures.cost < without.measures.expect("it ends").cost);
}

/// A reference model gave 1.64, 1.56, 1.46 and 1.38 over many seeds; few seeds are held to the
/// order and to the neighbourhood.
#[test]
fn the_field_s_versions_stand_where_the_reference_has_them() {
    let setting = Setting::field(Scenario::Seed);
    let go = AtomicBool::new(false);
    let methods: Vec<Method> = ["own-only", "v4", "v4.1"].map(method).to_vec();
    let orders = Orders { seeds: 12, threads: 2, stop: &go, done: &|_| {} };
    let runs = run_all(&setting, &methods, &orders).expect("runs");
    let times: Vec<f64> =
        runs.iter().map(|r| summary(r).times_bound.expect("all ended").mean).collect();
    for (found, reference) in times.iter().zip([1.64, 1.46, 1.38]) {
        assert!((found - reference).abs() < 0.12, "{times:?}");
    }
    assert!(times[0] > times[1] && times[1] > times[2], "{times:?}");
}

/// What is compared with in simulate is what `preset = "v4.1"` makes of shards.toml.
#[test]
fn the_field_s_own_version_is_a_preset() {
    assert_eq!(method("v4.1").rules, LaneRules::v4_1());
}

/// Jobs that go on to the next shard lose no GPU of own between two: the reference model has 1.11.
#[test]
fn pilots_keep_what_they_have() {
    let setting = Setting::field(Scenario::Seed);
    let go = AtomicBool::new(false);
    let methods: Vec<Method> = ["v4.1", "both", "pilots"].map(method).to_vec();
    let orders = Orders { seeds: 12, threads: 2, stop: &go, done: &|_| {} };
    let runs = run_all(&setting, &methods, &orders).expect("it adds up");
    let times = summary(&runs[2]).times_bound.expect("all ended").mean;
    assert!((times - 1.11).abs() < 0.06, "{times}");
    for other in &runs[..2] {
        let gain = longer_by(other, &runs[2]).expect("pairs");
        assert!(gain.mean - gain.half > 1.0, "{gain:?}");
    }
}

/// Rows of the longest shards taken by whoever is idle: little is left above the bound.
#[test]
fn helpers_take_the_tail_away() {
    let setting = Setting::field(Scenario::Seed);
    let go = AtomicBool::new(false);
    let methods: Vec<Method> = ["v4.1", "both", "split"].map(method).to_vec();
    let orders = Orders { seeds: 8, threads: 2, stop: &go, done: &|_| {} };
    let runs = run_all(&setting, &methods, &orders).expect("it adds up");
    let times = summary(&runs[2]).times_bound.expect("all ended").mean;
    assert!(times < 1.08, "{times}");
    for other in &runs[..2] {
        let gain = longer_by(other, &runs[2]).expect("pairs");
        assert!(gain.mean - gain.half > 2.0, "{gain:?}");
    }
}
