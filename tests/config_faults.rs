//! What a shards.toml that is wrong is answered with: each file of fixtures/config/bad is read, and
//! all its faults are compared with the .txt beside it (`UPDATE_EXPECT=1` writes them anew).

use std::path::{Path, PathBuf};

use babysit::config::{self, Faults};
use expect_test::expect_file;
use proptest::prelude::*;

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/config").join(folder);
    let entries = std::fs::read_dir(&folder).expect("the folder of fixtures");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    files
}

/// As the user sees it, with the file's name alone for a path.
fn shown(mut faults: Faults) -> String {
    faults.path = faults.path.file_name().expect("a file").into();
    format!("{faults}\n")
}

#[test]
fn every_bad_file_is_told_all_its_faults() {
    let files = fixtures("bad");
    assert!(files.len() >= 30, "only {} files", files.len());
    for file in files {
        let faults = config::load(&file).expect_err(&file.display().to_string());
        expect_file![file.with_extension("txt")].assert_eq(&shown(faults));
    }
}

#[test]
fn every_fault_says_where_and_what_next() {
    for file in fixtures("bad") {
        let faults = config::load(&file).expect_err(&file.display().to_string());
        let syntax = |key: &str| key.starts_with("column ");
        for fault in faults.faults {
            let whole_file = fault.key == "project" || fault.key == "families";
            assert!(fault.line.is_some() || whole_file, "{}: {fault}", file.display());
            assert!(fault.hint.is_some() || syntax(&fault.key), "{}: {fault}", file.display());
        }
    }
}

#[test]
fn odd_files_load_with_a_warning() {
    for file in fixtures("odd") {
        let loaded = config::load(&file).expect("no fault");
        let name: PathBuf = file.file_name().expect("a file").into();
        let text: String = loaded.warnings.iter().map(|w| w.shown(&name) + "\n").collect();
        expect_file![file.with_extension("txt")].assert_eq(&text);
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test makes its own broken files")]
fn files_that_are_no_text_are_told_by_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let check = |path: &Path, expected: &str| {
        let message = shown(config::load(path).expect_err("cannot be loaded"));
        assert!(message.contains(expected), "{message}");
    };
    check(&dir.path().join("none.toml"), "none.toml: cannot be read: No such file");
    let file = dir.path().join("latin1.toml");
    std::fs::write(&file, b"project = \"p\"\n# gr\xfc\xdfe\n").expect("written");
    check(&file, "latin1.toml:2: is not UTF-8 here; save the file as UTF-8");
    std::fs::create_dir(dir.path().join("folder.toml")).expect("made");
    check(&dir.path().join("folder.toml"), "folder.toml: cannot be read");
}

/// What a slip of the hand leaves of a file: a piece gone, a piece twice, a character in between.
fn slipped(text: &str, at: usize, length: usize, insert: &str, keep: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = at % (chars.len() + 1);
    let end = (at + length).min(chars.len());
    let tail = if keep { at } else { end };
    let head = chars.iter().take(end).collect::<String>();
    let head = if keep { head } else { chars.iter().take(at).collect() };
    head + insert + &chars.iter().skip(tail).collect::<String>()
}

/// `usual`, or as many as $PROPTEST_CASES says (scripts/fuzz).
fn cases(usual: u32) -> u32 {
    const UNSET: u32 = 256;
    Some(ProptestConfig::default().cases).filter(|wish| *wish != UNSET).unwrap_or(usual)
}

/// Loads a file of these bytes; what comes of it, if it is not panic, is one of two things.
#[allow(clippy::disallowed_methods, reason = "the test makes its own broken files")]
fn is_told_or_taken(bytes: &[u8]) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("shards.toml");
    std::fs::write(&path, bytes).expect("written");
    match config::load(&path) {
        Ok(loaded) => assert!(!loaded.policy.shards.is_empty()),
        Err(faults) => assert!(!faults.faults.is_empty()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_told_or_taken(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        is_told_or_taken(&bytes);
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test makes its own broken files")]
    fn no_slip_of_the_hand_stops_the_reading(
        example in 0usize..40,
        at in 0usize..4000,
        length in 0usize..40,
        insert in "[{}\"'=\\[\\].,#$~0-9a-zä\u{0}\n-]{0,3}",
        keep: bool,
    ) {
        let mut files = fixtures("bad");
        files.extend(fixtures("odd"));
        files.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/multi-gpu-lab.toml"));
        let file = &files[example % files.len()];
        let text = std::fs::read_to_string(file).expect("a fixture");
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("shards.toml");
        std::fs::write(&path, slipped(&text, at, length, &insert, keep)).expect("written");
        match config::load(&path) {
            Ok(loaded) => assert!(!loaded.policy.shards.is_empty()),
            Err(faults) => {
                assert!(!faults.faults.is_empty());
                let lines = std::fs::read_to_string(&path).expect("written").lines().count() + 1;
                for fault in &faults.faults {
                    assert!(fault.line.is_none_or(|line| (1..=lines).contains(&line)), "{fault}");
                }
            }
        }
    }
}
