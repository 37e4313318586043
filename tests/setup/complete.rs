//! Completion: what the program offers, and the scripts in the shells that are here.

use std::path::Path;
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
    check(&["simulate", "--scenario", "s"], &["scarce", "seed"]);
    check(&["simulate", "--policies", "own-only,v4"], &["own-only,v4", "own-only,v4.1"]);
    check(&["simulate", "--compare", "both,y"], &["both,yours"]);
    check(
        &["log", "--kind=st"],
        &["--kind=stalled", "--kind=started", "--kind=stop-asked", "--kind=stop-failed"],
    );
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

/// A line as it is typed, and what the shell is to offer for its last word.
const LINES: &[(&str, &[&str])] = &[
    ("babysit stat", &["status"]),
    ("babysit why find/", &["find/s0", "find/s1"]),
    ("babysit cap set re", &["restore", "restore/s0"]),
    ("babysit status run", &["running"]),
    ("babysit tick --dr", &["--dry-run"]),
    ("babysit --config sha", &["shards.toml"]),
    ("babysit log --kind over-cap,hel", &["over-cap,held"]),
];

/// What a shell that has its script says, in the folder of a campaign; `None`, and a word about it, where
/// this machine has no such shell.
fn in_shell(shell: &str, flags: &[&str], script: &str) -> Option<String> {
    let there = ["/usr/bin", "/bin", "/usr/local/bin"].map(|folder| Path::new(folder).join(shell));
    if !there.iter().any(|path| path.exists()) {
        eprintln!("no {shell} here: its completion was not tried");
        return None;
    }
    let lab = Lab::new();
    lab.write("script", script);
    let program = assert_cmd::cargo::cargo_bin("babysit");
    let folder = program.parent().expect("a folder").display().to_string();
    let lines = LINES.iter().map(|(line, _)| *line);
    let output = Command::new(shell)
        .args(flags)
        .arg(lab.at("script"))
        .args(lines)
        .current_dir(lab.dir.path())
        .env_clear()
        .env("PATH", format!("{folder}:/usr/bin:/bin:/usr/local/bin"))
        .env("HOME", lab.dir.path())
        .env("TERM", "xterm")
        .output()
        .expect("it ran");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && err.is_empty(), "{shell}: {said}{err}");
    Some(said)
}

/// `complete -C` is what the tab key asks.
#[test]
fn fish_completes() {
    let script = r#"
        babysit completions fish | source
        for line in $argv
            complete -C $line | string replace -r '\t.*' '' | string join ' '
        end
        # `string` ends with 1 where it replaced nothing.
        exit 0
    "#;
    let Some(said) = in_shell("fish", &["--no-config"], script) else { return };
    let offered: Vec<Vec<&str>> = said.lines().map(|line| line.split(' ').collect()).collect();
    let expected: Vec<Vec<&str>> = LINES.iter().map(|(_, words)| words.to_vec()).collect();
    assert_eq!(offered, expected);
}

/// A zsh at a terminal of its own, whose tab key is pressed; its `compadd` also tells what it is given.
#[test]
fn zsh_completes() {
    let script = r#"
        zmodload zsh/zpty
        zpty shell 'PS1= zsh -f -i'
        zpty -w shell 'autoload -Uz compinit; compinit -u -D; source <(babysit completions zsh)'
        zpty -w shell 'compadd() { local -a got; builtin compadd -O got "$@"; builtin compadd "$@"; print -l -- $got >>offered }'
        zpty -w shell 'next() { print -- "--" >>offered; BUFFER= }; zle -N next; bindkey "^X" next; bindkey "^I" complete-word'
        zpty -w shell 'touch ready'
        wait_for() {
            local n
            for n in {1..600}; do
                eval "$1" && return
                # What it shows must be read, or it waits for that.
                zpty -r -t shell >/dev/null
                sleep 0.05
            done
            print "never: $1"; exit 1
        }
        wait_for '[[ -e ready ]]'
        n=0
        for line in "$@"; do
            zpty -w -n shell "$line"$'\t\x18'
            (( n += 1 ))
            wait_for "[[ -e offered && \$(grep -c '^--$' offered) -ge $n ]]"
        done
        zpty -d shell
        cat offered
    "#;
    let Some(said) = in_shell("zsh", &["-f"], script) else { return };
    let offered: Vec<Vec<&str>> =
        said.split("--\n").map(|part| part.lines().filter(|l| !l.is_empty()).collect()).collect();
    assert_eq!(offered.len(), LINES.len() + 1, "{said}");
    for ((line, words), mut offered) in LINES.iter().zip(offered) {
        // Files are looked for in several ways.
        offered.dedup();
        assert_eq!(offered, *words, "{line}: {said}");
    }
}

#[test]
fn a_shell_that_has_no_script_is_told() {
    has(&Lab::new().run(&["completions", "tcsh"], 2).err, "possible values: bash, zsh, fish");
}
