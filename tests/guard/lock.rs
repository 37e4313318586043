//! Many at once, another host, and commands that hang while the lock is held.

use std::process::Stdio;
use std::time::Duration;

use babysit::model::observation::GapKind;
use babysit::model::policy::SlurmSettings;
use babysit::model::request::{Asked, Submitted};
use babysit::model::units::Secs;
use babysit::slurm::real::{Environment, RealSlurm};
use babysit::slurm::{Scope, Slurm};

use crate::common;
use crate::one_job_each;
use crate::stand_in::*;

#[test]
fn fake_slurm_of_fifty_ticks_at_once_one_acts() {
    let lab = Lab::new();
    let waiting = format!("while [ -f wait ]; do sleep 0.05; done\n{SQUEUE}");
    lab.program("squeue", &format!("{MOMENT}{waiting}"));
    lab.write("bin/wait", "");
    let start = |_| {
        let mut command = lab.command(&["tick"], START);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started")
    };
    let mut ticks: Vec<_> = (0..50).map(start).collect();
    let mut codes = Vec::new();
    // All but the one whose squeue hangs leave by themselves.
    while ticks.len() > 1 {
        ticks.retain_mut(|tick| match tick.try_wait().expect("a child") {
            Some(status) => {
                codes.push(status.code());
                false
            }
            None => true,
        });
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!((codes.len(), lab.asked_of_sbatch()), (49, 0));
    assert!(codes.iter().all(|code| *code == Some(75)), "{codes:?}");
    std::fs::remove_file(lab.at("bin/wait")).expect("removed");
    let last = ticks.remove(0).wait().expect("a child");
    assert_eq!((last.code(), lab.asked_of_sbatch()), (Some(0), 3));
}

#[test]
fn fake_slurm_another_host_takes_the_lock_in_the_middle_of_a_tick() {
    let lab = Lab::new();
    // The second host's flock succeeded, as its file system locks locally only: it signs.
    let sign = "echo 'pid 7 on otherhost (uid 0)' >../state.json.lock";
    lab.program("sbatch", &format!("{MOMENT}{SBATCH}{sign}"));
    let said = lab.run(&["tick"], 1);
    has(&said.err, "broken off");
    has(&said.err, "pid 7 on otherhost (uid 0)");
    has(&said.err, "babysit doctor");
    assert_eq!(lab.asked_of_sbatch(), 1, "nothing is asked after it");
    // What was done is known, what was not is done by the next one.
    lab.program("sbatch", &format!("{MOMENT}{SBATCH}"));
    lab.run(&["tick"], 0);
    one_job_each(&lab, 3, "");
}

#[test]
fn fake_slurm_another_host_saves_the_state_in_the_middle_of_a_tick() {
    let lab = Lab::new();
    let save = "cp ../state.json ../s && mv ../s ../state.json";
    lab.program("sbatch", &format!("{MOMENT}{SBATCH}{save}"));
    has(&lab.run(&["tick"], 1).err, "somebody else wrote it");
    assert_eq!(lab.asked_of_sbatch(), 1);
    lab.program("sbatch", &format!("{MOMENT}{SBATCH}"));
    for minute in 1..=8 {
        assert_eq!(lab.run_at(&["tick"], START + 60 * minute).code, Some(0));
    }
    one_job_each(&lab, 3, "");
}

/// The adapter itself on the commands of a lab, each of which may take so long.
fn slurm(lab: &Lab, timeout: Secs) -> RealSlurm {
    let bin_dir = Some(lab.at("bin"));
    let settings = SlurmSettings { bin_dir, timeout, ..SlurmSettings::default() };
    let environment = Environment { path: Some("/usr/bin:/bin".into()), ..Environment::default() };
    RealSlurm::new(&settings, environment, 1)
}

#[test]
fn fake_slurm_hung_commands_take_no_longer_than_the_budget() {
    let lab = Lab::new();
    lab.program("squeue", "sleep 3600");
    lab.program("sbatch", "echo x >>\"$(dirname \"$0\")/asked\"; sleep 3600");
    let mut slurm = slurm(&lab, Secs(3600)).with_budget(Duration::from_millis(300));
    let gap = slurm.look(Scope::Mine).expect_err("it hangs");
    assert_eq!(gap.kind, GapKind::TimedOut, "{gap}");
    // An hour's time limit is worth nothing now: nothing is started any more.
    let request = common::request(&lab.at("logs"));
    let Submitted::Refused(refusal) = slurm.submit(&request) else { panic!("it was asked") };
    has(&refusal.text, "tick_budget");
    assert_eq!(lab.asked_of_sbatch(), 0);
    has(&slurm.jobs(Scope::Mine).expect_err("no time").to_string(), "tick_budget");
}

/// `[backfill] stop` is a command of the user's: one that hangs is ended at its limit with all it
/// began, is told, and what comes after it in the cycle is done.
#[test]
fn fake_slurm_a_stop_command_that_hangs_is_ended_and_told() {
    let lab = Lab::new();
    let mut slurm = slurm(&lab, Secs(1));
    let mark = lab.at("went-on");
    let line = format!("(sleep 3; touch {}) & sleep 3600", mark.display());
    let Asked::Failed(text) = slurm.run(&line) else { panic!("it hangs") };
    has(&text.to_string(), "sleep 3600");
    let submitted = slurm.submit(&common::request(&lab.at("logs")));
    assert!(matches!(submitted, Submitted::Accepted { .. }), "{submitted:?}");
    std::thread::sleep(Duration::from_secs(4));
    assert!(!mark.exists(), "what the command began was ended with it");
}
