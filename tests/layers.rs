//! The walls between the folders of src (docs/architecture.md): which may use which.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folder -> the folders of ours that it may use beside itself.
const MAY_USE: [(&str, &[&str]); 12] = [
    ("model", &[]),
    ("planning", &["model"]),
    ("slurm", &["model"]),
    ("store", &["model"]),
    ("progress", &["model"]),
    ("archive", &["model"]),
    ("config", &["model"]),
    ("output", &["model", "planning"]),
    ("engine", &["model", "planning", "slurm", "store", "progress"]),
    // Of `slurm` the trait alone; the test below looks at that.
    ("sim", &["model", "slurm"]),
    // Of `progress` and `slurm` the traits, so that it can hand simulated ones to the tick.
    ("study", &["engine", "sim", "model", "planning", "progress", "slurm"]),
    (
        "cli",
        &[
            "model", "planning", "slurm", "store", "progress", "archive", "config", "output",
            "engine", "sim", "study",
        ],
    ),
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of src") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push(path);
        }
    }
}

/// `(file:line, folder used)` for each `crate::folder` in code; comments do not count.
fn uses(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder);
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            for (at, _) in code.match_indices("crate::") {
                let rest = &code[at + "crate::".len()..];
                let end = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
                let place = format!("{}:{}", file.display(), number + 1);
                found.push((place, rest[..end].to_owned()));
            }
        }
    }
    found
}

#[test]
fn each_folder_uses_only_what_its_layer_may() {
    let known: BTreeSet<&str> = MAY_USE.iter().map(|(folder, _)| *folder).collect();
    let mut faults = Vec::new();
    for (folder, allowed) in MAY_USE {
        for (place, used) in uses(folder) {
            let fine = used == folder || allowed.contains(&used.as_str());
            if !fine && known.contains(used.as_str()) {
                faults.push(format!("{place}: {folder} may not use {used}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_folder_of_src_has_its_wall() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(src).expect("src") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
            assert!(MAY_USE.iter().any(|(folder, _)| *folder == name), "{name} has no wall");
        }
    }
}

/// Files of pure folders must not reach for the world outside; clippy.toml bans single functions,
/// this the modules.
#[test]
fn pure_folders_touch_no_file_process_environment_or_clock() {
    let banned = [
        "std::fs",
        "std::process",
        "std::env",
        "std::time",
        "std::net",
        "duct::",
        "println!",
        "eprintln!",
    ];
    let mut faults = Vec::new();
    for folder in ["model", "planning", "output", "engine", "sim", "study"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder);
        let mut files = Vec::new();
        sources(&root, &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file");
            // Tests of a pure folder may read fixtures.
            let code = text.split("#[cfg(test)]").next().unwrap_or("");
            for (number, line) in code.lines().enumerate() {
                let line = line.split("//").next().unwrap_or("");
                for word in banned.iter().filter(|word| line.contains(**word)) {
                    faults.push(format!("{}:{}: {word}", file.display(), number + 1));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The simulated cluster answers like Slurm; it must not borrow the adapter's own reading of it.
#[test]
fn the_simulated_cluster_knows_of_slurm_only_the_trait() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sim");
    let mut files = Vec::new();
    sources(&root, &mut files);
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        for line in text.lines().filter(|line| line.contains("crate::slurm::")) {
            let names = line.split("crate::slurm::").nth(1).unwrap_or("");
            let lower = names.trim_start_matches('{').chars().next().unwrap_or('x');
            assert!(lower.is_ascii_uppercase(), "{}: {line}", file.display());
        }
    }
}
