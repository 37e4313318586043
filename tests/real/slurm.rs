//! The cluster as its administrator sees it: the truth that babysit's story is held against.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Nothing here takes that long; only a wrong outcome does.
pub const DEADLINE: Duration = Duration::from_secs(90);

/// Polls until `look` gives a value.
pub fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_at_most(DEADLINE, what, look)
}

pub fn wait_at_most<T>(most: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(begin.elapsed() < most, "waited {} s for: {what}", most.as_secs());
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub fn wait_until(what: &str, mut fits: impl FnMut() -> bool) {
    wait_for(what, || fits().then_some(()));
}

/// The sandbox of one test that needs another cluster than all others.
static ELSEWHERE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// That one, while it is up.
pub struct Elsewhere(PathBuf);

impl Elsewhere {
    /// A cluster of these nodes that keeps no accounting.
    pub fn up(dir: &Path, nodes: &str) -> Elsewhere {
        let ports = std::env::var("BABYSIT_TEST_PORTS").unwrap_or_else(|_| "17800".to_owned());
        // Beside those of the usual one.
        let port = ports.parse::<u32>().expect("a number") + 50;
        let words = ["--port-base", &port.to_string(), "--nodes", nodes, "--accounting", "none"];
        let there = Elsewhere(dir.to_owned());
        let up = there.script("up", &words);
        assert!(up.status.success(), "{}", stderr(&up));
        *ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner) = Some(dir.to_owned());
        there
    }

    fn script(&self, word: &str, more: &[&str]) -> Output {
        run_script(&[&[word, "--dir", &self.0.display().to_string()], more].concat())
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        *ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let down = self.script("down", &[]);
        // What went wrong before is the news.
        assert!(down.status.success() || std::thread::panicking(), "{}", stderr(&down));
    }
}

/// Folder of the sandbox. A test without one fails: passing would claim what was not tried.
pub fn sandbox() -> PathBuf {
    let elsewhere = ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let dir = elsewhere.or_else(|| std::env::var_os("BABYSIT_SANDBOX").map(PathBuf::from));
    let dir = dir.expect("BABYSIT_SANDBOX is not set: run these tests by scripts/test");
    assert!(dir.join("etc/slurm.conf").is_file(), "no sandbox in {}", dir.display());
    dir
}

pub fn conf() -> String {
    sandbox().join("etc/slurm.conf").display().to_string()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn run_script(words: &[&str]) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/slurm-sandbox");
    Command::new(script).args(words).output().expect("scripts/slurm-sandbox")
}

/// scripts/slurm-sandbox with these words, on the sandbox of this test; it must succeed.
pub fn sandbox_script(words: &[&str]) {
    let dir = sandbox().display().to_string();
    let output = run_script(&[words, &["--dir", &dir]].concat());
    assert!(output.status.success(), "slurm-sandbox {words:?}: {}", stderr(&output));
}

/// A command as a user who has nothing in his environment but what cron gives, and Slurm's conf.
pub fn as_user(user: &str, program: &str) -> Command {
    as_user_with(user, &[&format!("SLURM_CONF={}", conf())], program)
}

/// The same, with exactly these variables more.
///
/// HOME holds no profile: what the profiles of this machine do is no part of a test, and jobs are
/// killed in the middle of them.
pub fn as_user_with(user: &str, variables: &[&str], program: &str) -> Command {
    let mut command = match user {
        "root" => Command::new("/usr/bin/env"),
        _ => {
            let mut command = Command::new("/usr/sbin/runuser");
            command.args(["-u", user, "--", "/usr/bin/env"]);
            command
        }
    };
    command.arg("-i").args([
        "PATH=/usr/bin:/bin",
        "SHELL=/bin/sh",
        "HOME=/nonexistent",
        &format!("LOGNAME={user}"),
    ]);
    command.args(variables).arg(program);
    command.env_clear().current_dir("/").stdin(std::process::Stdio::null());
    command
}

