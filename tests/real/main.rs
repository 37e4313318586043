//! Tests on a real Slurm (feature `real-slurm`; scripts/test starts one and sets BABYSIT_SANDBOX).
#![allow(clippy::disallowed_methods)] // tests start commands, write files and read their environment

mod adapter;
