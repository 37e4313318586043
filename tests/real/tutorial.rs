//! docs/tutorial.md as a newcomer goes through it: every command of it, and what it prints.

use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::lab::{Lab, disturbed};
use crate::slurm::{self, stderr, stdout};

/// Between the outputs of two commands; nothing of ours prints it.
const MARK: &str = "\u{1}next\u{1}";

/// A command, and the lines that the page shows below it.
struct Step {
    command: String,
    shown: Vec<String>,
}

/// The steps of the page's `console` blocks: `$` begins a command, `>` goes on with it.
fn steps(page: &str) -> Vec<Step> {
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut steps: Vec<Step> = Vec::new();
    for line in blocks.flat_map(str::lines) {
        let step = steps.last_mut();
        match (line.strip_prefix("$ "), line.strip_prefix('>'), step) {
            (Some(command), _, _) => steps.push(Step { command: command.into(), shown: vec![] }),
            (_, Some(more), Some(step)) => {
                step.command += "\n";
                step.command += more.strip_prefix(' ').unwrap_or(more);
            }
            (_, _, Some(step)) => step.shown.push(line.to_owned()),
            _ => panic!("output before any command: {line}"),
        }
    }
    steps
}

/// Does the output look as shown? `...` stands for any text in a line; alone, for any lines.
fn fits(shown: &[String], printed: &str) -> bool {
    let mut pattern = String::from("^");
    for line in shown {
        if line == "..." {
            pattern += r"(?:[^\n]*\n)*";
        } else {
            let parts: Vec<String> = line.split("...").map(regex::escape).collect();
            pattern += &(parts.join(r"[^\n]*") + r"\n");
        }
    }
    Regex::new(&(pattern + "$")).expect("a pattern").is_match(printed)
}

#[test]
fn what_is_shown_is_compared() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(fits(&shown("a ... c\n...\nend"), "a b c\n1\n2\nend\n"));
    assert!(fits(&shown("...\nend"), "end\n"));
    assert!(!fits(&shown("a ... c"), "a b d\n"));
    assert!(!fits(&shown("a"), "a\nb\n"), "a line more");
    assert!(!fits(&[], "an error\n"), "the page shows nothing");
}

#[test]
fn the_tutorial_does_what_it_says() {
    let lab = Lab::new("root", "tutorial");
    // The page stops a daemon.
    disturbed();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/tutorial.md")).expect("the page");
    let steps = steps(&page);
    assert!(steps.len() > 15, "only {} steps", steps.len());
    let folder = Path::new("/tmp/tutorial");
    if folder.exists() {
        fs::remove_dir_all(folder).expect("what an earlier run left");
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_babysit")).parent().expect("a folder");
    let script: String =
        steps.iter().map(|step| format!("{}\nprintf '{MARK}'\n", step.command)).collect();
    lab.write("tutorial.sh", &script);
    let output = Command::new("bash")
        .args(["-c", "exec 2>&1; . \"$0\""])
        .arg(lab.path("tutorial.sh"))
        .env_clear()
        .envs([
            (
                "PATH",
                format!(
                    "{}:{}:/usr/sbin:/usr/bin:/sbin:/bin",
                    binary.display(),
                    root.join("scripts").display()
                ),
            ),
            ("TRYOUT", root.join("examples/tryout").display().to_string()),
            ("SLURM_CONF", slurm::conf()),
            ("BABYSIT_SANDBOX", slurm::sandbox().display().to_string()),
            ("HOME", "/nonexistent".to_owned()),
            ("COLUMNS", "110".to_owned()),
        ])
        .output()
        .expect("bash");
    let printed = stdout(&output);
    let outputs: Vec<&str> = printed.split(MARK).collect();
    assert_eq!(outputs.len(), steps.len() + 1, "{printed}{}", stderr(&output));
    let wrong = steps.iter().zip(outputs).filter(|(step, printed)| !fits(&step.shown, printed));
    let told = wrong.map(|(Step { command, shown }, printed)| {
        format!("$ {command}\n-- the page shows\n{}\n-- it prints\n{printed}", shown.join("\n"))
    });
    let told: Vec<String> = told.collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    fs::remove_dir_all(folder).expect("the tutorial's own folder");
}
