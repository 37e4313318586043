//! `babysit log` as a user runs it, also while another process appends and rotates.
#![allow(clippy::disallowed_methods, reason = "a test starts the program and makes its files")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

#[path = "common/stand_in.rs"]
mod stand_in;

use stand_in::{Lab, TOML};

/// 2026-11-03T15:00:00Z
const NOW: i64 = 1_793_718_000;

/// Longest that a test waits for a line that must come.
const PATIENCE: Duration = Duration::from_secs(30);

impl Lab {
    fn asked(&self, arguments: &[&str]) -> Output {
        self.command(arguments, NOW).output().expect("it ran")
    }

    fn lines(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.asked(arguments);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {err}");
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    fn put(&self, at: &str, shard: Option<&str>, kind: &str, text: &str) {
        let mut line = json!({
            "schema": "babysit/journal/v1", "at": at, "shard": shard, "kind": kind, "text": text,
            "project": "oracle-plan",
        });
        if shard.is_none() {
            line["family"] = "find".into();
        }
        self.append("journal.jsonl", &format!("{line}\n"));
    }

    fn history() -> Lab {
        let lab = Lab::new();
        lab.write("shards.toml", &TOML.replace("shards = 1", "shards = 2"));
        // A state, without which a journal would tell that one was lost.
        lab.lines(&["hold", "restore/s1"]);
        std::fs::remove_file(lab.at("journal.jsonl")).expect("removed");
        lab.append("journal.jsonl.1", "{\"cut off\n");
        lab.put("2026-11-01T09:00:00Z", Some("find/s0"), "submitted", "submitted as job 7");
        std::fs::rename(lab.at("journal.jsonl"), lab.at("journal.jsonl.2")).expect("rotated");
        lab.put("2026-11-03T12:00:00Z", Some("find/s1"), "ended", "job 8 ended");
        lab.put("2026-11-03T14:00:00Z", Some("restore/s0"), "ended", "job 9 ended");
        lab.put("2026-11-03T14:30:00Z", None, "breaker-opened", "family find: 3 refused");
        lab.append("journal.jsonl", "{\"at\": \"2026-11-03T14:31:00Z\", \"text\": \"torn");
        lab
    }
}

#[test]
fn lines_are_chosen_by_shard_kind_time_and_number() {
    let lab = Lab::history();
    let all = ["submitted as job 7", "job 8 ended", "job 9 ended", "family find: 3 refused"];
    let shown = |arguments: &[&str], which: &[usize]| {
        let lines = lab.lines(&[&["log"], arguments].concat());
        let expected: Vec<&str> = which.iter().map(|n| all[*n]).collect();
        assert_eq!(lines.len(), expected.len(), "{arguments:?}: {lines:?}");
        for (line, text) in lines.iter().zip(expected) {
            assert!(line.ends_with(text), "{arguments:?}: {line}");
        }
    };
    shown(&[], &[0, 1, 2, 3]);
    shown(&["find/s0"], &[0]);
    shown(&["find"], &[0, 1, 3]);
    shown(&["*/s0", "find/s1"], &[0, 1, 2]);
    shown(&["--kind", "ended,breaker-opened"], &[1, 2, 3]);
    shown(&["--kind", "ended", "find"], &[1]);
    shown(&["--since", "2h"], &[2, 3]);
    shown(&["--since", "2026-11-03"], &[1, 2, 3]);
    shown(&["--until", "2026-11-03T14:00"], &[0, 1]);
    shown(&["-n", "2"], &[2, 3]);
    shown(&["-n", "1", "--kind", "ended"], &[2]);
    shown(&["-n", "0"], &[]);
    let json = lab.lines(&["log", "--json", "find/s1"]);
    let line: Value = serde_json::from_str(&json[0]).expect("JSON");
    assert_eq!((json.len(), &line["kind"]), (1, &"ended".into()));
}

#[test]
fn what_cannot_be_meant_is_answered_with_what_can() {
    let lab = Lab::history();
    for (arguments, hint) in [
        (&["log", "fnd"][..], "did you mean `find`?"),
        (&["log", "--kind", "endet"][..], "did you mean `ended`?"),
        (&["log", "--kind", "zzz"][..], "cycle-skipped, submitted"),
        (&["log", "--since", "soon"][..], "2026-11-02T15:00"),
    ] {
        let output = lab.asked(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(hint), "{arguments:?}: {said}");
    }
    let help = lab.asked(&["log", "--help"]).stdout;
    assert!(String::from_utf8_lossy(&help).contains("babysit log -n 20 --follow"));
}

/// A `log --follow` and the lines that it prints.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn of(lab: &Lab, arguments: &[&str]) -> Follower {
        let mut command = lab.command(&[&["log", "--follow"], arguments].concat(), NOW);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it started");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (send, lines) = channel();
        std::thread::spawn(move || {
            out.lines()
                .map_while(Result::ok)
                .take_while(|line| send.send(line.clone()).is_ok())
                .count()
        });
        Follower { child, lines }
    }

    #[track_caller]
    fn sees(&self, part: &str) {
        let line = self.lines.recv_timeout(PATIENCE).expect("a line");
        assert!(line.contains(part), "{part:?} is not in: {line}");
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.child.kill().expect("it is there");
        self.child.wait().expect("ended");
    }
}

#[test]
fn a_follower_sees_what_other_processes_append_and_rotate_away() {
    let lab = Lab::history();
    let follower = Follower::of(&lab, &["-n", "1", "find"]);
    follower.sees("family find: 3 refused");
    // Another babysit appends after the torn line; what is not asked for is not shown.
    lab.lines(&["hold", "restore/s0", "find/s0"]);
    follower.sees("find/s0: is held");
    for round in 0..3 {
        // Full: the next to append begins anew.
        let filler = json!({ "filler": "x".repeat(1 << 10), "project": "other" });
        lab.append("journal.jsonl", &format!("{filler}\n").repeat(16 << 10));
        lab.put("2026-11-03T14:40:00Z", Some("find/s1"), "ended", "job 10 ended");
        lab.lines(&["hold", "find/s1"]);
        follower.sees("job 10 ended");
        follower.sees("find/s1: is held");
        lab.lines(&["release", "find/s1"]);
        follower.sees("find/s1: ");
        assert!(lab.at(&format!("journal.jsonl.{}", round + 1)).exists());
    }
    let length = lab.at("journal.jsonl").metadata().expect("there").len();
    assert!(length < 1 << 20 && !lab.at("journal.jsonl.4").exists(), "{length}");
}
