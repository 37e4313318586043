//! Exactly once, whatever breaks: the real program against a stand-in for Slurm of a few lines of
//! shell (`fake_slurm_*`) that keeps its jobs in a file, kills the babysit that asked it, fills
//! disks, hangs, or plays another host.
#![allow(clippy::disallowed_methods, reason = "a test plays the hand that breaks things")]

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use babysit::model::observation::GapKind;
use babysit::model::policy::SlurmSettings;
use babysit::model::request::{Asked, Submitted};
use babysit::model::units::Secs;
use babysit::slurm::real::{Environment, RealSlurm};
use babysit::slurm::{Scope, Slurm};

mod common;

#[path = "common/stand_in.rs"]
mod stand_in;

use stand_in::*;

// ---- SIGKILL anywhere

/// Kills at every moment in turn until a run gets through unharmed; then ticks go on, and `check`
/// looks at what came of it. Returns how many moments there were.
fn killed_everywhere(
    prepare: impl Fn(&Lab),
    arguments: &[&str],
    check: impl Fn(&Lab, usize),
) -> usize {
    for moment in 1..200 {
        let lab = Lab::new();
        prepare(&lab);
        lab.write("bin/die_at", &moment.to_string());
        let first = lab.run_at(arguments, START);
        let through = first.code.is_some();
        std::fs::remove_file(lab.at("bin/die_at")).expect("removed");
        for minute in 1..=10 {
            let said = lab.run_at(&["tick"], START + 60 * minute);
            assert_eq!(said.code, Some(0), "moment {moment}: {}{}", said.out, said.err);
        }
        check(&lab, moment);
        if through {
            return moment - 1;
        }
    }
    panic!("it never got through");
}

#[test]
fn fake_slurm_kills_a_submitting_tick_at_every_moment() {
    let moments = killed_everywhere(
        |_| {},
        &["tick"],
        |lab, moment| {
            let jobs = lab.jobs();
            assert_eq!(jobs.len(), 3, "moment {moment}: {jobs:?}");
            for (shard, ids) in jobs {
                assert_eq!(ids.len(), 1, "moment {moment}: {shard} has {ids:?}");
                let view = &lab.json(&["status", &shard], 0)["shards"][0];
                assert_eq!(view["job"]["id"].to_string(), ids[0], "moment {moment}");
                assert_eq!(view["failures"], 0);
            }
            // Each sbatch that did its work made a job: not one was made that had to be cancelled.
            assert_eq!(lab.asked_of_sbatch(), 3, "moment {moment}");
        },
    );
    // squeue and three sbatch, before and after each.
    assert!(moments >= 8, "only {moments} moments");
}

#[test]
fn fake_slurm_kills_a_cancelling_command_at_every_moment() {
    let prepare = |lab: &Lab| {
        lab.run(&["tick"], 0);
    };
    let moments = killed_everywhere(prepare, &["cancel", "find/s0"], |lab, moment| {
        let jobs = lab.jobs();
        assert_eq!(jobs.keys().map(String::as_str).collect::<Vec<_>>(), ["find/s1", "restore/s0"]);
        assert!(jobs.values().all(|ids| ids.len() == 1), "moment {moment}: {jobs:?}");
        let view = &lab.json(&["status", "find/s0"], 0)["shards"][0];
        assert_eq!(view["state"], "cancelled", "moment {moment}");
    });
    assert!(moments >= 2, "only {moments} moments");
}

/// A tick was killed after its first sbatch, whose job exists; the ticks that find it are killed too.
#[test]
fn fake_slurm_kills_a_tick_that_adopts_at_every_moment() {
    let prepare = |lab: &Lab| {
        // squeue before and after, sbatch before, and after.
        lab.write("bin/die_at", "4");
        assert_eq!(lab.run_at(&["tick"], START).code, None, "killed");
        assert_eq!(lab.asked_of_sbatch(), 1);
        std::fs::remove_file(lab.at("bin/moments")).expect("removed");
    };
    let moments = killed_everywhere(prepare, &["tick"], |lab, moment| {
        let jobs = lab.jobs();
        assert_eq!(jobs.len(), 3, "moment {moment}: {jobs:?}");
        assert!(jobs.values().all(|ids| ids.len() == 1), "moment {moment}: {jobs:?}");
        assert_eq!(lab.asked_of_sbatch(), 3, "moment {moment}: a second job was made");
    });
    assert!(moments >= 4, "only {moments} moments");
}

/// Pending jobs are moved to the other lane; whatever was cut, each stays one job, in its lane.
#[test]
fn fake_slurm_kills_a_moving_tick_at_every_moment() {
    let lanes = |park: u32| {
        format!("{TOML}[own]\nqos = \"own\"\ngpus = 1\npark = {park}\n[extra]\nqos = \"extra\"\n")
    };
    let prepare = |lab: &Lab| {
        lab.write("shards.toml", &lanes(2));
        lab.run(&["tick"], 0);
        lab.write("shards.toml", &lanes(0));
    };
    let moments = killed_everywhere(prepare, &["tick"], |lab, moment| {
        let jobs = lab.jobs();
        assert!(jobs.len() == 3 && jobs.values().all(|ids| ids.len() == 1), "{moment}: {jobs:?}");
        let moved =
            jobs.values().filter(|ids| lab.read(&format!("bin/qos.{}", ids[0])) == "extra\n");
        assert!(moved.count() >= 2, "moment {moment}: K is 0 now");
    });
    // squeue, scontrol, squeue again: before and after each.
    assert!(moments >= 6, "only {moments} moments");
}

