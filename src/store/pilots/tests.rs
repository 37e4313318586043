#![allow(clippy::disallowed_methods, reason = "tests play those who put odd files there")]

use std::sync::Barrier;

use tempfile::TempDir;

use super::*;
use crate::model::id::JobId;
use crate::model::pilot::Offered;

const NOW: Time = Time(1_790_000_000);

fn folder() -> (TempDir, Pilots) {
    let folder = tempfile::tempdir().expect("a folder");
    let pilots = Pilots::at(folder.path().join("state.json.pilots"));
    file::make_folder(pilots.folder()).expect("a folder");
    (folder, pilots)
}

fn claim(shard: &str, fence: u32, job: u64) -> Claim {
    Claim {
        shard: ShardId::new("find", shard),
        fence,
        instance: "abc".to_owned(),
        job: JobId(job),
        token: "babysit:abc:find/s0:a1:n".to_owned(),
        run: 0,
        place: 0,
        after: Secs(0),
        host: "gpu07".to_owned(),
        at: NOW,
        uid: rustix::process::getuid().as_raw(),
        returned: false,
    }
}

fn all(pilots: &Pilots) -> Claims {
    pilots.claims(|_, _| true, NOW).expect("readable")
}

#[test]
fn of_many_pilots_that_want_one_shard_exactly_one_gets_it() {
    const PILOTS: u64 = 16;
    let (_folder, pilots) = folder();
    for round in 1..=25 {
        let begin = Barrier::new(PILOTS as usize);
        let won: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=PILOTS)
                .map(|job| {
                    let (pilots, begin) = (&pilots, &begin);
                    scope.spawn(move || {
                        begin.wait();
                        let claimed = pilots.claim(&claim("s0", round, job)).expect("writable");
                        (claimed == Claimed::Won).then_some(job)
                    })
                })
                .collect();
            threads.into_iter().filter_map(|thread| thread.join().expect("no panic")).collect()
        });
        let kept: Vec<u64> = all(&pilots)
            .claims
            .iter()
            .filter(|claim| claim.fence == round)
            .map(|claim| claim.job.0)
            .collect();
        assert_eq!(won.len(), 1, "round {round}: {won:?}");
        assert_eq!(kept, won, "the winner is the one that is read");
    }
    let left: Vec<_> = std::fs::read_dir(pilots.folder())
        .expect("there")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.ends_with(".tmp"))
        .collect();
    assert!(left.is_empty(), "drafts are removed: {left:?}");
}

#[test]
fn a_number_of_long_ago_takes_nothing_even_where_its_file_is_gone() {
    let (_folder, pilots) = folder();
    assert_eq!(pilots.claim(&claim("s0", 7, 1)), Ok(Claimed::Won));
    assert_eq!(pilots.claim(&claim("s0", 3, 2)), Ok(Claimed::Lost));
    assert_eq!(pilots.claim(&claim("s1", 3, 2)), Ok(Claimed::Won), "another shard's numbers");
    // What it left says itself that nothing came of it.
    let claims = all(&pilots).claims;
    let three = claims.iter().find(|claim| (claim.fence, claim.job.0) == (3, 2)).expect("kept");
    assert!(three.returned, "{three:?}");
}

#[test]
fn a_claim_without_its_folder_is_an_error_and_no_loss() {
    let pilots = Pilots::at("/nowhere/state.json.pilots".into());
    let error = pilots.claim(&claim("s0", 1, 1)).expect_err("no folder");
    assert!(error.contains("/nowhere/state.json.pilots"), "{error}");
    assert_eq!(pilots.claims(|_, _| true, NOW).expect("none"), Claims::default());
}

