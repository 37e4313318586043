//! `babysit __complete WORDS..`: what the last word could become, one candidate a line, with a tab and
//! what it is. Asked by the scripts of `babysit completions`; hidden from people.
//!
//! Never fails: a line without a campaign, or half of one, still has commands and flags.

use clap::{Arg, ArgAction, Command};

use std::sync::Arc;

use crate::config;
use crate::model::policy::Policy;
use crate::output::journal::KINDS;
use crate::output::word::Word;
use crate::study::method::{METHODS, YOURS};
use crate::study::placing::PLACINGS;
use crate::study::scenario::Scenario;

use super::context::Context;
use super::exit::{Exit, Stop};
use super::help;

/// More shards than this are only offered once a family is named.
const MANY: usize = 200;

pub fn run(cx: &Context, words: &[String]) -> Result<Exit, Stop> {
    let mut cli = help::command();
    cli.build();
    let line = read(&cli, words);
    let policy = campaign(cx, line.config);
    let found = candidates(&line, policy.as_ref());
    let text: String = found.iter().map(|(word, about)| format!("{word}\t{about}\n")).collect();
    cx.talk.result(&text)?;
    Ok(Exit::Done)
}

fn campaign(cx: &Context, named: Option<&str>) -> Option<Policy> {
    let path = config::find(named.map(std::path::Path::new), cx.surroundings).ok()?;
    Some(config::load(&path).ok()?.policy)
}

/// A command line up to the word that is being typed.
struct Line<'a> {
    command: &'a Command,
    /// Positional words of the command so far.
    positionals: usize,
    /// An option that waits for its value.
    option: Option<&'a Arg>,
    only_words: bool,
    config: Option<&'a str>,
    last: &'a str,
}