/// sinfo runs beside squeue, so its moments are tried apart.
#[test]
fn fake_slurm_kills_a_tick_around_sinfo() {
    for script in [format!("kill -9 $PPID\n{SINFO}"), format!("{SINFO}kill -9 $PPID\n")] {
        let lab = Lab::new();
        lab.program("sinfo", &script);
        assert_eq!(lab.run_at(&["tick"], START).code, None, "killed");
        assert_eq!(lab.asked_of_sbatch(), 0, "nothing is asked before both probes answered");
        lab.program("sinfo", SINFO);
        // A squeue that was being started in that moment has the lock until it has begun.
        let free = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            lab.run_at(&["tick"], START).code == Some(0)
        });
        assert!(free, "the lock ends with the processes");
        let jobs = lab.jobs();
        assert!(jobs.len() == 3 && jobs.values().all(|ids| ids.len() == 1), "{jobs:?}");
    }
}

// ---- commands that lie

/// squeue says success and not the truth, for some minutes; then it is well again.
#[test]
fn fake_slurm_a_queue_that_lies_makes_no_second_job() {
    let uid = "\"$(id -u)\" me";
    let twice = SQUEUE.replacen("done <jobs", "done <<END\n$(cat jobs jobs)\nEND", 1);
    // With the minutes that it goes on: for ever where that is no answer. An answer without our jobs is
    // one, and after five minutes it is true where the accounting knows nothing either.
    let lies = [
        ("nothing at all", 12, "exit 0".to_owned()),
        ("no header", 12, SQUEUE.replacen("row JOBID", "true JOBID", 1)),
        ("other columns", 12, SQUEUE.replacen("STATE QOS", "QOS STATE", 1)),
        ("torn", 12, SQUEUE.replacen("done <jobs", "done <jobs; printf 900", 1)),
        ("everything twice", 12, twice),
        ("a bare header", 4, SQUEUE.replace("done <jobs", "done </dev/null")),
        ("rows of somebody else", 4, SQUEUE.replacen(uid, "4242 eve", 1)),
    ];
    for (what, minutes, lie) in lies {
        assert_ne!(lie, SQUEUE, "{what}");
        let lab = Lab::new();
        lab.run(&["tick"], 0);
        let before = lab.jobs();
        lab.program("squeue", &format!("{MOMENT}{lie}"));
        for minute in 1..=minutes {
            let code = lab.run_at(&["tick"], START + 60 * minute).code;
            assert!(matches!(code, Some(0 | 75)), "{what}: {code:?}");
        }
        lab.run_at(&["reconcile"], START + 60 * minutes);
        lab.program("squeue", &format!("{MOMENT}{SQUEUE}"));
        for minute in 1..=3 {
            let now = START + 60 * (minutes + minute);
            assert_eq!(lab.run_at(&["tick"], now).code, Some(0), "{what}");
        }
        assert_eq!((lab.jobs(), lab.asked_of_sbatch()), (before, 3), "{what}");
        has(&lab.run_at(&["reconcile"], START + 780).out, "agree");
    }
}

/// sbatch prints a number behind its id that is somebody else's job, or none; scancel says that it did
/// what it did not do.
#[test]
fn fake_slurm_changes_that_lie_are_believed_by_the_queue_alone() {
    let lab = Lab::new();
    lab.program(
        "sbatch",
        &format!("{MOMENT}{}", SBATCH.replace("echo \"$id\"", "echo \"$id\"; echo 7")),
    );
    for minute in 0..=2 {
        assert_eq!(lab.run_at(&["tick"], START + 60 * minute).code, Some(0));
    }
    let jobs = lab.jobs();
    assert!(jobs.len() == 3 && jobs.values().all(|ids| ids.len() == 1), "{jobs:?}");
    assert_eq!(lab.asked_of_sbatch(), 3);
    for (shard, ids) in &jobs {
        assert_eq!(lab.json(&["status", shard], 0)["shards"][0]["job"]["id"].to_string(), ids[0]);
    }
    lab.program("scancel", &format!("{MOMENT}exit 0"));
    lab.run_at(&["cancel", "find/s0"], START + 540);
    lab.run_at(&["tick"], START + 600);
    assert_eq!(lab.jobs(), jobs);
    lab.program("scancel", &format!("{MOMENT}{SCANCEL}"));
    lab.run_at(&["tick"], START + 660);
    lab.run_at(&["tick"], START + 720);
    assert!(!lab.jobs().contains_key("find/s0"));
    assert_eq!(lab.asked_of_sbatch(), 3);
}

// ---- the lock

