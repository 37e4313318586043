//! One campaign on the sandbox: a folder, a shards.toml, a program, and babysit as the user who owns
//! them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::slurm::{self, Job, as_user_with, stderr, stdout};
use crate::view::Status;

/// Each scene as two tests: as root, who may do in Slurm what users may not, and as alice.
macro_rules! both {
    ($($(#[$about:meta])* fn $name:ident($lab:ident) $body:block)*) => { $(
        $(#[$about])*
        mod $name {
            use super::*;

            fn scene($lab: &mut $crate::lab::Lab) $body

            #[test]
            fn as_root() {
                scene(&mut $crate::lab::Lab::new("root", stringify!($name)));
            }

            #[test]
            fn as_alice() {
                scene(&mut $crate::lab::Lab::new("alice", stringify!($name)));
            }
        }
    )* };
}

/// The sandbox's lanes: own has 4 GPUs, K = 2.
pub const LANES: &str = "[own]\nqos = \"own\"\ngpus = 4\npark = 2\n\n[extra]\nqos = \"extra\"\n\n";

/// The sandbox's models, ranked as in policy.md section 8.
pub const TIERS: &str = "[tiers]\n\
    rtx3080ti = { rank = 1, tflops = 34.1 }\n\
    rtx4090 = { rank = 2, tflops = 82.6 }\n\
    rtx5090 = { rank = 3, tflops = 104.8 }\n\n";

const COMMANDS: [&str; 7] =
    ["squeue", "sinfo", "sacct", "sbatch", "scontrol", "scancel", "sacctmgr"];

pub struct Lab {
    pub user: &'static str,
    pub dir: PathBuf,
    pub project: String,
    /// Keys under [slurm] and [policy]; a test may add to them before it writes shards.toml.
    pub slurm: String,
    pub policy: String,
    binary: PathBuf,
    uid: u32,
}

impl Lab {
    pub fn new(user: &'static str, name: &str) -> Lab {
        clean_cluster();
        let id = slurm::slurm("root", &["id", "-u", user]);
        let project = format!("{name}-{user}-{}", std::process::id());
        let lab = Lab {
            user,
            dir: test_dir().join(&project),
            project,
            slurm: "timeout = \"20s\"\n".to_owned(),
            policy: "settle = \"1s\"\nbackoff = \"1s\"\nsubmit_settle = \"3s\"\n".to_owned(),
            binary: readable_by_all(Path::new(env!("CARGO_BIN_EXE_babysit"))),
            uid: id.trim().parse().expect("a number"),
        };
        lab.folder("");
        lab.write("rows.sh", include_str!("rows.sh"));
        lab.folder("bin/once");
        lab.folder("bin/always");
        lab.write("bin/wrap.sh", include_str!("wrap.sh"));
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(lab.path("bin/wrap.sh"), executable).expect("chmod");
        for command in COMMANDS {
            symlink("wrap.sh", lab.path("bin").join(command)).expect("a link");
        }
        lab
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.dir.join(relative)
    }

    fn give(&self, path: &Path) {
        chown(path, Some(self.uid), None).expect("chown");
    }

    /// A folder of the user's, and those above it.
    pub fn folder(&self, relative: &str) {
        let mut path = self.dir.clone();
        for part in Path::new(relative) {
            fs::create_dir_all(&path).expect("a folder");
            self.give(&path);
            path.push(part);
        }
        fs::create_dir_all(&path).expect("a folder");
        self.give(&path);
    }

    /// A file of the user's.
    pub fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::write(&path, text).expect("a file");
        self.give(&path);
    }

    pub fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap_or_default()
    }

    pub fn remove(&self, relative: &str) {
        fs::remove_file(self.path(relative)).expect("it was there");
    }

    /// shards.toml: project, [slurm] and [policy] of this lab, then these parts.
    pub fn shards_toml(&self, parts: &[&str]) {
        let bin = self.path("bin").display().to_string();
        let head = format!(
            "project = \"{}\"\nstate = \"state.json\"\nlogs = \"logs\"\n\n[slurm]\n{}{}\n[policy]\n{}\n",
            self.project,
            if self.slurm.contains("bin_dir") {
                "".into()
            } else {
                format!("bin_dir = \"{bin}\"\n")
            },
            self.slurm,
            self.policy,
        );
        self.write("shards.toml", &(head + &parts.concat()));
    }

    /// babysit as cron would start it, with SLURM_CONF as the sandbox is not in the usual place.
    pub fn command(&self, words: &[&str]) -> Command {
        self.command_with(&[&format!("SLURM_CONF={}", slurm::conf())], words)
    }

    /// babysit with exactly these variables beside cron's.
    pub fn command_with(&self, variables: &[&str], words: &[&str]) -> Command {
        let binary = self.binary.display().to_string();
        let mut command = as_user_with(self.user, variables, &binary);
        command.arg("--config").arg(self.path("shards.toml")).args(words);
        command
    }

    pub fn babysit(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("babysit starts")
    }

    /// The babysit that is at work in this lab; runuser and env stand between us and it.
    pub fn process(&self) -> u32 {
        let ours = self.path("shards.toml").display().to_string();
        let is_it = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<_> = line.split(|byte| *byte == 0).collect();
            words[0] == self.binary.display().to_string().as_bytes()
                && words.contains(&ours.as_bytes())
        };
        let entries = fs::read_dir("/proc").expect("/proc").flatten();
        let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.find(is_it).expect("a babysit that runs")
    }

    /// Its stdout; it must succeed.
    pub fn done(&self, words: &[&str]) -> String {
        let output = self.babysit(words);
        assert!(
            output.status.success(),
            "babysit {words:?}: {:?}\n{}{}",
            output.status.code(),
            stdout(&output),
            stderr(&output)
        );
        stdout(&output)
    }

    /// A tick that must not be skipped; what it told.
    pub fn tick(&self) -> String {
        self.done(&["tick"])
    }

    /// A tick that takes this for the time (epoch seconds).
    pub fn tick_at(&self, now: i64) {
        let conf = format!("SLURM_CONF={}", slurm::conf());
        let variables = [conf.as_str(), &format!("BABYSIT_NOW={now}")];
        let output = self.command_with(&variables, &["tick"]).output().expect("it starts");
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    }

    /// A tick, whatever comes of it: exit code, stdout and stderr.
    pub fn tick_anyhow(&self) -> (i32, String) {
        let output = self.babysit(&["tick"]);
        (output.status.code().unwrap_or(-1), stdout(&output) + &stderr(&output))
    }

    /// A tick that is killed after so long, if it still runs then; its exit code (137: killed). What
    /// it had started is left to itself.
    pub fn tick_killed_after(&self, after: Duration) -> i32 {
        let conf = format!("SLURM_CONF={}", slurm::conf());
        let mut command = as_user_with(self.user, &[&conf], "/usr/bin/timeout");
        command.args(["--foreground", "-s", "KILL", &format!("{:.3}", after.as_secs_f64())]);
        command.arg(&self.binary).arg("--config").arg(self.path("shards.toml")).arg("tick");
        let output = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        // A shell's 128 + 9, or runuser's own death by the signal that it passes on.
        output.expect("timeout starts").code().unwrap_or(137)
    }

    pub fn status(&self) -> Status {
        let text = self.done(&["status", "--json"]);
        Status(serde_json::from_str(&text).expect("JSON"))
    }

    /// Ticks until the status is as it should be.
    pub fn tick_until(&self, what: &str, fits: impl Fn(&Status) -> bool) -> Status {
        self.tick_for(slurm::DEADLINE, what, fits)
    }

    /// The same, for campaigns that may take longer.
    pub fn tick_for(&self, most: Duration, what: &str, fits: impl Fn(&Status) -> bool) -> Status {
        slurm::wait_at_most(most, what, || {
            self.tick();
            Some(self.status()).filter(&fits)
        })
    }

    /// What the state file says of the shards.
    pub fn shards_in_state(&self) -> serde_json::Value {
        let state: serde_json::Value =
            serde_json::from_str(&self.read("state.json")).expect("a state");
        state["shards"].clone()
    }

    pub fn queue(&self) -> Vec<Job> {
        slurm::queue(&self.project)
    }

    /// Every job that was ever submitted for this campaign.
    pub fn history(&self) -> Vec<Job> {
        slurm::history(&self.project)
    }

    pub fn jobs_of(&self, shard: &str) -> Vec<Job> {
        self.history().into_iter().filter(|job| job.shard() == shard).collect()
    }

    /// Shards whose job is live and fits, in order of name.
    pub fn shards_where(&self, fits: impl Fn(&Job) -> bool) -> Vec<String> {
        let live = self.queue().into_iter().filter(|job| job.is_live() && fits(job));
        let mut shards: Vec<String> = live.map(|job| job.shard()).collect();
        shards.sort();
        shards
    }

    pub fn running(&self) -> Vec<String> {
        self.shards_where(Job::is_running)
    }

    pub fn pending_in(&self, qos: &str) -> Vec<String> {
        self.shards_where(|job| job.is_pending() && job.qos == qos)
    }

    pub fn wait_running(&self, count: usize) {
        slurm::wait_until(&format!("{count} running jobs"), || self.running().len() == count);
    }

    /// Makes the program of a shard wait before its next row, from now on.
    pub fn pause(&self, shard: &str) {
        self.folder(&format!("runs/{shard}"));
        self.write(&format!("runs/{shard}/wait"), "");
    }

    pub fn go_on(&self, shard: &str) {
        self.remove(&format!("runs/{shard}/wait"));
    }

    /// Makes the program of a shard print this and fail.
    pub fn fails(&self, shard: &str, says: &str) {
        self.folder(&format!("runs/{shard}"));
        self.write(&format!("runs/{shard}/fail"), says);
    }

    /// Calls of Slurm's commands by babysit since the last look.
    pub fn calls(&self) -> Vec<(String, Vec<String>)> {
        let text = self.read("bin/calls");
        self.write("bin/calls", "");
        let call = |line: &str| {
            let (name, arguments) = line.split_once('\t').expect("a tab");
            // `$'..'` is how bash writes control characters: only separators have them.
            (name.to_owned(), shell_words::split(arguments).expect("words of a shell"))
        };
        text.lines().map(call).collect()
    }

    /// The next call of this command goes wrong (wrap.sh has the kinds).
    pub fn next_call(&self, command: &str, kind: &str, message: &str) {
        self.write(&format!("bin/once/{command}"), &format!("{kind}\n{message}\n"));
    }

    /// Every call of this command goes wrong, until [`Lab::heal`].
    pub fn every_call(&self, command: &str, kind: &str, message: &str) {
        self.write(&format!("bin/always/{command}"), &format!("{kind}\n{message}\n"));
    }

    pub fn heal(&self, command: &str) {
        self.remove(&format!("bin/always/{command}"));
    }

    /// scripts/slurm-sandbox with these words; the next test then begins with a reset.
    pub fn sandbox(&self, words: &[&str]) {
        disturbed();
        slurm::sandbox_script(words);
    }

    /// What must be true of a campaign that is done: every row was done once, no job ran beside
    /// another of its shard, and only what was in flight at an interruption was begun again.
    pub fn prove(&self, shards: &[String], rows: u32) {
        let history = self.history();
        let duplicates = slurm::duplicates(&history);
        assert!(duplicates.is_empty(), "two jobs of one shard: {duplicates:#?}");
        for shard in shards {
            let trace = self.read(&format!("runs/{shard}/trace"));
            let bad =
                trace.lines().filter(|line| !line.starts_with("begin") && !line.starts_with("end"));
            assert_eq!(
                bad.collect::<Vec<_>>(),
                Vec::<&str>::new(),
                "{shard}: rows done again, or by two"
            );
            let count = |word: &str, job: Option<u64>, row: Option<u32>| {
                let fits = |line: &&str| {
                    let words: Vec<&str> = line.split(' ').collect();
                    words[0] == word
                        && row.is_none_or(|row| words[1] == row.to_string())
                        && job.is_none_or(|job| words[2] == job.to_string())
                };
                trace.lines().filter(fits).count()
            };
            for row in 0..rows {
                assert!(
                    self.path(&format!("runs/{shard}/row_{row}.json")).exists(),
                    "{shard} {row}"
                );
                // Killed between the file and its trace: the row is done all the same.
                assert!(count("end", None, Some(row)) <= 1, "{shard} row {row}\n{trace}");
            }
            for job in history.iter().filter(|job| job.shard() == *shard) {
                let begun = count("begin", Some(job.id), None);
                let open = begun - count("end", Some(job.id), None);
                assert!(open <= usize::from(job.state != "COMPLETED"), "{job:?} lost {open} rows");
            }
        }
    }
}