/// One of Slurm's commands as its administrator, whatever it answers: what counts is looked at after.
fn ask(words: &[&str]) {
    as_user("root", words[0]).args(&words[1..]).output().expect("it starts");
}

/// One of Slurm's commands as a user; it must succeed.
pub fn slurm(user: &str, words: &[&str]) -> String {
    let (program, arguments) = words.split_first().expect("a command");
    let output = as_user(user, program).args(arguments).output().expect("it starts");
    assert!(output.status.success(), "{user}: {words:?}: {}", stderr(&output));
    stdout(&output)
}

/// A job as Slurm shows it to its administrator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: u64,
    pub user: String,
    pub name: String,
    pub state: String,
    pub qos: String,
    pub node: String,
    /// Epoch seconds; `end` of one that still lives is `None`.
    pub submit: i64,
    pub end: Option<i64>,
}

impl Job {
    pub fn is_live(&self) -> bool {
        // `CANCELLED by 1001` in the accounting.
        let over = ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "PREEMPTED", "NODE_FAIL"];
        !over.iter().any(|word| self.state.starts_with(word))
    }

    pub fn is_running(&self) -> bool {
        self.state == "RUNNING"
    }

    pub fn is_pending(&self) -> bool {
        self.state == "PENDING"
    }

    /// `family/shard`, from a name `project.family.shard.a<attempt>`.
    pub fn shard(&self) -> String {
        let words: Vec<&str> = self.name.split('.').collect();
        match words[..] {
            [_, family, shard, _] => format!("{family}/{shard}"),
            _ => panic!("no name of ours: {}", self.name),
        }
    }
}

/// What squeue shows of a project, jobs that ended a short while ago too; by id.
pub fn queue(project: &str) -> Vec<Job> {
    let mut jobs: Vec<Job> =
        table(&["squeue", "-a", "-r", "-h", "-t", "all", "-o", "%A|%u|%j|%T|%q|%N|%V|%e"], project);
    jobs.sort_by_key(|job| job.id);
    jobs
}

/// Every job that the project ever had, from the accounting; by id. Waits until it has caught up
/// with the queue.
pub fn history(project: &str) -> Vec<Job> {
    let fields = "--format=JobIDRaw,User,JobName,State,QOS,NodeList,Submit,End";
    wait_for("accounting that knows all that the queue shows", || {
        let mut jobs =
            table(&["sacct", "-a", "-X", "-n", "-P", "-S", "now-1days", fields], project);
        jobs.sort_by_key(|job| job.id);
        let known = |q: &Job| jobs.iter().any(|job| job.id == q.id && job.is_live() == q.is_live());
        queue(project).iter().all(known).then_some(jobs)
    })
}

/// Every run of a project's jobs that is over, and its GPU-seconds; those that Slurm requeued too.
pub fn runs(project: &str) -> Vec<(Job, i64)> {
    let fields = "--format=JobIDRaw,User,JobName,State,QOS,NodeList,Start,End,AllocTRES";
    let words = ["sacct", "-a", "-X", "-D", "-n", "-P", "-S", "now-1days", fields];
    let rows = rows(&words, project);
    let run = |cells: Vec<String>| {
        let started = cells[6].parse::<i64>().ok()?;
        let gpus = cells[8].split(',').find_map(|part| part.strip_prefix("gres/gpu="))?;
        let gpus: i64 = gpus.parse().expect("a number");
        let job = job(&cells);
        let ended = job.end?;
        Some((job, gpus * (ended - started)))
    };
    rows.into_iter().filter_map(run).collect()
}

fn table(words: &[&str], project: &str) -> Vec<Job> {
    rows(words, project).iter().map(|cells| job(cells)).collect()
}

fn job(cells: &[String]) -> Job {
    let mut job = Job {
        id: cells[0].parse().expect("an id"),
        user: cells[1].to_owned(),
        name: cells[2].to_owned(),
        state: cells[3].to_owned(),
        qos: cells[4].to_owned(),
        node: cells[5].to_owned(),
        // A job that never started has no start.
        submit: cells[6].parse().unwrap_or_default(),
        end: cells[7].parse().ok(),
    };
    if job.is_live() {
        job.end = None;
    }
    job
}