#[test]
fn fake_slurm_of_fifty_ticks_at_once_one_acts() {
    let lab = Lab::new();
    let waiting = format!("while [ -f wait ]; do sleep 0.05; done\n{SQUEUE}");
    lab.program("squeue", &format!("{MOMENT}{waiting}"));
    lab.write("bin/wait", "");
    let start = |_| {
        let mut command = lab.command(&["tick"], START);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started")
    };
    let mut ticks: Vec<_> = (0..50).map(start).collect();
    let mut codes = Vec::new();
    // All but the one whose squeue hangs leave by themselves.
    while ticks.len() > 1 {
        ticks.retain_mut(|tick| match tick.try_wait().expect("a child") {
            Some(status) => {
                codes.push(status.code());
                false
            }
            None => true,
        });
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!((codes.len(), lab.asked_of_sbatch()), (49, 0));
    assert!(codes.iter().all(|code| *code == Some(75)), "{codes:?}");
    std::fs::remove_file(lab.at("bin/wait")).expect("removed");
    let last = ticks.remove(0).wait().expect("a child");
    assert_eq!((last.code(), lab.asked_of_sbatch()), (Some(0), 3));
}

#[test]
fn fake_slurm_another_host_takes_the_lock_in_the_middle_of_a_tick() {
    let lab = Lab::new();
    // The second host's flock succeeded, as its file system locks locally only: it signs.
    let sign = "echo 'pid 7 on otherhost (uid 0)' >../state.json.lock";
    lab.program("sbatch", &format!("{MOMENT}{SBATCH}{sign}"));
    let said = lab.run(&["tick"], 1);
    has(&said.err, "broken off");
    has(&said.err, "pid 7 on otherhost (uid 0)");
    has(&said.err, "babysit doctor");
    assert_eq!(lab.asked_of_sbatch(), 1, "nothing is asked after it");
    // What was done is known, what was not is done by the next one.
    lab.program("sbatch", &format!("{MOMENT}{SBATCH}"));
    lab.run(&["tick"], 0);
    let jobs = lab.jobs();
    assert!(jobs.len() == 3 && jobs.values().all(|ids| ids.len() == 1), "{jobs:?}");
}

#[test]
fn fake_slurm_another_host_saves_the_state_in_the_middle_of_a_tick() {
    let lab = Lab::new();
    let save = "cp ../state.json ../s && mv ../s ../state.json";
    lab.program("sbatch", &format!("{MOMENT}{SBATCH}{save}"));
    has(&lab.run(&["tick"], 1).err, "somebody else wrote it");
    assert_eq!(lab.asked_of_sbatch(), 1);
    lab.program("sbatch", &format!("{MOMENT}{SBATCH}"));
    for minute in 1..=8 {
        assert_eq!(lab.run_at(&["tick"], START + 60 * minute).code, Some(0));
    }
    let jobs = lab.jobs();
    assert!(jobs.len() == 3 && jobs.values().all(|ids| ids.len() == 1), "{jobs:?}");
}

#[test]
fn fake_slurm_hung_commands_take_no_longer_than_the_budget() {
    let lab = Lab::new();
    let settings = SlurmSettings {
        bin_dir: Some(lab.at("bin")),
        timeout: Secs(3600),
        ..SlurmSettings::default()
    };
    lab.program("squeue", "sleep 3600");
    lab.program("sbatch", "echo x >>\"$(dirname \"$0\")/asked\"; sleep 3600");
    let environment = Environment { path: Some("/usr/bin:/bin".into()), ..Environment::default() };
    let mut slurm =
        RealSlurm::new(&settings, environment, 1).with_budget(Duration::from_millis(300));
    let gap = slurm.look(Scope::Mine).expect_err("it hangs");
    assert_eq!(gap.kind, GapKind::TimedOut, "{gap}");
    // An hour's time limit is worth nothing now: nothing is started any more.
    let request = common::request(&lab.at("logs"));
    let Submitted::Refused(refusal) = slurm.submit(&request) else { panic!("it was asked") };
    has(&refusal.text, "tick_budget");
    assert_eq!(lab.asked_of_sbatch(), 0);
    has(&slurm.jobs(Scope::Mine).expect_err("no time").to_string(), "tick_budget");
}

/// `[backfill] stop` is a command of the user's: one that hangs is ended at its limit with all it
/// began, is told, and what comes after it in the cycle is done.
#[test]
fn fake_slurm_a_stop_command_that_hangs_is_ended_and_told() {
    let lab = Lab::new();
    let settings = SlurmSettings {
        bin_dir: Some(lab.at("bin")),
        timeout: Secs(1),
        ..SlurmSettings::default()
    };
    let environment = Environment { path: Some("/usr/bin:/bin".into()), ..Environment::default() };
    let mut slurm = RealSlurm::new(&settings, environment, 1);
    let mark = lab.at("went-on");
    let line = format!("(sleep 3; touch {}) & sleep 3600", mark.display());
    let Asked::Failed(text) = slurm.run(&line) else { panic!("it hangs") };
    has(&text.to_string(), "sleep 3600");
    let submitted = slurm.submit(&common::request(&lab.at("logs")));
    assert!(matches!(submitted, Submitted::Accepted { .. }), "{submitted:?}");
    std::thread::sleep(Duration::from_secs(4));
    assert!(!mark.exists(), "what the command began was ended with it");
}

// ---- the disk

#[test]
fn fake_slurm_a_full_disk_submits_nothing_and_recovers_by_itself() {
    let lab = Lab::new();
    // 1 KiB in each file, and no signal: a write fails as on a full disk.
    let said = lab.run_after("trap '' XFSZ; ulimit -f 2", "tick");
    assert_eq!((said.code, lab.asked_of_sbatch()), (Some(1), 0), "{}{}", said.out, said.err);
    has(&said.err, "nothing was asked of Slurm");
    lab.run(&["tick"], 0);
    assert_eq!(lab.asked_of_sbatch(), 3);
    // With a state behind it, that state stays.
    let before = lab.read("state.json");
    lab.write("shards.toml", &TOML.replace("shards = 2", "shards = 9"));
    let said = lab.run_after("trap '' XFSZ; ulimit -f 2", "tick");
    assert_eq!((said.code, lab.asked_of_sbatch()), (Some(1), 3), "{}", said.err);
    assert_eq!(lab.read("state.json"), before);
    lab.run(&["tick"], 0);
    assert_eq!(lab.asked_of_sbatch(), 10);
}

#[test]
fn fake_slurm_nothing_is_told_that_no_save_has_kept() {
    let lab = Lab::new();
    // A first tick that only tells, and whose one save fails.
    lab.program("squeue", "exit 1");
    let said = lab.run_after("trap '' XFSZ; ulimit -f 1", "tick");
    assert_eq!((said.code, lab.read("state.json")), (Some(1), String::new()), "{}", said.err);
    assert_eq!(lab.read("journal.jsonl"), "", "ahead of the state, it would stop every later tick");
    lab.program("squeue", &format!("{MOMENT}{SQUEUE}"));
    lab.run(&["tick"], 0);
    let told = lab.read("journal.jsonl").matches("\"kind\":\"submitted\"").count();
    assert_eq!((lab.asked_of_sbatch(), told), (3, 3));
}

#[test]
fn fake_slurm_what_the_first_save_kept_is_told_though_the_last_one_fails() {
    let lab = Lab::new();
    lab.run(&["tick"], 0);
    // One job runs by now, another shard is to be submitted, and somebody writes the state meanwhile.
    lab.write("bin/jobs", &lab.read("bin/jobs").replacen("PENDING", "RUNNING", 1));
    lab.write("shards.toml", &TOML.replace("shards = 2", "shards = 3"));
    let save = "cp ../state.json ../s && mv ../s ../state.json";
    lab.program("sbatch", &format!("{MOMENT}{SBATCH}{save}"));
    has(&lab.run(&["tick"], 1).err, "somebody else wrote it");
    let told = || lab.read("journal.jsonl").matches("\"started\"").count();
    assert_eq!(told(), 1);
    lab.run(&["tick"], 0);
    assert_eq!(told(), 1, "it is told once");
}

// ---- reconcile

#[test]
fn fake_slurm_reconcile_takes_the_backup_over_and_nobody_else_does() {
    for damage in ["", "{ \"version\": 1, \"pro", "gone"] {
        let lab = Lab::new();
        lab.run(&["tick"], 0);
        lab.run(&["tick"], 0);
        match damage {
            "gone" => std::fs::remove_file(lab.at("state.json")).expect("removed"),
            text => lab.write("state.json", text),
        }
        has(&lab.run(&["tick"], 1).err, "babysit reconcile");
        assert_eq!(lab.asked_of_sbatch(), 3, "{damage:?}");
        let said = lab.run(&["reconcile"], 0);
        has(&said.err, "state.json.bak was taken over");
        has(&lab.run(&["reconcile"], 0).out, "agree");
        lab.run(&["tick"], 0);
        let jobs = lab.jobs();
        assert_eq!((jobs.len(), lab.asked_of_sbatch()), (3, 3), "{damage:?}: {jobs:?}");
    }
}

/// A state that a newer build wrote is not given up for the older backup beside it.
#[test]
fn fake_slurm_reconcile_leaves_the_state_of_a_newer_build() {
    let lab = Lab::new();
    lab.run(&["tick"], 0);
    lab.run(&["tick"], 0);
    let newer =
        lab.read("state.json").replacen("{", "{\"version\": 9, \"minor\": 0, \"moon\": 1,", 1);
    let newer = newer.replacen("\"version\": 1,", "", 1);
    lab.write("state.json", &newer);
    for words in ["tick", "reconcile"] {
        has(&lab.run(&[words], 1).err, "newer babysit");
        assert_eq!(lab.read("state.json"), newer, "{words}");
    }
    assert_eq!(lab.asked_of_sbatch(), 3);
}

#[test]
fn fake_slurm_reconcile_without_a_backup_stops() {
    let lab = Lab::new();
    lab.write("state.json", "{ torn");
    has(&lab.run(&["reconcile"], 1).err, "there is no .bak");
    assert_eq!(lab.read("state.json"), "{ torn");
}

#[test]
fn fake_slurm_reconcile_cancels_a_pending_twin_and_asks_about_a_running_one() {
    let lab = Lab::new();
    lab.run(&["tick"], 0);
    let comment = format!("babysit:{}:find/s0:a1:ffffffff", lab.instance());
    lab.add_job(&format!("900 oracle-plan.find.s0.a1 {comment} PENDING"));
    let json = lab.json(&["reconcile"], 0);
    assert_eq!(json["schema"], "babysit/reconcile/v1");
    assert_eq!(
        (&json["found"][0]["kind"], &json["needs_person"]),
        (&"twins".into(), &false.into())
    );
    assert_eq!(lab.jobs()["find/s0"].len(), 1, "the newer one is gone");

    lab.add_job(&format!("901 oracle-plan.find.s0.a1 {comment} RUNNING"));
    let said = lab.run(&["reconcile"], 3);
    has(&said.out, "needs a person: find/s0: two live jobs or more");
    has(&said.out, "scancel 901");
    assert_eq!(lab.jobs()["find/s0"].len(), 2, "it may be doing work");
}

#[test]
fn fake_slurm_a_running_twin_is_told_once() {
    let lab = Lab::new();
    lab.run(&["tick"], 0);
    let comment = format!("babysit:{}:find/s0:a1:ffffffff", lab.instance());
    let told =
        |other: u32| lab.read("journal.jsonl").matches(&format!("\"other\":{other}")).count();
    lab.add_job(&format!("901 oracle-plan.find.s0.a1 {comment} RUNNING"));
    let first = lab.run(&["tick"], 0).out;
    has(&first, "901 is left alone, since it runs: `scancel 901` would end it");
    for _ in 0..3 {
        assert_eq!(lab.run(&["tick"], 0).out.matches("two live jobs").count(), 0);
    }
    assert_eq!(told(901), 1);
    // Another one is news, and so is the same one once it was gone.
    lab.add_job(&format!("902 oracle-plan.find.s0.a1 {comment} RUNNING"));
    lab.run(&["tick"], 0);
    let both = lab.read("bin/jobs");
    let without: String = both
        .lines()
        .filter(|line| !line.starts_with("901 "))
        .map(|line| line.to_owned() + "\n")
        .collect();
    lab.write("bin/jobs", &without);
    lab.run(&["tick"], 0);
    assert_eq!((told(901), told(902)), (1, 1));
    lab.write("bin/jobs", &both);
    lab.run(&["tick"], 0);
    assert_eq!((told(901), told(902)), (2, 1));
    assert_eq!(lab.jobs()["find/s0"].len(), 3, "each may be doing work");
}

#[test]
fn fake_slurm_reconcile_names_orphans_and_strangers() {
    let lab = Lab::new();
    lab.run(&["tick"], 0);
    lab.write("shards.toml", TOML.split("[families.restore]").next().expect("text"));
    lab.add_job("900 oracle-plan.find.s1.a1 babysit:feedbeef:find/s1:a1:00000000 PENDING");
    let json = lab.json(&["reconcile"], 3);
    let kinds: Vec<_> =
        json["left"].as_array().expect("a list").iter().map(|d| &d["kind"]).collect();
    assert_eq!(kinds, ["orphan", "strangers"]);
    assert_eq!(
        (&json["left"][0]["needs_person"], &json["left"][1]["needs_person"]),
        (&false.into(), &true.into())
    );
    let orphan = &lab.jobs()["restore/s0"][0];
    has(&lab.run(&["reconcile"], 3).out, "nothing to do: ticks follow it");
    assert_eq!(lab.jobs().values().map(Vec::len).sum::<usize>(), 4, "nobody is touched");

    let (ours, _) = lab
        .read("bin/jobs")
        .rsplit_once("900 ")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .expect("last");
    lab.write("bin/jobs", &ours);
    lab.run(&["reconcile"], 0);
    // A second job of one that ticks follow: nobody cancels it, and nobody says so.
    let comment = format!("babysit:{}:restore/s0:a1:ffffffff", lab.instance());
    lab.add_job(&format!("901 oracle-plan.restore.s0.a1 {comment} PENDING"));
    let told = lab.read("journal.jsonl");
    has(&lab.run(&["reconcile"], 3).out, "scancel 901, or put the shard back");
    lab.run(&["tick"], 0);
    assert_eq!(lab.jobs()["restore/s0"], [orphan.as_str(), "901"]);
    assert!(!lab.read("journal.jsonl").replace(&told, "").contains("901"));
}

#[test]
fn fake_slurm_reconcile_leaves_where_slurm_does_not_answer() {
    let lab = Lab::new();
    lab.run(&["tick"], 0);
    lab.program("squeue", "echo 'slurm_load_jobs error: Connection reset by peer' >&2; exit 1");
    let before = lab.read("state.json");
    has(&lab.run(&["reconcile"], 75).err, "nothing was compared");
    assert_eq!(lab.read("state.json"), before);
}

#[test]
fn fake_slurm_reconcile_takes_up_the_jobs_of_a_lost_state_when_told_to() {
    let lab = Lab::new();
    lab.run(&["tick"], 0);
    let instance = lab.instance();
    for file in ["state.json", "state.json.bak", "journal.jsonl", "state.json.lock"] {
        if lab.at(file).exists() {
            std::fs::remove_file(lab.at(file)).expect("removed");
        }
    }
    has(&lab.run(&["tick"], 1).err, "babysit reconcile");
    // The failed tick left a state without any history. A campaign that lives looks just like this.
    let mine = lab.instance();
    let said = lab.run(&["reconcile"], 3);
    has(&said.out, &format!("babysit reconcile --take-up {instance}"));
    let journal = lab.read("journal.jsonl");
    has(&lab.run(&["reconcile", "--take-up", "feedbeef"], 1).err, "nothing was taken up");
    assert_eq!((lab.instance(), lab.read("journal.jsonl")), (mine, journal));
    let said = lab.run(&["reconcile", "--take-up", &instance], 0);
    has(&said.out, "was found in the queue as attempt 1");
    has(&said.err, "another babysit of this project");
    assert_eq!(lab.instance(), instance);
    lab.run(&["tick"], 0);
    let jobs = lab.jobs();
    assert!(jobs.len() == 3 && jobs.values().all(|ids| ids.len() == 1), "{jobs:?}");
    assert_eq!(lab.asked_of_sbatch(), 3);
}

/// Killed at every moment of a take-up: the jobs are taken up by the next try, or are already.
#[test]
fn fake_slurm_kills_a_take_up_at_every_moment() {
    for moment in 1..40 {
        let lab = Lab::new();
        lab.run(&["tick"], 0);
        let instance = lab.instance();
        for file in ["state.json", "state.json.bak", "journal.jsonl", "state.json.lock"] {
            if lab.at(file).exists() {
                std::fs::remove_file(lab.at(file)).expect("removed");
            }
        }
        lab.write("bin/die_at", &moment.to_string());
        let words = ["reconcile", "--take-up", instance.as_str()];
        let through = lab.run_at(&words, START).code.is_some();
        std::fs::remove_file(lab.at("bin/die_at")).expect("removed");
        if lab.read("state.json").is_empty() || lab.instance() != instance {
            lab.run(&words, 0);
        }
        assert_eq!(lab.instance(), instance, "moment {moment}");
        for minute in 1..=8 {
            assert_eq!(lab.run_at(&["tick"], START + 60 * minute).code, Some(0), "{moment}");
        }
        let jobs = lab.jobs();
        assert!(jobs.len() == 3 && jobs.values().all(|ids| ids.len() == 1), "{moment}: {jobs:?}");
        assert_eq!(lab.asked_of_sbatch(), 3, "moment {moment}");
        if through {
            assert!(moment > 2, "only {moment} moments");
            return;
        }
    }
    panic!("it never got through");
}

/// A cap that is set while a tick is at work waits for it, and neither undoes what the other saved.
#[test]
fn fake_slurm_a_cap_set_in_the_middle_of_a_tick_is_kept_with_what_the_tick_did() {
    let lab = Lab::new();
    lab.run(&["tick"], 0);
    lab.write("shards.toml", &TOML.replace("shards = 2", "shards = 4"));
    let wait = "while [ -f wait ]; do sleep 0.02; done\n";
    lab.program("sbatch", &format!("{MOMENT}touch here\n{wait}{SBATCH}"));
    lab.write("bin/wait", "");
    let quiet = |mut command: std::process::Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started")
    };
    let mut tick = quiet(lab.command(&["tick"], START + 60));
    while !lab.at("bin/here").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut cap = quiet(lab.command(&["cap", "set", "find", "40"], START + 61));
    // One that is killed while it waits has changed nothing.
    let mut killed = quiet(lab.command(&["cap", "set", "restore", "50"], START + 61));
    std::thread::sleep(Duration::from_millis(100));
    killed.kill().expect("killed");
    killed.wait().expect("gone");
    assert!(cap.try_wait().expect("a child").is_none(), "the tick has the lock");
    std::fs::remove_file(lab.at("bin/wait")).expect("removed");
    assert!(tick.wait().expect("a child").success());
    assert!(cap.wait().expect("a child").success());
    let caps = lab.json(&["cap", "show"], 0).to_string();
    assert!(caps.contains("40.0") && !caps.contains("50.0"), "{caps}");
    lab.run_at(&["tick"], START + 120);
    let jobs = lab.jobs();
    assert!(jobs.len() == 5 && jobs.values().all(|ids| ids.len() == 1), "{jobs:?}");
    assert_eq!(lab.asked_of_sbatch(), 5);
}

