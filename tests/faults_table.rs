//! docs/faults.md names the tests that hold each handling: they exist.

use std::collections::BTreeSet;
use std::path::Path;

/// Names of all functions under a folder.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            found.extend(names.map(str::to_owned));
        }
    }
}

#[test]
fn every_test_that_it_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut there = BTreeSet::new();
    functions(&root.join("src"), &mut there);
    functions(&root.join("tests"), &mut there);
    let page = std::fs::read_to_string(root.join("docs/faults.md")).expect("the page");
    let (mut rows, mut missing) = (0, Vec::new());
    for line in
        page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| what goes"))
    {
        let cells: Vec<&str> = line.split(" | ").collect();
        if line.starts_with("| ---") {
            continue;
        }
        rows += 1;
        let names: Vec<&str> =
            cells.last().expect("a cell").split('`').skip(1).step_by(2).collect();
        assert!(cells.len() == 3 && !names.is_empty(), "no test: {line}");
        missing.extend(names.into_iter().filter(|name| !there.contains(*name)).map(str::to_owned));
    }
    assert!(rows >= 20, "only {rows} rows");
    assert_eq!(missing, Vec::<String>::new(), "no such tests");
}