#[test]
fn an_offer_is_replaced_where_it_says_something_new_and_read_where_its_writer_is_trusted() {
    let (_folder, pilots) = folder();
    let me = rustix::process::getuid().as_raw();
    assert!(pilots.offer(me).is_err(), "there is none");
    let shard = Offered {
        shard: ShardId::new("find", "s0"),
        group: "find gpus=1".to_owned(),
        fence: 3,
        command: "python run.py\n# \"x\"".to_owned(),
        workdir: "/w".into(),
        log_dir: "/w/logs".into(),
        env: vec![("BABYSIT_ROWS".to_owned(), "44".to_owned())],
        remaining: Secs(44 * 900),
        row: Secs(900),
    };
    let taken = vec![(ShardId::new("find", "s1"), 2, JobId(7))];
    let mut offer = Offer { instance: "abc".to_owned(), shards: vec![shard], taken };
    assert!(pilots.put_offer(&offer).expect("written"));
    assert!(!pilots.put_offer(&offer).expect("the same"), "not replaced");
    assert_eq!(pilots.offer(me).as_ref(), Ok(&offer));
    offer.shards.clear();
    assert!(pilots.put_offer(&offer).expect("written"));
    assert_eq!(pilots.offer(me), Ok(offer));
    if me != 0 {
        assert!(pilots.offer(me + 1).is_err(), "somebody else's commands");
    }
    std::fs::write(pilots.folder().join(OFFER), "{\"schema\": \"babysit/off").expect("torn");
    assert!(pilots.offer(me).is_err());
}

#[test]
fn odd_files_under_the_name_of_a_claim_are_told_and_do_no_harm() {
    let (_folder, pilots) = folder();
    let at = |name: &str| pilots.folder().join(name);
    assert_eq!(pilots.claim(&claim("good", 1, 5)), Ok(Claimed::Won));
    std::os::unix::fs::symlink("/etc/passwd", at("find+link.1.claim")).expect("a link");
    std::fs::create_dir(at("find+dir.1.claim")).expect("a folder");
    std::fs::write(at("find+text.1.claim"), "hello").expect("a file");
    std::fs::write(at("find+binary.1.claim"), [0xff, 0, 7]).expect("a file");
    let huge = std::fs::File::create(at("find+huge.1.claim")).expect("a file");
    huge.set_len(10 << 30).expect("sparse");
    std::fs::copy(at("find+good.1.claim"), at("find+copied.4.claim")).expect("a copy");
    // No claims at all.
    for name in ["find+s0.claim", "find+s0.01.claim", "find+s0.-1.claim", "x.claim", "+.1.claim"] {
        std::fs::write(at(name), "x").expect("a file");
    }
    std::fs::write(at("find+empty.1.claim"), "").expect("a file");
    let claims = all(&pilots);
    let good: Vec<_> = claims.claims.iter().map(|claim| claim.shard.shard.as_str()).collect();
    let mut bad: Vec<_> = claims.bad.iter().map(|bad| bad.shard.shard.as_str()).collect();
    bad.sort_unstable();
    assert_eq!(good, ["good"]);
    // The empty one is as young as this test, and that is later than `NOW`: it may still be written.
    assert_eq!(bad, ["binary", "copied", "dir", "huge", "link", "text"]);
    let why = |name: &str| {
        let bad = claims.bad.iter().find(|bad| bad.shard.shard == name);
        bad.map_or("not told", |bad| bad.why.as_str())
    };
    assert_eq!(why("link"), "it is a symlink");
    assert_eq!(why("huge"), "it has 10737418240 bytes, 16384 at most are read");
    let later = pilots.claims(|_, _| true, Time(4_000_000_000)).expect("readable");
    assert!(later.bad.iter().any(|bad| bad.shard.shard == "empty"), "it never was");
}

#[test]
fn what_counts_no_more_is_removed_when_it_is_old_and_the_last_two_stay() {
    let (_folder, pilots) = folder();
    for fence in 1..=5 {
        assert_eq!(pilots.claim(&claim("s0", fence, 1)), Ok(Claimed::Won));
        pilots.give_back(&claim("s0", fence, 1)).expect("written");
    }
    let fences = || all(&pilots).claims.iter().map(|claim| claim.fence).collect::<Vec<_>>();
    let late = Time(4_000_000_000);
    pilots.forget(|_| Some(6), Time(0)).expect("listed");
    assert_eq!(fences(), [1, 2, 3, 4, 5], "they are young");
    pilots.forget(|_| None, late).expect("listed");
    assert_eq!(fences(), [1, 2, 3, 4, 5], "not known to be past");
    pilots.forget(|_| Some(6), late).expect("listed");
    assert_eq!(fences(), [4, 5]);
    assert_eq!(pilots.claim(&claim("s0", 1, 9)), Ok(Claimed::Lost), "whose file is gone");
}
