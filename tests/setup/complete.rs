//! Completion: what the program offers, and the scripts in the shells that are here.

use std::process::Command;

use crate::lab::{Lab, has};

fn offered(lab: &Lab, words: &[&str]) -> Vec<String> {
    let out = lab.run(&[&["__complete", "babysit"], words].concat(), 0).out;
    out.lines().map(|line| line.split('\t').next().unwrap_or("").to_owned()).collect()
}

#[test]
fn each_place_of_a_command_line_has_its_own_words() {
    let lab = Lab::new();
    let check = |words: &[&str], expected: &[&str]| {
        assert_eq!(offered(&lab, words), expected, "{words:?}");
    };
    check(&["sta"], &["status"]);
    check(&["cap", ""], &["set", "show", "help"]);
    check(&["why", ""], &["find", "restore", "find/s0", "find/s1", "restore/s0"]);
    check(&["why", "find/"], &["find/s0", "find/s1"]);
    check(&["cap", "set", "re"], &["restore", "restore/s0"]);
    check(&["cap", "set", "find", ""], &[]);
    check(&["hold", "find/s0", "restore/"], &["restore/s0"]);
    check(&["hold", "-q", "find/s0", "'restore/"], &["restore/s0"]);
    check(&["status", "ru"], &["running"]);
    check(&["usage", ""], &["BCG"]);
    check(&["log", "find/s1"], &["find/s1"]);
    check(&["--color", "al"], &["always"]);
    check(&["status", "--color=n"], &["--color=never"]);
    // As bash takes it apart.
    check(&["status", "--color", "=", "n"], &["never"]);
    check(&["status", "--color", "="], &["auto", "always", "never"]);
    check(&["tick", "--dr"], &["--dry-run"]);
    check(&["--config", ""], &[]);
    check(&["completions", ""], &["bash", "zsh", "fish"]);
    check(&["nonsense", ""], &[]);
    check(&["hold", "--", "-"], &[]);
    assert!(!offered(&lab, &[""]).contains(&"__complete".to_owned()));
    let described = lab.run(&["__complete", "babysit", "hold", "find"], 0).out;
    has(&described, "find\tfamily of 2\nfind/s0\t44 rows\n");

    // The shards.toml that the line itself names, from anywhere.
    let elsewhere = tempfile::tempdir().expect("a folder");
    for named in ["--config=PATH", "--config PATH", "--config = PATH"] {
        let named = named.replace("PATH", &lab.at("shards.toml").display().to_string());
        let words = format!("babysit {named} hold fi");
        let output = lab
            .command(&["__complete"])
            .args(words.split(' '))
            .current_dir(elsewhere.path())
            .output()
            .expect("it ran");
        has(&String::from_utf8_lossy(&output.stdout), "find/s1\t");
    }
}

/// Completing must not fail, whatever there is in the folder: it would break the line being typed.
#[test]
fn without_a_campaign_there_are_still_commands() {
    let lab = Lab::new();
    for broken in ["", "project = ", "\u{0}"] {
        lab.write("shards.toml", broken);
        assert_eq!(offered(&lab, &["why", ""]), Vec::<String>::new());
        assert_eq!(offered(&lab, &["stat"]), ["status"]);
    }
    assert_eq!(lab.run(&["__complete"], 0).err, "");
}

#[test]
fn a_large_campaign_is_offered_by_family_first() {
    let lab = Lab::new();
    lab.write("shards.toml", &crate::lab::TOML.replace("shards = 2", "shards = 5000"));
    assert_eq!(offered(&lab, &["why", "f"]), ["find", "find/"]);
    assert_eq!(offered(&lab, &["why", "find/s499"]).len(), 11);
}

/// Sources the script in a real bash without any other completion loaded, and asks for the words.
#[test]
fn bash_completes() {
    let lab = Lab::new();
    let program = assert_cmd::cargo::cargo_bin("babysit");
    let script = r#"
        source <("$1" completions bash)
        complete -p babysit
        ask() {
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
            _babysit
            printf '%s:' "${COMPREPLY[@]}"; echo
        }
        cd "$2"
        ask "$1" why find/
        ask "$1" cap set find/s1
        ask "$1" --config = sha
        ask "$1" status run
        PATH=$(dirname "$1"):$PATH ask babysit hold restore
    "#;
    let output = Command::new("bash")
        .args(["--norc", "-c", script, "bash"])
        .args([program.as_os_str(), lab.dir.path().as_os_str()])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .expect("bash is there");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.is_empty(), "{said}{err}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("-F _babysit babysit") && lines[0].contains("default"), "{said}");
    assert_eq!(
        lines[1..],
        ["find/s0:find/s1:", "find/s1:", ":", "running:", "restore:restore/s0:"]
    );
}

/// Where the shells are installed their scripts are at least read by them.
#[test]
fn zsh_and_fish_read_their_scripts() {
    let lab = Lab::new();
    for (shell, flags) in [("zsh", &["-n"][..]), ("fish", &["--no-execute"][..])] {
        let script = lab.run(&["completions", shell], 0).out;
        has(&script, "babysit __complete".trim_start_matches("babysit "));
        if !std::path::Path::new("/usr/bin").join(shell).exists() {
            continue;
        }
        lab.write("script", &script);
        let output =
            Command::new(shell).args(flags).arg(lab.at("script")).output().expect("it ran");
        assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
    }
    lab.run(&["completions", "tcsh"], 2);
}
