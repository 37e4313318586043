//! Keeps the texts honest: what README.md and docs/ say of commands, files, exit codes and messages is
//! held against the program. No test here needs Slurm.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use babysit::cli::args::Cli;
use babysit::cli::exit::Exit;
use clap::{CommandFactory, Parser};
use regex::Regex;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// README.md and the pages of docs/, by their paths.
fn pages() -> Vec<String> {
    let docs = std::fs::read_dir(root().join("docs")).expect("docs/");
    let names =
        docs.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    let mut pages: Vec<String> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    pages.push("README.md".to_owned());
    pages
}

/// The text between two backticks, of lines outside of code blocks.
fn spans(page: &str) -> Vec<String> {
    let span = Regex::new("`([^`]+)`").expect("a pattern");
    let prose = page.lines().filter(|line| !line.starts_with("    "));
    prose
        .flat_map(|line| span.captures_iter(line).map(|c| c[1].to_owned()).collect::<Vec<_>>())
        .collect()
}

#[test]
fn every_command_line_in_a_code_block_is_understood() {
    let mut seen = 0;
    for page in pages() {
        for line in read(&page).lines().filter(|line| line.starts_with("    babysit ")) {
            let words = shell_words::split(line.split(" #").next().unwrap_or(line))
                .unwrap_or_else(|e| panic!("{page}: {line}: {e}"));
            // Placeholders of a synopsis.
            if words.iter().any(|word| word.starts_with('[') || word == "COMMAND") {
                continue;
            }
            seen += 1;
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("{page}: {line}\n{error}");
            }
        }
    }
    assert!(seen >= 10, "only {seen} command lines were found");
}

#[test]
fn every_command_and_flag_named_in_the_text_exists() {
    let cli = Cli::command();
    for page in pages() {
        for span in spans(&read(&page)) {
            let mut words = span.split_whitespace();
            if words.next() != Some("babysit") {
                continue;
            }
            let Some(word) = words.next().filter(|word| !word.starts_with('-')) else { continue };
            let Some(command) = cli.find_subcommand(word) else {
                panic!("{page}: `{span}`: there is no such command");
            };
            for flag in words.filter_map(|word| word.strip_prefix("--")) {
                let known = command.get_arguments().chain(cli.get_arguments());
                let known: Vec<_> = known.filter_map(|arg| arg.get_long()).collect();
                assert!(known.contains(&flag), "{page}: `{span}`: there is no --{flag}");
            }
        }
    }
}

#[test]
fn the_page_of_commands_has_them_all() {
    let page = read("docs/commands.md");
    let first_words: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split(['`', ' ']).next())
        .map(str::to_owned)
        .collect();
    let cli = Cli::command();
    for command in cli.get_subcommands() {
        assert!(first_words.contains(command.get_name()), "`{}` is missing", command.get_name());
        for flag in command.get_arguments().filter_map(|arg| arg.get_long()) {
            assert!(
                page.contains(&format!("--{flag}")),
                "--{flag} of {} is missing",
                command.get_name()
            );
        }
    }
    for flag in cli.get_arguments().filter_map(|arg| arg.get_long()) {
        assert!(page.contains(&format!("`--{flag}")), "--{flag} is missing");
    }
}

#[test]
fn exit_codes_are_those_of_the_program() {
    let all = [Exit::Done, Exit::Failed, Exit::Usage, Exit::Person, Exit::Skipped];
    let codes: Vec<String> = all.iter().map(|exit| exit.code().to_string()).collect();
    let row = Regex::new(r"(?m)^\| (\d+) \|").expect("a pattern");
    for page in ["README.md", "docs/commands.md"] {
        let told: Vec<String> = row.captures_iter(&read(page)).map(|c| c[1].to_owned()).collect();
        assert_eq!(told, codes, "{page}");
    }
}

