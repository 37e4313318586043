//! `babysit exec`, the real program as a job script starts it: on real files, with programs of a line of
//! shell. docs/pilots.md.
#![allow(clippy::disallowed_methods, reason = "a test plays Slurm and the shards' programs")]

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use babysit::model::id::{JobId, ShardId};
use babysit::model::pilot::{Claim, Offer, Offered};
use babysit::model::units::{Secs, Time};
use babysit::store::{Claimed, Pilots};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

struct Lab {
    dir: TempDir,
}

impl Lab {
    /// With an empty folder of offers and claims.
    fn new() -> Lab {
        let lab = Lab { dir: TempDir::new().expect("a folder") };
        std::fs::create_dir(lab.at("s.pilots")).expect("a folder");
        lab
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn pilots(&self) -> Pilots {
        Pilots::at(self.at("s.pilots"))
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    fn offered(&self, shard: &str, command: &str) -> Offered {
        Offered {
            shard: ShardId::new("find", shard),
            group: "find gpus=1".to_owned(),
            fence: 1,
            command: command.to_owned(),
            workdir: self.dir.path().to_owned(),
            log_dir: self.at(&format!("logs/{shard}")),
            env: vec![("BABYSIT_SHARD".to_owned(), shard.to_owned())],
            remaining: Secs(7200),
            row: Secs(900),
        }
    }

    fn offer(&self, shards: Vec<Offered>) {
        let offer = Offer { instance: "abc".to_owned(), shards, taken: Vec::new() };
        self.pilots().put_offer(&offer).expect("written");
    }

    fn claim(&self, shard: &str, fence: u32) -> Claim {
        Claim {
            shard: ShardId::new("find", shard),
            fence,
            instance: "abc".to_owned(),
            job: JobId(1),
            token: "babysit:abc:find/s9:a1:n".to_owned(),
            run: 0,
            place: 0,
            after: Secs(0),
            host: "n1".to_owned(),
            at: Time(0),
            uid: 0,
            returned: false,
        }
    }

    /// Shards that were claimed, each with its job.
    fn claims(&self) -> Vec<(String, u64)> {
        let claims = self.pilots().claims(|_, _| true, Time(0)).expect("readable");
        assert_eq!(claims.bad, []);
        let begun = claims.claims.into_iter().filter(|claim| !claim.returned);
        begun.map(|claim| (claim.shard.shard.to_string(), claim.job.0)).collect()
    }

    fn command(&self, job: u64) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_babysit"));
        command
            .args(["exec", "--group=find gpus=1", "--fence=1", "--shard=find/s0"])
            .arg(format!("--pilots={}", self.at("s.pilots").display()))
            .arg("--token=babysit:abc:find/s0:a1:n")
            .args(["--", "echo own $BABYSIT_SHARD >>ran"])
            .current_dir(self.dir.path())
            .env("SLURM_JOB_ID", job.to_string())
            .env("BABYSIT_SHARD", "s0")
            .env_remove("SLURM_JOB_END_TIME")
            .env_remove("SLURM_RESTART_COUNT")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // As a batch script: it leads its group, and a signal to that reaches nobody else.
            .process_group(0);
        command
    }

    fn run(&self, change: impl FnOnce(&mut Command)) -> (Option<i32>, String) {
        let mut command = self.command(7);
        change(&mut command);
        let Output { status, stderr, .. } = command.output().expect("it starts");
        (status.code(), String::from_utf8_lossy(&stderr).into_owned())
    }
}

const RAN: &str = "echo $BABYSIT_SHARD >>ran; echo said by $BABYSIT_SHARD";

fn until(what: &str, fits: impl Fn() -> bool) {
    let patience = 1200;
    let came = (0..patience).any(|_| {
        let fits = fits();
        if !fits {
            std::thread::sleep(Duration::from_millis(50));
        }
        fits
    });
    assert!(came, "{what} did not come about");
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a number");
    kill_process(pid, signal).expect("it runs");
}

#[test]
fn it_takes_the_longest_and_then_the_next_and_ends_when_nothing_waits() {
    let lab = Lab::new();
    let mut other = lab.offered("s3", RAN);
    other.group = "find gpus=2".to_owned();
    lab.offer(vec![lab.offered("s2", RAN), other, lab.offered("s0", RAN), lab.offered("s1", RAN)]);
    let (code, said) = lab.run(|_| {});
    assert_eq!((code, lab.read("ran").as_str()), (Some(0), "s2\ns0\ns1\n"), "{said}");
    assert_eq!(lab.claims(), [("s0".into(), 7), ("s1".into(), 7), ("s2".into(), 7)]);
    assert_eq!(lab.read("logs/s1/7.out"), "said by s1\n", "each shard's output is in its own log");
    assert!(!lab.at("logs/s0").exists(), "the job's own shard writes where the job does");
    assert!(said.contains("takes find/s2 (claim 1)") && said.contains("no shard waits"));
}

#[test]
fn a_program_that_fails_ends_the_job_with_its_code() {
    let lab = Lab::new();
    lab.offer(vec![lab.offered("s2", "exit 37"), lab.offered("s1", RAN)]);
    assert_eq!(lab.run(|_| {}).0, Some(37));
    assert_eq!((lab.claims(), lab.read("ran").as_str()), (vec![("s2".into(), 7)], ""));
    let lab = Lab::new();
    lab.offer(vec![lab.offered("s2", "kill -9 $$")]);
    assert_eq!(lab.run(|_| {}).0, Some(128 + 9), "as a shell says it");
}

#[test]
fn a_signal_is_passed_on_and_no_other_shard_begun() {
    let lab = Lab::new();
    let waits =
        "trap 'echo asked >>ran; exit 0' TERM; echo ready >>ran; while :; do sleep 0.05; done";
    lab.offer(vec![lab.offered("s2", waits), lab.offered("s1", RAN)]);
    let mut child = lab.command(7).spawn().expect("it starts");
    until("the program", || lab.read("ran").contains("ready"));
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().expect("a child").code(), Some(0), "as its program ended");
    assert!(lab.read("ran").contains("asked"), "{}", lab.read("ran"));
    assert_eq!(lab.claims(), [("s2".into(), 7)]);
}

