//! Whole campaigns, and what one tick does and does not do.

use crate::lab::{Family, LANES, Lab, ids};
use crate::slurm::{self, stdout, stranger};

fn names(calls: &[(String, Vec<String>)]) -> Vec<&str> {
    calls.iter().map(|(name, _)| name.as_str()).collect()
}

fn families(rows: u32) -> String {
    let find = Family { shards: 4, rows, ..Family::default() };
    let restore = Family { name: "restore", shards: 8, rows, row_time: "90s", ..Family::default() };
    find.toml() + &restore.toml()
}

/// One shard more.
fn more(rows: u32) -> String {
    Family { name: "more", rows, ..Family::default() }.toml()
}

/// Twelve shards in two families, as in the field: find x4, restore x8.
fn oracle(lab: &Lab, rows: u32) -> Vec<String> {
    lab.shards_toml(&[LANES, &families(rows)]);
    let ids =
        |family: &str, count| (0..count).map(move |i| format!("{family}/s{i}")).collect::<Vec<_>>();
    [ids("find", 4), ids("restore", 8)].concat()
}

both! {
    /// From nothing to done with one command, while somebody else's own jobs preempt.
    fn twelve_shards_to_done(lab) {
        let shards = oracle(lab, 6);
        lab.done(&["check"]);
        let mut babysit = lab.command(&["loop", "--every", "1s", "--until-done"]);
        let mut babysit = babysit.stdout(std::process::Stdio::piped()).spawn().expect("it starts");
        slurm::wait_until("jobs in extra", || {
            lab.queue().iter().any(|job| job.is_running() && job.qos == "extra")
        });
        let bob: Vec<u64> = (0..2).map(|_| stranger("bob", "own", "gpu:rtx4090:1", &[])).collect();
        slurm::wait_until("the end of the loop", || babysit.try_wait().expect("a child").is_some());
        let output = babysit.wait_with_output().expect("a child");
        assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
        bob.into_iter().for_each(slurm::end);
        let status = lab.status();
        assert!(status.all_done());
        assert_eq!((status.total("rows_done"), status.total("rows_total")), (72.0, 72.0));
        assert!((status.total("spent") - 7.2).abs() < 0.61, "0.10 a row, and rows in flight: {}", status.total("spent"));
        lab.prove(&shards, 6);
    }

    /// A dry run prints the very command lines that the tick then runs, and changes nothing.
    fn a_dry_run_tells_what_a_tick_does(lab) {
        let shards = oracle(lab, 4);
        let told = lab.done(&["tick", "--dry-run"]);
        assert!(!lab.path("state.json").exists() && !lab.path("logs").exists());
        assert_eq!(lab.queue(), []);
        shards.iter().for_each(|shard| lab.pause(shard));
        compare(lab, &told, &["sbatch"]);
        lab.wait_running(10);
        lab.tick();

        // Now with jobs to move, to cancel and to submit.
        lab.shards_toml(&[&LANES.replace("park = 2", "park = 0"), &families(4), &more(1)]);
        lab.write("runs/restore/s0/cost.jsonl", "{\"cost_usd\": 5.0}\n");
        lab.done(&["cap", "set", "restore/s0", "1"]);
        let (before, state) = (lab.queue(), lab.read("state.json"));
        let told = lab.done(&["tick", "--dry-run"]);
        assert_eq!((lab.queue(), lab.read("state.json")), (before, state), "nothing was changed");
        compare(lab, &told, &["scancel", "scontrol", "sbatch"]);
    }

    /// A tick that changes nothing asks squeue and sinfo, once each, and nothing else; whatever the
    /// number of shards.
    fn an_idle_tick_is_two_commands(lab) {
        let shards = oracle(lab, 4);
        shards.iter().for_each(|shard| lab.pause(shard));
        lab.tick();
        lab.wait_running(10);
        // Two are parked in own. Until all starts were seen:
        slurm::wait_until("a tick that changes nothing", || {
            lab.calls();
            lab.tick();
            names(&lab.calls()).len() == 2
        });
        for _ in 0..3 {
            assert_eq!(lab.tick(), "", "cron mails what is printed");
            let calls = lab.calls();
            let mut names = names(&calls);
            names.sort_unstable();
            assert_eq!(names, ["sinfo", "squeue"]);
        }
    }

    /// A second tick leaves at once with 75 while one is at work; status needs no lock.
    fn two_ticks_at_once(lab) {
        oracle(lab, 2);
        lab.write("bin/gate", "");
        lab.every_call("sinfo", "gate", "");
        let mut first = lab.command(&["tick"]).spawn().expect("it starts");
        // Both: they are started side by side, and its second call must not be taken for the other tick's.
        slurm::wait_until("the first tick at its probes", || {
            ["sinfo", "squeue"].iter().all(|probe| lab.read("bin/calls").contains(probe))
        });
        lab.calls();
        assert_eq!(lab.tick_anyhow(), (75, String::new()), "cron mails what is printed");
        assert_eq!(lab.calls(), [], "it asked Slurm nothing");
        assert_eq!(lab.status().shards().len(), 12);
        assert!(first.try_wait().expect("a child").is_none(), "the first is still at work");
        lab.remove("bin/gate");
        assert!(first.wait().expect("a child").success());
        assert_eq!(lab.queue().len(), 12);
    }

    /// SIGTERM to the loop finishes the tick in hand, and the state is whole.
    fn a_loop_that_is_asked_to_end(lab) {
        oracle(lab, 2);
        lab.write("bin/gate", "");
        lab.every_call("sinfo", "gate", "");
        let mut looping = lab.command(&["loop", "--every", "1h"]).spawn().expect("it starts");
        slurm::wait_until("the first tick at its probe", || lab.read("bin/calls").contains("sinfo"));
        let term = format!("-{}", rustix::process::Signal::TERM.as_raw());
        slurm::slurm("root", &["kill", &term, &lab.process().to_string()]);
        lab.remove("bin/gate");
        assert_eq!(looping.wait().expect("a child").code(), Some(0));
        assert_eq!(lab.queue().len(), 12, "the tick in hand was finished");
        assert_eq!(lab.status().0["last_tick"]["outcome"], "ok");
    }

    /// A job that ended well, but short of rows, is sent again, and is no failure.
    fn ended_early_comes_back(lab) {
        let family = Family { shards: 2, rows: 5, rows_per_run: Some(2), seconds: 0.1, ..Family::default() };
        lab.shards_toml(&[&family.toml()]);
        lab.tick_until("all done", |status| status.all_done());
        let status = lab.status();
        assert_eq!((status.number("find/s0", "attempts"), status.number("find/s0", "failures")), (3, 0));
        lab.prove(&ids("find/s0 find/s1"), 5);
    }

    /// A job that its node took along comes back at once, and is no failure either.
    fn a_node_fails_under_a_job(lab) {
        let family = Family { rows: 2, ..Family::default() };
        lab.shards_toml(&[&family.toml()]);
        lab.pause("find/s0");
        lab.tick();
        lab.wait_running(1);
        lab.tick();
        let node = lab.queue()[0].node.clone();
        crate::lab::disturbed();
        let name = format!("nodename={node}");
        slurm::slurm("root", &["scontrol", "update", &name, "state=DOWN", "reason=test"]);
        slurm::wait_until("its end", || !lab.queue()[0].is_live());
        lab.go_on("find/s0");
        lab.tick();
        assert_eq!(lab.queue().len(), 2, "submitted in the cycle that learned of it");
        let status = lab.tick_until("done", |status| status.all_done());
        assert_eq!(status.number("find/s0", "failures"), 0);
        lab.prove(&ids("find/s0"), 2);
    }
}