/// What labs are charged for against what accounting has.
impl Lab {
    /// Every run that accounting knows is charged once, to the second or the next one; nothing else
    /// is. Says it in figures.
    pub fn prove_charges(&self) -> String {
        let text = self.done(&["usage", "--json"]);
        let usage: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let number = |value: &serde_json::Value| value.as_i64().expect("a number");
        // Shard and attempt -> its charges, its runs; GPU-seconds.
        let mut sides: BTreeMap<(String, i64), (Vec<i64>, Vec<i64>)> = BTreeMap::new();
        for charge in usage["charges"].as_array().expect("charges") {
            let shard = charge["shard"].as_str().expect("a shard").to_owned();
            let key = (shard, number(&charge["attempt"]));
            sides.entry(key).or_default().0.push(number(&charge["gpu_seconds"]));
        }
        for (job, gpu_seconds) in slurm::runs(&self.project) {
            let attempt = job.name.rsplit_once(".a").expect("a name of ours").1;
            let key = (job.shard(), attempt.parse().expect("a number"));
            sides.entry(key).or_default().1.push(gpu_seconds);
        }
        let (mut charged, mut ran) = (0, 0);
        for (who, (charges, runs)) in &mut sides {
            charges.sort_unstable();
            runs.sort_unstable();
            let fits = charges.len() == runs.len()
                && charges.iter().zip(&*runs).all(|(a, b)| (a - b).abs() <= 1);
            assert!(fits, "{who:?}: charged {charges:?}, ran {runs:?} GPU-seconds");
            charged += charges.iter().sum::<i64>();
            ran += runs.iter().sum::<i64>();
        }
        let runs: usize = sides.values().map(|(_, runs)| runs.len()).sum();
        format!("charges: {charged} GPU-seconds; sacct: {ran} in {runs} runs")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The next test must not suffer from this one; and here is what it was about.
            disturbed();
            for words in [["status"], ["log"]] {
                let output = self.babysit(&words);
                eprintln!("babysit {words:?}\n{}{}", stdout(&output), stderr(&output));
            }
            eprintln!("{:#?}", self.queue());
        } else {
            slurm::clear();
            fs::remove_dir_all(&self.dir).expect("the lab's own folder");
        }
    }
}

