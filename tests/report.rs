//! `babysit report`: a page that is well-formed, needs nothing from anywhere, says what
//! `status --json` says, and stays small. The browser's part is scripts/browser-check.
#![allow(clippy::disallowed_methods, reason = "a test makes the files that a user would make")]

mod common;

use std::path::Path;

use assert_cmd::Command;
use babysit::cli::figures::figures;
use babysit::model::id::ShardId;
use babysit::model::policy::{Lane, Policy};
use babysit::model::state::{Charge, ChargeKind, State};
use babysit::model::units::{GpuSeconds, Money, Secs, Tflops};
use babysit::output::journal;
use babysit::output::page::report::{Report, page};
use babysit::output::view::status;
use babysit::planning::event::{Event, What};
use common::{NOW, afternoon};
use regex::Regex;
use serde_json::Value;

fn drawn(policy: &Policy, state: &State, journal: &[Value]) -> String {
    let status = status(policy, state, &figures(policy, state), NOW, |_, _| true);
    page(&Report { policy, state, status: &status, journal, forecast: None, now: NOW })
}

/// Start and end tags match, attributes are quoted, nothing that is special stands bare: all that
/// a browser could read in another way than it was meant.
fn check_well_formed(html: &str) {
    let body = html.strip_prefix("<!DOCTYPE html>\n").expect("it begins as a page");
    let tag = Regex::new(r#"^<(/?)([a-z][a-zA-Z0-9]*)((?: [a-zA-Z0-9:-]+="[^"<]*")*)(/?)>"#);
    let tag = tag.expect("a pattern");
    let entity = Regex::new("^&(amp|lt|gt|quot|#39);").expect("a pattern");
    let mut open: Vec<String> = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.find(['<', '&']) {
        rest = &rest[at..];
        if open.last().is_some_and(|name| name == "style") && !rest.starts_with("</style>") {
            rest = &rest[1..];
            continue;
        }
        if let Some(found) = entity.find(rest) {
            rest = &rest[found.end()..];
            continue;
        }
        let shown: String = rest.chars().take(80).collect();
        let found = tag.captures(rest).unwrap_or_else(|| panic!("no tag: {shown}"));
        let name = found[2].to_owned();
        match (&found[1], &found[4]) {
            ("/", _) => assert_eq!(open.pop(), Some(name), "{shown}"),
            (_, "/") => assert!(["meta", "link", "br"].contains(&name.as_str()), "{shown}"),
            _ => open.push(name),
        }
        rest = &rest[found[0].len()..];
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

fn check_alone(html: &str) {
    let known = ["http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"];
    let address = Regex::new(r#"(?:https?:|//)[^\s"'<)]+"#).expect("a pattern");
    for found in address.find_iter(html).map(|m| m.as_str()) {
        assert!(known.contains(&found), "it names {found}");
    }
    for word in ["<script", "@import", "<iframe", "<img", " onload=", "javascript:"] {
        assert!(!html.contains(word), "it holds {word}");
    }
    let link = Regex::new(r#"(?:href|src)="([^"]*)""#).expect("a pattern");
    for found in link.captures_iter(html) {
        assert!(found[1].starts_with('#') || &found[1] == "data:,", "{}", &found[0]);
    }
}

/// Each id once, each reference to one that is there, headings in order, each picture named.
fn check_heard(html: &str) {
    let all = |pattern: &str| -> Vec<String> {
        let pattern = Regex::new(pattern).expect("a pattern");
        pattern.captures_iter(html).map(|c| c[1].to_owned()).collect()
    };
    let ids = all(r#" id="([^"]+)""#);
    let mut once = ids.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), ids.len(), "an id is there twice");
    for names in all(r#"aria-labelledby="([^"]+)""#).iter().chain(&all(r##"href="#([^"]+)""##)) {
        for name in names.split(' ') {
            assert!(once.iter().any(|id| id == name), "{name} is not there");
        }
    }
    let levels = all("<h([1-6])[ >]");
    assert_eq!(levels.iter().filter(|level| *level == "1").count(), 1);
    let levels: Vec<i32> = levels.iter().map(|level| level.parse().expect("a digit")).collect();
    assert!(levels.windows(2).all(|w| w[1] <= w[0] + 1), "{levels:?}");
    assert!(html.contains("<html lang=\"en\""));
    for mark in ["<header>", "<main ", "<nav ", "<footer>"] {
        assert_eq!(html.matches(mark).count(), 1, "{mark}");
    }
    assert_eq!(html.matches("role=\"img\"").count(), html.matches("<desc ").count());
}

fn check(html: &str) {
    check_well_formed(html);
    check_alone(html);
    check_heard(html);
}

/// The exact value behind a number of the page.
fn value(html: &str, id: &str) -> f64 {
    let pattern = Regex::new(&format!(r#"<data id="{id}" value="([^"]*)""#)).expect("a pattern");
    let found = pattern.captures(html).unwrap_or_else(|| panic!("no {id}"));
    found[1].parse().unwrap_or_else(|_| panic!("{id}: {}", &found[1]))
}

#[test]
fn its_numbers_are_those_of_status_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("page.html");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let run = |words: &[&str]| {
        let mut command = Command::cargo_bin("babysit").expect("the program");
        command.args(["--config", "shards.toml", "--state", "tests/fixtures/readme/state.json"]);
        command.current_dir(root).env_clear().env("BABYSIT_NOW", "2026-11-03T10:05:40Z");
        command.args(words).assert().success().get_output().stdout.clone()
    };
    run(&["report", "-o", out.to_str().expect("UTF-8")]);
    let html = std::fs::read_to_string(&out).expect("the page");
    check(&html);
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let json: Value = serde_json::from_slice(&run(&["status", "--json"])).expect("JSON");
    let totals = &json["totals"];
    for (id, key) in [
        ("rows-done", "rows_done"),
        ("rows-total", "rows_total"),
        ("rows-per-hour", "rows_per_hour"),
        ("spent", "spent"),
        ("projected", "projected"),
        ("ceiling", "ceiling"),
        ("needs-person", "needs_person"),
        ("shards-all", "shards"),
        ("shards-done", "done"),
        ("running", "running"),
        ("pending", "pending"),
        ("waiting", "waiting"),
    ] {
        assert_eq!(Some(value(&html, id)), totals[key].as_f64(), "{id}");
    }
    let eta = format!("<time id=\"eta\" datetime={}>", totals["eta"]);
    assert!(html.contains(&eta), "no {eta}");
    assert!(html.contains("nine of ten simulated futures"));
    assert!(html.contains("babysit cap set find/s0 34"));
}

#[test]
fn a_file_that_is_no_page_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("shards.toml");
    std::fs::write(&out, "project = \"dear to me\"").expect("writes");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::cargo_bin("babysit").expect("the program");
    command.args(["--config", "shards.toml", "--state", "tests/fixtures/readme/state.json"]);
    command.args(["report", "-o"]).arg(&out).current_dir(root).env_clear();
    command.assert().code(2);
    let held = std::fs::read_to_string(&out).expect("reads");
    assert_eq!(held, "project = \"dear to me\"");
}

#[test]
fn hostile_names_and_words_stay_text() {
    let (policy, mut state) = afternoon();
    let hostile = "</title><script>alert(1)</script>\"'&\u{1b}[31m\u{202e}";
    state.labs.entry(hostile.to_owned()).or_default().usage = GpuSeconds(50).weighted(Tflops(1000));
    let id = policy.shards[0].id.clone();
    let node = || hostile.to_owned();
    let (job, at) = (babysit::model::id::JobId(9), NOW - Secs::hours(3));
    let what = [
        What::Submitted { job, lane: Some(Lane::Own), attempt: 1 },
        What::Started { job, lane: Some(Lane::Own), node: node() },
        What::SubmitRefused { said: node() },
        What::NodeBlamed { job, node: node() },
        What::CycleSkipped { why: node() },
    ];
    let event = |what| Event { at, shard: Some(id.clone()), what };
    let journal: Vec<Value> = what.into_iter().map(|what| journal::json(&event(what))).collect();
    state.shards[0].charges.push(charge(at, hostile));
    let html = drawn(&policy, &state, &journal);
    check(&html);
    assert!(!html.contains(['\u{1b}', '\u{202e}']));
    assert!(html.contains("&lt;script&gt;"), "it is told all the same");
}

fn charge(from: babysit::model::units::Time, tier: &str) -> Charge {
    Charge {
        kind: ChargeKind::Run,
        lab: "BCG".to_owned(),
        attempt: 1,
        from,
        length: Secs::hours(1),
        gpus: 1,
        gpu_seconds: GpuSeconds(3600),
        tier: Some(tier.to_owned()),
        weight: Tflops(82_600),
        at: from + Secs::hours(1),
    }
}

#[test]
fn before_the_first_tick_there_is_a_page_too() {
    let (policy, _) = afternoon();
    let html = drawn(&policy, &common::fresh(&policy), &[]);
    check(&html);
    assert!(html.contains("There was no tick yet."));
}

#[test]
fn a_journal_tells_of_lanes_nodes_ends_and_incidents() {
    let (policy, mut state) = afternoon();
    let id = policy.shards[0].id.clone();
    let (job, from) = (babysit::model::id::JobId(9), NOW - Secs::hours(3));
    state.shards[0].charges = vec![charge(from, "rtx4090")];
    state.shards[0].slot = babysit::model::state::Slot::Free;
    state.shards[0].last_end = None;
    let preempted =
        babysit::model::state::EndHow::Word(babysit::model::cluster::EndWord::Preempted);
    let lines = [
        (0, What::Submitted { job, lane: Some(Lane::Own), attempt: 1 }),
        (1, What::Moved { job, to: Lane::Extra }),
        (2, What::Started { job, lane: Some(Lane::Extra), node: "node77".into() }),
        (60, What::Ended { job, how: preempted, new_rows: 2 }),
        (61, What::CycleSkipped { why: "squeue: reset".into() }),
        (62, What::CycleSkipped { why: "squeue: reset".into() }),
        (63, What::Totals { rows: 100, of: 671, spent: Money(0) }),
    ];
    let lines = lines.into_iter().map(|(minute, what)| {
        let shard = (minute < 61).then(|| id.clone());
        journal::json(&Event { at: from + Secs::minutes(minute), shard, what })
    });
    let html = drawn(&policy, &state, &lines.collect::<Vec<_>>());
    check(&html);
    for told in ["node77 rtx4090", "in extra on node77", "preempted", "(2 times in 1m)"] {
        assert!(html.contains(told), "no `{told}`");
    }
}

/// Ten thousand shards with two runs each and a busy journal.
#[test]
fn ten_thousand_shards_are_a_small_page() {
    let (policy, state) = afternoon();
    let mut big = policy.clone();
    big.shards = (0..10_000)
        .map(|n| {
            let mut shard = policy.shards[n % policy.shards.len()].clone();
            shard.id = ShardId::new(&format!("family{}", n % 30), &format!("s{n}"));
            shard
        })
        .collect();
    let mut many = common::fresh(&big);
    many.last_tick = state.last_tick.clone();
    let mut journal = Vec::new();
    for (n, record) in many.shards.iter_mut().enumerate() {
        for run in 0..2 {
            let from = NOW - Secs((n as i64 * 37) % 800_000 + 90_000 + run * 7200);
            let length = Secs(3600);
            record.charges.push(Charge { attempt: run as u32, length, ..charge(from, "rtx4090") });
            let job = babysit::model::id::JobId(n as u64 * 2 + run as u64);
            let node = format!("node{}", n % 500);
            let shard = Some(record.id.clone());
            let submitted = What::Submitted { job, lane: Some(Lane::Own), attempt: run as u32 };
            let started = What::Started { job, lane: Some(Lane::Own), node };
            let refused = What::SubmitRefused { said: "no".into() };
            for what in [submitted, started, refused] {
                journal.push(journal::json(&Event { at: from, shard: shard.clone(), what }));
            }
        }
    }
    let html = drawn(&big, &many, &journal);
    check_alone(&html);
    check_heard(&html);
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
    let elements = html.matches('<').count();
    assert!(elements < 30_000, "{elements} elements: a browser takes long over them");
}

/// A shard may have four thousand million rows, and a campaign many such shards.
#[test]
fn rows_are_summed_beyond_four_thousand_million() {
    let (mut policy, state) = afternoon();
    let many = policy.shards.len() as u64;
    for shard in &mut policy.shards[..] {
        shard.rows = u32::MAX;
    }
    let all = many * u64::from(u32::MAX);
    let status = status(&policy, &state, &figures(&policy, &state), NOW, |_, _| true);
    assert_eq!(status.totals.rows_total, all);
    let html = drawn(&policy, &state, &[]);
    assert!(html.contains(&format!(" of {all} rows are done.")), "the lead");
    let family = policy.shards.iter().filter(|shard| shard.id.family == "find").count() as u64;
    assert!(html.contains(&(family * u64::from(u32::MAX)).to_string()), "the table by family");
}
