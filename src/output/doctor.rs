//! `babysit doctor`: one line a check, what to do where something is wrong, and the crontab line.

use serde_json::{Value, json};

use super::crontab::Crontab;

pub const SCHEMA: &str = "babysit/doctor/v1";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    Fine,
    /// Ticks work, but a person should look.
    Look,
    /// No tick can work.
    Broken,
}

impl Health {
    fn word(self) -> &'static str {
        match self {
            Health::Fine => "fine",
            Health::Look => "look",
            Health::Broken => "broken",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub health: Health,
    pub text: String,
    /// What to do; only where it is not fine.
    pub next: Option<String>,
}

/// The worst of them.
pub fn worst(checks: &[Check]) -> Health {
    checks.iter().map(|check| check.health).max().unwrap_or(Health::Fine)
}

pub fn text(checks: &[Check], crontab: &Crontab) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for Check { name, health, text, next } in checks {
        let text = super::format::one_line(text);
        out.push_str(&format!("{:<6}  {name:<width$}  {text}\n", health.word()));
        if let Some(next) = next {
            out.push_str(&format!("{:<6}  {:<width$}  -> {next}\n", "", ""));
        }
    }
    out.push_str(&format!("\ncrontab line (`babysit cron --install`):\n    {}\n", crontab.line()));
    out
}

pub fn json(checks: &[Check], crontab: &Crontab) -> Value {
    let check = |Check { name, health, text, next }: &Check| json!({ "name": name, "health": health.word(), "text": text, "next": next });
    json!({
        "schema": SCHEMA,
        "health": worst(checks).word(),
        "checks": checks.iter().map(check).collect::<Vec<_>>(),
        "crontab": [crontab.line()],
    })
}
