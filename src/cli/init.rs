//! `babysit init [--force]`: a first shards.toml. Works without Slurm, too.

use crate::config::FILE_NAME;
use crate::model::policy::SlurmSettings;
use crate::output::init::{About, json, toml, written};
use crate::planning::draft::draft;
use crate::slurm::health::NEEDED;
use crate::slurm::real::RealSlurm;
use crate::store;

use super::context::Context;
use super::exit::{Exit, Stop};
use super::slurm;

pub fn run(cx: &Context, force: bool) -> Result<Exit, Stop> {
    let named = cx.global.config.as_deref().map(|path| path.as_os_str().to_owned());
    let named = named.or_else(|| cx.surroundings.var("BABYSIT_CONFIG").map(Into::into));
    let path = cx.surroundings.cwd.join(named.unwrap_or_else(|| FILE_NAME.into()));
    let taken = || {
        Stop::usage(
            format!("{} is there already, and stays as it is", path.display()),
            "`babysit init --force` writes a new one and keeps the old beside it",
        )
    };
    // Told before Slurm is asked, which may take a minute.
    if !force && path.symlink_metadata().is_ok() {
        return Err(taken());
    }
    let project = project(path.parent().and_then(|folder| folder.file_name()));
    let environment = slurm::environment(cx.surroundings);
    let user = environment.user.clone();
    let mut asking = RealSlurm::new(&SlurmSettings::default(), environment, (cx.seed)());
    let survey = asking.survey(user.as_deref());
    let draft = draft(&survey);
    let found = NEEDED.iter().find_map(|name| asking.path_of(name).ok());
    let folder = found.as_deref().and_then(|path| path.rsplit_once('/')).map(|(dir, _)| dir);
    let bin_dir = folder.filter(|dir| !asking.finds_without_path(dir));
    let text = toml(&About { project: &project, bin_dir }, &survey, &draft);
    let kept = if force {
        store::replace_keeping(&path, text.as_bytes())?
    } else if store::create(&path, text.as_bytes())? {
        None
    } else {
        return Err(taken());
    };
    let kept = kept.map(|kept| kept.display().to_string());
    let path = path.display().to_string();
    if cx.talk.json {
        cx.talk.result_json(&json(&path, kept.as_deref(), &survey, &draft))?;
    } else {
        cx.talk.result(&written(&path, kept.as_deref(), &survey, &draft))?;
    }
    Ok(Exit::Done)
}

/// The folder's name, as far as it can be a project's.
fn project(folder: Option<&std::ffi::OsStr>) -> String {
    let name = folder.unwrap_or_default().to_string_lossy();
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let name: String = name.chars().map(|c| if fits(c) { c } else { '-' }).take(64).collect();
    let name = name.trim_matches(['.', '-']).to_owned();
    if name.is_empty() { "project".to_owned() } else { name }
}
