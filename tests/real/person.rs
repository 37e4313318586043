//! What people do to shards, and what failing programs do to people.

use crate::lab::{Family, LANES, ids};
use crate::slurm;

both! {
    /// A job that somebody cancelled is not sent again until a person says so.
    fn cancelled_by_a_person(lab) {
        let family = Family { rows: 2, ..Family::default() };
        lab.shards_toml(&[LANES, &family.toml()]);
        lab.pause("find/s0");
        lab.tick();
        lab.wait_running(1);
        lab.tick();
        slurm::slurm(lab.user, &["scancel", &lab.queue()[0].id.to_string()]);
        slurm::wait_until("its end", || !lab.queue()[0].is_live());
        for _ in 0..3 {
            lab.tick();
        }
        let status = lab.status();
        assert_eq!(status.state("find/s0"), "held", "{}", status.why("find/s0"));
        assert!(status.why("find/s0").contains("cancelled"), "{}", status.why("find/s0"));
        assert_eq!(lab.queue().len(), 1);
        assert_eq!(lab.babysit(&["status", "--check"]).status.code(), Some(3));
        lab.go_on("find/s0");
        lab.done(&["release", "find/s0"]);
        lab.tick_until("done", |status| status.all_done());
        lab.prove(&ids("find/s0"), 2);
    }

    /// hold: no further submission, what runs goes on; release undoes it; cancel is for good.
    fn hold_release_cancel(lab) {
        let family = Family { shards: 3, rows: 3, rows_per_run: Some(1), ..Family::default() };
        lab.shards_toml(&[LANES, &family.toml()]);
        ids("find/s0 find/s1 find/s2").iter().for_each(|shard| lab.pause(shard));
        lab.tick();
        lab.wait_running(3);
        lab.tick();
        lab.done(&["hold", "find/s0"]);
        lab.done(&["cancel", "find/s1"]);
        assert!(lab.running().contains(&"find/s0".to_owned()), "what runs goes on");
        lab.go_on("find/s0");
        lab.go_on("find/s2");
        lab.tick_until("s2 done, s0 held", |status| status.state("find/s2") == "done" && status.state("find/s0") == "held");
        slurm::wait_until("its end", || lab.shards_where(|_| true).is_empty());
        for _ in 0..3 {
            lab.tick();
        }
        let status = lab.status();
        assert_eq!((status.state("find/s0"), status.state("find/s1")), ("held", "cancelled"));
        assert_eq!((lab.jobs_of("find/s0").len(), lab.jobs_of("find/s1").len()), (1, 1));
        assert_eq!(status.rows("find/s0"), 1, "the row that was made under the hold counts");
        lab.done(&["release", "find/s0"]);
        lab.tick_until("s0 done", |status| status.state("find/s0") == "done");
        assert_eq!(lab.jobs_of("find/s1").len(), 1);
        lab.prove(&ids("find/s0 find/s2"), 3);
    }

    /// No row, again and again: back-off, then held with the last words of its log, until retried.
    fn failing_without_progress(lab) {
        lab.policy += "max_failures = 2\n";
        let family = Family { shards: 2, rows: 2, ..Family::default() };
        lab.shards_toml(&[LANES, &family.toml()]);
        lab.fails("find/s0", "reading shard 0\nRuntimeError: no such table\n");
        let status = lab.tick_until("held", |status| status.state("find/s0") == "held");
        // The first death within a minute of its start is laid to the node's charge.
        assert_eq!((status.number("find/s0", "failures"), status.number("find/s0", "attempts")), (2, 3));
        let why = lab.done(&["why", "find/s0"]);
        assert!(why.contains("RuntimeError: no such table"), "{why}");
        assert!(lab.done(&["log", "find/s0"]).contains("next try in"), "backed off between");
        lab.tick_until("the other done", |status| status.state("find/s1") == "done");
        assert_eq!(lab.jobs_of("find/s0").len(), 3);
        lab.remove("runs/find/s0/fail");
        lab.done(&["retry", "find/s0"]);
        let status = lab.tick_until("done", |status| status.all_done());
        assert_eq!(status.number("find/s0", "failures"), 0);
        lab.prove(&ids("find/s0 find/s1"), 2);
    }

    /// A request that Slurm refuses: that shard says why, the others go on, nothing is hammered.
    fn a_request_that_slurm_refuses(lab) {
        let more = "[families.find.shard.s0]\nargs = [\"--constraint=nosuch\"]\n";
        let family = Family { shards: 2, rows: 1, more, ..Family::default() };
        lab.shards_toml(&[LANES, &family.toml()]);
        lab.tick_until("s1 done", |status| status.state("find/s1") == "done");
        let status = lab.status();
        assert_eq!(status.state("find/s0"), "refused");
        assert!(status.why("find/s0").contains("nvalid feature"), "{}", status.why("find/s0"));
        let calls = lab.calls();
        assert_eq!(calls.iter().filter(|(name, _)| name == "sbatch").count(), 2);
        lab.shards_toml(&[LANES, &Family { shards: 2, rows: 1, ..Family::default() }.toml()]);
        lab.done(&["retry", "find/s0"]);
        lab.tick_until("all done", |status| status.all_done());
        lab.prove(&ids("find/s0 find/s1"), 1);
    }
}
