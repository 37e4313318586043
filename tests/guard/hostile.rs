//! What others write into names, logs and folders does no harm.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use crate::common;
use crate::stand_in::*;

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
    let thrown_away = ["state.json.tmp", "state.json.clock", "state.json.clock.tmp"];
    let kept = ["state.json", "state.json.lock", "state.json.bak"];
    for name in thrown_away.into_iter().chain(kept) {
        let lab = Lab::new();
        lab.write("precious", "mine");
        symlink(lab.at("precious"), lab.at(name)).expect("linked");
        let code = lab.run_at(&["tick"], START).code;
        assert_eq!(lab.read("precious"), "mine", "{name}");
        // What is only thrown away may be a link; what is read or locked may not.
        let refused = kept.contains(&name);
        assert_eq!(code, Some(i32::from(refused)), "{name}");
        assert_eq!(lab.asked_of_sbatch(), if refused { 0 } else { 3 }, "{name}");
    }
    // A tick that moves the clock alone puts its file in the place of the link.
    let lab = Lab::new();
    lab.write("precious", "mine");
    lab.run_at(&["tick"], START);
    lab.run_at(&["tick"], START + 60);
    std::fs::remove_file(lab.at("state.json.clock")).ok();
    symlink(lab.at("precious"), lab.at("state.json.clock")).expect("linked");
    lab.run_at(&["tick"], START + 120);
    assert_eq!(lab.read("precious"), "mine");
    assert!(lab.read("state.json.clock").contains("last_tick"));
    let lab = Lab::new();
    lab.write("precious", "mine\n");
    symlink(lab.at("precious"), lab.at("journal.jsonl")).expect("linked");
    lab.run(&["tick"], 1);
    assert_eq!((lab.read("precious").as_str(), lab.asked_of_sbatch()), ("mine\n", 0));
}

#[test]
fn a_hostile_log_line_does_nothing_to_the_terminal() {
    use babysit::model::state::{Gate, HeldWhy};
    use babysit::output::{evidence, table};
    let (policy, mut state) = common::afternoon();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{9b}31m\u{202e}gnp.exe\0";
    let why = HeldWhy::Failures { count: 3, log: vec![evil.to_owned()] };
    state.shards[10].gate = Gate::Held { why, at: common::NOW };
    let status = common::status(&policy, &state);
    let look = common::look(None);
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
