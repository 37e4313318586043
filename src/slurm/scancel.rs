//! scancel: by id, of jobs that were proved to be ours. Never by name or user.
//!
//! A finished or unknown job is silence and exit code 0.

use crate::model::id::JobId;

/// Arguments for at most [`super::scontrol::MOST_JOBS`] jobs.
pub fn argv(jobs: &[JobId]) -> Vec<String> {
    jobs.iter().map(JobId::to_string).collect()
}
