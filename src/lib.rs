//! babysit keeps resumable shards moving on a Slurm cluster, from a user's crontab.
//!
//! The layers and what each may use are in docs/architecture.md and held by tests/layers.rs.
#![forbid(unsafe_code)]

pub mod archive;
pub mod cli;
pub mod config;
pub mod engine;
pub mod model;
pub mod output;
pub mod planning;
pub mod progress;
pub mod sim;
pub mod slurm;
pub mod store;
pub mod study;
