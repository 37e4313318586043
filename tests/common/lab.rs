//! One campaign with a stand-in for Slurm of a few lines of shell: a node and no jobs.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A folder with a shards.toml and a Slurm that has a node and no jobs.
pub struct Lab {
    pub dir: TempDir,
}

pub const SQUEUE: &str = r#"
for a; do case $a in JobID:*) o=$a;; esac; done
sep=${o#*:}; sep=${sep%%,*}
for h in JOBID UID USER STATE QOS PARTITION ACCOUNT TRES_ALLOC TRES_PER_NODE TRES_PER_JOB NODES CPUS \
  SUBMIT_TIME START_TIME END_TIME TIME_LIMIT PRIORITY NICE NODELIST EXC_NODES RESTART_COUNT REQUEUE \
  REASON NAME COMMENT; do printf '%s%s' "$h" "$sep"; done
echo
"#;

pub const SINFO: &str = r#"
for a; do case $a in NodeList:*) o=$a;; esac; done
sep=${o#*:}; sep=${sep%%,*}
row() { for c; do printf '%s%s' "$c" "$sep"; done; echo; }
row NODELIST PARTITION STATE GRES GRES_USED 'CPUS(A/I/O/T)' MEMORY ALLOCMEM
row x1 gpu idle gpu:rtx4090:4 'gpu:rtx4090:0(IDX:N/A)' 0/16/0/16 64000 0
"#;

pub const SBATCH: &str = r#"
cat >/dev/null
echo x >>"$(dirname "$0")/asked"
expr 100 + $(wc -l <"$(dirname "$0")/asked")
"#;

pub const TOML: &str = r#"
project = "oracle-plan"
state = "state.json"
[slurm]
bin_dir = "bin"
[families.find]
lab = "BCG"
command = "true"
rows = 44
row_time = "15m"
done = { glob = "runs/find/{shard}/row_*.json" }
cost = { jsonl = "runs/find/{shard}.jsonl", field = "cost_usd" }
cap = 15.0
shards = 2
[families.restore]
lab = "BCG"
command = "true"
rows = 64
row_time = "25m"
done = { glob = "runs/restore/{shard}/row_*.json" }
cap = 24.0
cost = { jsonl = "runs/restore/{shard}.jsonl", field = "cost_usd" }
shards = 1
"#;

impl Lab {
    pub fn new() -> Lab {
        let lab = Lab { dir: TempDir::new().expect("a temporary folder") };
        std::fs::create_dir(lab.at("bin")).expect("a folder");
        lab.write("shards.toml", TOML);
        let programs =
            [("squeue", SQUEUE), ("sinfo", SINFO), ("sbatch", SBATCH), ("sacct", "exit 1")];
        for (name, script) in programs {
            lab.program(name, script);
        }
        lab.program("scancel", r#"echo "$@" >>"$(dirname "$0")/cancelled""#);
        lab
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.at(name), text).expect("written");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    pub fn program(&self, name: &str, script: &str) {
        self.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.at(&format!("bin/{name}")), mode).expect("executable");
    }

    /// As cron runs it: nothing in the environment but PATH and a name.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::cargo_bin("babysit").expect("built");
        command.current_dir(self.dir.path()).args(arguments);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LOGNAME", "anna");
        command.timeout(Duration::from_secs(60));
        command
    }

    pub fn run(&self, arguments: &[&str], code: i32) -> Said {
        let output = self.command(arguments).output().expect("it ran");
        let said = Said {
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{}\n{}", said.out, said.err);
        said
    }

    pub fn json(&self, arguments: &[&str], code: i32) -> Value {
        let out = self.run(&[arguments, &["--json"]].concat(), code).out;
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    pub fn asked_of_sbatch(&self) -> usize {
        self.read("bin/asked").lines().count()
    }
}

pub struct Said {
    pub out: String,
    pub err: String,
}

#[track_caller]
pub fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is not in:\n{text}");
}
