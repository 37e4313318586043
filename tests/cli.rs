//! The program as users and cron run it. Where Slurm is asked, a stand-in of a few lines of shell
//! answers, and the test's name says so (`fake_slurm_*`).
#![allow(clippy::disallowed_methods, reason = "a test makes the files that a user would make")]

use std::path::PathBuf;
use std::time::Duration;

use babysit::store::Store;

#[path = "common/lab.rs"]
mod lab;

use lab::{Lab, SINFO, TOML, has};

#[test]
fn status_works_before_the_first_tick_and_writes_nothing() {
    let lab = Lab::new();
    let said = lab.run(&["status"], 0);
    has(&said.out, "no tick yet");
    has(&said.out, "restore/s0 waiting");
    assert!(!said.out.contains('\u{1b}'), "colour without a terminal");
    assert!(!lab.at("state.json").exists() && !lab.at("state.json.lock").exists());
    let json = lab.json(&["status", "find"], 0);
    assert_eq!(json["schema"], "babysit/status/v1");
    assert_eq!(json["totals"]["shards"], 2);
}

#[test]
fn fake_slurm_a_dry_run_says_what_only_a_tick_asks() {
    let lab = Lab::new();
    let lanes = "[own]\nqos = \"own\"\ngpus = 2\npark = 1\n[extra]\nqos = \"extra\"\n[policy]\n";
    let dry = |mode: &str| {
        lab.write("shards.toml", &format!("{TOML}{lanes}lanes = \"{mode}\"\n"));
        lab.run(&["tick", "--dry-run"], 0).err
    };
    has(&dry("both"), "not known yet: does this Slurm take one job in both lanes?");
    assert_eq!(lab.asked_of_sbatch(), 0, "not even by a dry submission");
    assert_eq!(dry("adaptive"), "");
}

#[test]
fn fake_slurm_first_tick_submits_each_shard_once() {
    let lab = Lab::new();
    let dry = lab.run(&["tick", "--dry-run"], 0).out;
    has(&dry, "would submit find/s0 (attempt 1)");
    has(&dry, "sbatch");
    assert_eq!((lab.asked_of_sbatch(), lab.at("state.json").exists()), (0, false));

    let said = lab.run(&["tick"], 0);
    has(&said.out, "restore/s0: submitted as job 101 (attempt 1)");
    assert_eq!(lab.asked_of_sbatch(), 3);
    let json = lab.json(&["status"], 0);
    assert_eq!(json["totals"]["pending"], 3);
    assert_eq!(json["last_tick"]["outcome"], "ok");
    has(&lab.run(&["log", "find/s1"], 0).out, "find/s1: submitted as job");
    has(&lab.run(&["why", "find/s1"], 0).out, "find/s1: Just submitted to Slurm.");
    // Not in the queue, accounting silent: nobody may submit again.
    lab.run(&["tick"], 0);
    assert_eq!(lab.asked_of_sbatch(), 3);
}

#[test]
fn fake_slurm_rows_and_money_come_from_the_files() {
    let lab = Lab::new();
    std::fs::create_dir_all(lab.at("runs/find/s0")).expect("a folder");
    std::fs::create_dir_all(lab.at("runs/find/s1")).expect("a folder");
    for row in 0..44 {
        lab.write(&format!("runs/find/s0/row_{row}.json"), "{}");
    }
    lab.write("runs/find/s0.jsonl", &"{\"cost_usd\": 0.25}\n".repeat(44));
    // Over its cap before it ever ran: it is not submitted, and a person is needed.
    lab.write("runs/find/s1/row_0.json", "{}");
    lab.write("runs/find/s1.jsonl", "{\"cost_usd\": 15.5}\n");
    has(&lab.run(&["tick"], 0).out, "find/s1: cost cap reached: $15.50 of $15 spent");
    assert_eq!(lab.asked_of_sbatch(), 1);
    let json = lab.json(&["status", "find", "--check"], 3);
    let state = |i: usize| (json["shards"][i]["state"].clone(), json["shards"][i]["rows"].clone());
    assert_eq!(state(0), ("done".into(), serde_json::json!({ "done": 44, "total": 44 })));
    assert_eq!(state(1).0, "over-cap");
    assert_eq!(json["totals"]["spent"], 26.5);

    let raised = lab.run(&["cap", "set", "find/s1", "700"], 0).out;
    has(&raised, "find/s1: goes on: its cap is now $700");
    lab.run(&["status", "--check"], 0);
    lab.run(&["tick"], 0);
    assert_eq!(lab.asked_of_sbatch(), 2);
}