#[test]
fn fake_slurm_reconcile_takes_up_nothing_that_proves_less_than_all() {
    for odd in [
        // Another instance beside it; a shard that shards.toml does not name; a name that is not the comment's.
        "901 oracle-plan.find.s1.a1 babysit:feedbeef:find/s1:a1:00000000 PENDING",
        "901 oracle-plan.find.s9.a1 babysit:cafecafe:find/s9:a1:00000000 PENDING",
        "901 oracle-plan.find.s1.a2 babysit:cafecafe:find/s1:a1:00000000 PENDING",
    ] {
        let lab = Lab::new();
        lab.write(
            "bin/jobs",
            "900 oracle-plan.find.s0.a1 babysit:cafecafe:find/s0:a1:00000000 PENDING\n",
        );
        lab.add_job(odd);
        let said = lab.run(&["reconcile"], 3).out;
        has(&said, "of another state");
        assert!(!said.contains("--take-up"), "{said}");
        lab.run(&["reconcile", "--take-up", "cafecafe"], 1);
        assert_ne!(lab.instance(), "cafecafe", "{odd}");
    }
}

// ---- what others write

#[test]
fn fake_slurm_terminal_escapes_reach_no_terminal() {
    let lab = Lab::new();
    lab.write("bin/reason", "Bad\u{1b}[2J\u{7}constraint");
    lab.run(&["tick"], 0);
    lab.add_job(
        "900 oracle-plan.find.s1.a1\u{1b}[31m babysit:feed\u{1b}[2Jbeef:find/s1:a1:0 PENDING",
    );
    let refuse = "printf 'sbatch: error: \\033[2JInvalid qos specification\\007\\n' >&2; exit 1";
    lab.program("sbatch", refuse);
    lab.write("shards.toml", &TOML.replace("shards = 2", "shards = 3"));
    for words in [["tick"], ["status"], ["log"], ["usage"], ["reconcile"]] {
        let said = lab.run_at(&words, START + 60);
        let all = said.out + &said.err;
        assert!(!all.contains(['\u{1b}', '\u{7}']), "{words:?}: {all:?}");
    }
    for shard in ["find/s0", "find/s2"] {
        let all = lab.run_at(&["why", shard], START + 60).out;
        assert!(!all.is_empty() && !all.contains(['\u{1b}', '\u{7}']), "{all:?}");
    }
}

