//! SIGKILL at every moment: before and after each command that a tick starts.

use std::time::Duration;

use crate::one_job_each;
use crate::stand_in::*;

/// Kills at every moment in turn until a run gets through unharmed; then ticks go on, and `check`
/// looks at what came of it. Returns how many moments there were.
fn killed_everywhere(
    prepare: impl Fn(&Lab),
    arguments: &[&str],
    check: impl Fn(&Lab, usize),
) -> usize {
    for moment in 1..200 {
        let lab = Lab::new();
        prepare(&lab);
        lab.write("bin/die_at", &moment.to_string());
        let first = lab.run_at(arguments, START);
        let through = first.code.is_some();
        std::fs::remove_file(lab.at("bin/die_at")).expect("removed");
        for minute in 1..=10 {
            let said = lab.run_at(&["tick"], START + 60 * minute);
            assert_eq!(said.code, Some(0), "moment {moment}: {}{}", said.out, said.err);
        }
        check(&lab, moment);
        if through {
            return moment - 1;
        }
    }
    panic!("it never got through");
}

#[test]
fn fake_slurm_kills_a_submitting_tick_at_every_moment() {
    let moments = killed_everywhere(
        |_| {},
        &["tick"],
        |lab, moment| {
            let jobs = lab.jobs();
            assert_eq!(jobs.len(), 3, "moment {moment}: {jobs:?}");
            for (shard, ids) in jobs {
                assert_eq!(ids.len(), 1, "moment {moment}: {shard} has {ids:?}");
                let view = &lab.json(&["status", &shard], 0)["shards"][0];
                assert_eq!(view["job"]["id"].to_string(), ids[0], "moment {moment}");
                assert_eq!(view["failures"], 0);
            }
            // Each sbatch that did its work made a job: not one was made that had to be cancelled.
            assert_eq!(lab.asked_of_sbatch(), 3, "moment {moment}");
        },
    );
    // squeue and three sbatch, before and after each.
    assert!(moments >= 8, "only {moments} moments");
}

#[test]
fn fake_slurm_kills_a_cancelling_command_at_every_moment() {
    let prepare = |lab: &Lab| {
        lab.run(&["tick"], 0);
    };
    let moments = killed_everywhere(prepare, &["cancel", "find/s0"], |lab, moment| {
        let jobs = lab.jobs();
        assert_eq!(jobs.keys().map(String::as_str).collect::<Vec<_>>(), ["find/s1", "restore/s0"]);
        assert!(jobs.values().all(|ids| ids.len() == 1), "moment {moment}: {jobs:?}");
        let view = &lab.json(&["status", "find/s0"], 0)["shards"][0];
        assert_eq!(view["state"], "cancelled", "moment {moment}");
    });
    assert!(moments >= 2, "only {moments} moments");
}

/// A tick was killed after its first sbatch, whose job exists; the ticks that find it are killed too.
#[test]
fn fake_slurm_kills_a_tick_that_adopts_at_every_moment() {
    let prepare = |lab: &Lab| {
        // squeue before and after, sbatch before, and after.
        lab.write("bin/die_at", "4");
        assert_eq!(lab.run_at(&["tick"], START).code, None, "killed");
        assert_eq!(lab.asked_of_sbatch(), 1);
        std::fs::remove_file(lab.at("bin/moments")).expect("removed");
    };
    let moments = killed_everywhere(prepare, &["tick"], |lab, moment| {
        let jobs = lab.jobs();
        assert_eq!(jobs.len(), 3, "moment {moment}: {jobs:?}");
        assert!(jobs.values().all(|ids| ids.len() == 1), "moment {moment}: {jobs:?}");
        assert_eq!(lab.asked_of_sbatch(), 3, "moment {moment}: a second job was made");
    });
    assert!(moments >= 4, "only {moments} moments");
}

/// Pending jobs are moved to the other lane; whatever was cut, each stays one job, in its lane.
#[test]
fn fake_slurm_kills_a_moving_tick_at_every_moment() {
    let lanes = |park: u32| {
        format!("{TOML}[own]\nqos = \"own\"\ngpus = 1\npark = {park}\n[extra]\nqos = \"extra\"\n")
    };
    let prepare = |lab: &Lab| {
        lab.write("shards.toml", &lanes(2));
        lab.run(&["tick"], 0);
        lab.write("shards.toml", &lanes(0));
    };
    let moments = killed_everywhere(prepare, &["tick"], |lab, moment| {
        one_job_each(lab, 3, &format!("moment {moment}"));
        let jobs = lab.jobs();
        let moved =
            jobs.values().filter(|ids| lab.read(&format!("bin/qos.{}", ids[0])) == "extra\n");
        assert!(moved.count() >= 2, "moment {moment}: K is 0 now");
    });
    // squeue, scontrol, squeue again: before and after each.
    assert!(moments >= 6, "only {moments} moments");
}

/// sinfo runs beside squeue, so its moments are tried apart.
#[test]
fn fake_slurm_kills_a_tick_around_sinfo() {
    for script in [format!("kill -9 $PPID\n{SINFO}"), format!("{SINFO}kill -9 $PPID\n")] {
        let lab = Lab::new();
        lab.program("sinfo", &script);
        assert_eq!(lab.run_at(&["tick"], START).code, None, "killed");
        assert_eq!(lab.asked_of_sbatch(), 0, "nothing is asked before both probes answered");
        lab.program("sinfo", SINFO);
        // A squeue that was being started in that moment has the lock until it has begun.
        let free = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            lab.run_at(&["tick"], START).code == Some(0)
        });
        assert!(free, "the lock ends with the processes");
        one_job_each(&lab, 3, "");
    }
}
