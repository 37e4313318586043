//! The program of examples/ten-minute-tryout.toml keeps what babysit asks of a program: it resumes,
//! pays for each row once and stops at its cap.

use std::path::{Path, PathBuf};

fn run(folder: &Path, cap: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tryout/rows.sh");
    let output = assert_cmd::Command::new("bash")
        .args([script.as_os_str(), folder.as_os_str(), "0".as_ref()])
        .env("BABYSIT_ROWS", "5")
        .env("BABYSIT_COST_CAP", cap)
        .assert()
        .success();
    String::from_utf8_lossy(&output.get_output().stdout).into_owned()
}

fn finished(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the output folder");
    let mut rows: Vec<PathBuf> = entries
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e != "jsonl"))
        .collect();
    rows.sort();
    rows
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test tears a line as a killed job would")]
fn it_resumes_and_stops_at_its_cap() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().join("s0");
    let ledger = folder.join("cost.jsonl");
    let said = run(&folder, "0.06");
    assert!(said.contains("stopped before row 3"), "{said}");
    assert_eq!(finished(&folder).len(), 3);
    // Under the same cap it does nothing more.
    run(&folder, "0.06");
    assert_eq!(finished(&folder).len(), 3);
    // Killed in the middle of a ledger line, with a higher cap afterwards.
    let torn = std::fs::read_to_string(&ledger).expect("a ledger") + "{\"row\": 3, \"co";
    std::fs::write(&ledger, torn).expect("written");
    let said = run(&folder, "1");
    assert!(said.contains("row 3 of 5") && !said.contains("row 2 of 5"), "{said}");
    let names: Vec<_> =
        finished(&folder).iter().filter_map(|p| p.file_name().map(|n| n.to_owned())).collect();
    let expected: Vec<_> =
        (0..5).map(|i| format!("row_{i:04}.json").into()).collect::<Vec<std::ffi::OsString>>();
    assert_eq!(names, expected);
    let lines = std::fs::read_to_string(&ledger).expect("a ledger");
    let whole: Vec<serde_json::Value> =
        lines.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    assert_eq!(whole.len(), 5, "{lines}");
    let spent: f64 = whole.iter().filter_map(|row| row["cost_usd"].as_f64()).sum();
    assert!((spent - 0.10).abs() < 1e-9, "{spent}");
}