#[test]
fn fake_slurm_a_line_of_ten_gigabytes_is_no_memory() {
    let lab = Lab::new();
    let ledger = "done = { jsonl = \"{shard}.jsonl\", key = \"row\" }";
    lab.write(
        "shards.toml",
        &TOML.replace("done = { glob = \"runs/find/{shard}/row_*.json\" }", ledger),
    );
    let file = std::fs::File::create(lab.at("s0.jsonl")).expect("a file");
    // NUL bytes without a newline, none of them on the disk.
    file.set_len(10 << 30).expect("a sparse file");
    let said = lab.run_after("ulimit -v 400000", "tick");
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    has(&lab.run(&["log", "find/s0"], 0).out, "is large");
    let held = lab.jobs().contains_key("find/s0");
    assert!(!held, "what was not read is not submitted");
}

// ---- doctor

#[test]
fn fake_slurm_doctor_says_what_cron_needs() {
    let lab = Lab::new();
    lab.program("sacctmgr", "exit 0");
    let mut command = lab.command(&["doctor"], START);
    command.env_remove("BABYSIT_NOW").env("SLURM_CONF", "/lab/slurm.conf");
    let said = said(command.output().expect("it ran"));
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    for part in ["slurm-wlm 24.11.5", "locking works", "1 nodes", "SLURM_CONF=/lab/slurm.conf"] {
        has(&said.out, part);
    }
    let config = lab.dir.path().canonicalize().expect("a path").join("shards.toml");
    has(&said.out, &format!("--config {}", config.display()));
    has(&said.out, "* * * * * env SLURM_CONF=/lab/slurm.conf /");
    let left: Vec<_> = std::fs::read_dir(lab.dir.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("trial") || name.starts_with("state"))
        .collect();
    assert_eq!(left, [""; 0], "it leaves nothing behind");
}

