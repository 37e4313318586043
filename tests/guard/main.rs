//! Exactly once, whatever breaks: the real program against a stand-in for Slurm of a few lines of
//! shell (`fake_slurm_*`) that keeps its jobs in a file, kills the babysit that asked it, fills
//! disks, hangs, or plays another host.
#![allow(clippy::disallowed_methods, reason = "a test plays the hand that breaks things")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/stand_in.rs"]
mod stand_in;

mod answers;
mod disk;
mod doctor;
mod hostile;
mod killed;
mod lock;
mod reconcile;

use stand_in::Lab;

/// So many shards have a job, and each just one.
fn one_job_each(lab: &Lab, shards: usize, when: &str) {
    let jobs = lab.jobs();
    let one_each = jobs.values().all(|ids| ids.len() == 1);
    assert!(jobs.len() == shards && one_each, "{when}: {jobs:?}");
}

/// State, backup, journal and lock are gone.
fn lose_state(lab: &Lab) {
    for file in ["state.json", "state.json.bak", "journal.jsonl", "state.json.lock"] {
        if lab.at(file).exists() {
            std::fs::remove_file(lab.at(file)).expect("removed");
        }
    }
}
