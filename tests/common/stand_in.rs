//! The real program against a stand-in for Slurm of a few lines of shell that keeps its jobs in a file,
//! and kills the babysit that asked it.
#![allow(dead_code, reason = "each test file uses its own part of it")]
#![allow(clippy::disallowed_methods, reason = "a test plays the hand that breaks things")]

use std::collections::BTreeMap;
use std::ops::Deref;
use std::process::{Command, Stdio};

use serde_json::Value;

#[path = "folder.rs"]
mod folder;

#[allow(unused_imports, reason = "each test file uses its own part of it")]
pub use folder::{Folder, SINFO, Said, has, said};

/// What every command begins with: it counts itself, and kills babysit at the nth moment. A moment
/// is either before or after the command has done its work.
pub const MOMENT: &str = r#"
cd "$(dirname "$0")"
moment() {
  [ -f die_at ] || return 0
  echo x >>moments
  [ "$(wc -l <moments)" -eq "$(cat die_at)" ] && { kill -9 $PPID; exit 1; }
  return 0
}
sep_of() { for a; do case $a in $key:*) o=$a;; esac; done; sep=${o#*:}; sep=${sep%%,*}; }
row() { for c; do printf '%s%s' "$c" "$sep"; done; echo; }
touch jobs
moment
"#;

/// A job is a line `id name comment state` of the file jobs.
pub const SQUEUE: &str = r#"
case "$*" in *--version*) echo 'slurm-wlm 24.11.5'; exit;; esac
key=JobID; sep_of "$@"
row JOBID UID USER STATE QOS PARTITION ACCOUNT TRES_ALLOC TRES_PER_NODE TRES_PER_JOB NODES CPUS \
  SUBMIT_TIME START_TIME END_TIME TIME_LIMIT PRIORITY NICE NODELIST EXC_NODES RESTART_COUNT REQUEUE \
  REASON NAME COMMENT
while read -r id name comment state; do
  qos=$(cat "qos.$id" 2>/dev/null || echo own)
  row "$id" "$(id -u)" me "$state" "$qos" gpu lab gres/gpu=1 gres/gpu:1 N/A 1 1 \
    1762095600 N/A N/A UNLIMITED 1 0 '' '' 0 0 "$(cat reason 2>/dev/null || echo None)" "$name" "$comment"
done <jobs
moment
"#;

pub const SBATCH: &str = r#"
cat >/dev/null
for a; do case $a in --job-name=*) n=${a#*=};; --comment=*) c=${a#*=};; esac; done
echo x >>asked
id=$((100 + $(wc -l <asked)))
echo "$id $n $c PENDING" >>jobs
moment
echo "$id"
"#;

/// An accounting that answers and knows nothing.
pub const SACCT: &str = r#"
for a; do case $a in --delimiter=*) d=${a#*=};; esac; done
o=
for h in JobIDRaw UID JobName Comment State QOS Submit Start End NodeList ExitCode; do
  o="$o${o:+$d}$h"
done
echo "$o"
moment
"#;

pub const SCANCEL: &str = r#"
for id; do grep -v "^$id " jobs >jobs.new; mv jobs.new jobs; done
moment
"#;

pub const SCONTROL: &str = r#"
ids='' qos=''
for a; do case $a in [jJ]ob[iI][dD]=*) ids=${a#*=};; [qQ][oO][sS]=*) qos=${a#*=};; esac; done
[ -z "$qos" ] || for id in $(echo "$ids" | tr , ' '); do echo "$qos" >"qos.$id"; done
case "$*" in 'show config') echo "Configuration data as of $(date +%s)";; esac
moment
"#;

pub const TOML: &str = r#"
project = "oracle-plan"
state = "state.json"
[slurm]
bin_dir = "bin"
[families.find]
command = "true"
rows = 44
done = { glob = "runs/find/{shard}/row_*.json" }
shards = 2
[families.restore]
command = "true"
rows = 64
done = { glob = "runs/restore/{shard}/row_*.json" }
shards = 1
"#;

/// 2025-11-02T15:00:00Z; each later tick is a minute on.
pub const START: i64 = 1_762_095_600;

pub struct Lab {
    folder: Folder,
}

impl Deref for Lab {
    type Target = Folder;
    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Lab {
    pub fn new() -> Lab {
        let counted = [
            ("squeue", SQUEUE),
            ("sbatch", SBATCH),
            ("sacct", SACCT),
            ("scancel", SCANCEL),
            ("scontrol", SCONTROL),
            ("sacctmgr", "exit 1"),
        ];
        let counted = counted.map(|(name, work)| (name, format!("{MOMENT}{work}")));
        let programs = counted.into_iter().chain([("sinfo", SINFO.to_owned())]);
        Lab { folder: Folder::new(TOML, programs) }
    }

    pub fn command(&self, arguments: &[&str], now: i64) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("babysit"));
        self.prepare(&mut command, now);
        command.args(arguments);
        command
    }

    /// As cron starts things: nothing in the environment but PATH and a name.
    pub fn prepare(&self, command: &mut Command, now: i64) {
        command.current_dir(self.dir.path()).env_clear().stdin(Stdio::null());
        command.env("PATH", "/usr/bin:/bin").env("LOGNAME", "anna");
        command.env("BABYSIT_NOW", now.to_string());
    }

    pub fn run_at(&self, arguments: &[&str], now: i64) -> Said {
        said(self.command(arguments, now).output().expect("it ran"))
    }

    #[track_caller]
    pub fn run(&self, arguments: &[&str], code: i32) -> Said {
        let said = self.run_at(arguments, START);
        assert_eq!(said.code, Some(code), "{arguments:?}\n{}\n{}", said.out, said.err);
        said
    }

    #[track_caller]
    pub fn json(&self, arguments: &[&str], code: i32) -> Value {
        let out = self.run(&[arguments, &["--json"]].concat(), code).out;
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// By a shell that sets something first: umask, a limit.
    pub fn run_after(&self, preparation: &str, arguments: &str) -> Said {
        let program = assert_cmd::cargo::cargo_bin("babysit");
        let line = format!("{preparation}; exec {} {arguments}", program.display());
        let mut command = Command::new("sh");
        self.prepare(&mut command, START);
        said(command.args(["-c", &line]).output().expect("it ran"))
    }

    /// Shard -> ids of its jobs, as Slurm has them.
    pub fn jobs(&self) -> BTreeMap<String, Vec<String>> {
        let mut jobs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in self.read("bin/jobs").lines() {
            let mut words = line.split(' ');
            let (Some(id), _, Some(comment)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let shard = comment.split(':').nth(2).unwrap_or_default();
            jobs.entry(shard.to_owned()).or_default().push(id.to_owned());
        }
        jobs
    }

    pub fn add_job(&self, line: &str) {
        let jobs = self.read("bin/jobs");
        self.write("bin/jobs", &format!("{jobs}{line}\n"));
    }

    /// `babysit:<instance>` of the state.
    pub fn instance(&self) -> String {
        let state: Value = serde_json::from_str(&self.read("state.json")).expect("a state");
        state["instance"].as_str().expect("text").to_owned()
    }
}
