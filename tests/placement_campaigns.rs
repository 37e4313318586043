//! Placement campaigns: labs share tiers and nodes, with and without reservations.

use std::sync::atomic::AtomicBool;

use babysit::study::lab_mix::{Arrival, mix};
use babysit::study::placing::{Field, PLACINGS, Placing, by_name, run};
use babysit::study::site::Site;
use babysit::study::waits::Waits;

use babysit::model::units::Secs;

fn field(days: u32) -> Field {
    Field { days, warm_up: 0, ..Field::default() }
}

fn through(field: &Field, placing: &Placing, jobs: &[Arrival]) -> Waits {
    let ran = run(field, &Site::field(), placing, jobs, &AtomicBool::new(false));
    ran.expect("it adds up").expect("nobody stops it")
}

fn ran(placing: &str, days: u32, jobs: &[Arrival]) -> Waits {
    through(&field(days), &by_name(placing).expect("a policy"), jobs)
}

fn job(at: i64, lab: &str, gpus: u32, hours: i64) -> Arrival {
    let (runs, limit) = (Secs::hours(hours), Secs::hours(48));
    Arrival { at: Secs(at), lab: lab.into(), gpus, runs, limit, min_tier: Some(3) }
}

#[test]
fn an_empty_cluster_keeps_nobody_waiting_for_more_than_a_tick() {
    let jobs = [job(10, "a", 8, 3), job(20, "b", 1, 2)];
    let seen = ran("field", 1, &jobs);
    for width in &seen.widths {
        assert!(width.max <= 0.1 && width.not_started == 0, "{width:?}");
    }
    let used = (8.0 * 3.0 + 2.0) / (40.0 * 24.0);
    assert!((seen.utilization - used).abs() < 1e-3, "{seen:?}");
    assert_eq!((seen.reservations, seen.failed), (0, 0));
    assert!(seen.with_backfill > used && seen.with_backfill < 1.0, "{seen:?}");
}

/// Both eight-GPU nodes have one long single; then singles come and go faster than eight ever stand
/// idle together. Skipping never starts the wide job, collecting does.
#[test]
fn a_wide_job_starves_where_it_is_skipped_and_starts_where_it_collects() {
    let mut jobs = Vec::new();
    for n in 0..16 {
        jobs.push(job(0, "busy", 1, 2 + n % 3));
    }
    jobs.push(job(300, "wide", 8, 4));
    for n in 0..600 {
        jobs.push(job(600 + n * 500, "busy", 1, 3));
    }
    jobs.sort_by_key(|job| job.at);
    let eight = |placing: &str| {
        let seen = ran(placing, 3, &jobs);
        *seen.widths.iter().find(|width| width.gpus == Some(8)).expect("a wide job")
    };
    let (skipped, collects) = (eight("skip"), eight("field"));
    assert_eq!((skipped.not_started, collects.not_started), (1, 0));
    assert!(collects.mean < 12.0 && skipped.mean > 60.0, "{skipped:?} {collects:?}");
}

#[test]
fn two_days_of_five_labs_adds_up_under_every_policy() {
    for placing in PLACINGS {
        for by_tier in [false, true] {
            let field = Field { by_tier, ..field(2) };
            let jobs = mix(1, 0.9, 2);
            let seen = through(&field, &placing, &jobs);
            assert_eq!(seen, through(&field, &placing, &jobs));
            let all = seen.widths.last().expect("all widths");
            assert_eq!((all.gpus, all.jobs), (None, jobs.len()));
            assert!((0.3..=1.0).contains(&seen.utilization), "{seen:?}");
            assert!(seen.failed <= seen.reservations && seen.jain <= 1.0 + 1e-9, "{seen:?}");
            let marks = ["field", "soft", "earliest", "guard"].contains(&placing.name);
            assert_eq!(seen.reservations > 0, marks, "{}", placing.name);
        }
    }
}
