//! `scripts/demo` where no Slurm can be started: it shows the same shards on a simulated cluster,
//! and says so.
#![allow(clippy::disallowed_methods, reason = "a test starts the script and copies what it needs")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

/// Nobody's number on every Linux.
const NOBODY: &str = "65534";

/// What the script calls on its way to the simulated cluster; no tool of Slurm, no apt, no cargo.
const TOOLS: [&str; 8] = ["bash", "dirname", "fold", "id", "realpath", "sed", "cat", "find"];

fn copy(from: PathBuf, to: &Path) {
    std::fs::create_dir_all(to.parent().expect("a folder")).expect("made");
    std::fs::copy(&from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
}

/// The repository as far as the demo needs it, for everybody to read.
fn checkout() -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["scripts/demo", "shards.toml", "Cargo.toml", "Cargo.lock"] {
        copy(root.join(name), &dir.path().join(name));
    }
    copy(env!("CARGO_BIN_EXE_babysit").into(), &dir.path().join("babysit"));
    std::fs::create_dir(dir.path().join("bin")).expect("made");
    for tool in TOOLS {
        let place = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
        let found = place.iter().find(|path| path.exists()).expect(tool);
        symlink(found, dir.path().join("bin").join(tool)).expect("linked");
    }
    for folder in [dir.path().to_owned(), dir.path().join("scripts"), dir.path().join("bin")] {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).expect("opened");
    }
    dir
}

/// The script as an ordinary user without any Slurm runs it.
fn demo(checkout: &TempDir, arguments: &[&str]) -> String {
    let (bin, script) = (checkout.path().join("bin"), checkout.path().join("scripts/demo"));
    let bash = bin.join("bash");
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("/usr/bin/setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(bash);
        command
    } else {
        Command::new(bash)
    };
    command.arg(script).args(arguments).env_clear().env("PATH", bin).env("HOME", "/");
    let output = command.output().expect("it ran");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{err}");
    text
}

#[track_caller]
fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is not in:\n{text}");
}

#[test]
fn without_root_the_demo_shows_the_same_shards_on_a_simulated_cluster() {
    let checkout = checkout();
    let bin = checkout.path().join("babysit");
    let text = demo(&checkout, &["--bin", bin.to_str().expect("UTF-8")]);
    has(&text, "A SIMULATED cluster, since starting a Slurm needs root");
    has(&text, "A SIMULATED cluster: 12 shards of /");
    for shard in ["find/s3", "restore/s7"] {
        has(&text, &format!("{shard}: submitted as job"));
        has(&text, &format!("{shard}: done, "));
    }
    has(&text, "--- babysit status, after ");
    has(&text, "SIMULATED: done after ");
    has(&text, "671 rows finished");
    has(&text, "That was a SIMULATED cluster");
}

#[test]
fn the_demo_takes_a_babysit_that_is_built_already() {
    let checkout = checkout();
    std::fs::create_dir(checkout.path().join("src")).expect("made");
    let target = checkout.path().join("target/debug/babysit");
    copy(checkout.path().join("babysit"), &target);
    // Later than every source, by more than a file system's clock can hide.
    let built = std::fs::File::options().append(true).open(&target).expect("opened");
    built.set_modified(SystemTime::now() + Duration::from_secs(60)).expect("dated");
    drop(built);
    for folder in ["target", "target/debug", "src"] {
        let mode = PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(checkout.path().join(folder), mode).expect("opened");
    }
    let text = demo(&checkout, &["--simulated"]);
    has(&text, "A SIMULATED cluster, since you asked for it");
    has(&text, "SIMULATED: done after ");
}