/// Runs a tick and holds its calls against what a dry run told: the same programs with the same
/// arguments, in the same order. Only the random end of a token differs.
fn compare(lab: &Lab, told: &str, commands: &[&str]) {
    let bin = lab.path("bin").display().to_string() + "/";
    let words = |line: &str| shell_words::split(line.split(" <<'").next().unwrap_or(line));
    let of_slurm = |line: &str| {
        let words = words(line).ok()?;
        let at = words.iter().position(|word| word.starts_with(&bin))?;
        Some((words[at].replace(&bin, ""), words[at + 1..].to_vec()))
    };
    let lines = told.lines().filter_map(|line| line.strip_prefix("  "));
    let mut told: Vec<_> = lines.filter_map(of_slurm).collect();
    let has = |command: &&&str| told.iter().any(|(name, _)| name == *command);
    assert_eq!(commands.iter().filter(has).count(), commands.len(), "{told:?}");
    lab.calls();
    lab.tick();
    let reading = ["squeue", "sinfo", "sacct", "sacctmgr"];
    let mut ran = lab.calls();
    ran.retain(|(name, _)| !reading.contains(&name.as_str()));
    for (_, arguments) in told.iter_mut().chain(&mut ran) {
        for comment in arguments.iter_mut().filter(|word| word.starts_with("--comment=")) {
            // babysit:<instance>:<family>/<shard>:a<attempt>:<nonce>; a first tick also makes the instance.
            let parts: Vec<&str> = comment.split(':').collect();
            *comment = [parts[0], parts[2], parts[3]].join(":");
        }
    }
    assert_eq!(told, ran);
}
