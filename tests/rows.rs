//! `babysit row`: many processes on one claims folder, some of them killed at any moment.
#![allow(clippy::disallowed_methods, reason = "the test plays the programs that take rows")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use babysit::store::free_row;

const ROWS: u32 = 30;

fn babysit(claims: &Path, shard: &str, job: u32, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_babysit"));
    command
        .args(words)
        .env("BABYSIT_ROW_CLAIMS", claims)
        .env("BABYSIT_ROW_CLAIMANT", format!("babysit:0af:find/{shard}:a{job}:00ff"))
        .env("BABYSIT_ROWS", ROWS.to_string())
        .env("SLURM_JOB_ID", job.to_string())
        .stdin(Stdio::null());
    command
}

fn run(claims: &Path, shard: &str, job: u32, words: &[&str]) -> (i32, String) {
    let Output { status, stdout, .. } =
        babysit(claims, shard, job, words).output().expect("it starts");
    let out = String::from_utf8(stdout).expect("text").trim().to_owned();
    (status.code().expect("an exit code"), out)
}

#[test]
fn a_program_takes_rows_until_none_is_left() {
    let place = tempfile::tempdir().expect("a folder");
    let claims = place.path().join("rows");
    assert_eq!(run(&claims, "s1", 7, &["row", "take"]), (0, "0".into()));
    assert_eq!(run(&claims, "s1~2", 8, &["row", "take"]), (0, "1".into()));
    let (code, _) = run(&claims, "s1~2", 8, &["row", "done", "0"]);
    assert_eq!(code, 1, "it is another's");
    fs::write(place.path().join("row_2.json"), "{}").expect("a row's file");
    let unless = format!("{}/row_{{row}}.json", place.path().display());
    let words = ["row", "take", "--done", "1", "--unless", &unless];
    assert_eq!(run(&claims, "s1~2", 8, &words), (0, "3".into()));
    assert!(claims.join("1.done-s1~2.a8").is_file());
    let (code, out) = run(&claims, "s1", 7, &["row", "take", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &json["row"]), (0, &2.into()));
    let mut last = None;
    for _ in 4..ROWS {
        last = Some(run(&claims, "s1", 7, &["row", "take"]));
    }
    assert_eq!(last, Some((0, (ROWS - 1).to_string())));
    assert_eq!(run(&claims, "s1", 7, &["row", "take"]), (3, String::new()));
}

#[test]
fn outside_a_job_of_a_split_family_it_says_so() {
    let said = Command::new(env!("CARGO_BIN_EXE_babysit"))
        .args(["row", "take"])
        .env_remove("BABYSIT_ROW_CLAIMS")
        .output()
        .expect("it starts");
    assert_eq!(said.status.code(), Some(2));
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(text.contains("BABYSIT_ROW_CLAIMS") && text.contains("split"), "{text}");
}

/// Workers that are killed while they take a row, or with one in hand; what their jobs had is freed
/// once they are over, and each row is finished exactly once.
#[test]
fn killed_processes_cost_no_row_and_double_none() {
    let place = tempfile::tempdir().expect("a folder");
    let claims = place.path().join("rows");
    let done: Mutex<BTreeMap<u32, u32>> = Mutex::default();
    thread::scope(|scope| {
        for worker in 1..=5u32 {
            let (claims, done) = (&claims, &done);
            scope.spawn(move || work(claims, worker, done));
        }
    });
    let done = done.into_inner().expect("sound");
    assert!(done.len() == ROWS as usize && done.values().all(|times| *times == 1), "{done:?}");
    let odd = |name: &str| name.starts_with('.') && !name.starts_with(".new-");
    for entry in fs::read_dir(&claims).expect("a listing") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        assert!(!odd(&name), "{name}");
    }
}

fn work(claims: &Path, worker: u32, done: &Mutex<BTreeMap<u32, u32>>) {
    let shard = format!("s1~{worker}");
    for turn in 0.. {
        // A new job each time it died, as babysit would submit it.
        let job = worker * 1000 + turn / 4;
        if turn % 4 == 3 {
            let mut child = babysit(claims, &shard, job, &["row", "take"])
                .stdout(Stdio::null())
                .spawn()
                .expect("it starts");
            thread::sleep(Duration::from_millis(u64::from(turn * worker % 23)));
            child.kill().expect("killed, or over by itself");
            child.wait().expect("over");
            bury(claims, &shard, job);
            continue;
        }
        let (code, out) = run(claims, &shard, job, &["row", "take"]);
        if code == 3 {
            return;
        }
        let row: u32 = out.parse().expect("a row");
        *done.lock().expect("sound").entry(row).or_default() += 1;
        assert_eq!(run(claims, &shard, job, &["row", "done", &out]).0, 0);
    }
}

/// What the tick does with a job that is over: whatever it had begun and not marked is free again.
fn bury(claims: &Path, shard: &str, job: u32) {
    let claimant = format!("babysit:0af:find/{shard}:a{job}:00ff {job}");
    for row in 0..ROWS {
        if !claims.join(format!("{row}.done-{shard}.a{job}")).exists() {
            free_row(claims, row, &claimant).expect("frees or not");
        }
    }
}
