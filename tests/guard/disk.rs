//! Saves that cannot be made, and what is told then.

use crate::stand_in::*;

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
