//! `babysit archive`: what is in it, and what a stop, a full disk or a changing file does to it.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::lab::{Lab, TOML, has};

impl Lab {
    /// Rows and money of the first `rows` rows of each shard, and a tick that counts them.
    fn with_rows(rows: u32) -> Lab {
        let lab = Lab::new();
        for (family, shard) in [("find", "s0"), ("find", "s1"), ("restore", "s0")] {
            std::fs::create_dir_all(lab.at(&format!("runs/{family}/{shard}"))).expect("a folder");
            for row in 0..rows.min(if family == "find" { 44 } else { 64 }) {
                lab.write(
                    &format!("runs/{family}/{shard}/row_{row}.json"),
                    &format!("{{\"row\":{row}}}"),
                );
            }
            lab.write(&format!("runs/{family}/{shard}.jsonl"), "{\"cost_usd\": 0.25}\n");
            lab.write(&format!("runs/{family}/{shard}/scratch.tmp"), "not a row");
        }
        lab.run(&["tick"], 0);
        lab
    }

    fn archive(&self, code: i32) -> String {
        self.run(&["archive", "--out-dir", "kept"], code).out
    }
}

/// Path below a folder -> contents; manifests left out, since they hold times.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = folder.join(entry.file_name());
            let name = path.display().to_string();
            if entry.path().is_dir() {
                folders.push(path);
            } else if name != "manifest.jsonl" && name != "SHA256SUMS" {
                found.insert(name, std::fs::read(entry.path()).expect("a file"));
            }
        }
    }
    found
}

fn sums_hold(folder: &Path) {
    let check = Command::new("sha256sum")
        .args(["--check", "--strict", "--quiet", "SHA256SUMS"])
        .current_dir(folder)
        .output()
        .expect("sha256sum is there");
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}

#[test]
fn it_is_partial_until_every_shard_is_done_and_then_loses_the_word() {
    let lab = Lab::with_rows(44);
    let dry = lab.run(&["archive", "--out-dir", "kept", "--dry-run"], 0).out;
    has(&dry, "kept_PARTIAL: 139 files would be copied, 0 are there");
    assert!(!lab.at("kept_PARTIAL").exists() && !lab.at("kept").exists());

    let said = lab.archive(0);
    has(&said, "kept_PARTIAL: 139 files");
    has(&said, "139 copied now");
    has(&said, "2 of 3 are done\nnot done yet:\n  restore/s0 (44/64)");
    let partial = lab.at("kept_PARTIAL");
    sums_hold(&partial);
    let held = tree(&partial);
    assert_eq!(held["project/runs/find/s1/row_43.json"], b"{\"row\":43}");
    assert_eq!(held["babysit/shards.toml"], TOML.as_bytes());
    assert_eq!(held["babysit/state.json"], lab.read("state.json").as_bytes());
    for name in ["project/runs/restore/s0.jsonl", "babysit/journal.jsonl"] {
        assert!(held.contains_key(name), "{name}");
    }
    // The past can be planned again from there, whatever becomes of the state's own folder.
    let recording = "kept_PARTIAL/babysit/state.json.recording";
    has(&lab.run(&["replay", recording], 0).out, "1 cycle planned again, all the same");
    assert!(!held.keys().any(|name| name.contains("scratch") || name.contains(".part")));
    assert!(!lab.at("kept").exists());
    has(&lab.archive(0), "0 copied now");

    for row in 44..64 {
        lab.write(&format!("runs/restore/s0/row_{row}.json"), "{}");
    }
    lab.run(&["tick"], 0);
    let json = lab.json(&["archive", "--out-dir", "kept"], 0);
    assert_eq!((&json["whole"], &json["files"]), (&true.into(), &159.into()), "{json}");
    // The new rows, and what the tick wrote.
    assert_eq!(json["copied"], 23);
    assert!(!partial.exists());
    sums_hold(&lab.at("kept"));
    has(&lab.archive(0), "0 copied now");

    // A shard that is added later makes it partial again.
    lab.write("shards.toml", &TOML.replace("shards = 2", "shards = 3"));
    has(&lab.archive(0), "kept_PARTIAL: ");
    assert!(!lab.at("kept").exists());
}

