//! F1-F8: the field cases (policy.md sections 2-4 and 8), on the sandbox: own has 4 GPUs of 10.

use crate::lab::{Family, LANES, Lab, ids};
use crate::slurm::{self, end, stranger, wait_running};

/// Own is full for good: another session of the lab runs on all of it.
pub fn own_is_full() -> Vec<u64> {
    let jobs: Vec<u64> = (0..4).map(|_| stranger("bob", "own", "gpu:1", &[])).collect();
    jobs.iter().for_each(|job| wait_running(*job));
    jobs
}

/// The GPUs beyond own's four are taken too.
pub fn all_is_full() -> Vec<u64> {
    let rest: Vec<u64> = (0..6).map(|_| stranger("bob", "normal", "gpu:1", &[])).collect();
    rest.iter().for_each(|job| wait_running(*job));
    rest
}

fn lanes(park: u32) -> String {
    LANES.replace("park = 2", &format!("park = {park}"))
}

/// Every shard of these waits before its first row, so that nothing ends by itself.
fn pause_all(lab: &Lab, shards: &[String]) {
    shards.iter().for_each(|shard| lab.pause(shard));
}

fn all(family: &str, count: u32) -> Vec<String> {
    (0..count).map(|i| format!("{family}/s{i}")).collect()
}

