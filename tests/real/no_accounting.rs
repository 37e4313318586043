//! A cluster that keeps no accounting: a sandbox of its own, in which the lanes are partitions and the
//! queue alone tells how jobs ended.

use crate::lab::{Family, Lab, test_dir};
use crate::slurm::{self, Elsewhere, stranger_in};

const LANES: &str =
    "[own]\npartition = \"own\"\ngpus = 2\npark = 0\n\n[extra]\npartition = \"extra\"\n\n";

/// One GPU a node, so that a stranger preempts just whom he is sent to; and one more than shards.
const NODES: &str = "a1=rtx4090:1 a2=rtx4090:1 a3=rtx4090:1 a4=rtx4090:1 a5=rtx4090:1";

/// Four shards to done; one job is killed and one preempted on the way.
fn to_done(user: &'static str) {
    let _there = Elsewhere::up(&test_dir().join("no-accounting"), NODES);
    let lab = Lab::new(user, "no-accounting");
    lab.shards_toml(&[LANES, &Family { shards: 4, ..Family::default() }.toml()]);
    let shards: Vec<String> = (0..4).map(|i| format!("find/s{i}")).collect();
    shards.iter().for_each(|shard| lab.pause(shard));
    assert!(lab.done(&["doctor"]).contains("off on this cluster"));
    lab.calls();
    lab.tick();
    lab.wait_running(4);
    lab.tick();

    let jobs = lab.queue();
    let there = slurm::partitions();
    let in_extra = |id: u64| there.iter().any(|(job, name)| *job == id && name == "extra");
    let preempted = jobs.iter().find(|job| in_extra(job.id)).expect("two of them are in extra");
    let killed = jobs.iter().find(|job| job.id != preempted.id).expect("four");
    let bob = stranger_in("bob", "own", &preempted.node);
    slurm::slurm("root", &["scancel", "-f", "-b", "-s", "KILL", &killed.id.to_string()]);
    slurm::wait_until("both ends", || {
        let state = |id: u64| lab.queue().into_iter().find(|job| job.id == id).map(|job| job.state);
        state(preempted.id).as_deref() == Some("PREEMPTED")
            && state(killed.id).as_deref() == Some("FAILED")
    });
    let back = |status: &crate::view::Status| {
        let attempts = |shard: &str| status.shard(shard)["attempts"].as_i64();
        [preempted, killed].iter().all(|job| attempts(&job.shard()) == Some(2))
    };
    let status = lab.tick_until("both come back", back);
    for job in [preempted, killed] {
        assert_eq!(status.shard(&job.shard())["failures"], 0, "nobody's fault: {}", job.shard());
    }
    // The node that ate one job is avoided, so that one may wait until the stranger is gone.
    slurm::end(bob);
    lab.tick_until("four jobs again", |_| lab.running().len() == 4);
    shards.iter().for_each(|shard| lab.go_on(shard));
    let status = lab.tick_until("all done", |status| status.all_done());
    assert_eq!((status.total("rows_done"), status.total("rows_total")), (16.0, 16.0));

    let calls = lab.calls();
    let count = |name: &str| calls.iter().filter(|(called, _)| called == name).count();
    assert_eq!(count("sbatch"), 6, "four, and the two that came back");
    assert!(count("sacct") <= 1, "that there is no accounting is learned once");
    assert!(count("scancel") == 0, "nothing had to be taken back");
    for shard in &shards {
        let trace = lab.read(&format!("runs/{shard}/trace"));
        assert!(!trace.contains("twin") && !trace.contains("redone"), "{shard}\n{trace}");
        assert_eq!(trace.lines().filter(|line| line.starts_with("end")).count(), 4, "{shard}");
    }
    let usage: serde_json::Value =
        serde_json::from_str(&lab.done(&["usage", "--json"])).expect("JSON");
    assert_eq!(usage["charges"].as_array().map(Vec::len), Some(6), "each run once: {usage}");
}

#[test]
fn to_done_without_accounting_as_alice() {
    to_done("alice");
}

#[test]
fn to_done_without_accounting_as_root() {
    to_done("root");
}
