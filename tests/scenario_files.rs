//! A scenario file of the user's: what a good one says, and all faults of a bad one at once.

#![allow(clippy::disallowed_methods, reason = "a test writes the files that a user would write")]

use std::path::{Path, PathBuf};

use babysit::config;
use babysit::model::units::Secs;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cluster.toml");
    std::fs::write(&path, text).expect("written");
    (folder, path)
}

#[test]
fn the_example_says_all_that_can_be_said() {
    let file = config::scenario(&root().join("examples/scenario.toml")).expect("no fault");
    assert_eq!(file.name, "evenings");
    assert!(file.says.is_some());
    assert_eq!(file.begins, Some(18.5));
    assert_eq!(file.extra, [(8.0, 0.5), (20.0, 4.0)]);
    assert_eq!((file.extra_life, file.extra_at_begin), (Secs::hours(5), Some(1)));
    assert_eq!(file.visitors, Some((0.2, Secs::minutes(150))));
    assert_eq!((file.own_gpus, file.own_held), (Some(8), Some(3)));
    assert_eq!((file.tick_every, file.start), (Some(Secs::minutes(10)), Some(Secs::minutes(4))));
    assert_eq!((file.never_after, file.row_spread), (Some(Secs::hours(400)), Some(0.3)));
    let times: Vec<_> =
        file.row_times.iter().map(|(name, time, _)| (name.as_str(), *time)).collect();
    assert_eq!(times, [("restore", Secs::minutes(25))]);
}

#[test]
fn what_is_left_out_has_no_value_and_the_name_is_the_file_s() {
    let (_folder, path) = written("");
    let file = config::scenario(&path).expect("no fault");
    assert_eq!((file.name.as_str(), file.extra.as_slice()), ("cluster", &[(0.0, 0.0)][..]));
    assert_eq!((file.visitors, file.own_gpus, file.row_times), (None, None, Vec::new()));
}

#[test]
fn all_faults_are_told_at_once_with_their_lines() {
    let text = "begins = \"25:00\"\ntick_evry = \"10m\"\nrow_spread = -1\n[own]\ngpus = 4\nheld = 4\n\
                [extra]\nmean = 2\nlfe = \"3h\"\nby_hour = { \"8am\" = 1, \"09:00\" = \"x\" }\n\
                [visitors]\nper_hour = 1\n[row_time]\nfind = 27\n";
    let (_folder, path) = written(text);
    let faults = config::scenario(&path).expect_err("faults").faults;
    let told = |line: usize, words: &[&str]| {
        let here: Vec<String> =
            faults.iter().filter(|f| f.line == Some(line)).map(ToString::to_string).collect();
        let all = words.iter().all(|word| here.iter().any(|text| text.contains(word)));
        assert!(all, "line {line}: {words:?} in {here:?}");
    };
    told(1, &["no time of the day"]);
    told(2, &["did you mean \"tick_every\"?"]);
    told(3, &["is -1"]);
    told(6, &["all 4 of own.gpus"]);
    told(9, &["did you mean \"life\"?"]);
    told(10, &["stands beside extra.mean", "8am", "not a number"]);
    told(11, &["visitors.stay: is missing"]);
    told(14, &["without a unit"]);
}

/// Every key is documented, and the documentation names no other.
#[test]
fn the_manual_has_every_key() {
    let manual = std::fs::read_to_string(root().join("docs/simulate.md")).expect("the manual");
    for (section, keys) in config::SCENARIO_SECTIONS {
        let sections = ["own", "extra", "visitors", "row_time"];
        for key in keys.iter().filter(|key| !sections.contains(key)) {
            let named = match *section {
                "" => format!("| `{key}` |"),
                section => format!("| `{section}.{key}` |"),
            };
            assert!(manual.contains(&named), "{named}");
        }
    }
}
