//! What a lab does before its first tick and after its last: the crontab line, a first shards.toml,
//! completions, the archive, and what a newcomer gets wrong. Slurm is a stand-in of a few lines of shell.
#![allow(clippy::disallowed_methods, reason = "a test makes the files that a user would make")]

#[path = "../common/lab.rs"]
mod lab;

mod archive;
mod complete;
mod cron;
mod help;
mod init;
mod install;
mod mistakes;
mod upgrade;