#[test]
fn fake_slurm_failing_probe_skips_the_tick_and_cron_is_told_once() {
    let lab = Lab::new();
    lab.program("squeue", "echo 'slurm_load_jobs error: Connection reset by peer' >&2; exit 1");
    let first = lab.run(&["tick"], 75);
    has(&first.err, "Connection reset by peer");
    assert_eq!((first.out.as_str(), lab.asked_of_sbatch()), ("", 0));
    let second = lab.run(&["tick"], 75);
    assert_eq!((second.out.as_str(), second.err.as_str()), ("", ""));
    has(&lab.run(&["tick", "-v"], 75).err, "3 ticks skipped in a row");
    let tick = &lab.json(&["status"], 0)["last_tick"];
    assert_eq!((&tick["outcome"], &tick["skipped_in_a_row"]), (&"skipped".into(), &3.into()));
    assert_eq!(lab.json(&["tick"], 75)["outcome"], "skipped");
    assert_eq!(lab.json(&["tick", "--dry-run"], 75)["error"]["kind"], "skipped");
}

#[test]
fn no_squeue_at_all_is_said_with_the_next_step() {
    let lab = Lab::new();
    std::fs::remove_file(lab.at("bin/squeue")).expect("removed");
    has(&lab.run(&["tick"], 75).err, "bin_dir");
    has(&lab.run(&["check"], 1).out, "bin_dir");
}

#[test]
fn fake_slurm_second_tick_leaves_at_once_and_status_still_reads() {
    let lab = Lab::new();
    lab.run(&["tick"], 0);
    let held = Store::at(lab.at("state.json")).lock(Duration::ZERO).expect("free");
    let said = lab.run(&["tick"], 75);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("", ""), "cron would mail it");
    has(&lab.run(&["tick", "-v"], 75).err, "another babysit");
    assert_eq!(lab.json(&["tick"], 75)["error"]["kind"], "busy");
    lab.run(&["status"], 0);
    drop(held);
    lab.run(&["tick"], 0);
}

