//! `lanes = "both"`: one job in both lanes where Slurm takes a list of QOS (24.11 and later), else the
//! rule "adaptive" (docs/shards-toml.md). Which of the two the sandbox's Slurm is, it is asked itself.

use crate::field::{all_is_full, own_is_full};
use crate::lab::{Family, LANES, Lab, ids};
use crate::slurm::{self, end};

/// Slurm 24.11 is the first with lists of QOS (slurm-facts.md section 9).
pub fn takes_lists() -> bool {
    let said = slurm::slurm("root", &["squeue", "--version"]);
    let words = said.split_whitespace().last().expect("a version");
    let mut numbers = words.split('.');
    let mut next = || numbers.next().and_then(|n| n.parse::<u32>().ok()).expect("a version");
    (next(), next()) >= (24, 11)
}

/// Was a dry submission tried since the last look?
fn tried_dry(lab: &Lab) -> bool {
    let dry = |(_, args): &(String, Vec<String>)| args.iter().any(|arg| arg == "--test-only");
    lab.calls().iter().any(dry)
}

both! {
    /// Slurm is tried once, and doctor tells what it said. Where it takes a list, a job starts in
    /// whichever lane has room first, without a tick; else one waits in own and the rest in extra.
    fn what_waits_waits_in_both_lanes(lab) {
        lab.policy += "lanes = \"both\"\n";
        let (own, rest) = (own_is_full(), all_is_full());
        let family = Family { shards: 4, ..Family::default() };
        lab.shards_toml(&[LANES, &family.toml()]);
        ids("find/s0 find/s1 find/s2 find/s3").iter().for_each(|shard| lab.pause(shard));
        lab.calls();
        lab.tick();
        assert_eq!(tried_dry(lab), takes_lists(), "an older Slurm is known by its version");
        lab.tick();
        assert!(!tried_dry(lab), "the answer is kept");
        let doctor = slurm::stdout(&lab.babysit(&["doctor"]));

        if takes_lists() {
            assert!(doctor.contains("takes one job in both"), "{doctor}");
            assert_eq!(lab.pending_in("own,extra").len(), 4);
            end(rest[0]);
            lab.wait_running(1);
            end(own[0]);
            lab.wait_running(2);
            let mut lanes: Vec<_> = lab.queue().into_iter().filter(|job| job.is_running()).map(|job| job.qos).collect();
            lanes.sort();
            assert_eq!(lanes, ["extra", "own"]);
        } else {
            assert!(doctor.contains("no job can be in both"), "{doctor}");
            assert!(doctor.contains("adaptive"), "{doctor}");
            assert_eq!((lab.pending_in("own").len(), lab.pending_in("extra").len()), (1, 3));
            end(own[0]);
            lab.wait_running(1);
        }
        let running = lab.running();
        lab.tick();
        let status = lab.status();
        assert_eq!(status.count("running"), running.len());
        let queue = lab.queue();
        for shard in running {
            let job = queue.iter().find(|job| job.shard() == shard).expect("its job");
            let qos = &status.shard(&shard)["job"]["qos"];
            assert_eq!(*qos, job.qos.as_str(), "{shard}: where it got its GPU");
        }
        // Slurm may let a job in own preempt one of ours in extra, which is submitted again then.
        let mut live: Vec<_> = queue.iter().filter(|job| job.is_live()).map(|job| job.shard()).collect();
        live.sort();
        assert_eq!(live, ids("find/s0 find/s1 find/s2 find/s3"), "each has one job");
    }

    /// Pending jobs of the field's rule are put into both lanes, and taken out of them again.
    fn jobs_that_wait_are_moved_into_both_and_back(lab) {
        own_is_full();
        all_is_full();
        let family = Family { shards: 4, ..Family::default() };
        lab.shards_toml(&[LANES, &family.toml()]);
        lab.tick();
        assert_eq!((lab.pending_in("own").len(), lab.pending_in("extra").len()), (2, 2));
        let field = lab.policy.clone();
        lab.policy += "lanes = \"both\"\n";
        lab.shards_toml(&[LANES, &family.toml()]);
        lab.tick();
        let both = lab.pending_in("own,extra").len();
        assert_eq!(both, if takes_lists() { 4 } else { 0 });
        lab.policy = field;
        lab.shards_toml(&[LANES, &family.toml()]);
        // Slurm 24.11 takes a QOS in which it has just looked at a job for no change, also between
        // the two steps of a move; a later tick then moves it.
        slurm::wait_until("two in own and two in extra", || {
            lab.tick();
            (lab.pending_in("own").len(), lab.pending_in("extra").len()) == (2, 2)
        });
        assert_eq!(lab.queue().len(), 4, "moved, not submitted again");
    }
}
