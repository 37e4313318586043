//! `babysit doctor`: one line a check, what to do where something is wrong, and the crontab lines.

use serde_json::{Value, json};

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

/// What a crontab must hold so that ticks work under cron's few variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crontab {
    /// Absolute.
    pub program: String,
    pub config: String,
    /// Where it is not the one that a bare environment leads to.
    pub state: Option<String>,
    /// `NAME=value`, in order.
    pub env: Vec<(String, String)>,
}

impl Crontab {
    /// The lines to install.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut words = vec![self.program.as_str(), "--config", &self.config];
        if let Some(state) = &self.state {
            words.extend(["--state", state]);
        }
        words.push("tick");
        let quoted = words.iter().map(|word| shell_words::quote(word));
        let command = quoted.collect::<Vec<_>>().join(" ");
        // cron takes a bare % for a line's end.
        lines.push(format!("* * * * * {}", command.replace('%', "\\%")));
        lines
    }
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
    out.push_str("\ncrontab lines to install (crontab -e):\n");
    for line in crontab.lines() {
        out.push_str(&format!("    {line}\n"));
    }
    out
}

pub fn json(checks: &[Check], crontab: &Crontab) -> Value {
    let check = |Check { name, health, text, next }: &Check| json!({ "name": name, "health": health.word(), "text": text, "next": next });
    json!({
        "schema": SCHEMA,
        "health": worst(checks).word(),
        "checks": checks.iter().map(check).collect::<Vec<_>>(),
        "crontab": crontab.lines(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crontab_lines_survive_cron_and_its_shell() {
        let crontab = Crontab {
            program: "/opt/my bin/babysit".into(),
            config: "/lab/100%/shards.toml".into(),
            state: Some("/lab/s.json".into()),
            env: vec![("SLURM_CONF".into(), "/etc/s.conf".into())],
        };
        assert_eq!(
            crontab.lines(),
            [
                "SLURM_CONF=/etc/s.conf",
                "* * * * * '/opt/my bin/babysit' --config '/lab/100\\%/shards.toml' --state \
                 /lab/s.json tick",
            ]
        );
    }
}