#[test]
fn fake_slurm_a_state_that_cannot_be_read_is_kept_and_nothing_is_submitted() {
    for (text, want) in [
        ("", "state.json"),
        ("{ torn", "state.json"),
        (r#"{ "version": 7, "project": "oracle-plan" }"#, "newer"),
    ] {
        let lab = Lab::new();
        lab.write("state.json", text);
        for command in
            [&["tick"][..], &["status"], &["cap", "set", "find", "25"], &["hold", "find"]]
        {
            has(&lab.run(command, 1).err, want);
        }
        assert_eq!(lab.json(&["tick"], 1)["error"]["kind"], "state");
        assert_eq!((lab.read("state.json").as_str(), lab.asked_of_sbatch()), (text, 0));
    }
}

#[test]
fn fake_slurm_a_state_folder_that_cannot_be_written_submits_nothing() {
    let lab = Lab::new();
    // A file where the folder should be: refused for root too.
    lab.write("file", "");
    let said = lab.run(&["tick", "--state", "file/state.json"], 1);
    has(&said.err, "file");
    assert_eq!(lab.asked_of_sbatch(), 0);
}

#[test]
fn what_is_wrong_with_shards_toml_is_said_with_its_line() {
    let lab = Lab::new();
    lab.write("shards.toml", &TOML.replace("row_time = \"15m\"", "row_tme = \"15m\""));
    has(&lab.run(&["tick"], 2).err, "shards.toml:");
    let error = &lab.json(&["status"], 2)["error"];
    assert_eq!(error["kind"], "config");
    has(error["message"].as_str().expect("text"), "row_time");
    has(error["hint"].as_str().expect("text"), "babysit check");
    std::fs::remove_file(lab.at("shards.toml")).expect("removed");
    has(&lab.run(&["status", "--config", "nowhere.toml"], 2).err, "nowhere.toml");
}

#[test]
fn usage_errors_are_json_too() {
    let lab = Lab::new();
    for arguments in [&["statsu"][..], &["cap", "set", "find"], &["loop", "--every", "0s"]] {
        assert_eq!(lab.json(arguments, 2)["error"]["kind"], "usage", "{arguments:?}");
    }
    lab.run(&["--help"], 0);
    lab.run(&[], 2);
    has(&lab.run(&["why", "find/s9"], 2).err, "did you mean `find/s");
    has(&lab.run(&["hold", "fnd"], 2).err, "did you mean `find`");
}

#[test]
fn caps_are_kept_with_who_and_when() {
    let lab = Lab::new();
    let said = lab.run(&["cap", "set", "find", "25"], 0);
    has(&said.out, "$15 -> $25");
    has(&said.out, "ceiling of all shards: $74");
    lab.run(&["cap", "set", "restore/s0", "$40.50"], 0);
    let again = lab.run(&["cap", "set", "restore", "30"], 0).out;
    has(&again, "restore/s0 keeps its own cap $40.50, set by anna");
    let show = lab.run(&["cap", "show"], 0).out;
    has(&show, "set by anna (uid ");
    has(&show, "ceiling $90.50");
    assert_eq!(lab.json(&["status"], 0)["totals"]["ceiling"], 90.5);
    has(&lab.run(&["log"], 0).out, "cap of find set: $15 -> $25, by anna");
    for bad in ["0", "-3", "NaN", "inf", "much"] {
        lab.run(&["cap", "set", "find", "--", bad], 2);
    }
    lab.run(&["cap", "set", "find/*", "3"], 2);
    assert_eq!(lab.json(&["status"], 0)["totals"]["ceiling"], 90.5);
}

#[test]
fn fake_slurm_hold_release_retry_cancel() {
    let lab = Lab::new();
    has(&lab.run(&["hold", "find/*"], 0).out, "find/s1 is held");
    has(&lab.run(&["hold", "find/s0"], 0).out, "find/s0 is held already");
    has(&lab.run(&["status", "held"], 0).out, "babysit release find/s0");
    // A person's own hold is no question to a person.
    lab.run(&["status", "--check"], 0);
    lab.run(&["tick"], 0);
    assert_eq!(lab.asked_of_sbatch(), 1);
    has(&lab.run(&["release", "find/s0"], 0).out, "is released");
    has(&lab.run(&["retry", "restore"], 0).out, "has no failure to clear");

    has(&lab.run(&["cancel", "restore/s0", "find"], 0).out, "its job 101 is being ended");
    has(&lab.read("bin/cancelled"), "101");
    has(&lab.run(&["retry", "restore/s0"], 1).out, "was cancelled for good");
    let shard = &lab.json(&["status", "find/s0"], 0)["shards"][0];
    assert_eq!((&shard["state"], &shard["why_code"]), (&"cancelled".into(), &"cancelled".into()));
    lab.run(&["tick"], 0);
    assert_eq!(lab.asked_of_sbatch(), 1, "cancelled shards never come back");
}

#[test]
fn fake_slurm_a_tick_with_nothing_to_tell_prints_nothing() {
    let lab = Lab::new();
    lab.run(&["cancel", "find", "restore"], 0);
    let said = lab.run(&["tick"], 0);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("", ""));
    lab.run(&["loop", "--until-done"], 0);
}

#[test]
fn fake_slurm_loop_says_that_a_person_is_needed() {
    let lab = Lab::new();
    lab.run(&["cancel", "find"], 0);
    lab.program("sbatch", "echo 'sbatch: error: Invalid qos specification' >&2; exit 1");
    let said = lab.run(&["loop", "--every", "1s", "--until-done"], 3);
    has(&said.out, "Invalid qos specification");
    has(&lab.run(&["status", "--check"], 3).out, "needs a person");
}

