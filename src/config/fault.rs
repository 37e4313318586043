//! What is wrong with a shards.toml, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// One thing that is wrong (or, among warnings, odd) at one place of the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// From 1; `None` where the fault is of the file as a whole.
    pub line: Option<usize>,
    /// Dotted, as in `families.find.gpus`; empty where no key is concerned.
    pub key: String,
    pub text: String,
    /// The next step.
    pub hint: Option<String>,
}

impl Fault {
    /// `path:line: key: text; hint`, the form that editors and terminals make a link of.
    pub fn shown(&self, path: &Path) -> String {
        match self.line {
            Some(line) => format!("{}:{line}: {self}", path.display()),
            None => format!("{}: {self}", path.display()),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.text)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Everything that is wrong with one file, by line, each once. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    pub path: PathBuf,
    pub faults: Vec<Fault>,
}

impl Faults {
    pub(super) fn new(path: &Path, mut faults: Vec<Fault>) -> Faults {
        in_order(&mut faults);
        Faults { path: path.to_owned(), faults }
    }
}

/// By line; what a family's key does to each of its shards is said once.
pub(super) fn in_order(faults: &mut Vec<Fault>) {
    faults.sort();
    faults.dedup();
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.faults.iter().enumerate() {
            let newline = if i == 0 { "" } else { "\n" };
            write!(f, "{newline}{}", fault.shown(&self.path))?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}