/// A family of shards that run rows.sh.
pub struct Family {
    pub name: &'static str,
    pub shards: u32,
    pub rows: u32,
    pub row_time: &'static str,
    /// Seconds that a row really takes.
    pub seconds: f64,
    /// Rows after which one run of the program ends by itself.
    pub rows_per_run: Option<u32>,
    pub gpus: u32,
    /// In dollars; a row costs 0.10.
    pub cap: Option<f64>,
    /// More lines of TOML.
    pub more: &'static str,
}

impl Default for Family {
    fn default() -> Family {
        Family {
            name: "find",
            shards: 1,
            rows: 4,
            row_time: "1m",
            seconds: 0.2,
            rows_per_run: None,
            gpus: 1,
            cap: None,
            more: "",
        }
    }
}

impl Family {
    pub fn toml(&self) -> String {
        let Family { name, shards, rows, row_time, seconds, rows_per_run, gpus, cap, more } = self;
        let most = rows_per_run.map_or(String::new(), |rows| format!(" {rows}"));
        let cap = cap.map_or(String::new(), |cap| format!("cap = {cap:.2}\n"));
        let folder = format!("runs/{name}/{{shard}}");
        format!(
            "[families.{name}]\n\
             command = \"bash rows.sh {folder} {seconds}{most}\"\n\
             rows = {rows}\nrow_time = \"{row_time}\"\nshards = {shards}\n\
             gpus = {gpus}\ncpus = 1\nmem = \"100M\"\n\
             done = {{ glob = \"{folder}/row_*.json\" }}\n\
             cost = {{ jsonl = \"{folder}/cost.jsonl\", field = \"cost_usd\" }}\n\
             {cap}{more}\n"
        )
    }
}