#[test]
fn without_an_offer_it_works_on_its_own_shard_unless_somebody_has_it() {
    let check = |prepare: &dyn Fn(&Lab), ran: &str, says: &str| {
        let lab = Lab::new();
        prepare(&lab);
        let (code, said) = lab.run(|_| {});
        assert_eq!((code, lab.read("ran").as_str()), (Some(0), ran), "{said}");
        assert!(said.contains(says), "{said}");
    };
    let torn = |lab: &Lab| {
        std::fs::write(lab.at("s.pilots/offer.json"), "{\"schema\": \"bab").expect("a file");
    };
    let taken = |lab: &Lab, fence: u32| {
        assert_eq!(lab.pilots().claim(&lab.claim("s0", fence)), Ok(Claimed::Won));
    };
    check(&|_| {}, "own s0\n", "no offer can be read, find/s0 it is then");
    check(&torn, "own s0\n", "no offer can be read");
    check(&|lab| taken(lab, 1), "", "has been taken by another job");
    check(&|lab| taken(lab, 5), "", "has been taken by another job");
    // Submitted after the offer was made.
    check(&|lab| lab.offer(Vec::new()), "own s0\n", "which it was submitted for");
    let others = |lab: &Lab| {
        let offer = Offer { instance: "other".to_owned(), ..Offer::default() };
        lab.pilots().put_offer(&offer).expect("written");
    };
    check(&others, "", "of another state");
}

#[test]
fn it_goes_on_only_while_its_time_allows() {
    let lab = Lab::new();
    let mut short = lab.offered("s1", RAN);
    (short.remaining, short.row) = (Secs(60), Secs(60));
    lab.offer(vec![lab.offered("s2", RAN), lab.offered("s3", RAN), short]);
    // Two rows of fifteen minutes and a start do not fit into ten minutes; one of a minute does.
    let (code, said) = lab.run(|command| {
        command.env("BABYSIT_NOW", "1000").env("SLURM_JOB_END_TIME", "1600");
    });
    assert_eq!((code, lab.read("ran").as_str()), (Some(0), "s2\ns1\n"), "{said}");
    let lab = Lab::new();
    lab.offer(vec![lab.offered("s2", RAN), lab.offered("s3", RAN)]);
    let (code, said) = lab.run(|command| {
        let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let mut again = lab.command(7);
        let at = words.iter().position(|word| word == "--").expect("there");
        again = {
            let mut fresh = Command::new(again.get_program());
            fresh.args(&words[..at]).arg("--time=10").args(&words[at..]);
            fresh.current_dir(lab.dir.path()).env("SLURM_JOB_ID", "7").stderr(Stdio::piped());
            fresh
        };
        *command = again;
    });
    assert_eq!((code, lab.read("ran").as_str()), (Some(0), "s2\n"), "{said}");
}

#[test]
fn a_folder_that_is_not_there_fails_the_job_with_a_sentence() {
    let lab = Lab::new();
    std::fs::remove_dir(lab.at("s.pilots")).expect("empty");
    let (code, said) = lab.run(|_| {});
    assert_eq!(code, Some(1));
    assert!(said.contains("cannot be claimed") && said.contains("on every node"), "{said}");
    assert_eq!(lab.read("ran"), "");
    let (code, said) = lab.run(|command| {
        command.env_remove("SLURM_JOB_ID");
    });
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn of_many_at_once_no_two_work_on_one_shard() {
    let lab = Lab::new();
    let shards: Vec<String> = (1..=12).map(|i| format!("s{i}")).collect();
    lab.offer(shards.iter().map(|shard| lab.offered(shard, RAN)).collect());
    let jobs: Vec<Child> =
        (20..26).map(|job| lab.command(job).spawn().expect("it starts")).collect();
    for mut job in jobs {
        assert!(job.wait().expect("a child").success());
    }
    let ran = lab.read("ran");
    let mut ran: Vec<&str> = ran.lines().filter(|line| !line.starts_with("own")).collect();
    ran.sort_unstable();
    let mut expected: Vec<&str> = shards.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(ran, expected, "each shard by one job");
    assert!(Path::new(&lab.at("s.pilots/offer.json")).is_file());
}
