//! `babysit doctor`, also under cron's few variables.

use crate::stand_in::*;

#[test]
fn fake_slurm_doctor_says_what_cron_needs() {
    let lab = Lab::new();
    lab.program("sacctmgr", "exit 0");
    let mut command = lab.command(&["doctor"], START);
    command.env_remove("BABYSIT_NOW").env("SLURM_CONF", "/lab/slurm.conf");
    let said = said(command.output().expect("it ran"));
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    for part in ["slurm-wlm 24.11.5", "locking works", "1 nodes", "SLURM_CONF=/lab/slurm.conf"] {
        has(&said.out, part);
    }
    let config = lab.dir.path().canonicalize().expect("a path").join("shards.toml");
    has(&said.out, &format!("--config {}", config.display()));
    has(&said.out, "* * * * * env SLURM_CONF=/lab/slurm.conf /");
    let left: Vec<_> = std::fs::read_dir(lab.dir.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("trial") || name.starts_with("state"))
        .collect();
    assert_eq!(left, [""; 0], "it leaves nothing behind");
}

#[test]
fn fake_slurm_doctor_under_cron_names_the_variable_that_is_missing() {
    let lab = Lab::new();
    let poor = "squeue: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host";
    lab.program("squeue", &format!("echo '{poor}' >&2; exit 1"));
    let said = lab.run(&["doctor"], 1);
    has(&said.out, "put it into the crontab as SLURM_CONF=");
    lab.program("squeue", "");
    std::fs::remove_file(lab.at("bin/squeue")).expect("removed");
    has(&lab.run(&["doctor"], 1).out, "PATH=/usr/bin:/bin:THAT");
    let json = lab.json(&["doctor"], 1);
    assert_eq!((&json["schema"], &json["health"]), (&"babysit/doctor/v1".into(), &"broken".into()));
}

#[test]
fn fake_slurm_doctor_sees_a_clock_that_is_off_and_a_bad_state() {
    let lab = Lab::new();
    // BABYSIT_NOW is years away from the stand-in's clock.
    has(&lab.run(&["doctor"], 3).out, "between the controller and this host");
    lab.write("state.json", "{ torn");
    has(&lab.run(&["doctor"], 1).out, "babysit reconcile");
}
