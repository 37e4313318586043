//! `scripts/install` under a prefix of its own, with the program that was built for the tests.

use std::path::Path;
use std::process::{Command, Output};

use crate::lab::has;

fn install(words: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(root.join("scripts/install"));
    command.args(words).env_clear().env("PATH", "/usr/bin:/bin").current_dir("/");
    command.output().expect("bash is there")
}

#[test]
fn everything_is_under_the_prefix_and_an_upgrade_leaves_no_remains() {
    let place = tempfile::tempdir().expect("a folder");
    let prefix = place.path().join("a prefix");
    let binary = assert_cmd::cargo::cargo_bin("babysit").display().to_string();
    let words = ["--binary", &binary, "--prefix", &prefix.display().to_string()];
    let at = |name: &str| prefix.join(name);
    for round in 0..2 {
        let output = install(&words);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        has(&said, &format!("installed babysit {} as ", env!("CARGO_PKG_VERSION")));
        has(&said, "babysit init");
        for (file, holds) in [
            ("share/man/man1/babysit.1", ".TH babysit 1"),
            ("share/man/man1/babysit-cap-set.1", "Examples:"),
            ("share/bash-completion/completions/babysit", "complete -o"),
            ("share/zsh/site-functions/_babysit", "#compdef babysit"),
            ("share/fish/vendor_completions.d/babysit.fish", "complete -c babysit"),
            ("share/doc/babysit/docs/shards-toml.md", "restart_stalled"),
            ("share/doc/babysit/examples/no-lanes.toml", "project"),
        ] {
            let text = std::fs::read_to_string(at(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            has(&text, holds);
        }
        assert!(!at("share/man/man1/babysit-gone.1").exists(), "round {round}");
        std::fs::write(at("share/man/man1/babysit-gone.1"), "of an older version")
            .expect("written");
        let there = std::fs::read_dir(at("bin")).expect("a folder").count();
        assert_eq!(there, 1, "something beside the program");
    }
    // Its name leads cron and completions to the installed one.
    let version = Command::new(at("bin/babysit")).arg("--version").output().expect("it runs");
    assert!(version.status.success());
}

#[test]
fn a_wrong_word_is_told_and_nothing_is_installed() {
    let place = tempfile::tempdir().expect("a folder");
    let prefix = place.path().join("p").display().to_string();
    assert_eq!(install(&["--prefx", &prefix]).status.code(), Some(2));
    assert_eq!(install(&["--prefix"]).status.code(), Some(2));
    let output = install(&["--prefix", &prefix, "--binary", "/bin/false"]);
    assert_eq!(output.status.code(), Some(1));
    has(&String::from_utf8_lossy(&output.stderr), "does not run on this machine");
    assert!(!Path::new(&prefix).exists());
}
