//! One long shard and idle GPUs: helpers join, and each row is done once, whoever is killed.

use std::fs;

use crate::field::{all_is_full, own_is_full};
use crate::lab::{LANES, Lab, ids, readable_by_all};
use crate::lanes::takes_lists;
use crate::slurm::{self, end, stranger};

const ROWS: u32 = 40;

/// `policy`: a line more under [policy].
fn campaign(lab: &Lab, policy: &str) {
    lab.write("shared.sh", include_str!("shared.sh"));
    let babysit = readable_by_all(std::path::Path::new(env!("CARGO_BIN_EXE_babysit")));
    let family = format!(
        "[families.find]\n\
         command = \"bash shared.sh {} runs/find/{{shard}} 1.5\"\n\
         rows = {ROWS}\nrow_time = \"2s\"\nshards = 1\nsplit = 4\ncpus = 1\nmem = \"100M\"\n\
         done = {{ glob = \"runs/find/{{shard}}/row_*.json\" }}\n\
         cost = {{ jsonl = \"runs/find/{{shard}}/cost.jsonl\", field = \"cost_usd\" }}\n\
         cap = 20.0\n",
        babysit.display()
    );
    lab.shards_toml(&[policy, LANES, &family]);
}

/// All rows are done, each once; so many of those that were begun were lost.
fn prove_rows(lab: &Lab, lost: std::ops::RangeInclusive<usize>, workers: usize) {
    let trace = lab.read("runs/find/s0/trace");
    assert!(!trace.contains("redone"), "{trace}");
    for row in 0..ROWS {
        let count = |word: &str| {
            trace.lines().filter(|line| line.starts_with(&format!("{word} {row} "))).count()
        };
        assert!(lab.path(&format!("runs/find/s0/row_{row}.json")).exists(), "{row}\n{trace}");
        assert!(count("end") <= 1 && count("begin") <= 3, "row {row}\n{trace}");
    }
    let count = |word: &str| trace.lines().filter(|line| line.starts_with(word)).count();
    let gone = count("begin") - count("end");
    assert!(lost.contains(&gone), "the killed and the preempted had one each: {gone}\n{trace}");
    let worked: std::collections::BTreeSet<&str> =
        trace.lines().filter_map(|line| line.rsplit(' ').next()).collect();
    assert!(worked.len() >= workers, "{trace}");
    assert!(slurm::duplicates(&lab.history()).is_empty());
    eprintln!("{}", lab.prove_charges());
}

/// Ends a job's program the hard way; true: it ran.
fn kill_program(job: u64) -> bool {
    let wanted = format!("SLURM_JOB_ID={job}");
    let mut killed = false;
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let path = entry.path();
        let text = |name: &str| fs::read(path.join(name)).unwrap_or_default();
        let has = |bytes: &[u8], word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
        let is_it = text("environ").split(|b| *b == 0).any(|var| var == wanted.as_bytes());
        if is_it && has(&text("cmdline"), b"shared.sh") {
            let pid = entry.file_name().into_string().expect("a number");
            let status = std::process::Command::new("kill").args(["-9", &pid]).status();
            killed |= status.expect("kill").success();
        }
    }
    killed
}

both! {
    fn helpers_share_one_shard_to_its_end(lab) {
        // One own GPU is for us; so helpers run in extra, where they can be preempted.
        campaign(lab, "own_share = 1\n");
        let helpers = |lab: &Lab| -> Vec<slurm::Job> {
            let all = lab.queue().into_iter();
            all.filter(|job| job.is_running() && job.shard().contains('~')).collect()
        };
        lab.tick_until("three helpers at work", |_| helpers(lab).len() == 3);
        lab.tick();
        let status = lab.done(&["status"]);
        assert!(status.contains("+3 helpers in extra"), "{status}");
        let view: serde_json::Value =
            serde_json::from_str(&lab.done(&["status", "--json"])).expect("JSON");
        assert_eq!(view["totals"]["shards"], 1, "helpers are no shards");
        assert_eq!(view["shards"][0]["helpers"].as_array().map(Vec::len), Some(3));

        // One is killed with a row in hand, one is preempted.
        let first = helpers(lab).remove(0);
        assert!(kill_program(first.id), "{first:?}");
        slurm::wait_until("its end", || !helpers(lab).iter().any(|job| job.id == first.id));
        lab.tick();
        let next = helpers(lab).pop().expect("another helper");
        let node = format!("--nodelist={}", next.node);
        let before: Vec<u64> = helpers(lab).iter().map(|job| job.id).collect();
        // As many as the node has GPUs for, but for those that own may not use.
        let strangers: Vec<u64> = (0..3).map(|_| stranger("bob", "own", "gpu:1", &[&node])).collect();
        slurm::wait_until("a preemption", || {
            let now = helpers(lab);
            before.iter().any(|id| !now.iter().any(|job| job.id == *id))
        });
        lab.tick();
        strangers.into_iter().for_each(slurm::end);
        lab.tick_for(slurm::DEADLINE * 2, "the end", |status| status.all_done());
        lab.tick_until("the end of every job", |_| !lab.queue().iter().any(slurm::Job::is_live));

        prove_rows(lab, 1..=4, 4);
        assert!(lab.done(&["log"]).contains("given out again"));
    }

    /// With `lanes = "both"`, where Slurm takes a list of QOS, helpers wait in own and extra as their shard
    /// does, and each starts in whichever has room first, without a tick; else they come when no shard
    /// waits. Either way each row is done once.
    fn helpers_wait_in_both_lanes(lab) {
        let (own, rest) = (own_is_full(), all_is_full());
        campaign(lab, "lanes = \"both\"\n");
        lab.tick();
        lab.tick();
        if takes_lists() {
            assert_eq!(lab.pending_in("own,extra").len(), 4, "the shard and its three helpers");
        }
        end(rest[0]);
        if !takes_lists() {
            // It waits in one of the two.
            end(own[0]);
        }
        lab.wait_running(1);
        // Submitted in the same second, Slurm 24.11 may look at a helper first; the rows are the same.
        assert!(takes_lists() || lab.running() == ids("find/s0"), "{:?}", lab.running());
        if takes_lists() {
            end(own[0]);
            lab.wait_running(2);
            let running = lab.queue().into_iter().filter(slurm::Job::is_running);
            let mut lanes: Vec<_> = running.map(|job| job.qos).collect();
            lanes.sort();
            assert_eq!(lanes, ["extra", "own"], "without a tick");
        }
        rest[1..4].iter().for_each(|job| end(*job));
        let is_helper = |job: &slurm::Job| job.is_running() && job.shard().contains('~');
        lab.tick_until("three helpers at work", |_| {
            lab.queue().iter().filter(|job| is_helper(job)).count() == 3
        });
        let first = lab.queue().into_iter().find(is_helper).expect("a helper");
        let at_work = |_: &_| lab.read("runs/find/s0/trace").lines().any(|line| {
            line.starts_with("begin") && line.ends_with(&format!(" {}", first.id))
        });
        lab.tick_until("its first row", at_work);
        assert!(kill_program(first.id), "{first:?}");
        lab.tick_for(slurm::DEADLINE * 2, "the end", |status| status.all_done());
        lab.tick_until("the end of every job", |_| !lab.queue().iter().any(slurm::Job::is_live));
        prove_rows(lab, 0..=2, 4);
    }
}
