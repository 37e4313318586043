//! A folder with a shards.toml and programs that stand in for Slurm's: what the set-ups of the tests have
//! in common.
#![allow(dead_code, reason = "each test file uses its own part of it")]
#![allow(clippy::disallowed_methods, reason = "a test makes the files that a user would make")]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

use tempfile::TempDir;

pub struct Folder {
    pub dir: TempDir,
}

/// One node, nothing in use.
pub const SINFO: &str = r#"
for a; do case $a in NodeList:*) o=$a;; esac; done
sep=${o#*:}; sep=${sep%%,*}
row() { for c; do printf '%s%s' "$c" "$sep"; done; echo; }
row NODELIST PARTITION STATE GRES GRES_USED 'CPUS(A/I/O/T)' MEMORY ALLOCMEM
row x1 gpu idle gpu:rtx4090:4 'gpu:rtx4090:0(IDX:N/A)' 0/16/0/16 64000 0
"#;

impl Folder {
    /// `programs`: name and shell script, in its folder `bin`.
    pub fn new<'a>(toml: &str, programs: impl IntoIterator<Item = (&'a str, String)>) -> Folder {
        let folder = Folder { dir: TempDir::new().expect("a temporary folder") };
        std::fs::create_dir(folder.at("bin")).expect("a folder");
        folder.write("shards.toml", toml);
        for (name, script) in programs {
            folder.program(name, &script);
        }
        folder
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.at(name), text).expect("written");
    }

    pub fn append(&self, name: &str, text: &str) {
        let file = std::fs::File::options().append(true).create(true).open(self.at(name));
        file.and_then(|mut file| file.write_all(text.as_bytes())).expect("appended");
    }

    /// What is not there is empty.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    pub fn program(&self, name: &str, script: &str) {
        self.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.at(&format!("bin/{name}")), mode).expect("executable");
    }

    /// The stand-ins for sbatch write a line each time.
    pub fn asked_of_sbatch(&self) -> usize {
        self.read("bin/asked").lines().count()
    }
}

pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

pub fn said(output: Output) -> Said {
    Said {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[track_caller]
pub fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is not in:\n{text}");
}
