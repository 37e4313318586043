//! `--help` and the manual pages teach, and what they teach is true.

use babysit::cli::args::Cli;
use babysit::cli::help::{LESSONS, command};
use clap::Command;

use crate::lab::{Lab, has};

/// Each command that people see, as it is typed.
fn commands(command: &Command, path: &str, into: &mut Vec<String>) {
    into.push(path.to_owned());
    for inner in command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        commands(inner, format!("{path} {}", inner.get_name()).trim(), into);
    }
}

#[test]
fn every_command_has_two_or_more_examples_that_are_right() {
    let mut all = Vec::new();
    commands(&command(), "", &mut all);
    for name in &all {
        let lesson = LESSONS.iter().find(|lesson| lesson.command == name);
        let lesson = lesson.unwrap_or_else(|| panic!("`{name}` has no LESSONS in src/cli/help.rs"));
        assert!((2..=5).contains(&lesson.examples.len()), "{name}");
        for (line, _) in lesson.examples {
            let (_, ours) = line.split_once("babysit").unwrap_or_else(|| panic!("{line}"));
            let ours = ours.split(['|', ')']).next().unwrap_or(ours);
            let words = shell_words::split(&format!("babysit{ours}")).expect("words");
            let read = Cli::read(words.into_iter().map(Into::into));
            assert!(read.is_ok(), "{line}: {}", read.expect_err("not read"));
        }
    }
    for lesson in LESSONS {
        assert!(all.contains(&lesson.command.to_owned()), "no command `{}`", lesson.command);
    }
}

#[test]
fn help_shows_examples_and_exit_codes() {
    let lab = Lab::new();
    let mut all = Vec::new();
    commands(&command(), "", &mut all);
    for name in &all {
        let words: Vec<&str> = name.split_whitespace().chain(["--help"]).collect();
        let out = lab.run(&words, 0).out;
        has(&out, "Examples:\n  ");
        has(&out, "Exit codes: 0 done, 1 it failed, 2 ");
    }
    // Broken where the terminal ends.
    let words = |command: &str| {
        let out = lab.run(&[command, "--help"], 0).out;
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    has(&words("tick"), "75 this cycle was skipped");
    has(&words("status"), "3 with --check");
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let lab = Lab::new();
    let main = lab.run(&["man"], 0).out;
    has(&main, ".TH babysit 1");
    lab.run(&["man", "--out-dir", "share/man1"], 0);
    let mut all = Vec::new();
    commands(&command(), "", &mut all);
    for name in &all {
        let page = format!("babysit {name}").trim().replace(' ', "-") + ".1";
        let text = lab.read(&format!("share/man1/{page}"));
        has(&text, "Exit codes: 0 done");
        has(&text, "Examples:");
    }
    let there = std::fs::read_dir(lab.at("share/man1")).expect("a folder").count();
    assert_eq!(there, all.len(), "pages of hidden commands, or remains");
    // Again, over those that are there.
    lab.run(&["man", "--out-dir", "share/man1"], 0);
}
