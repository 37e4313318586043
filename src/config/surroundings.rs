//! Where shards.toml and the state file are. The one place that reads the environment: everything
//! after it is handed a [`Surroundings`].

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::Draft;

/// The name that is looked for in this folder and its parents.
pub const FILE_NAME: &str = "shards.toml";

/// What the process was started with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surroundings {
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
    /// `$XDG_STATE_HOME`, else `~/.local/state`; `None` where the user has no home.
    pub state_dir: Option<PathBuf>,
}

/// A file that could not be located: what was looked for, and the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceError {
    pub text: String,
    pub hint: String,
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.text, self.hint)
    }
}

impl std::error::Error for PlaceError {}

impl Surroundings {
    /// Reads environment, working folder and the user's state folder, once.
    ///
    /// # Errors
    /// The working folder is gone or may not be read.
    pub fn from_process() -> Result<Surroundings, PlaceError> {
        let cwd = std::env::current_dir().map_err(|e| PlaceError {
            text: format!("the working folder cannot be read: {e}"),
            hint: "cd to a folder that exists".to_owned(),
        })?;
        // Lossy: a path that is no UTF-8 then fails by its name instead of being passed over.
        let env = std::env::vars_os()
            .map(|(k, v)| (k.to_string_lossy().into_owned(), v.to_string_lossy().into_owned()))
            .collect();
        let state_dir =
            directories::BaseDirs::new().and_then(|dirs| dirs.state_dir().map(Path::to_owned));
        Ok(Surroundings { env, cwd, state_dir })
    }

    /// A variable that is set and not empty.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|v| !v.is_empty())
    }
}

/// `--config`, else `$BABYSIT_CONFIG`, else shards.toml in the working folder or the nearest
/// parent that has one. The path is absolute.
///
/// # Errors
/// There is none; the message names every place that was looked at.
pub fn find(explicit: Option<&Path>, s: &Surroundings) -> Result<PathBuf, PlaceError> {
    let named = match explicit {
        Some(path) => Some(("--config", path.to_owned())),
        None => s.var("BABYSIT_CONFIG").map(|v| ("$BABYSIT_CONFIG", PathBuf::from(v))),
    };
    if let Some((by, path)) = named {
        let path = s.cwd.join(path);
        return match std::fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => Err(PlaceError {
                text: format!("{by} names {}, which is a folder", path.display()),
                hint: format!("name the file: {}", path.join(FILE_NAME).display()),
            }),
            Ok(_) => Ok(path),
            Err(e) => Err(PlaceError {
                text: format!("{by} names {}: {e}", path.display()),
                hint: "correct the path, or let `babysit init` write a first one there".to_owned(),
            }),
        };
    }
    if let Some(found) = s.cwd.ancestors().map(|dir| dir.join(FILE_NAME)).find(|p| p.is_file()) {
        return Ok(found);
    }
    Err(PlaceError {
        text: format!(
            "no {FILE_NAME} in {} or a folder above it (neither --config nor $BABYSIT_CONFIG is set)",
            s.cwd.display()
        ),
        hint:
            "cd to the project, name the file with --config PATH, or `babysit init` writes one here"
                .to_owned(),
    })
}

/// `--state`, else `$BABYSIT_STATE`, else `state` of shards.toml, else
/// `<user's state folder>/babysit/<project>/state.json`. The path is absolute; whether the file is
/// there is the store's business.
///
/// # Errors
/// None of these is known: the user has no home folder (cron on some hosts).
pub fn state_path(
    explicit: Option<&Path>,
    draft: &Draft,
    s: &Surroundings,
) -> Result<PathBuf, PlaceError> {
    if let Some(path) = explicit {
        return Ok(s.cwd.join(path));
    }
    if let Some(path) = s.var("BABYSIT_STATE") {
        return Ok(s.cwd.join(path));
    }
    if let Some(path) = draft.state() {
        return Ok(path.to_owned());
    }
    let project = &draft.policy().project;
    match &s.state_dir {
        Some(dir) => Ok(dir.join("babysit").join(project).join("state.json")),
        None => Err(PlaceError {
            text:
                "the state file has no place: this user has no home folder, and neither HOME nor \
                   XDG_STATE_HOME is set"
                    .to_owned(),
            hint: format!(
                "set `state = \"/a/shared/path/{project}.json\"` in {}, or name it with --state PATH",
                draft.path().display()
            ),
        }),
    }
}