#[test]
fn fake_slurm_doctor_under_cron_names_the_variable_that_is_missing() {
    let lab = Lab::new();
    let poor = "squeue: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host";
    lab.program("squeue", &format!("echo '{poor}' >&2; exit 1"));
    let said = lab.run(&["doctor"], 1);
    has(&said.out, "put it into the crontab as SLURM_CONF=");
    lab.program("squeue", "");
    std::fs::remove_file(lab.at("bin/squeue")).expect("removed");
    has(&lab.run(&["doctor"], 1).out, "PATH=/usr/bin:/bin:THAT");
    let json = lab.json(&["doctor"], 1);
    assert_eq!((&json["schema"], &json["health"]), (&"babysit/doctor/v1".into(), &"broken".into()));
}

#[test]
fn fake_slurm_doctor_sees_a_clock_that_is_off_and_a_bad_state() {
    let lab = Lab::new();
    // BABYSIT_NOW is years away from the stand-in's clock.
    has(&lab.run(&["doctor"], 3).out, "between the controller and this host");
    lab.write("state.json", "{ torn");
    has(&lab.run(&["doctor"], 1).out, "babysit reconcile");
}

// ---- refusals

#[test]
fn fake_slurm_refused_family_is_told_and_retry_tries_it_again() {
    let lab = Lab::new();
    lab.write("shards.toml", &TOML.replace("shards = 2", "shards = 6"));
    let refuse = "case \"$n\" in *.find.*) echo 'sbatch: error: Invalid qos specification' >&2; \
                  exit 1;; esac";
    let sbatch = SBATCH.replacen("id=", &format!("{refuse}\nid="), 1);
    lab.program("sbatch", &format!("{MOMENT}{sbatch}"));
    has(&lab.run(&["tick"], 0).out, "family find: 3 submissions refused in a row");
    assert_eq!(lab.asked_of_sbatch(), 4, "three of find, and restore");
    let status = lab.run(&["status", "--check"], 3).out;
    has(&status, "babysit retry find");
    has(&lab.run(&["why", "find/s5"], 0).out, "Slurm refused 3 submissions of its family in a row");
    lab.run(&["tick"], 0);
    assert_eq!(lab.asked_of_sbatch(), 4);

    lab.program("sbatch", &format!("{MOMENT}{SBATCH}"));
    has(&lab.run(&["retry", "find"], 0).out, "find/s5 is tried again, with its family");
    lab.run(&["tick"], 0);
    assert_eq!(lab.asked_of_sbatch(), 10);
    lab.run(&["status", "--check"], 0);
}

