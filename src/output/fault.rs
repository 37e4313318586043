//! Errors as people and as scripts read them.

use serde_json::{Value, json};

/// `message`, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// One word for scripts: `config`, `state`, `busy`, `usage`, ...
    pub kind: &'static str,
    pub message: String,
    pub hint: Option<String>,
}

pub fn text(fault: &Fault) -> String {
    let Fault { kind: _, message, hint } = fault;
    match hint {
        Some(hint) => format!("babysit: {message}\n  next: {hint}"),
        None => format!("babysit: {message}"),
    }
}

pub fn json(fault: &Fault) -> Value {
    let Fault { kind, message, hint } = fault;
    json!({ "error": { "kind": kind, "message": message, "hint": hint } })
}