fn read<'a>(cli: &'a Command, words: &'a [String]) -> Line<'a> {
    let (last, before) = words.split_last().map_or(("", &[][..]), |(l, b)| (l.as_str(), b));
    let mut line =
        Line { command: cli, positionals: 0, option: None, only_words: false, config: None, last };
    // The first word is the program.
    for word in before.iter().skip(1) {
        // bash takes `--flag=value` apart; its `=` is no word.
        if word == "=" {
            continue;
        }
        if let Some(option) = line.option.take() {
            if option.get_id() == "config" {
                line.config = Some(word);
            }
            continue;
        }
        if let Some(long) = word.strip_prefix("--").filter(|_| !line.only_words) {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            line.only_words = long.is_empty();
            let arg = line.command.get_arguments().find(|arg| arg.get_long() == Some(name));
            let arg = arg.filter(|arg| takes_value(arg));
            if name == "config" && value.is_some() {
                line.config = value;
            } else if value.is_none() {
                line.option = arg;
            }
            continue;
        }
        if word.starts_with('-') && !line.only_words {
            continue;
        }
        match line.command.find_subcommand(word) {
            Some(command) if line.positionals == 0 => {
                line.command = command;
            }
            _ => line.positionals += 1,
        }
    }
    if line.last == "=" {
        line.last = "";
    }
    line
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

type Candidates = Vec<(String, String)>;

fn candidates(line: &Line, policy: Option<&Policy>) -> Candidates {
    let first_line = |text: Option<String>| {
        text.and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_default()
    };
    let help = |arg: &Arg| first_line(arg.get_help().map(ToString::to_string));
    // A quote that the shell hands on as typed.
    let typed = line.last.trim_start_matches(['\'', '"']);
    let mut found: Candidates = Vec::new();
    if let Some(option) = line.option {
        found = values(option, policy, typed);
    } else if let Some((flag, value)) =
        typed.strip_prefix("--").and_then(|long| long.split_once('=')).filter(|_| !line.only_words)
    {
        let option = line.command.get_arguments().find(|arg| arg.get_long() == Some(flag));
        let of_option = option.map(|option| values(option, policy, value));
        found.extend(
            of_option.unwrap_or_default().into_iter().map(|(v, a)| (format!("--{flag}={v}"), a)),
        );
    } else if typed.starts_with('-') && !line.only_words {
        let seen = |arg: &&Arg| !arg.is_hide_set();
        for arg in line.command.get_arguments().filter(seen) {
            found.extend(arg.get_long().map(|long| (format!("--{long}"), help(arg))));
        }
    } else {
        let commands = line.command.get_subcommands().filter(|c| !c.is_hide_set());
        for command in commands.filter(|_| line.positionals == 0) {
            let about = first_line(command.get_about().map(ToString::to_string));
            found.push((command.get_name().to_owned(), about));
        }
        let positionals: Vec<&Arg> = line.command.get_positionals().collect();
        let repeated =
            positionals.last().filter(|arg| matches!(arg.get_action(), ArgAction::Append));
        if let Some(arg) = positionals.get(line.positionals).or(repeated) {
            found.extend(values(arg, policy, typed));
        }
    }
    found.retain(|(word, _)| word.starts_with(typed));
    found
}

/// What an argument may be; nothing for files, which are the shell's to complete.
fn values(arg: &Arg, policy: Option<&Policy>, typed: &str) -> Candidates {
    let fixed = arg.get_possible_values();
    if !fixed.is_empty() {
        let about = |help: Option<String>| help.unwrap_or_default();
        return fixed
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|v| (v.get_name().to_owned(), about(v.get_help().map(ToString::to_string))))
            .collect();
    }
    let plain = |words: &[&str]| words.iter().map(|w| ((*w).to_owned(), String::new())).collect();
    match arg.get_id().as_str() {
        "scenario" => return plain(&Scenario::ALL.each_ref().map(Scenario::word)),
        "policies" | "compare" => {
            let lanes = METHODS.iter().map(|method| method.name).chain(policy.map(|_| YOURS));
            let names: Vec<&str> = lanes.chain(PLACINGS.map(|placing| placing.name)).collect();
            return listed(&plain(&names), typed);
        }
        "kind" => return listed(&plain(&KINDS), typed),
        _ => {}
    }
    let Some(policy) = policy else { return Vec::new() };
    match arg.get_id().as_str() {
        "target" | "targets" | "shard" | "shards" => shards(policy, typed),
        "filter" => {
            let states = Word::ALL.map(|word| (word.text().to_owned(), "state".to_owned()));
            shards(policy, typed).into_iter().chain(states).collect()
        }
        "lab" => {
            let mut labs: Vec<&Arc<str>> = policy.shards.labs().iter().collect();
            labs.sort();
            labs.into_iter().map(|lab| (lab.to_string(), "lab".to_owned())).collect()
        }
        _ => Vec::new(),
    }
}

/// Of a list with commas it is the last word that is being typed.
fn listed(words: &Candidates, typed: &str) -> Candidates {
    let before = typed.rfind(',').map_or("", |comma| typed.get(..=comma).unwrap_or_default());
    let mut all: Candidates =
        words.iter().map(|(word, about)| (format!("{before}{word}"), about.clone())).collect();
    all.sort();
    all.dedup();
    all
}

fn shards(policy: &Policy, typed: &str) -> Candidates {
    let mut families: Vec<(&str, usize)> = Vec::new();
    for shard in &policy.shards {
        match families.iter_mut().find(|(name, _)| shard.id.family == *name) {
            Some((_, count)) => *count += 1,
            None => families.push((&shard.id.family, 1)),
        }
    }
    let about = |count: usize| format!("family of {count}");
    let mut found: Candidates =
        families.iter().map(|(name, count)| ((*name).to_owned(), about(*count))).collect();
    if policy.shards.len() <= MANY || typed.contains('/') {
        found.extend(
            policy.shards.iter().map(|shard| {
                (shard.id.to_string(), crate::output::format::count(shard.rows, "row"))
            }),
        );
    } else {
        found
            .extend(families.iter().map(|(name, _)| (format!("{name}/"), "its shards".to_owned())));
    }
    found
}
