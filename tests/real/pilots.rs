//! Families whose jobs claim their shards (docs/pilots.md): the whole way, on a real Slurm.

use crate::lab::{Family, Lab, ids};
use crate::slurm;

/// Four shards, of which two run side by side.
fn pilots(lab: &Lab, rows: u32) -> Vec<String> {
    // Two GPUs, for two jobs: the node with the small cards.
    let more = "pilot = true\nargs = [\"--exclude=a1,b1\"]";
    let family = Family { shards: 4, rows, seconds: 0.4, more, ..Family::default() };
    lab.shards_toml(&[&family.toml()]);
    ids("find/s0 find/s1 find/s2 find/s3")
}

/// Every row is done once, and what the shards are charged adds up to what accounting has.
fn prove(lab: &Lab, shards: &[String], rows: u32) {
    for shard in shards {
        let trace = lab.read(&format!("runs/{shard}/trace"));
        let odd = trace.lines().filter(|l| !l.starts_with("begin") && !l.starts_with("end"));
        assert_eq!(odd.collect::<Vec<_>>(), Vec::<&str>::new(), "{shard}: done again, or by two");
        for row in 0..rows {
            assert!(lab.path(&format!("runs/{shard}/row_{row}.json")).exists(), "{shard} {row}");
        }
    }
    let text = lab.done(&["usage", "--json"]);
    let usage: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let charges = usage["charges"].as_array().expect("charges");
    let charged: i64 = charges.iter().map(|c| c["gpu_seconds"].as_i64().expect("whole")).sum();
    let mut jobs: Vec<String> = shards.iter().flat_map(|shard| workers(lab, shard)).collect();
    jobs.sort();
    jobs.dedup();
    let jobs = jobs.len();
    // Accounting is behind the queue by a second or two.
    slurm::wait_until("the runs in accounting to be what was charged", || {
        let runs = slurm::runs(&lab.project);
        let ran: i64 = runs.iter().map(|(_, gpu_seconds)| gpu_seconds).sum();
        eprintln!("charged: {charged} GPU-seconds; sacct: {ran} in {} runs", runs.len());
        // The queue's end of a job and accounting's may be a second apart, as for any job.
        runs.len() >= jobs && (charged - ran).unsigned_abs() as usize <= runs.len()
    });
}

/// Jobs that did rows of each shard.
fn workers(lab: &Lab, shard: &str) -> Vec<String> {
    let trace = lab.read(&format!("runs/{shard}/trace"));
    let mut jobs: Vec<String> = trace
        .lines()
        .filter_map(|line| line.strip_prefix("begin ")?.split(' ').nth(1))
        .map(str::to_owned)
        .collect();
    jobs.sort();
    jobs.dedup();
    jobs
}

both! {
    /// Two jobs do four shards: neither gives its GPU back while a shard waits.
    fn two_jobs_do_four_shards(lab) {
        let shards = pilots(lab, 6);
        lab.done(&["check"]);
        let status = lab.tick_until("all done", |status| status.all_done());
        assert_eq!(status.total("rows_done"), 24.0);
        // The last jobs may still be on their way out; then nothing is left in the queue.
        lab.tick_until("no job is left", |_| lab.queue().iter().all(|job| !job.is_live()));
        lab.tick();
        let mut all: Vec<String> = shards.iter().flat_map(|shard| workers(lab, shard)).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 2, "{all:?}");
        for shard in &shards {
            assert_eq!(workers(lab, shard).len(), 1, "{shard}");
            assert_eq!(lab.status().number(shard, "failures"), 0);
        }
        let log = lab.done(&["log"]);
        assert!(log.contains("took it after find/"), "{log}");
        prove(lab, &shards, 6);
    }

    /// A pilot that is killed with its second shard in hand: that shard is offered anew.
    fn a_pilot_is_killed(lab) {
        let shards = pilots(lab, 6);
        lab.tick_until("a second shard is worked on", |_| {
            shards.iter().filter(|shard| !workers(lab, shard).is_empty()).count() > 2
        });
        let busy = shards.iter().rev().find(|shard| {
            let trace = lab.read(&format!("runs/{shard}/trace"));
            !workers(lab, shard).is_empty() && trace.lines().count() < 10
        });
        let job = workers(lab, busy.expect("one of them")).remove(0);
        let pattern = format!("babysit exec.*{}", lab.project);
        let pids = slurm::slurm("root", &["pgrep", "-f", &pattern]);
        let pid = pids.lines().find(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let wanted = format!("SLURM_JOB_ID={job}");
            environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
        });
        slurm::slurm("root", &["kill", "-9", pid.expect("its process")]);
        let status = lab.tick_until("all done", |status| status.all_done());
        assert_eq!(status.total("rows_done"), 24.0);
        lab.tick_until("no job is left", |_| lab.queue().iter().all(|job| !job.is_live()));
        lab.tick();
        prove(lab, &shards, 6);
    }
}
