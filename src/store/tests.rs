//! Saving, refusing and taking over, on a real folder.
#![allow(clippy::disallowed_methods, reason = "the tests play the hand that damages files")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::v1::dice::{Dice, state};
use super::{Locked, Store, StoreError};
use crate::model::state::State;

pub(super) struct Place {
    folder: TempDir,
    pub(super) store: Store,
}

impl Place {
    pub(super) fn new() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::at(folder.path().join("deep/state.json")).of_project("oracle-plan");
        Place { folder, store }
    }

    /// With two saves behind it, so that state and backup differ.
    fn used() -> Place {
        let place = Place::new();
        let mut locked = place.lock();
        locked.save(&numbered(1)).expect("saves");
        locked.save(&numbered(2)).expect("saves");
        place
    }

    pub(super) fn lock(&self) -> Locked {
        self.store.lock(Duration::ZERO).expect("free")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("deep").join(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path().join("deep"))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Of every file but the lock, which each holder signs.
    fn contents(&self) -> Vec<Option<Vec<u8>>> {
        let names = self.names();
        let kept = names.iter().filter(|name| !name.ends_with(".lock"));
        kept.map(|name| fs::read(self.file(name)).ok()).collect()
    }

    /// Whoever loads, saves or reads gets this error, and no byte changes.
    #[track_caller]
    fn check_stops(&self, is_it: fn(&StoreError) -> bool, words: &[&str]) {
        let before = self.contents();
        let names = self.names();
        let mut errors = vec![self.store.read().expect_err("read stops")];
        errors.push(self.lock().load().expect_err("load stops"));
        errors.push(self.lock().save(&numbered(9)).expect_err("save stops"));
        for error in errors {
            assert!(is_it(&error), "{error:?}");
            let text = error.to_string();
            assert!(text.contains("state.json"), "{text}");
            for word in words {
                assert!(text.contains(word), "{text} has no {word}");
            }
        }
        assert_eq!(self.names(), names);
        let after = self.contents();
        // All but the owner line of the lock, which is the same process here.
        assert_eq!(before, after);
    }
}

fn numbered(generation: u64) -> State {
    State { generation, ..State::new("oracle-plan", "1f3a9c") }
}

#[test]
fn nothing_is_there_until_the_first_save() {
    let place = Place::new();
    assert_eq!(place.store.read().expect("reads"), None);
    assert!(!place.folder.path().join("deep").exists(), "looking makes nothing");
    let mut locked = place.lock();
    assert_eq!(locked.load().expect("loads"), None);
    assert_eq!(locked.save(&State::new("oracle-plan", "1f3a9c")).expect("saves"), 1);
    assert_eq!(place.names(), ["state.json", "state.json.bak", "state.json.lock"]);
    assert_eq!(place.store.read().expect("reads"), Some(numbered(1)));
}

#[test]
fn every_save_keeps_the_one_before_as_backup_and_leaves_nothing_else() {
    let place = Place::new();
    let mut locked = place.lock();
    let mut dice = Dice::new(7);
    let mut before = None;
    for generation in 1..6 {
        let next = State { generation, ..state(&mut dice, 5) };
        assert_eq!(locked.save(&next).expect("saves"), generation);
        assert_eq!(place.store.read().expect("reads"), Some(next.clone()));
        let backup = Store::at(place.file("state.json.bak")).read().expect("reads");
        assert_eq!(backup, Some(before.unwrap_or_else(|| next.clone())));
        before = Some(next);
    }
    assert_eq!(place.names(), ["state.json", "state.json.bak", "state.json.lock"]);
}

#[test]
fn the_generation_on_disk_grows_though_the_caller_does_not_count() {
    let place = Place::used();
    let mut locked = place.lock();
    let loaded = locked.load().expect("loads").expect("is there");
    assert_eq!(locked.save(&loaded).expect("saves"), 3);
    assert_eq!(locked.save(&loaded).expect("saves"), 4);
    assert_eq!(locked.save(&numbered(9)).expect("saves"), 9);
}

#[test]
fn a_second_one_leaves_at_once_and_is_told_who_works() {
    let place = Place::new();
    let locked = place.lock();
    let error = place.store.lock(Duration::ZERO).expect_err("busy");
    let StoreError::Busy { holder, .. } = &error else { panic!("{error:?}") };
    assert!(holder.contains(&format!("pid {} on ", std::process::id())), "{holder}");
    assert!(holder.contains(", since 2"), "{holder}");
    drop(locked);
    drop(place.lock());
    assert!(place.file("state.json.lock").is_file(), "the lock file is never removed");
}

#[test]
fn one_who_waits_gets_the_lock_when_it_is_given_back() {
    let place = Place::new();
    let locked = place.lock();
    let store = place.store.clone();
    let waiting = std::thread::spawn(move || store.lock(Duration::from_secs(60)).is_ok());
    std::thread::sleep(Duration::from_millis(150));
    drop(locked);
    assert!(waiting.join().expect("no panic"));
}