#[test]
fn every_link_leads_to_a_file_or_a_heading() {
    let link = Regex::new(r"\]\(([^)]+)\)").expect("a pattern");
    for page in pages() {
        let text = read(&page);
        let folder = root().join(Path::new(&page).parent().expect("a folder"));
        for target in link.captures_iter(&text).map(|c| c[1].to_owned()) {
            if target.starts_with("https://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let text = if file.is_empty() {
                text.clone()
            } else {
                let path = folder.join(file);
                assert!(path.exists(), "{page}: {target} is not there");
                if anchor.is_empty() {
                    continue;
                } else {
                    std::fs::read_to_string(path).expect("a page")
                }
            };
            let heading = anchor.replace('-', " ");
            let found =
                text.lines().any(|l| l.starts_with('#') && l.to_lowercase().contains(&heading));
            assert!(found, "{page}: no heading for {target}");
        }
    }
}

#[test]
fn every_page_is_in_the_index() {
    let index = read("docs/README.md");
    for page in pages().iter().filter_map(|page| page.strip_prefix("docs/")) {
        assert!(page == "README.md" || index.contains(&format!("({page})")), "{page} is missing");
    }
}

/// The picture is what `status` prints for a state that is kept in tests/fixtures/readme.
#[test]
fn the_picture_of_status_is_what_the_program_prints() {
    let readme = read("README.md");
    let picture = readme.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    let run = Command::cargo_bin("babysit")
        .expect("the program")
        .args(["--config", "shards.toml", "--state", "tests/fixtures/readme/state.json", "status"])
        .current_dir(root())
        .env_clear()
        .env("BABYSIT_NOW", "2026-11-03T10:05:40Z")
        .env("COLUMNS", "100")
        .output()
        .expect("it runs");
    let printed = String::from_utf8(run.stdout).expect("UTF-8");
    assert_eq!(picture, Some(printed.as_str()), "put this into README.md:\n{printed}");
}

/// Each message of a troubleshooting table, cut at `...`, is made of texts of the sources.
#[test]
fn every_message_is_one_that_the_program_says() {
    let mut sources = String::new();
    let mut missing = Vec::new();
    gather(&root().join("src"), &mut sources);
    // A text that is broken over lines, and one whose quotes are escaped.
    let sources = Regex::new(r"\\\n\s*")
        .expect("a pattern")
        .replace_all(&sources, "")
        .replace("\\\"", "\"")
        .replace("{FILE_NAME}", "shards.toml");
    for (page, title) in [
        ("README.md", "## Troubleshooting"),
        ("docs/state-and-locks.md", "## When something is wrong"),
    ] {
        let text = read(page);
        let table = text.split(title).nth(1).unwrap_or_else(|| panic!("{page}: no {title}"));
        let table = table.split("\n## ").next().unwrap_or(table);
        let messages: Vec<&str> = table
            .lines()
            .filter_map(|line| line.strip_prefix("| `"))
            .filter_map(|line| line.split('`').next())
            .collect();
        assert!(messages.len() > 4, "{page}: only {} messages", messages.len());
        for message in messages {
            let pieces = message.split("...").map(|piece| piece.trim_matches([' ', ':', ';', '.']));
            for piece in pieces.filter(|piece| !piece.is_empty()) {
                if !sources.contains(piece) {
                    missing.push(format!("{page}: `{message}`: no source says `{piece}`"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

fn gather(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            gather(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push_str(&std::fs::read_to_string(&path).expect("a source"));
        }
    }
}

/// scripts/demo scales the top-level shards.toml down by sed: each of its rules still hits a line.
#[test]
fn the_demo_finds_what_it_changes_in_shards_toml() {
    let shards = read("shards.toml");
    let rule = Regex::new(r"'s\|([^|]+)\|[^|]*\|'").expect("a pattern");
    let script = read("scripts/demo");
    let rules: Vec<String> = rule.captures_iter(&script).map(|c| c[1].to_owned()).collect();
    assert!(rules.len() >= 6, "only {} rules were found", rules.len());
    for rule in rules {
        let hit = Regex::new(&format!("(?m){rule}")).expect("sed's pattern").is_match(&shards);
        assert!(hit, "`{rule}` of scripts/demo matches no line of shards.toml");
    }
}
