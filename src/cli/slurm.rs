//! The real Slurm, made from shards.toml and the surroundings.

use crate::config::Surroundings;
use crate::model::policy::Policy;
use crate::planning::plan::{Action, Plan};
use crate::slurm::real::{Environment, RealSlurm};

pub fn real(policy: &Policy, s: &Surroundings, seed: u64) -> RealSlurm {
    RealSlurm::new(&policy.slurm, environment(s), seed)
}

/// The name that the accounting knows this user by.
pub fn user(s: &Surroundings) -> Option<&str> {
    s.var("USER").or_else(|| s.var("LOGNAME"))
}

/// What the programs that babysit starts take over from its own environment.
pub fn environment(s: &Surroundings) -> Environment {
    let var = |name: &str| s.var(name).map(str::to_owned);
    Environment {
        me: rustix::process::getuid().as_raw(),
        path: var("PATH"),
        home: var("HOME"),
        user: user(s).map(str::to_owned),
        shell: var("SHELL"),
        lang: var("LANG"),
        slurm_conf: var("SLURM_CONF"),
        extra: Vec::new(),
    }
}

/// The shell lines that each action of a plan stands for.
pub fn lines(slurm: &RealSlurm, plan: &Plan) -> Vec<Vec<String>> {
    let lines = |action: &Action| match action {
        Action::Submit(submit) => slurm.lines_for_submit(&submit.request),
        Action::Update { change, jobs, .. } => {
            slurm.lines_for_change(&jobs.iter().map(|j| j.job).collect::<Vec<_>>(), change)
        }
        Action::StopBackfill { command: Some(line), .. } => vec![line.clone()],
        Action::StopBackfill { jobs, command: None, .. } => slurm.lines_for_cancel(jobs),
        // No command line: babysit does it itself.
        Action::FreeRows(_) => Vec::new(),
        Action::Cancel { jobs, .. } => {
            slurm.lines_for_cancel(&jobs.iter().map(|j| j.job).collect::<Vec<_>>())
        }
    };
    plan.actions.iter().map(lines).collect()
}