#[test]
fn a_lock_file_that_was_removed_lets_nobody_in_beside_its_successor() {
    let place = Place::new();
    let old = place.lock();
    fs::remove_file(place.file("state.json.lock")).expect("removes");
    let _new = place.lock();
    drop(old);
    assert!(matches!(place.store.lock(Duration::ZERO), Err(StoreError::Busy { .. })));
}

#[test]
fn damage_is_never_replaced() {
    for (bytes, word) in [
        ("", "it is empty"),
        ("\n", "it is empty"),
        ("{\"version\": 1, \"proj", "EOF"),
        ("\0\0\0\0", "line 1 column 1"),
        ("[]", "invalid"),
    ] {
        let place = Place::used();
        fs::write(place.file("state.json"), bytes).expect("writes");
        place.check_stops(
            |e| matches!(e, StoreError::Damaged { .. }),
            &[word, "state.json.bak", "babysit reconcile", "nothing was changed"],
        );
    }
}

#[test]
fn a_newer_version_is_left_to_the_newer_babysit() {
    let place = Place::used();
    fs::write(place.file("state.json"), "{\"version\": 2, \"more\": []}").expect("writes");
    place.check_stops(
        |e| matches!(e, StoreError::NewerVersion { found: (2, 0), known: (1, 0), .. }),
        &["version 2", "newer babysit"],
    );
}

/// What a later build of this version added is no damage: that would send people to an old backup.
#[test]
fn a_field_that_is_not_known_yet_is_left_to_the_newer_babysit() {
    for more in [", \"moon\": 1", ""] {
        let place = Place::used();
        let text = fs::read_to_string(place.file("state.json")).expect("reads");
        let newer = format!("{{\"version\": 1, \"minor\": 1{more},");
        let text = text.replacen("{\n\"version\": 1,", &newer, 1);
        assert!(text.starts_with(&newer));
        fs::write(place.file("state.json"), text).expect("writes");
        place.check_stops(
            |e| matches!(e, StoreError::NewerVersion { found: (1, 1), .. }),
            &["version 1.1", "newer babysit"],
        );
    }
}

#[test]
fn a_vanished_state_is_not_a_fresh_start() {
    let place = Place::used();
    fs::remove_file(place.file("state.json")).expect("removes");
    place.check_stops(
        |e| matches!(e, StoreError::Vanished { backup: true, .. }),
        &["state.json.bak", "babysit reconcile"],
    );
    place.lock().journal(&[json!({"did": "submit"})]).expect("appends");
    fs::remove_file(place.file("state.json.bak")).expect("removes");
    place.check_stops(
        |e| matches!(e, StoreError::Vanished { backup: false, .. }),
        &["journal.jsonl", "begin anew"],
    );
}

#[test]
fn the_journal_of_another_project_in_the_same_folder_is_no_evidence() {
    let place = Place::used();
    place.lock().journal(&[json!({"did": "submit"})]).expect("appends");
    let other = Store::at(place.file("other.json")).of_project("other");
    assert_eq!(other.read().expect("reads"), None);
}

