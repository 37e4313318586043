//! S1-S14 of policy.md section 8 that need nothing but GPUs that others hold and give back.
//!
//! The sandbox has a1 with 4x rtx4090, b1 with 2x rtx4090 + 2x rtx5090, c1 with 2x rtx3080ti.

use crate::lab::{Family, LANES, Lab, TIERS, disturbed, ids};
use crate::slurm::{self, end, stranger, wait_running};

/// A family of one placed shard.
fn placed(name: &'static str, gpus: u32, min_tier: &str) -> String {
    let toml = Family { name, gpus, rows: 1, ..Family::default() }.toml();
    toml + &format!("submit = \"placed\"\nmin_tier = \"{min_tier}\"\n\n")
}

fn campaign(lab: &Lab, families: &[String]) {
    lab.shards_toml(&[LANES, TIERS, &families.concat()]);
}

/// Somebody else's job on GPUs of this node.
fn taken(node: &str, gres: &str) -> u64 {
    let job = stranger("bob", "normal", gres, &["-w", node]);
    wait_running(job);
    job
}

fn reservation(lab: &Lab, shard: &str) -> Option<(String, String, u64)> {
    let status = lab.status();
    let at = &status.shard(shard)["reservation"];
    let text = |key: &str| at[key].as_str().map(str::to_owned);
    Some((text("node")?, text("tier")?, at["gpus"].as_u64()?))
}

fn held(node: &str, tier: &str, gpus: u64) -> Option<(String, String, u64)> {
    Some((node.to_owned(), tier.to_owned(), gpus))
}

fn pause_all(lab: &Lab, shards: &str) {
    ids(shards).iter().for_each(|shard| lab.pause(shard));
}

/// Where a shard's job runs.
fn node_of(lab: &Lab, shard: &str) -> Option<String> {
    lab.queue().into_iter().find(|job| job.shard() == shard && job.is_running()).map(|job| job.node)
}

fn waits_for_start(lab: &Lab, shard: &str) -> String {
    slurm::wait_for(&format!("{shard} to run"), || node_of(lab, shard))
}