#[test]
fn fake_slurm_sigterm_ends_the_loop_after_the_tick() {
    let lab = Lab::new();
    // The tick ends its own loop, so that nobody has to guess how long a tick takes.
    lab.program("sinfo", &format!("kill -TERM $PPID\n{SINFO}"));
    let said = lab.run(&["loop", "--every", "1h"], 0);
    has(&said.out, "submitted as job");
    assert_eq!(lab.json(&["status"], 0)["last_tick"]["outcome"], "ok");
}

/// shards.toml is broken, put right and broken in the same way again: each time somebody is told.
#[test]
fn fake_slurm_loop_tells_a_fault_that_comes_back() {
    let lab = Lab::new();
    lab.write("good.toml", &lab.read("shards.toml"));
    let at = lab.at("");
    let edits = format!(
        "cd '{}'; echo >> ticks\n\
         case $(wc -l < ticks) in\n\
         1|3) echo 'rows =' > shards.toml;;\n\
         2) cp good.toml shards.toml;;\n\
         *) kill -TERM $PPID;;\n\
         esac\n",
        at.display()
    );
    lab.program("sinfo", &format!("{edits}{SINFO}"));
    let said = lab.run(&["loop", "--every", "1s"], 0);
    assert_eq!(said.err.matches("going on with it as it was").count(), 2, "{}", said.err);
}

#[test]
fn fake_slurm_check_names_what_can_never_fit() {
    let lab = Lab::new();
    has(&lab.run(&["check"], 0).out, "fine (3 shards, 152 rows)");
    lab.write(
        "shards.toml",
        &TOML.replace("rows = 64", "rows = 64\ngpus = 8\nsubmit = \"queued\""),
    );
    let said = lab.run(&["check"], 3);
    has(&said.out, "NO_FIT_PLACEMENT");
    has(&said.out, "4x rtx4090 on x1");
    assert_eq!(lab.json(&["check"], 3)["faults"][0]["kind"], "NO_FIT_PLACEMENT");
    assert!(!lab.at("state.json").exists());
}

#[test]
fn fake_slurm_check_tells_unknown_models_and_what_a_request_leaves_out() {
    let lab = Lab::new();
    let row = "row x1 gpu idle gpu:rtx4090:4 'gpu:rtx4090:0(IDX:N/A)' 0/16/0/16 64000 0\n";
    let rows = [
        // As Slurm spells it here, not as shards.toml does.
        "row x1 gpu idle gpu:RTX4090:4 'gpu:RTX4090:0(IDX:N/A)' 0/16/0/16 64000 0",
        "row x2 gpu idle gpu:rtx5090:4 'gpu:rtx5090:0(IDX:N/A)' 0/16/0/16 64000 0",
        "row x3 gpu idle gpu:rtx5090:8,gpu:old:1 'gpu:rtx5090:0(IDX:N/A),gpu:old:0(IDX:N/A)' \
         0/16/0/16 64000 0\n",
    ];
    lab.program("sinfo", &SINFO.replace(row, &rows.join("\n")));
    let tiers = "[tiers.rtx4090]\nrank = 1\ntflops = 82.6\n\
                 [tiers.rtx5090]\nrank = 2\ntflops = 104.8\n[families.find]\n\
                 min_tier = \"rtx4090\"\n";
    lab.write("shards.toml", &TOML.replace("[families.find]\n", tiers));
    let said = lab.run(&["check"], 0).out;
    has(&said, "GPU model `old` is in no tier");
    assert!(!said.contains("`RTX4090`"), "{said}");
    has(&said, "shards.toml:13: families.find.min_tier: jobs of find/s0 and 1 more never get");
    has(&said, "8x rtx5090 on x3");
}

#[test]
fn usage_before_the_first_tick_and_of_a_lab_that_is_not_there() {
    let lab = Lab::new();
    has(&lab.run(&["usage"], 0).out, "nothing is charged yet");
    let json = lab.json(&["usage", "BCG"], 0);
    assert_eq!(json["schema"], "babysit/usage/v1");
    assert_eq!(json["labs"][0]["name"], "BCG");
    assert_eq!(json["labs"][0]["sum_is_usage"], true);
    has(&lab.run(&["usage", "BCH"], 2).err, "did you mean `BCG`?");
    assert!(!lab.at("state.json").exists());
}