#[test]
fn each_project_has_a_state_of_its_own() {
    let place = Place::used();
    let other = Store::at(place.file("state.json")).of_project("other");
    let error = other.read().expect_err("another's");
    assert!(matches!(error, StoreError::WrongProject { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("\"oracle-plan\"") && text.contains("\"other\""), "{text}");
    let error = place.lock().save(&State::new("other", "1f3a9c")).expect_err("another's");
    assert!(matches!(error, StoreError::WrongProject { .. }), "{error:?}");
}

#[test]
fn a_file_that_somebody_else_wrote_meanwhile_is_not_overwritten() {
    let place = Place::used();
    let mut locked = place.lock();
    locked.load().expect("loads");
    let bytes = fs::read(place.file("state.json")).expect("reads");
    // The same bytes, but written by another hand.
    fs::write(place.file("new"), &bytes).expect("writes");
    fs::rename(place.file("new"), place.file("state.json")).expect("renames");
    let error = locked.save(&numbered(3)).expect_err("stolen");
    assert!(matches!(error, StoreError::Stolen { .. }), "{error:?}");
    fs::remove_file(place.file("state.json")).expect("removes");
    assert!(matches!(locked.save(&numbered(3)), Err(StoreError::Stolen { .. })));
    assert!(!place.file("state.json").exists());
}

#[test]
fn what_was_read_before_another_save_cannot_be_saved_over_it() {
    let place = Place::used();
    let old = numbered(1);
    let error = place.lock().save(&old).expect_err("older than the file");
    assert!(error.to_string().contains("newer (generation 2)"), "{error}");
    let stranger = State { generation: 5, ..State::new("oracle-plan", "ffffff") };
    let error = place.lock().save(&stranger).expect_err("another instance");
    assert!(error.to_string().contains("instance 1f3a9c"), "{error}");
}

#[test]
fn a_symlink_or_a_fifo_is_neither_read_nor_replaced() {
    for name in ["state.json", "state.json.lock"] {
        let place = Place::used();
        let target = place.folder.path().join("target");
        fs::rename(place.file(name), &target).expect("renames");
        symlink(&target, place.file(name)).expect("links");
        let before = fs::read(&target).expect("reads");
        let locked = place.store.lock(Duration::ZERO);
        let error = locked.and_then(|mut l| l.save(&numbered(3))).expect_err("a symlink");
        assert!(matches!(error, StoreError::NotAFile { .. }), "{error:?}");
        assert!(error.to_string().contains("symlink to"), "{error}");
        assert_eq!(fs::read(&target).expect("reads"), before);
    }
    let place = Place::used();
    fs::remove_file(place.file("state.json")).expect("removes");
    fs::create_dir(place.file("state.json")).expect("makes");
    assert!(matches!(place.store.read(), Err(StoreError::NotAFile { .. })));
}

#[test]
fn a_save_that_cannot_write_leaves_all_as_it_was() {
    let place = Place::used();
    let before = fs::read(place.file("state.json")).expect("reads");
    // A folder in the way of the new file is a refusal that root meets too.
    fs::create_dir(place.file("state.json.tmp")).expect("makes");
    let mut locked = place.lock();
    let error = locked.save(&numbered(3)).expect_err("no room");
    assert!(error.to_string().contains("state.json.tmp"), "{error}");
    assert_eq!(fs::read(place.file("state.json")).expect("reads"), before);
    fs::remove_dir(place.file("state.json.tmp")).expect("removes");
    assert_eq!(locked.save(&numbered(3)).expect("saves again"), 3);
}

#[test]
fn what_a_crash_left_behind_is_in_nobodys_way() {
    let place = Place::used();
    for name in ["state.json.tmp", "state.json.bak.tmp"] {
        fs::write(place.file(name), "half a st").expect("writes");
    }
    place.lock().save(&numbered(3)).expect("saves");
    assert_eq!(place.names(), ["state.json", "state.json.bak", "state.json.lock"]);
    let backup = Store::at(place.file("state.json.bak")).read().expect("reads");
    assert_eq!(backup, Some(numbered(2)));
}

#[test]
fn the_backup_is_taken_over_only_where_the_state_is_lost() {
    let place = Place::used();
    assert!(place.lock().take_over_backup().is_err(), "the state is good");
    fs::write(place.file("state.json"), "half a st").expect("writes");
    let mut locked = place.lock();
    assert_eq!(locked.take_over_backup().expect("takes over"), numbered(1));
    assert_eq!(fs::read(place.file("state.json.damaged")).expect("kept"), b"half a st");
    assert_eq!(locked.save(&numbered(2)).expect("goes on"), 2);
    fs::remove_file(place.file("state.json")).expect("removes");
    drop(locked);
    assert_eq!(place.lock().take_over_backup().expect("takes over"), numbered(1));
}

#[test]
fn files_are_never_for_everybody_and_follow_a_group_folder() {
    let place = Place::used();
    let mode =
        |name: &str| fs::metadata(place.file(name)).expect("is there").permissions().mode() & 0o777;
    assert_eq!(mode("state.json") & 0o007, 0);
    let folder = place.folder.path().join("deep");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o2770)).expect("sets");
    fs::remove_file(place.file("state.json.lock")).expect("removes");
    let mut locked = place.lock();
    locked.save(&numbered(3)).expect("saves");
    locked.journal(&[json!(1)]).expect("appends");
    for name in ["state.json", "state.json.lock", "journal.jsonl"] {
        assert_eq!(mode(name), 0o660, "{name}");
    }
}

#[test]
fn the_cache_comes_back_and_its_loss_is_no_error() {
    let place = Place::new();
    let mut locked = place.lock();
    assert_eq!(locked.store().read_cache(), None);
    locked.write_cache(b"\0some bytes\n").expect("writes");
    assert_eq!(locked.store().read_cache().as_deref(), Some(&b"\0some bytes\n"[..]));
    fs::remove_file(place.file("state.json.progress")).expect("removes");
    fs::create_dir(place.file("state.json.progress")).expect("makes");
    assert_eq!(locked.store().read_cache(), None);
}

#[test]
fn a_state_reads_like_a_list_of_shards() {
    let place = Place::new();
    place.lock().save(&State { generation: 1, ..state(&mut Dice::new(3), 4) }).expect("saves");
    let text = fs::read_to_string(place.file("state.json")).expect("text");
    assert!(text.starts_with("{\n\"version\": 1,\n\"project\": \"oracle-plan\",\n"), "{text}");
    assert!(text.lines().filter(|line| line.starts_with("{\"id\":\"")).count() >= 4, "{text}");
    serde_json::from_str::<serde_json::Value>(&text).expect("one JSON document");
}
