//! Files that a pattern names.

use std::fs;
use std::os::unix::fs::symlink;

use globset::GlobBuilder;
use proptest::prelude::*;
use tempfile::TempDir;

use super::super::glob::Reader;
use super::super::pattern::Pattern;
use super::{cases, fifo, folder, put};

/// A folder with some of everything.
fn tree() -> TempDir {
    let folder = folder();
    for name in [
        "s0/row_1.json",
        "s0/row_2.json",
        "s0/row_10.json",
        "s0/row_3.json.tmp",
        "s0/.row_4.json",
        "s0/note.txt",
        "s0/Zürich.json",
        "s0/deep/row_1.json",
        "s0/deep/er/row_1.json",
        "s0/.git/row_1.json",
        "s1/row_1.json",
        "odd [x]/row_1.json",
    ] {
        put(&folder.path().join(name), "");
    }
    let s0 = folder.path().join("s0");
    fs::create_dir(s0.join("row_5.json")).expect("makes");
    fifo(&s0.join("row_6.json"));
    symlink("note.txt", s0.join("row_7.json")).expect("links");
    symlink("nowhere", s0.join("row_8.json")).expect("links");
    symlink("deep", s0.join("again")).expect("links");
    symlink("..", s0.join("deep/up")).expect("links");
    folder
}

#[test]
fn patterns_count_files_and_nothing_else() {
    let tree = tree();
    for (pattern, count) in [
        ("s0/row_*.json", 4),
        ("s0/row_?.json", 3),
        ("s0/row_[12].json", 2),
        ("s0/row_{1,10}.json", 2),
        ("s0/*", 7),
        ("s0/.*", 1),
        ("s0/Z?rich.json", 1),
        ("s*/row_1.json", 2),
        ("s?/*.json", 6),
        ("*/*/row_1.json", 2),
        ("s0/again/*", 1),
        ("s0/**/row_1.json", 3),
        ("**/row_1.json", 5),
        ("s0/**", 9),
        ("{s0/deep,s1}/row_1.json", 2),
        ("odd \\[x\\]/*", 1),
        ("s0/row_1.json", 1),
        ("s0/row_5.json", 0),
        ("s0/row_6.json", 0),
        ("s0/row_8.json", 0),
        ("s0/note.txt/*", -1),
        ("s*/note.txt/*", 0),
        ("not/there/*.json", 0),
        ("s9/**/x", 0),
    ] {
        let text = format!("{}/{pattern}", tree.path().display());
        let counted = Reader::default().count(&Pattern::parse(&text).expect("a pattern"));
        match u32::try_from(count) {
            Ok(count) => assert_eq!(counted, Ok(count), "{pattern}"),
            Err(_) => {
                let gap = counted.expect_err("a file where a folder should be");
                assert!(gap.source.ends_with("note.txt"), "{gap}");
            }
        }
    }
    let gap = Pattern::parse("/runs/[").err().expect("no pattern");
    assert_eq!(gap.source, "/runs/[");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), ..ProptestConfig::default() })]

    /// The quick matcher says what globset says.
    #[test]
    fn simple_patterns_match_as_globset_has_it(pattern in "[ab.?*]{1,8}", name in "[ab.]{1,10}") {
        prop_assume!(!pattern.contains("**"));
        let hidden = name.starts_with('.') && !pattern.starts_with('.');
        let folder = folder();
        prop_assume!(name.bytes().any(|b| b != b'.') && pattern.bytes().any(|b| b != b'.'));
        put(&folder.path().join("d").join(&name), "");
        let glob = GlobBuilder::new(&pattern).literal_separator(true).build().expect("a pattern");
        let expected = glob.compile_matcher().is_match(&name) && !hidden;
        let text = format!("{}/d/{pattern}", folder.path().display());
        let counted = Reader::default().count(&Pattern::parse(&text).expect("a pattern"));
        prop_assert_eq!(counted, Ok(u32::from(expected)));
    }
}