#[test]
fn the_dead_mans_line_follows_the_clock() {
    let lab = Lab::new();
    lab.program("squeue", "exit 1");
    let at = |now: &str, arguments: &[&str]| {
        let output = lab.command(arguments).env("BABYSIT_NOW", now).output().expect("it ran");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    at("2025-11-02T15:00:00Z", &["tick"]);
    has(&at("2025-11-02T15:47:10Z", &["status"]), "last tick 47m ago: does cron still run it?");
    has(&at("1762098430", &["status", "--json"]), "\"at\": \"2025-11-02T15:00:00Z\"");
}

#[test]
fn colour_is_as_asked() {
    let lab = Lab::new();
    let coloured = |arguments: &[&str], env: &[(&str, &str)]| {
        let output = lab.command(arguments).envs(env.iter().copied()).output().expect("it ran");
        output.stdout.contains(&0x1b)
    };
    assert!(coloured(&["status", "--color", "always"], &[("NO_COLOR", "1")]));
    assert!(coloured(&["--color=auto", "status"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&["status"], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!coloured(&["status", "--color=never"], &[("CLICOLOR_FORCE", "1")]));
}

#[test]
fn a_reader_that_left_is_no_error() {
    let lab = Lab::new();
    let program = assert_cmd::cargo::cargo_bin("babysit");
    let run = format!("{} status | true; echo ${{PIPESTATUS[0]}}", program.display());
    let output = std::process::Command::new("bash")
        .args(["-c", &run])
        .current_dir(lab.dir.path())
        .output()
        .expect("it ran");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

fn segments(lab: &Lab) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(lab.at("state.json.recording")).into_iter().flatten().flatten();
    let paths = listed.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "gz")).collect()
}

#[test]
fn fake_slurm_cycles_are_recorded_and_planned_again() {
    let lab = Lab::new();
    has(&lab.run(&["replay"], 1).err, "no recording can be read");
    lab.run(&["tick"], 0);
    has(&lab.run(&["replay"], 0).out, "1 cycle planned again, all the same");
    // Nothing happens and nothing is decided: nothing is written, until an hour has passed.
    let lab = Lab::new();
    lab.run(&["hold", "find", "restore"], 0);
    let tick_at = |moment: &str| {
        lab.command(&["tick"]).env("BABYSIT_NOW", moment).assert().code(0);
        let lengths = segments(&lab).into_iter().map(|path| path.metadata().expect("there").len());
        lengths.sum::<u64>()
    };
    let first = tick_at("2027-01-01T00:00:00Z");
    assert_eq!(tick_at("2027-01-01T00:01:00Z"), first);
    assert_eq!(tick_at("2027-01-01T00:59:00Z"), first);
    assert!(tick_at("2027-01-01T01:00:01Z") > first);
    let json = lab.json(&["replay"], 0);
    assert_eq!((&json["same"], &json["project"]), (&true.into(), &"oracle-plan".into()));
}

#[test]
fn fake_slurm_a_recording_is_off_where_it_is_not_wanted_and_fails_no_tick() {
    let lab = Lab::new();
    let off = "[policy]\njournal_observations = false\n[families.find]";
    lab.write("shards.toml", &TOML.replacen("[families.find]", off, 1));
    lab.run(&["tick"], 0);
    assert!(!lab.at("state.json.recording").exists());
    // On, but there is no room for it, or no right to it.
    lab.write("shards.toml", TOML);
    lab.write("state.json.recording", "a file, where a folder should be");
    lab.run(&["hold", "find/s0"], 0);
    lab.run(&["release", "find/s0"], 0);
    let said = lab.run(&["tick", "-v"], 0).err;
    has(&said, "state.json.recording was not written: ");
    assert_eq!(lab.json(&["status"], 0)["last_tick"]["outcome"], "ok");
}
