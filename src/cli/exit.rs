//! How a command ends: the contract's exit codes, and an error that is printed once.

use crate::config::{Faults, PlaceError};
use crate::output::fault::Fault;
use crate::store::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    /// The command line or shards.toml is wrong.
    Usage,
    Person,
    /// This cycle was skipped: a probe failed, or another tick holds the lock (EX_TEMPFAIL).
    Skipped,
    /// `exec`: as the shard's program ended.
    Program(u8),
}

impl Exit {
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Person => 3,
            Exit::Skipped => 75,
            Exit::Program(code) => code,
        }
    }
}

#[derive(Debug)]
pub enum Stop {
    Fault(Exit, Fault),
    /// Nobody reads stdout any more (`babysit status | head`): no error.
    ClosedPipe,
}

impl Stop {
    pub fn new(exit: Exit, kind: &'static str, message: String, hint: Option<String>) -> Stop {
        Stop::Fault(exit, Fault { kind, message, hint })
    }

    pub fn usage(message: String, hint: &str) -> Stop {
        Stop::new(Exit::Usage, "usage", message, Some(hint.to_owned()))
    }

    pub fn failed(kind: &'static str, message: String) -> Stop {
        Stop::new(Exit::Failed, kind, message, None)
    }
}

impl From<PlaceError> for Stop {
    fn from(PlaceError { text, hint }: PlaceError) -> Stop {
        Stop::new(Exit::Usage, "config", text, Some(hint))
    }
}

impl From<Faults> for Stop {
    fn from(faults: Faults) -> Stop {
        let hint = format!("correct {}, then `babysit check`", faults.path.display());
        Stop::new(Exit::Usage, "config", faults.to_string(), Some(hint))
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Stop {
        let message = error.to_string();
        match error {
            StoreError::Busy { .. } => Stop::new(Exit::Skipped, "busy", message, None),
            _ => Stop::failed("state", message),
        }
    }
}
