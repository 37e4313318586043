//! Commands of Slurm's that say what is not so, and those that refuse.

use crate::one_job_each;
use crate::stand_in::*;

/// squeue says success and not the truth, for some minutes; then it is well again.
#[test]
fn fake_slurm_a_queue_that_lies_makes_no_second_job() {
    let uid = "\"$(id -u)\" me";
    let twice = SQUEUE.replacen("done <jobs", "done <<END\n$(cat jobs jobs)\nEND", 1);
    // With the minutes that it goes on: for ever where that is no answer. An answer without our jobs is
    // one, and after five minutes it is true where the accounting knows nothing either.
    let lies = [
        ("nothing at all", 12, "exit 0".to_owned()),
        ("no header", 12, SQUEUE.replacen("row JOBID", "true JOBID", 1)),
        ("other columns", 12, SQUEUE.replacen("STATE QOS", "QOS STATE", 1)),
        ("torn", 12, SQUEUE.replacen("done <jobs", "done <jobs; printf 900", 1)),
        ("everything twice", 12, twice),
        ("a bare header", 4, SQUEUE.replace("done <jobs", "done </dev/null")),
        ("rows of somebody else", 4, SQUEUE.replacen(uid, "4242 eve", 1)),
    ];
    for (what, minutes, lie) in lies {
        assert_ne!(lie, SQUEUE, "{what}");
        let lab = Lab::new();
        lab.run(&["tick"], 0);
        let before = lab.jobs();
        lab.program("squeue", &format!("{MOMENT}{lie}"));
        for minute in 1..=minutes {
            let code = lab.run_at(&["tick"], START + 60 * minute).code;
            assert!(matches!(code, Some(0 | 75)), "{what}: {code:?}");
        }
        lab.run_at(&["reconcile"], START + 60 * minutes);
        lab.program("squeue", &format!("{MOMENT}{SQUEUE}"));
        for minute in 1..=3 {
            let now = START + 60 * (minutes + minute);
            assert_eq!(lab.run_at(&["tick"], now).code, Some(0), "{what}");
        }
        assert_eq!((lab.jobs(), lab.asked_of_sbatch()), (before, 3), "{what}");
        has(&lab.run_at(&["reconcile"], START + 780).out, "agree");
    }
}

/// sbatch prints a number behind its id that is somebody else's job, or none; scancel says that it did
/// what it did not do.
#[test]
fn fake_slurm_changes_that_lie_are_believed_by_the_queue_alone() {
    let lab = Lab::new();
    lab.program(
        "sbatch",
        &format!("{MOMENT}{}", SBATCH.replace("echo \"$id\"", "echo \"$id\"; echo 7")),
    );
    for minute in 0..=2 {
        assert_eq!(lab.run_at(&["tick"], START + 60 * minute).code, Some(0));
    }
    one_job_each(&lab, 3, "");
    let jobs = lab.jobs();
    assert_eq!(lab.asked_of_sbatch(), 3);
    for (shard, ids) in &jobs {
        assert_eq!(lab.json(&["status", shard], 0)["shards"][0]["job"]["id"].to_string(), ids[0]);
    }
    lab.program("scancel", &format!("{MOMENT}exit 0"));
    lab.run_at(&["cancel", "find/s0"], START + 540);
    lab.run_at(&["tick"], START + 600);
    assert_eq!(lab.jobs(), jobs);
    lab.program("scancel", &format!("{MOMENT}{SCANCEL}"));
    lab.run_at(&["tick"], START + 660);
    lab.run_at(&["tick"], START + 720);
    assert!(!lab.jobs().contains_key("find/s0"));
    assert_eq!(lab.asked_of_sbatch(), 3);
}

#[test]
fn fake_slurm_refused_family_is_told_and_retry_tries_it_again() {
    let lab = Lab::new();
    lab.write("shards.toml", &TOML.replace("shards = 2", "shards = 6"));
    let refuse = "case \"$n\" in *.find.*) echo 'sbatch: error: Invalid qos specification' >&2; \
                  exit 1;; esac";
    let sbatch = SBATCH.replacen("id=", &format!("{refuse}\nid="), 1);
    lab.program("sbatch", &format!("{MOMENT}{sbatch}"));
    has(&lab.run(&["tick"], 0).out, "family find: 3 submissions refused in a row");
    assert_eq!(lab.asked_of_sbatch(), 4, "three of find, and restore");
    let status = lab.run(&["status", "--check"], 3).out;
    has(&status, "babysit retry find");
    has(&lab.run(&["why", "find/s5"], 0).out, "Slurm refused 3 submissions of its family in a row");
    lab.run(&["tick"], 0);
    assert_eq!(lab.asked_of_sbatch(), 4);

    lab.program("sbatch", &format!("{MOMENT}{SBATCH}"));
    has(&lab.run(&["retry", "find"], 0).out, "find/s5 is tried again, with its family");
    lab.run(&["tick"], 0);
    assert_eq!(lab.asked_of_sbatch(), 10);
    lab.run(&["status", "--check"], 0);
}
