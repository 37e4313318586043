//! `babysit simulate` and `status --forecast` as they are called, where there is no cluster.

#![allow(clippy::disallowed_methods, reason = "a test writes the shards.toml that it is about")]

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use babysit::model::state::{Alike, State};
use babysit::store::Store;

fn babysit(folder: &Path, args: &[&str]) -> Output {
    let mut command = assert_cmd::Command::cargo_bin("babysit").expect("built");
    command.current_dir(folder).env("HOME", folder).env("PATH", "/nowhere");
    command.args(args).output().expect("it runs")
}

fn said(out: &Output) -> String {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Without a shards.toml the field's campaign is simulated; nothing is asked of Slurm, and a JSON
/// document says all that the table says.
#[test]
fn simulate_compares_policies_without_a_cluster() {
    let folder = tempfile::tempdir().expect("a folder");
    let babysit = |args: &[&str]| babysit(folder.path(), args);
    let out = babysit(&["simulate", "--seeds", "2", "--policies", "v4,now", "--json"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let seen: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(seen["schema"], "babysit/simulate/v1");
    assert_eq!((&seen["seeds"], &seen["shards"]), (&2.into(), &12.into()));
    let names: Vec<_> = seen["policies"].as_array().expect("a list").iter().collect();
    assert_eq!((&names[0]["name"], &names[1]["name"]), (&"v4".into(), &"now".into()));
    assert_eq!(seen["differences"][0]["longer_by"]["n"], 2);
    let table = babysit(&["simulate", "--seeds", "1", "--scenario", "none", "--policies", "now"]);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.contains("POLICY") && table.contains("\nnow "), "{table}");

    let csv = "job_id,vc,submit_s,gpus,duration_s\n1,a,0,8,3600\n2,b,60,1,600\n3,b,90,16,600\n";
    std::fs::write(folder.path().join("t.csv"), csv).expect("written");
    let out =
        babysit(&["simulate", "--trace", "t.csv", "--days", "1", "--seeds", "1", "--load", "3"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(text.contains("left out: 1") && text.contains("field"), "{text}");

    let out = babysit(&["simulate", "--field", "--seeds", "2", "--compare", "v4,now"]);
    let line = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(line.starts_with("now instead of v4: ends "), "{line}");
    assert!(line.contains("; costs ") && line.lines().count() == 1, "{line}");

    let ours = "name = \"ours\"\n[extra]\nmean = 2\nlife = \"2h\"\n[row_time]\nfind = \"9m\"\n";
    std::fs::write(folder.path().join("ours.toml"), ours).expect("written");
    let args =
        ["simulate", "--scenario", "ours.toml", "--seeds", "1", "--policies", "now", "--json"];
    let out = babysit(&args);
    let seen: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let says = "2 extra GPUs on average for 2.0h each, no visitors in own";
    assert_eq!((&seen["scenario"], &seen["scenario_says"]), (&"ours".into(), &says.into()));
    std::fs::write(folder.path().join("bad.toml"), ours.replace("find", "fin")).expect("written");

    for (args, word) in [
        (&["simulate", "--scenario", "sunny"][..], "none, scarce, seed"),
        (&["simulate", "--scenario", "sed"][..], "did you mean `seed`?"),
        (&["simulate", "--scenario", "none.toml"][..], "none.toml"),
        (&["simulate", "--scenario", "bad.toml"][..], "bad.toml:6: row_time.fin"),
        (&["simulate", "--compare", "v4"][..], "two policies"),
        (&["simulate", "--policies", "v4.11"][..], "did you mean `v4.1`?"),
        (&["simulate", "--policies", "none"][..], "own-only, v3, v4"),
        (&["simulate", "--policies", "v4,v4"][..], "named twice"),
        (&["simulate", "--policies", "yours"][..], "is the policy of a shards.toml"),
        (&["simulate", "--trace", "none.csv"][..], "none.csv"),
        (&["simulate", "--labs", "--policies", "v4"][..], "skip, field"),
    ] {
        let out = babysit(args);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(word), "{args:?}: {said}");
    }
}

const BOTH: &str = "[policy]\nlanes = \"both\"";

/// Two short families of so many shards in two lanes, and what each says beside that.
fn written(folder: &Path, shards: u32, policy: &str, [find, restore]: [&str; 2]) {
    let family = |name: &str, rows: u32, keys: &str| {
        format!(
            "[families.{name}]\nshards = {shards}\nrows = {rows}\nrow_time = \"20m\"\ncommand = \"true\"\n\
             done = {{ glob = \"runs/{name}/{{shard}}/*\" }}\n{keys}\n"
        )
    };
    let toml = format!(
        "project = \"p\"\n{policy}\n[own]\nqos = \"own\"\ngpus = 4\n[extra]\nqos = \"extra\"\n{}{}",
        family("find", 6, find),
        family("restore", 12, restore),
    );
    std::fs::write(folder.join("shards.toml"), toml).expect("written");
}

/// What shards.toml says of pilots and splits is a policy of its own, beside those that everybody has.
#[test]
fn a_shards_toml_with_pilots_and_splits_is_simulated_as_it_stands() {
    let folder = tempfile::tempdir().expect("a folder");
    let babysit = |args: &[&str]| said(&babysit(folder.path(), args));
    written(folder.path(), 3, BOTH, ["pilot = true", "split = 3"]);
    let args = ["simulate", "--seeds", "3", "--scenario", "none", "--json"];
    let seen: serde_json::Value = serde_json::from_str(&babysit(&args)).expect("JSON");
    let yours = serde_json::json!({"policy": "yours", "pilots": ["find"], "split": ["restore"]});
    assert_eq!(seen["yours"], yours);
    let makespan = |name: &str| {
        let all = seen["policies"].as_array().expect("a list");
        let one = all.iter().find(|policy| policy["name"] == name).expect("it is there");
        one["makespan"]["mean"].as_f64().expect("it ends")
    };
    for other in ["both", "split", "pilots"] {
        let (yours, other) = (makespan("yours"), makespan(other));
        assert!((yours - other).abs() > 1e-9, "{yours} {other}");
    }
    let table = babysit(&["simulate", "--seeds", "1", "--policies", "both,yours"]);
    for told in [
        "\nyours ",
        "yours is your shards.toml as it stands",
        "find: pilots with pilot = \"any\" under pilots, as set there under yours, usual jobs",
        "restore: rows shared under split and yours, one job a shard under the others",
    ] {
        assert!(table.contains(told), "{told}: {table}");
    }
    // A page has all of it, each policy with its pictures, helpers too.
    let page = babysit(&["simulate", "--seeds", "1", "-o", "-"]);
    assert_eq!(
        page.matches("Work left under yours").count(),
        page.matches("Work left under v3").count()
    );
    assert!(page.contains("restore/s2~2") && page.contains("yours is your shards.toml"));
    let line = babysit(&["simulate", "--seeds", "2", "--compare", "both,yours"]);
    assert!(line.starts_with("yours instead of both: ends "), "{line}");
}

/// Where it is one of those that everybody has, it is not simulated a second time.
#[test]
fn a_shards_toml_that_is_a_policy_of_the_table_is_told_by_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |policy: &str, keys: &str, expected: &str| {
        written(folder.path(), 3, policy, [keys; 2]);
        let args = ["simulate", "--seeds", "1", "--scenario", "none", "--json"];
        let out = said(&babysit(folder.path(), &args));
        let seen: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(seen["yours"]["policy"], expected);
        let names = seen["policies"].as_array().expect("a list").iter().map(|p| &p["name"]);
        assert_eq!(names.filter(|name| *name == expected).count(), 1);
    };
    check("", "", "now");
    check("[policy]\npreset = \"best\"", "", "best");
    check(BOTH, "pilot = \"any\"", "pilots");
    check(BOTH, "pilot = true", "yours");
    check(BOTH, "split = 2", "split");
    check("", "split = 2", "yours");
}

/// The same shards are done earlier where they share their rows: a forecast is of what shards.toml says.
#[test]
fn a_forecast_is_of_shards_toml_as_it_stands() {
    let folder = tempfile::tempdir().expect("a folder");
    let done_in = |policy: &str, keys: &str| {
        written(folder.path(), 1, policy, [keys; 2]);
        let args = ["status", "--forecast", "--scenario", "none", "--json"];
        let out = said(&babysit(folder.path(), &args));
        let seen: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(seen["shards"].as_array().map(Vec::len), Some(2));
        seen["all_done_in"]["median"].as_f64().expect("a median")
    };
    let (usual, split) = (done_in("", ""), done_in(BOTH, "split = 3"));
    assert!(split < 0.9 * usual, "{split} {usual}");
    written(folder.path(), 1, "", ["pilot = true", ""]);
    let text = said(&babysit(folder.path(), &["status", "--forecast"]));
    assert!(text.contains("by shards.toml as it stands"), "{text}");
}

/// Families of placed shards, small ones first in the queue.
fn placed(folder: &Path, more: &str) {
    let family = |name: &str, lab: &str, gpus: u32, shards: u32| {
        format!(
            "[families.{name}]\nlab = \"{lab}\"\nsubmit = \"placed\"\ngpus = {gpus}\nshards = {shards}\nrows = 20\n\
             row_time = \"30m\"\ncommand = \"true\"\ndone = {{ glob = \"runs/{name}/{{shard}}/*\" }}\n"
        )
    };
    let toml = format!(
        "project = \"p\"\nstate = \"state.json\"\n[tiers.a]\nrank = 1\ntflops = 1.0\n{}{}{more}",
        family("small", "one", 1, 16),
        family("wide", "two", 4, 2),
    );
    std::fs::write(folder.join("shards.toml"), toml).expect("written");
}

/// A tick saw one node of four GPUs and two of one.
fn tick_saw_gpus(folder: &Path) {
    let seen = |capacity: u32, nodes: &[&str]| Alike {
        tier: "a".to_owned(),
        capacity,
        up: true,
        reachable: true,
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        ..Alike::default()
    };
    let mut state = State::new("p", "00112233aabb");
    state.learned.placements = vec![seen(4, &["n1"]), seen(1, &["n2", "n3"])];
    let mut store = Store::at(folder.join("state.json")).lock(Duration::ZERO).expect("free");
    store.save(&state).expect("saved");
}

/// What the better preset would save is one line, also where nothing waits in a lane.
#[test]
fn the_presets_are_compared_on_the_user_s_own_shards() {
    let folder = tempfile::tempdir().expect("a folder");
    let call = |args: &[&str]| babysit(folder.path(), args);
    let args = ["simulate", "--seeds", "4", "--compare", "field,best"];
    written(folder.path(), 3, "", ["", ""]);
    let line = said(&call(&args));
    assert!(
        line.starts_with("best instead of field: ends ") && line.lines().count() == 1,
        "{line}"
    );

    placed(folder.path(), "");
    let out = call(&args);
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{error}");
    assert!(
        error.contains("no tick has seen which GPUs") && error.contains("babysit tick"),
        "{error}"
    );

    tick_saw_gpus(folder.path());
    let line = said(&call(&args));
    let begins = "best instead of field for 18 placed shards: the last ends ";
    assert!(line.starts_with(begins) && line.lines().count() == 1, "{line}");
    assert!(line.contains("(4 seeds, 6 GPUs as the last tick saw them, "), "{line}");

    // The table of the lanes has no placements, and says so.
    let table = said(&call(&["simulate", "--seeds", "1", "--policies", "now"]));
    assert!(table.contains("small, wide: babysit places them, and here they wait"), "{table}");
    assert!(table.contains("--compare field,best"), "{table}");

    // A policy that skips whoever cannot start lets the wide ones wait for the last of the small.
    let json = said(&call(&["simulate", "--seeds", "4", "--compare", "skip,field", "--json"]));
    let seen: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(seen["schema"], "babysit/simulate-placed/v1");
    assert_eq!(
        (&seen["shards"], &seen["gpus"], &seen["seeds"]),
        (&18.into(), &6.into(), &4.into())
    );
    let later = seen["longer_by"]["mean"].as_f64().expect("both end");
    assert!(later < -1.0, "{later}");

    // Of what is left, neither what is cancelled nor what waits for a person: as in the forecast.
    said(&call(&["cancel", "small"]));
    said(&call(&["hold", "wide/s0"]));
    let args_left =
        ["simulate", "--seeds", "1", "--compare", "skip,field", "--from-state", "--json"];
    let seen: serde_json::Value = serde_json::from_str(&said(&call(&args_left))).expect("JSON");
    assert_eq!(seen["shards"], 1);

    let more = "[families.own]\nshards = 2\nrows = 3\nrow_time = \"20m\"\ncommand = \"true\"\n\
                done = { glob = \"own/{shard}/*\" }\n[families.huge]\ngpus = 8\nshards = 1\nrows = 3\n\
                row_time = \"20m\"\ncommand = \"true\"\ndone = { glob = \"huge/{shard}/*\" }\n";
    placed(folder.path(), more);
    let lines = said(&call(&args));
    assert!(lines.starts_with("best instead of field: ") && lines.lines().count() == 2, "{lines}");
    assert!(
        lines.contains("for 18 placed shards") && lines.contains("; 1 shard fits nowhere ("),
        "{lines}"
    );

    // What a tier may give one shard at most is the cycle's rule, and so it is here.
    placed(folder.path(), "");
    let file = folder.path().join("shards.toml");
    let toml =
        std::fs::read_to_string(&file).expect("read").replace("rank = 1", "rank = 1\nmax_gpus = 2");
    std::fs::write(&file, toml).expect("written");
    let line = said(&call(&args));
    assert!(
        line.contains("for 16 placed shards") && line.contains("2 shards fit nowhere"),
        "{line}"
    );
}

/// Each row has a time of its own in memory: said before the machine has none left.
#[test]
fn more_rows_than_memory_holds_are_refused_before_anything_is_simulated() {
    let folder = tempfile::tempdir().expect("a folder");
    let toml = "project = \"many\"\n[families.find]\nshards = 3\nrows = 4000000000\n\
                row_time = \"1s\"\ncommand = \"true\"\n\
                done = { glob = \"runs/{shard}/row_*.json\" }\n";
    std::fs::write(folder.path().join("shards.toml"), toml).expect("written");
    for args in [&["simulate"][..], &["simulate", "--show"], &["status", "--forecast"]] {
        let out = babysit(folder.path(), args);
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1), "{args:?}: {text}");
        assert!(text.contains("12000000000 rows are too many"), "{args:?}: {text}");
        assert!(text.contains("at most 50000000"), "{args:?}: {text}");
    }
}

/// Whoever reads `--help` learns of every policy there is to name.
#[test]
fn the_help_names_every_policy() {
    use babysit::study::{method::METHODS, placing::PLACINGS, replay::rivals};
    let folder = tempfile::tempdir().expect("a folder");
    let words = |command: &str| -> Vec<String> {
        let help = said(&babysit(folder.path(), &[command, "--help"]));
        let word = |c: char| !(c.is_alphanumeric() || c == '-' || c == '.');
        help.split(word).map(|word| word.trim_end_matches('.').to_owned()).collect()
    };
    let (simulate, replay) = (words("simulate"), words("replay"));
    let both = METHODS.iter().map(|m| m.name).chain(PLACINGS.iter().map(|p| p.name));
    for name in both {
        assert!(simulate.iter().any(|word| word == name), "simulate --help: {name}");
    }
    for rival in rivals() {
        assert!(replay.iter().any(|word| word == rival.name()), "replay --help: {}", rival.name());
    }
}
