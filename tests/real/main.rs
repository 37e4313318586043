//! Tests on a real Slurm (feature `real-slurm`; scripts/test starts one and sets BABYSIT_SANDBOX).
//!
//! Each runs as root and as an ordinary user, and begins on a cluster without jobs or faults.
#![allow(clippy::disallowed_methods)] // tests start commands, write files and read their environment

#[macro_use]
mod lab;
mod slurm;
mod view;

mod adapter;
mod campaign;
mod field;
mod flaky;
mod init;
mod lanes;
mod no_accounting;
mod person;
mod pilots;
mod placed;
mod split;
mod surroundings;
mod tutorial;
