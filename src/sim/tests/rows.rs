//! Shards as tables of rows: what stays, what is lost, what goes wrong.

use super::super::{Table, Trouble};
use super::*;
use crate::model::units::{Money, Secs};

/// Runs one shard on one node for a while; (state, rows seen, exit).
fn run(table: Table, seconds: i64) -> (String, u32, String) {
    let mut cluster = pair();
    cluster.work.add("x", table);
    let id = submit(&mut cluster, &request("x", "own", "gpu:1"));
    // One second until it starts.
    cluster.advance(1 + seconds);
    let rows = cluster.work.rows_of("x", cluster.now()).expect("there");
    let exit = cluster.job(id).and_then(|job| job.stays.last().map(|stay| stay.exit.to_string()));
    (state(&mut cluster, id), rows, exit.unwrap_or_default())
}

fn check(table: Table, seconds: i64, expected: (&str, u32, &str)) {
    let (state, rows, exit) = run(table, seconds);
    assert_eq!((state.as_str(), rows, exit.as_str()), expected);
}

#[test]
fn rows_are_finished_one_after_the_other_and_then_the_job_ends() {
    let table = || Table::of([10, 20, 30].map(Secs)).start_cost(Secs(5));
    check(table(), 14, ("RUNNING p", 0, ""));
    check(table(), 15, ("RUNNING p", 1, ""));
    check(table(), 34, ("RUNNING p", 1, ""));
    check(table(), 64, ("RUNNING p", 2, ""));
    check(table(), 65, ("COMPLETED", 3, "0:0"));
    check(table().with_done(3, T0), 5, ("COMPLETED", 3, "0:0"));
    check(table().with_done(1, T0), 25, ("RUNNING p", 2, ""));
    check(table().late(Secs(60)), 65, ("COMPLETED", 0, "0:0"));
    check(table().late(Secs(60)), 125, ("COMPLETED", 3, "0:0"));
    check(table().slower_on("rtx4090", 2.0), 25, ("RUNNING p", 1, ""));
    check(table().slower_on("rtx5090", 2.0), 25, ("RUNNING p", 1, ""));
    check(table().slower_on("rtx4090", 2.0), 24, ("RUNNING p", 0, ""));
}

#[test]
fn troubles_end_a_run_in_slurms_words() {
    let table = || Table::new(10, Secs(60));
    check(table().always(Trouble::DiesAtOnce), 5, ("FAILED", 0, "1:0"));
    check(table().always(Trouble::FailsAfter(2)), 120, ("FAILED", 2, "1:0"));
    check(table().always(Trouble::LeavesAfter(3)), 180, ("COMPLETED", 3, "0:0"));
    check(table().always(Trouble::StallsAfter(1)), 10_000, ("RUNNING p", 1, ""));
    check(table().always(Trouble::HostMemory(1)), 60, ("OUT_OF_MEMORY", 1, "0:125"));
    let on = |model: &str| table().always(Trouble::GpuMemory(vec![model.to_owned()]));
    check(on("rtx4090"), 5, ("FAILED", 0, "1:0"));
    check(on("rtx3080ti"), 5, ("RUNNING p", 0, ""));
}

#[test]
fn a_trouble_may_come_a_few_times_only_and_is_told_in_the_log() {
    let mut cluster = pair();
    cluster.work.add("x", Table::new(2, Secs(60)).times(1, Trouble::GpuMemory(Vec::new())));
    let first = submit(&mut cluster, &request("x.a1", "own", "gpu:1"));
    cluster.advance(10);
    let second = submit(&mut cluster, &request("x.a2", "own", "gpu:1"));
    cluster.advance(200);
    assert_eq!(states(&mut cluster, &[first, second]), ["FAILED", "COMPLETED"]);
    assert!(cluster.work.log_of(first).iter().any(|line| line.contains("CUDA out of memory")));
    assert_eq!(cluster.work.log_of(second), [""; 0]);
}

#[test]
fn a_bad_node_kills_everything_at_once() {
    let mut cluster = pair();
    cluster.work.add("x", Table::new(2, Secs(60)));
    cluster.work.bad_node("p");
    let id = submit(&mut cluster, &request("x", "own", "gpu:1"));
    cluster.advance(5);
    assert_eq!(state(&mut cluster, id), "FAILED");
}

