//! A newer babysit goes on with the state that an older one left: each release's is kept for ever in
//! tests/fixtures/state, as `release-VERSION.json`, and is never changed.

use serde_json::Value;

use crate::lab::{Lab, has};

const KEPT: &[(&str, &str)] = &[("0.1.0", include_str!("../fixtures/state/release-0.1.0.json"))];

fn shards(state: &Value) -> Vec<Value> {
    let of = |key: &str| state[key].as_array().cloned().unwrap_or_default();
    [of("shards"), of("orphans")].concat()
}

#[test]
fn every_release_s_state_is_read_kept_and_written() {
    for (version, text) in KEPT {
        let lab = Lab::new();
        let before: Value = serde_json::from_str(text).expect("JSON");
        let toml =
            crate::lab::TOML.replace("oracle-plan", before["project"].as_str().expect("a name"));
        lab.write("shards.toml", &toml);
        lab.write("state.json", text);
        lab.run(&["status"], 0);
        lab.run(&["usage"], 0);
        assert_eq!(lab.read("state.json"), *text, "{version}: a look changed it");

        has(&lab.run(&["cap", "set", "find", "77"], 0).out, "$77");
        let after: Value = serde_json::from_str(&lab.read("state.json")).expect("JSON");
        assert_eq!(after["version"], 1, "{version}");
        assert_eq!(after["instance"], before["instance"], "{version}: its jobs would be strangers");
        let (old, new) = (shards(&before), shards(&after));
        for shard in &old {
            let kept = new.iter().find(|other| other["id"] == shard["id"]);
            let kept = kept.unwrap_or_else(|| panic!("{version}: {} is lost", shard["id"]));
            for key in ["attempts", "charges", "slot", "gate", "failures", "preemptions"] {
                assert_eq!(kept[key], shard[key], "{version}: {key} of {}", shard["id"]);
            }
        }
        // The one before is at hand if the upgrade was a mistake.
        assert_eq!(lab.read("state.json.bak"), *text, "{version}");
    }
}

#[test]
fn there_is_a_kept_state_of_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        KEPT.iter().any(|(kept, _)| *kept == version),
        "keep a state as tests/fixtures/state/release-{version}.json, and name it in this file"
    );
}
