//! One campaign with a stand-in for Slurm of a few lines of shell: a node and no jobs.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::ops::Deref;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;

#[path = "folder.rs"]
mod folder;

pub use folder::{Folder, SINFO, Said, has, said};

/// A folder with a shards.toml and a Slurm that has a node and no jobs.
pub struct Lab {
    folder: Folder,
}

impl Deref for Lab {
    type Target = Folder;
    fn deref(&self) -> &Folder {
        &self.folder
    }
}

pub const SQUEUE: &str = r#"
for a; do case $a in JobID:*) o=$a;; esac; done
sep=${o#*:}; sep=${sep%%,*}
for h in JOBID UID USER STATE QOS PARTITION ACCOUNT TRES_ALLOC TRES_PER_NODE TRES_PER_JOB NODES CPUS \
  SUBMIT_TIME START_TIME END_TIME TIME_LIMIT PRIORITY NICE NODELIST EXC_NODES RESTART_COUNT REQUEUE \
  REASON NAME COMMENT; do printf '%s%s' "$h" "$sep"; done
echo
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
        let programs = [
            ("squeue", SQUEUE),
            ("sinfo", SINFO),
            ("sbatch", SBATCH),
            ("sacct", "exit 1"),
            ("scancel", r#"echo "$@" >>"$(dirname "$0")/cancelled""#),
        ];
        let programs = programs.map(|(name, script)| (name, script.to_owned()));
        Lab { folder: Folder::new(TOML, programs) }
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
        let said = said(self.command(arguments).output().expect("it ran"));
        assert_eq!(said.code, Some(code), "{arguments:?}\n{}\n{}", said.out, said.err);
        said
    }

    pub fn json(&self, arguments: &[&str], code: i32) -> Value {
        let out = self.run(&[arguments, &["--json"]].concat(), code).out;
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
}