// ---- security

fn all_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all_files(&path, found);
        }
        found.push(path);
    }
}

#[test]
fn fake_slurm_nothing_is_world_writable_whatever_the_umask() {
    let lab = Lab::new();
    lab.write("shards.toml", &TOML.replace("\"state.json\"", "\"deep/er/state.json\""));
    let before: Vec<PathBuf> = ["bin", "shards.toml"].map(|name| lab.at(name)).to_vec();
    let said = lab.run_after("umask 000", "tick");
    assert_eq!(said.code, Some(0), "{}", said.err);
    let mut files = Vec::new();
    all_files(lab.dir.path(), &mut files);
    files.retain(|file| !before.iter().any(|old| file.starts_with(old)));
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        let mode = file.symlink_metadata().expect("there").mode();
        assert_eq!(mode & 0o002, 0, "{}: {mode:o}", file.display());
    }
}

#[test]
fn fake_slurm_a_symlink_is_not_followed_to_somebodys_file() {
    for name in ["state.json", "state.json.lock", "state.json.bak", "state.json.tmp"] {
        let lab = Lab::new();
        lab.write("precious", "mine");
        symlink(lab.at("precious"), lab.at(name)).expect("linked");
        let code = lab.run_at(&["tick"], START).code;
        assert_eq!(lab.read("precious"), "mine", "{name}");
        // What is only thrown away may be a link; what is read or locked may not.
        let refused = matches!(name, "state.json" | "state.json.lock" | "state.json.bak");
        assert_eq!(code, Some(i32::from(refused)), "{name}");
        assert_eq!(lab.asked_of_sbatch(), if refused { 0 } else { 3 }, "{name}");
    }
    let lab = Lab::new();
    lab.write("precious", "mine\n");
    symlink(lab.at("precious"), lab.at("journal.jsonl")).expect("linked");
    lab.run(&["tick"], 1);
    assert_eq!((lab.read("precious").as_str(), lab.asked_of_sbatch()), ("mine\n", 0));
}