#[test]
fn a_preemption_loses_the_row_in_flight_and_nothing_else() {
    let mut cluster = pair();
    let index = cluster.work.add("x", Table::new(3, Secs(100)).start_cost(Secs(10)));
    let first = submit(&mut cluster, &request("x.a1", "extra", "gpu:2"));
    cluster.advance(250);
    let own = cluster.add_job_of("bob", "own", "gpu:1", Some(Secs(10))).expect("fits");
    cluster.advance(1);
    assert_eq!(states(&mut cluster, &[first, own]), ["PREEMPTED", "RUNNING p"]);
    let log = cluster.work.log_of(first).concat();
    let text = "slurmstepd-p: error: *** JOB 1 ON p CANCELLED AT 2023-11-14T22:17:31 DUE TO PREEMPTION ***";
    assert_eq!(log, text);
    assert_eq!((cluster.work.rows_at(index, cluster.now()), cluster.work.lost(index)), (2, 1));
    submit(&mut cluster, &request("x.a2", "own", "gpu:1"));
    cluster.advance(112);
    assert_eq!((cluster.work.rows_at(index, cluster.now()), cluster.work.redone(index)), (3, 0));
    assert_eq!(cluster.overlaps(), []);
}

#[test]
fn the_cap_is_honoured_before_the_row_that_would_begin_at_it() {
    let dollars = |d: f64| Money::from_dollars(d).expect("an amount");
    let mut cluster = pair();
    cluster.work.add("f/s0", Table::new(10, Secs(60)).row_cost(dollars(0.4)).honours_cap());
    let mut asked = request("x", "own", "gpu:1");
    let env = [("BABYSIT_FAMILY", "f"), ("BABYSIT_SHARD", "s0"), ("BABYSIT_COST_CAP", "1.0")];
    asked.env = env.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let id = submit(&mut cluster, &asked);
    cluster.advance(3600);
    assert_eq!(cluster.job(id).and_then(|job| job.end()).map(|end| end.word()), Some("COMPLETED"));
    assert_eq!(cluster.work.rows_of("f/s0", cluster.now()), Some(3));
    assert_eq!(cluster.work.spent_of("f/s0", cluster.now()), Some(dollars(1.2)));
}

#[test]
fn two_jobs_on_one_shard_are_found_out() {
    let mut cluster = pair();
    let index = cluster.work.add("p.f.s0", Table::new(5, Secs(100)).row_cost(Money(7)));
    let first = submit(&mut cluster, &request("p.f.s0.a1", "own", "gpu:1"));
    cluster.advance(100);
    let second = submit(&mut cluster, &request("p.f.s0.a2", "own", "gpu:1"));
    cluster.advance(1000);
    let overlaps = cluster.overlaps();
    assert_eq!(overlaps.len(), 1);
    assert_eq!((overlaps[0].first, overlaps[0].second), (first, second));
    assert!(overlaps[0].both_ran);
    assert_eq!((cluster.work.rows_at(index, cluster.now()), cluster.work.redone(index)), (5, 5));
    assert_eq!(cluster.work.spent_at(index, cluster.now()), Money(70));
}

fn running(cluster: &Cluster) -> usize {
    cluster.history().iter().filter(|job| job.is_running()).count()
}

#[test]
fn rows_and_claims_stay_what_they_are_until_the_moment_that_is_named() {
    let settings = [(0, 1.0), (90, 1.0), (0, 1.7), (45, 2.3)];
    for (shared, (late, slower)) in settings.map(|s| [(false, s), (true, s)]).concat() {
        let mut cluster = pair();
        let times = [300, 20, 61, 900, 7].map(Secs);
        let table = Table::of(times).start_cost(Secs(100)).late(Secs(late));
        let table = table.slower_on("rtx4090", slower);
        let index = cluster.work.add("f.s0", if shared { table.shared() } else { table });
        submit(&mut cluster, &request("f.s0.a1", "own", "gpu:1"));
        cluster.advance(5);
        if shared {
            submit(&mut cluster, &request("f.s0.a2", "own", "gpu:1"));
            cluster.advance(5);
        }
        let told = |cluster: &Cluster| {
            (cluster.work.rows_at(index, cluster.now()), cluster.work.claims(index))
        };
        let mut changes = 0;
        let mut named = cluster.work.look(index, cluster.now()).1;
        for _ in 0..4000 {
            let (before, runs) = (told(&cluster), running(&cluster));
            cluster.advance(1);
            let (now, after) = (cluster.now(), told(&cluster));
            if runs == running(&cluster) {
                let what = format!("shared {shared}, late {late}, slower {slower}, {now:?}");
                assert_eq!(after != before, now == named, "{what}");
            }
            changes += after.0 - before.0;
            if now >= named || runs != running(&cluster) {
                named = cluster.work.look(index, now).1;
            }
        }
        assert_eq!(changes, 5, "shared {shared}, late {late}, slower {slower}");
    }
}
