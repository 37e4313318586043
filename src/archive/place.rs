//! Where in the archive a file goes, and whether it may go there at all.
//!
//! Files below the project's folder keep their path below `project/`, all others theirs below
//! `outside/`: two files can never want one name.

use std::path::{Component, Path};

use super::{LeftOut, Wanted};

/// The folders that a file may lie in, and the archive's own, in which none may.
#[derive(Debug, Clone)]
pub struct Place<'a> {
    /// Of shards.toml.
    pub base: &'a Path,
    pub archive: [&'a Path; 2],
}

/// A file, and the folder that was named by a person; what is below it was found.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    pub file: &'a Path,
    pub folder: &'a Path,
}

impl Place<'_> {
    /// `None`: it is part of the archive itself.
    pub fn of(&self, given: Given<'_>) -> Result<Option<Wanted>, LeftOut> {
        let Given { file, folder } = given;
        let left_out = |why: String| LeftOut { path: file.to_owned(), why };
        let real = |path: &Path| path.canonicalize().map_err(|error| left_out(error.to_string()));
        let target = real(file)?;
        let is_ours =
            |path: &&Path| path.canonicalize().is_ok_and(|archive| target.starts_with(archive));
        if self.archive.iter().any(is_ours) {
            return Ok(None);
        }
        // A symlink that a person named is followed; one that was found may not lead away.
        if !target.starts_with(real(folder)?) && !target.starts_with(real(self.base)?) {
            return Err(left_out(format!("a symlink that leads away, to {}", target.display())));
        }
        let named = plain(file).map_or_else(|| target.clone(), Path::to_owned);
        let (top, path) = match named.strip_prefix(self.base) {
            Ok(below) => ("project", below.to_owned()),
            Err(_) => ("outside", named.components().filter(is_name).collect()),
        };
        match path.to_str() {
            Some(path) => Ok(Some(Wanted { source: file.to_owned(), to: format!("{top}/{path}") })),
            None => Err(left_out("its name is no UTF-8; rename it".to_owned())),
        }
    }
}

fn is_name(part: &Component<'_>) -> bool {
    matches!(part, Component::Normal(_))
}

/// The path itself, where it does not go up again.
fn plain(path: &Path) -> Option<&Path> {
    (!path.components().any(|part| part == Component::ParentDir)).then_some(path)
}

/// Each source once, in the order of their names in the archive.
pub fn once(mut wanted: Vec<Wanted>) -> Vec<Wanted> {
    wanted.sort_by(|a, b| a.to.cmp(&b.to));
    wanted.dedup_by(|a, b| a.to == b.to);
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn names_never_clash_and_symlinks_do_not_lead_away() {
        let lab = tempfile::tempdir().expect("a folder");
        let root = lab.path().canonicalize().expect("a path");
        let at = |name: &str| root.join(name);
        for folder in ["p/runs/s0", "p/out", "scratch", "else"] {
            std::fs::create_dir_all(at(folder)).expect("a folder");
        }
        for file in ["p/runs/s0/a", "p/out/x", "scratch/a", "else/a", "p/own"] {
            std::fs::File::options()
                .write(true)
                .create(true)
                .truncate(true)
                .open(at(file))
                .expect("a file");
        }
        symlink(at("scratch"), at("p/far")).expect("a link");
        symlink(at("else/a"), at("p/runs/s0/away")).expect("a link");
        symlink(at("p/own"), at("p/runs/s0/near")).expect("a link");
        let (base, out, partial) = (at("p"), at("p/out"), at("p/out_PARTIAL"));
        let place = Place { base: &base, archive: [&out, &partial] };
        let check = |file: &str, folder: &str, expected: &str| {
            let said = match place.of(Given { file: &at(file), folder: &at(folder) }) {
                Ok(Some(wanted)) => wanted.to,
                Ok(None) => "itself".to_owned(),
                Err(left_out) => left_out.why,
            };
            let root = root.display().to_string();
            assert_eq!(
                said.replace(&root, "").replace(root.trim_start_matches('/'), "R"),
                expected
            );
        };
        check("p/runs/s0/a", "p/runs", "project/runs/s0/a");
        check("p/runs/s0/near", "p/runs", "project/runs/s0/near");
        check("p/runs/s0/away", "p/runs", "a symlink that leads away, to /else/a");
        // The folder was named in shards.toml, as people do who have a scratch disk.
        check("p/far/a", "p/far", "project/far/a");
        check("p/far/a", "p", "a symlink that leads away, to /scratch/a");
        check("scratch/a", "scratch", "outside/scratch/a");
        check("p/../scratch/a", "p/../scratch", "outside/scratch/a");
        check("p/out/x", "p", "itself");
        check("p/runs/s0/gone", "p/runs", "No such file or directory (os error 2)");
    }
}