#[test]
fn a_hostile_log_line_does_nothing_to_the_terminal() {
    use babysit::cli::figures::figures;
    use babysit::model::state::{Gate, HeldWhy};
    use babysit::output::paint::Paint;
    use babysit::output::{evidence, table, view};
    let (policy, mut state) = common::afternoon();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{9b}31m\u{202e}gnp.exe\0";
    let why = HeldWhy::Failures { count: 3, log: vec![evil.to_owned()] };
    state.shards[10].gate = Gate::Held { why, at: common::NOW };
    let status = view::status(&policy, &state, &figures(&policy, &state), common::NOW, |_, _| true);
    let look = table::Look { width: None, paint: Paint { colour: false }, now: common::NOW };
    let mut text = table::render(&status, &look);
    let (shard, record, seen) = (&policy.shards[10], &state.shards[10], &status.shards[10]);
    let found = evidence::evidence(&policy, &state, shard, record, seen, common::NOW);
    text.push_str(&evidence::text(&seen.id, &seen.why, &found));
    has(&text, "gnp.exe");
    let bad = text.chars().find(|c| *c != '\n' && (c.is_control() || *c == '\u{202e}'));
    assert_eq!(bad, None, "{text:?}");
}

#[test]
fn fake_slurm_odd_names_reach_the_shell_as_one_word() {
    let lab = Lab::new();
    // Shard names cannot hold such characters, so the folder of the project does it.
    let odd = lab.at("it's; touch $(id -un) `x` & \"y\"");
    std::fs::create_dir(&odd).expect("a folder");
    let toml = TOML.replace("\"bin\"", &format!("{:?}", lab.at("bin").display().to_string()));
    let toml = toml.replace("command = \"true\"", "command = \"echo {shard} {project}\"");
    std::fs::write(odd.join("shards.toml"), toml).expect("written");
    let config = odd.join("shards.toml").display().to_string();
    let dry = lab.run(&["tick", "--dry-run", "--config", &config], 0).out;
    let line = dry.lines().find(|line| line.contains("sbatch --parsable")).expect("a line");
    let words = shell_words::split(line.split(" <<").next().expect("text")).expect("quoted");
    let chdir = words.iter().find(|word| word.starts_with("--chdir="));
    assert_eq!(chdir.map(String::as_str), Some(&*format!("--chdir={}", odd.display())));
    lab.run(&["tick", "--config", &config], 0);
    assert_eq!(lab.asked_of_sbatch(), 3);
    assert!(!lab.at("root").exists() && !odd.join("root").exists());
}
