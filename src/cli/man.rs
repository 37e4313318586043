//! `babysit man [--out-dir DIR]`: manual pages, made from what `--help` says.

use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;

use crate::store;

use super::context::Context;
use super::exit::{Exit, Stop};
use super::help;

pub fn run(cx: &Context, out_dir: Option<&Path>) -> Result<Exit, Stop> {
    let mut cli = help::command();
    cli.build();
    let Some(folder) = out_dir else {
        cx.talk.result(&String::from_utf8_lossy(&page(&cli)?.1))?;
        return Ok(Exit::Done);
    };
    let folder = cx.surroundings.cwd.join(folder);
    let mut pages = Vec::new();
    all(&cli, &mut pages)?;
    store::make_folder(&folder)?;
    for (name, text) in &pages {
        store::replace(&folder.join(name), text)?;
    }
    cx.talk.aside(&format!("babysit: {} manual pages in {}", pages.len(), folder.display()));
    Ok(Exit::Done)
}

/// One page a command, those below it too.
fn all(command: &Command, pages: &mut Vec<(PathBuf, Vec<u8>)>) -> Result<(), Stop> {
    pages.push(page(command)?);
    let seen = |c: &&Command| !c.is_hide_set() && c.get_name() != "help";
    command.get_subcommands().filter(seen).try_for_each(|command| all(command, pages))
}

fn page(command: &Command) -> Result<(PathBuf, Vec<u8>), Stop> {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    man.render(&mut text)
        .map_err(|error| Stop::failed("man", format!("a page could not be made: {error}")))?;
    Ok((man.get_filename().into(), text))
}
