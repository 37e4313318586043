//! The archive's folder: DIR once all is in it, DIR_PARTIAL until then.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::Failed;
use super::manifest::NAME;

/// The end of the name while something is lacking.
const PARTIAL: &str = "_PARTIAL";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    pub whole: PathBuf,
    pub partial: PathBuf,
}

impl Folders {
    /// `dir` must be absolute.
    pub fn of(dir: &Path) -> Result<Folders, Failed> {
        let name = dir.file_name().ok_or_else(|| Failed::other(dir, "it has no name"))?;
        if name.to_string_lossy().ends_with(PARTIAL) {
            let what = "name the folder as it is to be in the end, without _PARTIAL";
            return Err(Failed::other(dir, what));
        }
        let mut partial = name.to_owned();
        partial.push(PARTIAL);
        Ok(Folders { whole: dir.to_owned(), partial: dir.with_file_name(partial) })
    }

    /// The one that is there; where none is, the partial one.
    pub fn present(&self) -> Result<&Path, Failed> {
        let there = |path: &Path| path.symlink_metadata().is_ok();
        // An empty folder was made to be filled: the finished archive takes its place.
        let is_empty =
            |path: &Path| std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        match (there(&self.whole) && !is_empty(&self.whole), there(&self.partial)) {
            (true, true) => {
                let what =
                    format!("{} is there too; move one of them away", self.partial.display());
                Err(Failed::other(&self.whole, &what))
            }
            (true, false) if !there(&self.whole.join(NAME)) => {
                let what = "this is no archive of babysit's; name a new folder";
                Err(Failed::other(&self.whole, what))
            }
            (true, false) => Ok(&self.whole),
            (false, _) => Ok(&self.partial),
        }
    }

    /// Gives the folder the name it should have now.
    pub fn name(&self, is_whole: bool) -> Result<&Path, Failed> {
        let to = if is_whole { &self.whole } else { &self.partial };
        let from = self.present()?;
        if from != to && from.symlink_metadata().is_ok() {
            rename(from, to)?;
        }
        Ok(to)
    }
}

/// How files of the archive are opened: no symlink that somebody put there is followed.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o664).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    options
}

#[allow(clippy::disallowed_methods, reason = "the archive's own folder")]
fn rename(from: &Path, to: &Path) -> Result<(), Failed> {
    std::fs::rename(from, to).map_err(Failed::io("give the archive its name", to))
}
