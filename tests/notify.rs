//! The notify hook, run by the real program: at most once whatever breaks, and no tick the worse for
//! it; and the ready hooks of examples/hooks.
#![allow(clippy::disallowed_methods, reason = "a test plays the hand that breaks things")]

use std::path::Path;

use serde_json::Value;

#[path = "common/stand_in.rs"]
mod stand_in;

use stand_in::*;

/// One row a shard, two shards, and a hook beside shards.toml.
const ONE_ROW: &str = r#"
project = "oracle-plan"
state = "state.json"
[slurm]
bin_dir = "bin"
[hooks]
notify = "./hook"
timeout = "1s"
[families.find]
command = "true"
rows = 1
done = { glob = "runs/find/{shard}/row_*.json" }
shards = 2
"#;

/// Appends each message as one line.
const KEEP: &str = "cd \"$(dirname \"$0\")\"; cat >>../told";

fn lab(hook: &str) -> Lab {
    let lab = Lab::new();
    lab.write("shards.toml", ONE_ROW);
    set_hook(&lab, hook);
    lab.run(&["tick"], 0);
    lab
}

fn set_hook(lab: &Lab, hook: &str) {
    lab.program("hook", hook);
    lab.write("shards.toml", &ONE_ROW.replace("./hook", "bin/hook"));
}

/// The job of a shard runs, and its row is there.
fn finish(lab: &Lab, shard: &str) {
    let of_shard = format!(":find/{shard}:");
    let run = |line: &str| match line.contains(&of_shard) {
        true => line.replace("PENDING", "RUNNING") + "\n",
        false => format!("{line}\n"),
    };
    lab.write("bin/jobs", &lab.read("bin/jobs").lines().map(run).collect::<String>());
    let folder = lab.at(&format!("runs/find/{shard}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("row_0.json"), "{}").expect("a row");
}

fn told(lab: &Lab) -> Vec<Value> {
    let lines = lab.read("told");
    lines.lines().map(|line| serde_json::from_str(line).expect("a JSON object")).collect()
}

#[track_caller]
fn tick(lab: &Lab, minute: i64) -> Said {
    let said = lab.run_at(&["tick"], START + 60 * minute);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    said
}

#[test]
fn a_message_is_one_object_and_comes_once() {
    let lab = lab(KEEP);
    assert!(told(&lab).is_empty(), "submissions are no news");
    finish(&lab, "s0");
    for minute in 1..4 {
        tick(&lab, minute);
    }
    let told = told(&lab);
    assert_eq!(told.len(), 1, "{told:?}");
    let one = &told[0];
    let instance = lab.instance();
    assert_eq!(
        *one,
        serde_json::json!({
            "schema": "babysit/notify/v1",
            "project": "oracle-plan",
            "id": format!("{instance}-1"),
            "at": "2025-11-02T15:01:00Z",
            "kind": "done",
            "title": "oracle-plan: find/s0: done, 1 row",
            "text": "find/s0: done, 1 row",
            "counts": { "done": 1 },
            "events": [{
                "at": "2025-11-02T15:01:00Z", "kind": "done", "shard": "find/s0",
                "text": "done, 1 row",
            }],
            "left_out": 0,
        })
    );
    let status = lab.json(&["status"], 0);
    assert_eq!(status["notify"]["outcome"], "delivered");
    has(&lab.run(&["log"], 0).out, "notify hook: 1 event told");
}

#[test]
fn killed_before_and_after_the_hook_it_is_told_once_at_most() {
    // (the hook's last act, how often its message arrives)
    // Between babysit and the hook there may be a shell.
    const KILL: &str = r#"
p=$PPID
[ "$(cat /proc/$p/comm)" = babysit ] || p=$(ps -o ppid= -p $p | tr -d ' ')
[ "$(cat /proc/$p/comm)" = babysit ] && kill -9 "$p"
exit 0"#;
    for (hook, arrives) in [(KILL.to_owned(), 0), (format!("{KEEP}; {KILL}"), 1)] {
        let lab = lab(&hook);
        finish(&lab, "s0");
        assert_eq!(lab.run_at(&["tick"], START + 60).code, None, "it was killed");
        assert_eq!(lab.json(&["status"], 0)["notify"]["outcome"], "in-hand");
        set_hook(&lab, KEEP);
        for minute in 2..8 {
            tick(&lab, minute);
        }
        assert_eq!(told(&lab).len(), arrives, "{hook}: {:?}", told(&lab));
        has(&lab.run_at(&["status"], START + 480).out, "may not have got through");
        // The next event has the next number, whatever became of this one.
        finish(&lab, "s1");
        tick(&lab, 8);
        let told = told(&lab);
        assert_eq!(told.len(), arrives + 1);
        let ids: Vec<&str> = told.iter().filter_map(|one| one["id"].as_str()).collect();
        assert!(ids[arrives].ends_with("-2"), "{ids:?}");
    }
}

#[test]
fn a_tick_that_dies_before_its_end_loses_no_message() {
    // Killed at each moment of a tick that also submits: what the save of the intents took as known
    // is told by the next tick.
    for moment in 1..100 {
        let lab = lab(KEEP);
        finish(&lab, "s0");
        lab.write("shards.toml", &lab.read("shards.toml").replace("shards = 2", "shards = 3"));
        lab.write("bin/die_at", &moment.to_string());
        let through = lab.run_at(&["tick"], START + 60).code.is_some();
        std::fs::remove_file(lab.at("bin/die_at")).expect("removed");
        for minute in 2..4 {
            tick(&lab, minute);
        }
        assert_eq!(told(&lab).len(), 1, "moment {moment}");
        if through {
            assert!(moment > 2, "only {moment} moments");
            return;
        }
    }
    panic!("it never got through");
}

#[test]
fn a_hook_that_is_missing_fails_hangs_or_talks_costs_no_tick_anything() {
    for (hook, said) in [
        ("exit 3", "exit code 3"),
        ("echo 'no route to host' >&2; exit 1", "no route to host"),
        ("sleep 1000 & sleep 1000", "no answer within"),
        ("yes | head -c 30000000; exit 4", "exit code 4"),
        ("exec 0<&-; exit 5", "exit code 5"),
        ("MISSING", "not found"),
    ] {
        let lab = lab("exit 0");
        if hook == "MISSING" {
            std::fs::remove_file(lab.at("bin/hook")).expect("removed");
        } else {
            set_hook(&lab, hook);
        }
        finish(&lab, "s0");
        let tick_said = tick(&lab, 1);
        has(&tick_said.err, "the notify hook failed");
        has(&tick_said.err, said);
        let status = lab.json(&["status"], 0);
        assert_eq!(status["notify"]["outcome"], "failed", "{hook}");
        assert_eq!(status["shards"][0]["rows"]["done"], 1);
        has(&lab.run(&["status"], 0).out, "did not get through");
        has(&lab.run(&["log"], 0).out, "not tried again");
        has(&lab.run_at(&["doctor"], START).out, "notify");
        // It is not tried again, and the tick after it says nothing.
        assert_eq!(tick(&lab, 2).err, "", "{hook}");
    }
}

#[test]
fn a_hook_that_hangs_holds_no_lock() {
    let lab = lab("exit 0");
    set_hook(
        &lab,
        "cd \"$(dirname \"$0\")\"; touch ../hangs; until [ -f ../over ]; do sleep 0.05; done; rm ../hangs",
    );
    let slow = lab.read("shards.toml").replace("1s", "1m");
    lab.write("shards.toml", &slow);
    finish(&lab, "s0");
    let mut first = lab.command(&["tick"], START + 60).spawn().expect("started");
    let becomes = |there: bool| {
        (0..3000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            lab.at("hangs").exists() == there
        })
    };
    assert!(becomes(true), "the hook was not started");
    // Another tick and a person's command get through meanwhile.
    tick(&lab, 2);
    lab.run(&["cap", "set", "find", "5"], 0);
    let pid = rustix::process::Pid::from_child(&first);
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
    first.wait().expect("a child");
    std::fs::write(lab.at("over"), "").expect("written");
    // With the folder gone it would look for its end for ever.
    assert!(becomes(false), "the hook went on");
}

// ---- examples/hooks

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/hooks").join(name);
    path.to_str().expect("UTF-8").to_owned()
}

