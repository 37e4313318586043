//! `babysit completions SHELL`: a short script for the shell, which asks `babysit __complete`.
//!
//! Not made by clap_complete: its scripts know commands and flags but no shards, and its engine that
//! would know them is not stable.

use super::args::Shell;
use super::context::Context;
use super::exit::{Exit, Stop};

pub fn run(cx: &Context, shell: Shell) -> Result<Exit, Stop> {
    cx.talk.result(match shell {
        Shell::Bash => include_str!("completions/babysit.bash"),
        Shell::Zsh => include_str!("completions/babysit.zsh"),
        Shell::Fish => include_str!("completions/babysit.fish"),
    })?;
    Ok(Exit::Done)
}