/// The rows of a project, as cells; the third is the job's name.
fn rows(words: &[&str], project: &str) -> Vec<Vec<String>> {
    let (program, arguments) = words.split_first().expect("a command");
    let output = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs([("SLURM_CONF", conf().as_str()), ("SLURM_TIME_FORMAT", "%s")])
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    let prefix = format!("{project}.");
    stdout(&output)
        .lines()
        .map(|line| line.split('|').map(str::to_owned).collect::<Vec<_>>())
        .filter(|cells| cells.get(2).is_some_and(|name| name.starts_with(&prefix)))
        .collect()
}

/// Pairs of jobs of one shard that were in Slurm at the same time.
pub fn duplicates(jobs: &[Job]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, first) in jobs.iter().enumerate() {
        let twins = jobs[at + 1..].iter().filter(|job| {
            job.shard() == first.shard() && first.end.is_none_or(|end| job.submit < end)
        });
        found.extend(twins.map(|twin| format!("{first:?} and {twin:?}")));
    }
    found
}

/// Somebody else's job, running or pending; ended with the test.
pub fn stranger(user: &str, qos: &str, gres: &str, more: &[&str]) -> u64 {
    let qos = format!("--qos={qos}");
    let gres = format!("--gres={gres}");
    let mut words = vec!["sbatch", "--parsable", "-o", "/dev/null", "--mem=100M", &qos, &gres];
    words.extend(more);
    words.extend(["--wrap", "exec sleep 1000"]);
    slurm(user, &words).trim().parse().expect("an id")
}

/// The same in a partition, on this node, for its one GPU.
pub fn stranger_in(user: &str, partition: &str, node: &str) -> u64 {
    let (partition, node) = (format!("--partition={partition}"), format!("--nodelist={node}"));
    let words = ["sbatch", "--parsable", "-o", "/dev/null", "--mem=100M", "--gres=gpu:1"];
    let words = [&words[..], &[&partition, &node, "--wrap", "exec sleep 1000"]].concat();
    slurm(user, &words).trim().parse().expect("an id")
}

/// Jobs that are in the queue, each with its partition.
pub fn partitions() -> Vec<(u64, String)> {
    let text = slurm("root", &["squeue", "-a", "-h", "-o", "%A %P"]);
    let job = |line: &str| {
        let (id, partition) = line.split_once(' ').expect("two words");
        (id.parse().expect("an id"), partition.trim().to_owned())
    };
    text.lines().map(job).collect()
}

/// Ends a job at once. A plain scancel takes seconds on one that runs.
pub fn end(job: u64) {
    let id = job.to_string();
    ask(&["scancel", "-f", "-s", "KILL", &id]);
    wait_until("the end of a stranger's job", || {
        let words = ["squeue", "-a", "-h", "-o", "%A"];
        !slurm("root", &words).lines().any(|line| line == id)
    });
}

pub fn wait_running(job: u64) {
    let id = job.to_string();
    wait_until("a stranger's job that runs", || {
        slurm("root", &["squeue", "-a", "-h", "-o", "%A %T"]).contains(&format!("{id} RUNNING"))
    });
}

/// No jobs, by the shortest way: what waits is cancelled, what runs is killed.
pub fn clear() {
    let begin = Instant::now();
    wait_until("an empty queue", || {
        let jobs = slurm("root", &["squeue", "-a", "-h", "-o", "%A"]);
        let ids: Vec<&str> = jobs.lines().collect();
        if ids.is_empty() {
            return true;
        }
        let patient = begin.elapsed() < Duration::from_secs(4);
        let pending = if patient { ["-t", "PENDING"].as_slice() } else { &[] };
        ask(&[&["scancel"], pending, &ids].concat());
        ask(&[&["scancel", "-f", "-s", "KILL"], &ids[..]].concat());
        false
    });
}
