//! Campaigns that the real tick ran on the simulated cluster, recorded and planned again.
#![allow(clippy::disallowed_methods, reason = "a test damages recordings on purpose")]

#[allow(dead_code, reason = "shared with the scenarios")]
#[path = "scenarios/bills.rs"]
mod bills;
#[allow(dead_code, reason = "shared with the scenarios")]
#[path = "scenarios/harness.rs"]
mod harness;
#[allow(dead_code, reason = "shared with the scenarios")]
#[path = "scenarios/rules.rs"]
mod rules;

mod common;

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use babysit::engine::Outcome;
use babysit::model::units::Secs;
use babysit::sim::Cluster;
use babysit::store::Store;
use babysit::store::recording::{Before, Given};
use babysit::study::World;
use harness::{T0, dollars, lanes, shard, tiers};
use serde_json::Value;

/// Some days of a campaign with everything in it: two lanes with visitors, preemptions, caps.
fn campaign() -> World {
    let mut policy = lanes(2, 1);
    policy.tiers = tiers();
    policy.shards = (0..4).map(|i| shard(&format!("find/s{i}"), 6 + i)).collect();
    policy.shards.push(harness::placed("big/s0", "AI", 2, 1));
    policy.shards[1].cap = Some(dollars(0.2));
    let mut cluster = Cluster::at(T0)
        .node("a1", &[("rtx4090", 4)])
        .qos("extra", 10, None, &[])
        .qos("own", 100, Some(2), &["extra"]);
    cluster.add_job_of("visitor", "own", "gpu:1", Some(Secs::hours(1))).expect("a visitor");
    for shard in &policy.shards {
        let rows = babysit::sim::Table::new(shard.rows, shard.row_time).row_cost(dollars(0.05));
        cluster.work.add(&shard.id.to_string(), rows);
    }
    World::new(policy, cluster, "alice", SEED)
}

const SEED: u64 = 40;
const TICKS: u64 = 60;

/// Ticks, and records each one as `babysit tick` does; the folder of the recording.
fn recorded(folder: &Path) -> PathBuf {
    let store = Store::at(folder.join("state.json"));
    let mut locked = store.lock(std::time::Duration::ZERO).expect("free");
    let mut world = campaign();
    let mut kinds = std::collections::BTreeSet::new();
    for n in 0..TICKS {
        world.advance(Secs::minutes(7));
        let (before, now) = (Before::of(world.state.clone()), world.now());
        let report = world.tick();
        assert_eq!(report.outcome, Outcome::Ok);
        kinds.extend(report.plan.actions.iter().map(|action| action.kind()));
        let seen = report.seen.as_ref().expect("a cycle that saw");
        let plan = report.plan.spelled_out();
        let given = Given {
            policy: &world.policy,
            before: &before,
            seen,
            now,
            seed: SEED + n,
            plan: &plan,
        };
        locked.record(&given).expect("recorded");
    }
    assert!(kinds.contains("submit") && kinds.contains("cancel"), "{kinds:?}");
    store.recording_path()
}

struct Said {
    out: String,
    err: String,
}

fn replay(arguments: &[&str], code: i32) -> Said {
    let mut command = Command::cargo_bin("babysit").expect("built");
    let output = command.arg("replay").args(arguments).env_clear().output().expect("it ran");
    let said = Said {
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert_eq!(output.status.code(), Some(code), "{}\n{}", said.out, said.err);
    said
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn the_segment(recording: &Path) -> PathBuf {
    recording.join("000001.gz")
}

#[track_caller]
fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is not in:\n{text}");
}

#[test]
fn a_campaign_is_planned_again_byte_for_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = recorded(folder.path());
    has(&replay(&[text(&recording)], 0).out, "60 cycles planned again, all the same, 2026-11-03T");
    // A bug report is a file: one segment, or what holds the recording.
    replay(&[text(&the_segment(&recording))], 0);
    replay(&[text(folder.path())], 0);
    let json = replay(&[text(&recording), "--json"], 0).out;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["schema"], "babysit/replay/v1");
    assert_eq!((&json["cycles"], &json["same"]), (&60.into(), &true.into()));
}

#[test]
fn other_policies_are_counted_and_no_consequence_is_claimed() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = recorded(folder.path());
    let said = replay(&[text(&recording), "--policies", "v3,now,skip"], 0).out;
    has(&said, "What would have come of it is not simulated");
    let json = replay(&[text(&recording), "--policies", "v3,now", "--json"], 0).out;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let policy = |name: &str| {
        let all = json["policies"].as_array().expect("a list");
        all.iter().find(|policy| policy["name"] == name).expect(name).clone()
    };
    // The campaign was run by today's rule, which v3's submissions to own differ from.
    assert_eq!(policy("now")["cycles_that_differ"], 0);
    assert_eq!(policy("now")["asked"], policy("as recorded")["asked"]);
    assert!(policy("v3")["cycles_that_differ"].as_u64() > Some(0), "{said}");
    assert_ne!(policy("v3")["asked"], policy("as recorded")["asked"]);
    has(&replay(&[text(&recording), "--policies", "nothing"], 2).err, "policies: own-only, v3");
}

/// Whoever changes what was seen and mends every checksum is found by the plan.
#[test]
fn a_tampered_recording_is_found_and_its_first_difference_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = recorded(folder.path());
    let forged = tempfile::tempdir().expect("a folder");
    let store = Store::at(forged.path().join("state.json"));
    let mut locked = store.lock(std::time::Duration::ZERO).expect("free");
    for (n, cycle) in babysit::store::recording::read(&recording).expect("there").enumerate() {
        let mut cycle = cycle.expect("good");
        if n == 0 {
            cycle.seed ^= 1;
        }
        let before = Before::of(cycle.state.clone());
        let given = Given {
            policy: &cycle.policy,
            before: &before,
            seen: &cycle.seen,
            now: cycle.now,
            seed: cycle.seed,
            plan: &cycle.plan,
        };
        locked.record(&given).expect("recorded");
    }
    let said = replay(&[text(&store.recording_path())], 1).out;
    has(&said, "60 cycles planned again, 1 not the same");
    has(&said, "000001.gz, cycle 1 of it");
    // The nonce of the first submission comes from the seed.
    let comment = |sign: char| said.lines().any(|l| l.starts_with(sign) && l.contains("comment"));
    assert!(comment('-') && comment('+'), "{said}");
}

#[test]
fn a_recording_that_is_cut_off_is_used_up_to_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = recorded(folder.path());
    let path = the_segment(&recording);
    let bytes = std::fs::read(&path).expect("read");
    std::fs::write(&path, &bytes[..bytes.len() - 9]).expect("written");
    let said = replay(&[text(&recording)], 1);
    has(&said.out, "59 cycles planned again, all the same");
    has(&said.err, "000001.gz: cycle 60 of it (byte ");
    has(&said.err, "it is cut off");
    std::fs::write(&path, "this is no recording").expect("written");
    has(&replay(&[text(&path)], 1).err, "cycle 1 of it (byte 0): ");
    has(&replay(&["/nowhere"], 1).err, "no recording can be read");
}

/// A name of both parts sets both, as the preset of that name does.
#[test]
fn best_is_both_parts_of_the_preset() {
    use babysit::model::policy::Rules;
    use babysit::study::replay::{by_name, rivals};
    let (policy, _) = common::afternoon();
    let best = by_name("best").expect("a policy").of(&policy).rules;
    let preset = Rules::best();
    assert_eq!((best.lanes, best.place), (preset.lanes, preset.place));
    let named = rivals().iter().filter(|rival| rival.name() == "best").count();
    assert_eq!(named, 1);
}