/// A lab whose hook is one of the examples, and on whose PATH a program is that keeps its arguments
/// and its input.
fn with_example(name: &str, arguments: &str, stand_in: &str) -> Lab {
    let lab = Lab::new();
    let here = lab.dir.path().display().to_string();
    lab.program(stand_in, &format!("printf '%s\\n' \"$@\" >>{here}/args; cat >>{here}/input"));
    let hook = format!("PATH={here}/bin:$PATH '{}' {arguments}", example(name));
    lab.write("shards.toml", &ONE_ROW.replace("./hook", &hook));
    lab.run(&["tick"], 0);
    finish(&lab, "s0");
    lab
}

#[test]
fn the_example_for_mail_sends_one() {
    let lab = with_example("mail.sh", "anna@example.org", "mail");
    tick(&lab, 1);
    let subject = "oracle-plan: find/s0: done, 1 row";
    assert_eq!(lab.read("args"), format!("-s\n{subject}\nanna@example.org\n"));
    let instance = lab.instance();
    assert_eq!(lab.read("input"), format!("find/s0: done, 1 row\n\n(message {instance}-1)\n"));
}

#[test]
fn the_example_for_a_web_hook_posts_json_and_hides_the_address() {
    let lab = with_example("webhook.sh", "", "curl");
    // What is hostile to JSON and to the shell gets through as it is.
    let odd =
        r#"sbatch: error: Batch job submission failed: Invalid qos "quoted" \back $HOME `id`"#;
    lab.write("shards.toml", &lab.read("shards.toml").replace("shards = 2", "shards = 3"));
    lab.program("sbatch", &format!("cat >/dev/null; printf '%s\\n' '{odd}' >&2; exit 1"));
    let mut command = lab.command(&["tick"], START + 60);
    let output = command.env("BABYSIT_WEBHOOK", "https://chat.example.org/secret").output();
    let said = said(output.expect("it ran"));
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{}", said.out);
    let sent: Value = serde_json::from_str(&lab.read("input")).expect("JSON");
    let text = sent["text"].as_str().expect("text");
    has(text, "find/s0: done, 1 row\n");
    has(text, r#""quoted" \back $HOME `id`"#);
    assert!(!lab.read("args").contains("secret"), "{}", lab.read("args"));
    has(&lab.read("args"), "--fail");
}

#[test]
fn the_example_for_a_file_appends_lines() {
    let lab = Lab::new();
    let file = lab.at("messages.jsonl").display().to_string();
    let hook = format!("'{}' {file}", example("file.sh"));
    lab.write("shards.toml", &ONE_ROW.replace("./hook", &hook));
    lab.run(&["tick"], 0);
    finish(&lab, "s0");
    tick(&lab, 1);
    finish(&lab, "s1");
    tick(&lab, 20);
    let lines = lab.read("messages.jsonl");
    let all: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(all.len(), 2, "{all:?}");
    has(all[1]["text"].as_str().expect("text"), "find/s1: done, 1 row");
}
