//! `babysit reconcile`: what it takes over, cancels, names, and leaves alone.

use std::process::Stdio;
use std::time::Duration;

use crate::stand_in::*;
use crate::{lose_state, one_job_each};

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
    lose_state(&lab);
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
    one_job_each(&lab, 3, "");
    assert_eq!(lab.asked_of_sbatch(), 3);
}

/// Killed at every moment of a take-up: the jobs are taken up by the next try, or are already.
#[test]
fn fake_slurm_kills_a_take_up_at_every_moment() {
    for moment in 1..40 {
        let lab = Lab::new();
        lab.run(&["tick"], 0);
        let instance = lab.instance();
        lose_state(&lab);
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
        one_job_each(&lab, 3, &format!("moment {moment}"));
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
    one_job_each(&lab, 5, "");
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