pub fn ids(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

/// A folder that every user can read.
pub fn test_dir() -> PathBuf {
    let dir = std::env::var_os("BABYSIT_TEST_DIR").map(PathBuf::from);
    dir.expect("BABYSIT_TEST_DIR is not set: run these tests by scripts/test")
}

/// A copy of a program where ordinary users can run it, wherever the checkout lies.
pub fn readable_by_all(program: &Path) -> PathBuf {
    let copy = test_dir().join(program.file_name().expect("a name"));
    let stamp = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified());
    let built = stamp(program).expect("cargo has built it");
    if stamp(&copy).is_ok_and(|copied| copied >= built) {
        return copy;
    }
    let fresh = copy.with_extension("new");
    fs::copy(program, &fresh).expect("a copy");
    fs::rename(&fresh, &copy).expect("in its place");
    copy
}

fn mark() -> PathBuf {
    slurm::sandbox().join("clean")
}

/// The sandbox is not as `reset` leaves it any more, jobs aside.
pub fn disturbed() {
    if mark().exists() {
        fs::remove_file(mark()).expect("the mark");
    }
}

/// `slurm-sandbox reset` where something was disturbed; else there are only jobs to end, which
/// takes a tenth of the time.
pub fn clean_cluster() {
    if mark().exists() {
        slurm::clear();
        return;
    }
    slurm::sandbox_script(&["reset"]);
    fs::write(mark(), "").expect("the mark");
}