both! {
    /// S1: two idle GPUs of one model on one node are taken at once. S7: a mixed node is two placements.
    /// S13: what fits nowhere is refused with the largest there is, and not submitted.
    fn s1_s7_s13(lab) {
        let families = [placed("one", 2, "rtx5090"), placed("four", 4, "rtx5090"), placed("five", 5, "rtx4090"), placed("two", 4, "rtx4090")];
        campaign(lab, &families);
        pause_all(lab, "one/s0 two/s0");
        lab.tick();
        assert_eq!(waits_for_start(lab, "one/s0"), "b1", "S1");
        assert_eq!(waits_for_start(lab, "two/s0"), "a1", "S7: the only placement of four");
        let status = lab.status();
        for (shard, largest) in [("four/s0", "2x rtx5090 on b1"), ("five/s0", "4x rtx4090 on a1")] {
            assert_eq!(status.state(shard), "refused", "S13: {shard}");
            let why = status.why(shard);
            assert!(why.contains(largest), "{shard}: {why}");
            assert_eq!(status.shard(shard)["why_code"], "NO_FIT_PLACEMENT");
        }
        lab.tick();
        assert_eq!(lab.queue().len(), 2);
        assert_eq!(lab.status().shard("one/s0")["job"]["tier"], "rtx5090");
    }

    /// S2: rank 1 wants two, one is idle: it is reserved, and nobody after it gets it. S9: rank 2 starts
    /// where rank 1 does not fit. S3: the second GPU is absorbed and rank 1 starts there.
    fn s2_s9_s3(lab) {
        let fifth = taken("b1", "gpu:rtx5090:1");
        let families = [placed("pair", 2, "rtx5090"), placed("single", 1, "rtx5090"), placed("tiny", 1, "rtx3080ti")];
        let busy = [taken("a1", "gpu:rtx4090:4"), taken("b1", "gpu:rtx4090:2")];
        campaign(lab, &families);
        pause_all(lab, "pair/s0 single/s0 tiny/s0");
        lab.tick();
        assert_eq!(reservation(lab, "pair/s0"), held("b1", "rtx5090", 1), "S2");
        assert_eq!(waits_for_start(lab, "tiny/s0"), "c1", "S9");
        lab.tick();
        let status = lab.status();
        assert_eq!((status.state("pair/s0"), status.state("single/s0")), ("reserving", "waiting"));
        assert_eq!(lab.queue().len(), 1, "S2: the idle one is given to nobody");
        end(fifth);
        lab.tick();
        assert_eq!(waits_for_start(lab, "pair/s0"), "b1", "S3");
        assert_eq!(reservation(lab, "pair/s0"), None);
        busy.into_iter().for_each(end);
    }

    /// S6: one idle on each of two nodes is no start. S4: while it holds one of two, two become idle
    /// elsewhere: it starts there, and its old GPU is free for the next rank in the same cycle.
    fn s6_s4(lab) {
        taken("b1", "gpu:rtx5090:2");
        taken("b1", "gpu:rtx4090:1");
        let on_a1 = taken("a1", "gpu:rtx4090:2");
        taken("a1", "gpu:rtx4090:1");
        campaign(lab, &[placed("pair", 2, "rtx4090"), placed("single", 1, "rtx4090")]);
        pause_all(lab, "pair/s0 single/s0");
        let plug = taken("a1", "gpu:rtx4090:1");
        lab.tick();
        assert_eq!(reservation(lab, "pair/s0"), held("b1", "rtx4090", 1), "S6: no split, one of them");
        assert_eq!(lab.queue(), []);
        end(on_a1);
        lab.tick();
        assert_eq!(waits_for_start(lab, "pair/s0"), "a1", "S4");
        assert_eq!(waits_for_start(lab, "single/s0"), "b1", "S4: in the same cycle");
        assert_eq!(lab.queue().len(), 2);
        end(plug);
    }

    /// S12: the node goes down while GPUs of it are reserved: R5, charged, and the next cycle tries
    /// elsewhere.
    fn s12(lab) {
        taken("b1", "gpu:rtx5090:2");
        taken("b1", "gpu:rtx4090:1");
        let on_a1 = taken("a1", "gpu:rtx4090:4");
        campaign(lab, &[placed("pair", 2, "rtx4090")]);
        lab.pause("pair/s0");
        let words = ["date", "+%s"];
        let begin: i64 = slurm::slurm("root", &words).trim().parse().expect("a number");
        lab.tick_at(begin);
        assert_eq!(reservation(lab, "pair/s0"), held("b1", "rtx4090", 1));
        disturbed();
        slurm::slurm("root", &["scontrol", "update", "nodename=b1", "state=DRAIN", "reason=test"]);
        lab.tick_at(begin + 300);
        assert_eq!(reservation(lab, "pair/s0"), None, "R5");
        let status = lab.status();
        assert_eq!(status.state("pair/s0"), "waiting");
        let usage = status.0["labs"][0]["usage"].as_f64().expect("a number");
        assert!((usage - 24_780.0).abs() < 1.0, "1 x 300 s x 82.6: {usage}");
        end(on_a1);
        lab.tick_at(begin + 301);
        assert_eq!(waits_for_start(lab, "pair/s0"), "a1");
    }

    /// S14: GPUs that backfill holds count as idle; it is told to stop and sbatch follows at once.
    fn s14(lab) {
        let backfill = stranger(lab.user, "extra", "gpu:rtx5090:2", &["-w", "b1", "-J", "llm-server"]);
        wait_running(backfill);
        let rule = "[backfill]\nname = \"^llm-\"\n\n".to_owned();
        campaign(lab, &[rule, placed("pair", 2, "rtx5090")]);
        lab.pause("pair/s0");
        lab.tick();
        let calls: Vec<String> = lab.calls().into_iter().map(|(name, _)| name).collect();
        let of = |name: &str| calls.iter().position(|call| call == name);
        assert!(of("scancel") < of("sbatch") && of("scancel").is_some(), "{calls:?}");
        assert_eq!(waits_for_start(lab, "pair/s0"), "b1");
        lab.tick();
        assert_eq!(lab.queue().len(), 1);
    }
}