both! {
    /// Six wait in own, whose size is not known; the first cycle promotes them all, in one command,
    /// and they have GPUs at once.
    fn f1_first_cycle_of_v3(lab) {
        own_is_full();
        let family = Family { shards: 6, ..Family::default() };
        // Six that wait in own, as the lab had them: every move is refused for a start.
        lab.shards_toml(&[&lanes(6), &family.toml()]);
        pause_all(lab, &all("find", 6));
        lab.tick();
        slurm::wait_until("six that pend in own", || lab.pending_in("own").len() == 6);

        lab.shards_toml(&[&lanes(0), &family.toml()]);
        lab.calls();
        lab.tick();
        let moves: Vec<_> = lab.calls().into_iter().filter(|(name, _)| name == "scontrol").collect();
        assert_eq!(moves.len(), 1, "six jobs, one command: {moves:?}");
        assert_eq!(lab.pending_in("own"), ids(""));
        lab.wait_running(6);
        assert!(lab.queue().iter().all(|job| job.qos == "extra"));
        assert_eq!(lab.queue().len(), 6, "moved, not submitted again");
    }

    /// The 11:46 case: K = 2 stay parked in own, so that its turnover is ours, without any tick.
    fn f2_two_stay_parked(lab) {
        let own = own_is_full();
        all_is_full();
        let family = Family { shards: 5, ..Family::default() };
        lab.shards_toml(&[LANES, &family.toml()]);
        pause_all(lab, &all("find", 5));
        lab.tick();
        assert_eq!((lab.pending_in("own").len(), lab.pending_in("extra").len()), (2, 3));

        end(own[0]);
        lab.wait_running(1);
        assert!(lab.queue().iter().any(|job| job.is_running() && job.qos == "own"));
        lab.tick();
        assert_eq!((lab.pending_in("own").len(), lab.pending_in("extra").len()), (2, 2), "the next took its place");
        assert_eq!(lab.queue().len(), 5);
    }

    /// The 15:23 case: the longest are parked, not the first; one that turns out longer moves back.
    fn f3_longest_first(lab) {
        let own = own_is_full();
        all_is_full();
        let find = Family { shards: 2, rows: 24, row_time: "15m", ..Family::default() };
        let restore = Family {
            name: "restore", shards: 5, rows: 30, row_time: "25m", more: "[families.restore.shard.s1]\nrows = 64\n[families.restore.shard.s4]\nrows = 47\n",
            ..Family::default()
        };
        lab.shards_toml(&[LANES, &find.toml(), &restore.toml()]);
        pause_all(lab, &[all("find", 2), all("restore", 5)].concat());
        lab.tick();
        assert_eq!(lab.pending_in("own"), ids("restore/s1 restore/s4"));
        assert_eq!(lab.pending_in("extra").len(), 5);

        // find/s1 is far longer than was thought: it belongs in own, restore/s4 does not.
        let longer = find.toml() + "[families.find.shard.s1]\nrow_time = \"3h\"\n";
        lab.shards_toml(&[LANES, &longer, &restore.toml()]);
        lab.tick();
        assert_eq!(lab.pending_in("own"), ids("find/s1 restore/s1"));
        assert_eq!(lab.queue().len(), 7, "moved, not submitted again");

        // Slurm would start the older restore/s1; the longest is first.
        lab.tick();
        end(own[0]);
        lab.wait_running(1);
        assert_eq!(lab.running(), ids("find/s1"));
    }

    /// The 18:52 case: whatever way a probe fails, the whole cycle is skipped and nothing is
    /// submitted, moved or cancelled.
    fn f4_a_failed_probe(lab) {
        lab.slurm = "timeout = \"1s\"\n".to_owned();
        let family = Family { shards: 5, ..Family::default() };
        lab.shards_toml(&[LANES, &family.toml()]);
        pause_all(lab, &all("find", 5));
        lab.tick();
        lab.wait_running(4);
        lab.tick();
        let (before, state) = (lab.queue(), lab.shards_in_state());
        let mut skipped = 0;
        for probe in ["squeue", "sinfo"] {
            for kind in ["before", "silent-before", "torn", "hang"] {
                lab.next_call(probe, kind, "Connection reset by peer");
                lab.calls();
                let (code, said) = lab.tick_anyhow();
                assert_eq!(code, 75, "{probe} {kind}: {said}");
                skipped += 1;
                let status = lab.status();
                assert_eq!(status.0["last_tick"]["outcome"], "skipped", "{probe} {kind}");
                assert_eq!(status.0["last_tick"]["skipped_in_a_row"], skipped);
                assert_eq!(lab.shards_in_state(), state, "{probe} {kind}");
                let others: Vec<_> = lab.calls().into_iter().filter(|(name, _)| name != "squeue" && name != "sinfo").collect();
                assert!(others.is_empty(), "{probe} {kind}: {others:?}");
            }
        }
        assert!(lab.read("bin/faults").lines().count() == 8, "each fault was thrown");
        assert_eq!(lab.queue(), before);
        lab.tick();
        assert_eq!(lab.status().0["last_tick"]["skipped_in_a_row"], 0);
        assert_eq!(lab.queue(), before, "nothing was submitted a second time");
    }

    /// The same with a controller that is really gone, frozen, and back.
    fn f4_a_controller_that_is_away(lab) {
        lab.slurm = "timeout = \"1s\"\n".to_owned();
        let family = Family { shards: 5, ..Family::default() };
        lab.shards_toml(&[LANES, &family.toml()]);
        pause_all(lab, &all("find", 5));
        lab.tick();
        lab.wait_running(4);
        let before = lab.queue();
        for (away, back) in [("pause", "resume"), ("stop", "start")] {
            lab.sandbox(&[away, "ctld"]);
            assert_eq!(lab.tick_anyhow().0, 75, "{away}");
            assert_eq!(lab.status().0["last_tick"]["outcome"], "skipped");
            lab.sandbox(&[back, "ctld"]);
            // A controller that has just come up may need more than this lab's second for an answer.
            slurm::wait_until("a cycle that is not skipped", || lab.tick_anyhow().0 == 0);
            assert_eq!(lab.status().0["last_tick"]["skipped_in_a_row"], 0);
            assert_eq!(lab.status().state("find/s0"), "running");
        }
        let ids = |jobs: &[slurm::Job]| jobs.iter().map(|job| job.id).collect::<Vec<_>>();
        assert_eq!(ids(&lab.queue()), ids(&before));
    }

    /// A job that left the queue is not over while accounting cannot say so; the others go on.
    fn f4_the_end_is_put_off(lab) {
        let family = Family { shards: 2, rows: 2, ..Family::default() };
        lab.shards_toml(&[LANES, &family.toml()]);
        pause_all(lab, &all("find", 2));
        lab.tick();
        lab.wait_running(2);
        lab.tick();
        let gone = lab.status().job("find/s0").expect("a job").to_string();
        // squeue does not show it, and sacct does not answer: as if it had been purged.
        lab.every_call("squeue", "without", &gone);
        lab.every_call("sacct", "before", "Connection refused");
        for _ in 0..4 {
            lab.tick();
        }
        assert_eq!(lab.status().job("find/s0").map(|id| id.to_string()), Some(gone));
        assert_eq!(lab.queue().len(), 2);
        lab.go_on("find/s1");
        lab.tick_until("the other shard done", |status| status.state("find/s1") == "done");
        assert_eq!(lab.queue().len(), 2);
        // Accounting is back, and says that it runs.
        lab.heal("sacct");
        lab.tick();
        assert_eq!(lab.queue().len(), 2);
        lab.heal("squeue");
        lab.go_on("find/s0");
        lab.tick_until("all done", |status| status.all_done());
        lab.prove(&all("find", 2), 2);
    }

    /// `Access/permission denied`, and it was done: the column of the next squeue is believed.
    fn f5_denied_but_applied(lab) {
        own_is_full();
        all_is_full();
        let family = Family { shards: 2, ..Family::default() };
        lab.shards_toml(&[LANES, &family.toml()]);
        lab.tick();
        assert_eq!(lab.pending_in("own").len(), 2);
        // No answer is no denial: the next cycle tries again.
        lab.shards_toml(&[&lanes(0), &family.toml()]);
        lab.next_call("scontrol", "before", "Unexpected message received for job 1");
        lab.tick();
        assert_eq!(lab.pending_in("own").len(), 2);
        lab.next_call("scontrol", "after", "Access/permission denied for job 1");
        lab.tick();
        assert_eq!(lab.pending_in("extra").len(), 2);
        let log = lab.done(&["log"]);
        assert!(log.contains("Access/permission denied"), "told: {log}");
        lab.calls();
        lab.tick();
        assert!(lab.calls().iter().all(|(name, _)| name != "scontrol"), "and it is settled");
    }

    /// Refused and not done: told once, not hammered, and no cancel-and-resubmit instead.
    fn f5_denied_and_unchanged(lab) {
        own_is_full();
        all_is_full();
        let family = Family { shards: 2, ..Family::default() };
        lab.shards_toml(&[LANES, &family.toml()]);
        lab.tick();
        lab.shards_toml(&[&lanes(0), &family.toml()]);
        lab.every_call("scontrol", "before", "Access/permission denied for job 1");
        lab.calls();
        for _ in 0..4 {
            lab.tick();
        }
        let count = lab.calls().iter().filter(|(name, _)| name == "scontrol").count();
        assert_eq!(count, 1);
        assert_eq!((lab.pending_in("own").len(), lab.queue().len()), (2, 2));
        let told = lab.done(&["log"]);
        assert_eq!(told.matches("could not be moved").count(), 2, "once a shard: {told}");
    }

    /// find_s2 is preempted in extra by bob's own jobs, comes back in the cycle that learns of it,
    /// and has lost the row in flight at most.
    fn f6_preempted_and_back(lab) {
        let own = own_is_full();
        let family = Family { rows: 14, seconds: 0.5, ..Family::default() };
        lab.shards_toml(&[&lanes(0), &family.toml()]);
        lab.tick();
        lab.wait_running(1);
        assert_eq!(lab.queue()[0].qos, "extra");
        slurm::wait_until("three rows", || {
            lab.read("runs/find/s0/trace").matches("end").count() >= 3
        });
        lab.tick();
        // All other GPUs are taken, and own has room for one more: it takes ours.
        end(own[0]);
        let hogs: Vec<u64> = (0..6).map(|_| stranger("bob", "normal", "gpu:1", &[])).collect();
        hogs.iter().for_each(|job| wait_running(*job));
        stranger("bob", "own", "gpu:1", &[]);
        slurm::wait_until("a preemption", || lab.queue()[0].state == "PREEMPTED");
        lab.tick();
        let status = lab.status();
        let counts = ["preemptions", "failures", "attempts"].map(|key| status.number("find/s0", key));
        assert_eq!(counts, [1, 0, 2], "submitted again in the cycle that learned of it");
        end(hogs[0]);
        lab.tick_until("done", |status| status.all_done());
        lab.prove(&ids("find/s0"), 14);
        assert_eq!(lab.history().len(), 2);
    }

    /// The caps 15/24 -> 25/40 with ceiling 420, at a hundredth: only a person's raise brings a shard
    /// back, and nothing resubmits in a loop.
    fn f7_caps(lab) {
        let find = Family { shards: 4, rows: 3, seconds: 0.1, cap: Some(0.15), ..Family::default() };
        let restore = Family { name: "restore", shards: 8, rows: 4, seconds: 0.1, cap: Some(0.24), ..Family::default() };
        lab.shards_toml(&[LANES, &find.toml(), &restore.toml()]);
        lab.tick_until("all over their caps", |status| status.count("over-cap") == 12);
        // "ended after" or, where the stop was quicker than the end, "was cancelled after".
        let looked_at = || lab.done(&["log"]).lines().filter(|line| line.ends_with(" new rows")).count();
        lab.tick_until("all looked at", |_| looked_at() == 12);
        for _ in 0..3 {
            lab.tick();
        }
        // Only now: a row's money may be seen a moment before its file.
        assert_eq!(lab.status().total("rows_done"), 4.0 * 2.0 + 8.0 * 3.0, "stopped just short of the end");
        assert_eq!(lab.history().len(), 12, "no resubmission in a loop");
        assert_eq!(lab.babysit(&["status", "--check"]).status.code(), Some(3), "a person is needed");

        lab.done(&["cap", "set", "find", "0.25"]);
        lab.done(&["cap", "set", "restore", "0.40"]);
        let ceiling = lab.status().total("ceiling");
        assert!((ceiling - 4.20).abs() < 1e-9, "4 x 0.25 + 8 x 0.40: {ceiling}");
        let shown = lab.done(&["cap", "show"]);
        assert!(shown.contains(lab.user), "who did it: {shown}");
        lab.tick();
        assert_eq!(lab.queue().len(), 24, "the next cycle submits them all");
        lab.tick_until("all done", |status| status.all_done());
        assert_eq!(lab.history().len(), 24);
        lab.prove(&all("find", 4), 3);
        lab.prove(&all("restore", 8), 4);
    }

    /// What still runs is stopped when the money is gone, though the program would go on.
    fn f7_what_runs_over_its_cap_is_stopped(lab) {
        let more = "[families.find.shard.s0]\ncost = { gpu_hour = 36000.0 }\n";
        let family = Family { rows: 1, cap: Some(20.0), more, ..Family::default() };
        lab.shards_toml(&[LANES, &family.toml()]);
        lab.pause("find/s0");
        lab.tick();
        lab.wait_running(1);
        lab.tick_until("over its cap", |status| status.state("find/s0") == "over-cap");
        slurm::wait_until("its end", || lab.shards_where(|_| true).is_empty());
        for _ in 0..3 {
            lab.tick();
        }
        assert_eq!(lab.queue().len(), 1);
        assert_eq!(lab.status().state("find/s0"), "over-cap", "not held: it was babysit who ended it");
        lab.go_on("find/s0");
        lab.done(&["cap", "set", "find", "1000000"]);
        lab.tick_until("done", |status| status.all_done());
        lab.prove(&ids("find/s0"), 1);
    }

    /// A running extra job stays where it is, though it belongs in own by its length.
    fn f8_a_running_job_is_not_moved(lab) {
        let own = own_is_full();
        let family = Family { shards: 2, ..Family::default() };
        lab.shards_toml(&[&lanes(0), &family.toml()]);
        pause_all(lab, &all("find", 2));
        lab.tick();
        lab.wait_running(2);
        own.iter().for_each(|job| end(*job));
        lab.shards_toml(&[LANES, &family.toml()]);
        lab.calls();
        for _ in 0..3 {
            lab.tick();
        }
        let changed: Vec<_> = lab.calls().into_iter().filter(|(name, _)| name == "scontrol" || name == "scancel" || name == "sbatch").collect();
        assert!(changed.is_empty(), "{changed:?}");
        assert!(lab.queue().iter().all(|job| job.is_running() && job.qos == "extra"));
    }
}