#[test]
fn a_kill_at_any_moment_loses_nothing_that_was_verified() {
    let lab = Lab::with_rows(1);
    let many = TOML.replace("rows = 44", "rows = 700").replace("rows = 64", "rows = 1");
    lab.write("shards.toml", &many);
    for shard in ["s0", "s1"] {
        for row in 1..700 {
            lab.write(&format!("runs/find/{shard}/row_{row}.json"), &format!("{row}"));
        }
    }
    lab.run(&["tick"], 0);
    let program = assert_cmd::cargo::cargo_bin("babysit");
    let lines = || lab.read("kept_PARTIAL/manifest.jsonl").lines().count();
    for round in 1..=2 {
        let mut child = Command::new(&program)
            .args(["archive", "--out-dir", "kept"])
            .current_dir(lab.dir.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        let before = lines();
        while lines() == before && child.try_wait().expect("its state").is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().expect("killed");
        child.wait().expect("gone");
        assert!(lines() > before || lab.at("kept").exists(), "round {round}");
    }
    // One that was cut off in the middle of its line and of its copy.
    let manifest = lab.at("kept_PARTIAL/manifest.jsonl");
    if manifest.exists() {
        let text = std::fs::read(&manifest).expect("lines");
        std::fs::write(&manifest, &text[..text.len() - 7]).expect("cut");
        lab.write("kept_PARTIAL/project/runs/find/s0/.row_699.json.part", "half");
        std::fs::remove_file(lab.at("kept_PARTIAL/project/runs/find/s0/row_1.json"))
            .expect("there");
    }
    let known = lines();
    let json = lab.json(&["archive", "--out-dir", "kept"], 0);
    assert_eq!(json["whole"], true, "{json}");
    if known > 0 {
        let copied = json["copied"].as_u64().expect("a number") as usize;
        assert!(copied <= 1408 - (known - 2) + 1, "copied {copied}, and {known} lines were there");
    }
    let held = tree(&lab.at("kept"));
    assert_eq!(held.keys().filter(|name| name.contains("/row_")).count(), 1401);
    assert!(!held.keys().any(|name| name.contains(".part")), "a remains of a copy");
    assert_eq!(held["project/runs/find/s0/row_1.json"], b"1");
    sums_hold(&lab.at("kept"));
}

/// A write that fails is what a full disk is to a program: here files may not grow beyond 1 KiB.
#[test]
fn a_full_disk_is_told_and_the_next_run_goes_on() {
    let lab = Lab::with_rows(2);
    lab.write("runs/restore/s0/row_0.json", &"x".repeat(100_000));
    let script = "trap '' XFSZ; ulimit -f 2; exec \"$0\" archive --out-dir kept";
    let output = Command::new("bash")
        .args(["-c", script])
        .arg(assert_cmd::cargo::cargo_bin("babysit"))
        .current_dir(lab.dir.path())
        .output()
        .expect("bash is there");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{err}");
    has(&err, "kept_PARTIAL/");
    has(&err, "write it: File too large");
    has(&err, "run it again");
    let held = tree(&lab.at("kept_PARTIAL"));
    assert!(!held.keys().any(|name| name.contains(".part")), "{:?}", held.keys());
    lab.archive(0);
    let held = tree(&lab.at("kept_PARTIAL"));
    assert_eq!(held["project/runs/restore/s0/row_0.json"].len(), 100_000);
    sums_hold(&lab.at("kept_PARTIAL"));
}

#[test]
fn what_changed_is_copied_again_and_what_is_lacking_is_told() {
    let lab = Lab::with_rows(64);
    has(&lab.archive(0), "3 of 3 are done");
    // The same length, so that only times and hashes tell.
    lab.write("runs/find/s0/row_1.json", "{\"row\":9}");
    // A copy that somebody damaged, which its size does not show.
    lab.write("kept/project/runs/find/s0/row_2.json", "{\"row\":7}");
    let said = lab.archive(0);
    has(&said, "2 copied now");
    has(&said, "copied again:\n");
    let held = tree(&lab.at("kept"));
    assert_eq!(held["project/runs/find/s0/row_1.json"], b"{\"row\":9}");
    assert_eq!(held["project/runs/find/s0/row_2.json"], b"{\"row\":2}");

    // Results that are gone, lead away or are no files.
    std::fs::remove_file(lab.at("runs/find/s1/row_3.json")).expect("there");
    std::fs::remove_file(lab.at("runs/find/s1/row_4.json")).expect("there");
    let elsewhere = tempfile::tempdir().expect("a folder");
    std::fs::write(elsewhere.path().join("secret"), "s").expect("written");
    symlink(elsewhere.path().join("secret"), lab.at("runs/find/s1/row_4.json")).expect("a link");
    let lab_two = Lab::with_rows(64);
    for name in ["row_3.json", "row_4.json"] {
        let path = lab_two.at(&format!("runs/find/s1/{name}"));
        std::fs::remove_file(&path).expect("there");
        symlink(elsewhere.path().join("secret"), path).expect("a link");
    }
    let said = lab_two.archive(1);
    has(&said, "kept_PARTIAL");
    has(&said, "row_3.json: a symlink that leads away");
    has(&said, "find/s1 is done with 44 rows, but 42 files are there");
    let held = tree(&lab_two.at("kept_PARTIAL"));
    assert!(!held.contains_key("project/runs/find/s1/row_3.json"));
    // What the archive has of the first lab stays, though its source is gone.
    has(&lab.archive(1), "is done with 44 rows, but 42 files are there");
    assert!(tree(&lab.at("kept_PARTIAL")).contains_key("project/runs/find/s1/row_3.json"));
}

#[test]
fn an_archive_does_not_swallow_itself_nor_take_a_folder_that_is_no_archive() {
    let lab = Lab::with_rows(2);
    lab.write(
        "shards.toml",
        &TOML.replace("runs/find/{shard}/row_*.json", "runs/**/{shard}/row_*.json"),
    );
    lab.write(
        "shards.toml",
        &lab.read("shards.toml").replacen("runs/restore/{shard}/row_", "runs/r/{shard}/row_", 1),
    );
    let words = ["archive", "--out-dir", "runs/kept"];
    lab.run(&words, 0);
    let first = tree(&lab.at("runs/kept_PARTIAL")).len();
    lab.run(&words, 0);
    assert_eq!(tree(&lab.at("runs/kept_PARTIAL")).len(), first);

    has(&lab.run(&["archive", "--out-dir", "x_PARTIAL"], 1).err, "without _PARTIAL");
    std::fs::create_dir(lab.at("kept_PARTIAL")).expect("a folder");
    lab.write("kept_PARTIAL/manifest.jsonl", "{\"mine\": 1}\n");
    has(&lab.run(&["archive", "--out-dir", "kept"], 1).err, "no archive of babysit's");
    assert_eq!(lab.read("kept_PARTIAL/manifest.jsonl"), "{\"mine\": 1}\n");
    // Not ours, and whole: its files would be left alone, but not its name.
    std::fs::create_dir(lab.at("photos")).expect("a folder");
    lab.write("photos/cat.jpg", "cat");
    has(&lab.run(&["archive", "--out-dir", "photos"], 1).err, "no archive of babysit's");
    assert!(lab.at("photos/cat.jpg").exists());
    lab.run(&["archive"], 2);
}
