//! cron's poverty, and a Slurm that is not there.

use std::path::Path;

use crate::lab::{Family, LANES, Lab, ids};
use crate::slurm::{self, stderr, stdout};

fn one_shard(lab: &Lab) {
    lab.shards_toml(&[LANES, &Family { rows: 1, ..Family::default() }.toml()]);
}

both! {
    /// Nothing in the environment but what cron gives, and no `bin_dir`: Slurm's commands are found,
    /// and the job has a user's environment, not cron's.
    fn from_cron(lab) {
        lab.slurm = "bin_dir = \"/usr/bin\"\n".to_owned();
        let toml = Family { rows: 1, more: "", ..Family::default() }.toml();
        let toml = toml.replace("bash rows.sh", "env > env.txt; bash rows.sh");
        lab.shards_toml(&[&toml]);
        let text = lab.read("shards.toml").replace("bin_dir = \"/usr/bin\"\n", "");
        lab.write("shards.toml", &text);
        // What would empty every answer, and what an enclosing job would leave behind.
        let conf = format!("SLURM_CONF={}", slurm::conf());
        let variables = [conf.as_str(), "SQUEUE_STATES=TIMEOUT", "SLURM_TIME_FORMAT=relative", "SBATCH_QOS=nosuch", "SLURM_CLUSTERS=nosuch", "PATH=relative"];
        let tick = || {
            let output = lab.command_with(&variables, &["tick"]).output().expect("it starts");
            assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
        };
        tick();
        slurm::wait_until("its end", || lab.queue().iter().any(|job| job.state == "COMPLETED"));
        tick();
        assert!(lab.status().all_done());
        lab.prove(&ids("find/s0"), 1);
        let env = lab.read("env.txt");
        let of_job = |name: &str| env.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        assert_eq!(of_job("BABYSIT_SHARD="), Some("BABYSIT_SHARD=s0".to_owned()));
        assert_eq!(of_job("BABYSIT_ROWS="), Some("BABYSIT_ROWS=1".to_owned()));
        assert_eq!((of_job("SQUEUE_STATES="), of_job("SLURM_TIME_FORMAT=")), (None, None));
        assert_eq!(of_job("USER="), Some(format!("USER={}", lab.user)));
    }

    /// Each way in which there is no Slurm to talk to: a clear sentence, 75, nothing submitted, and the
    /// state is there for the next tick.
    fn no_slurm(lab) {
        one_shard(lab);
        lab.slurm = "bin_dir = \"/nowhere\"\n".to_owned();
        one_shard(lab);
        let (code, said) = lab.tick_anyhow();
        assert_eq!(code, 75, "{said}");
        assert!(said.contains("no program s") && said.contains("bin_dir"), "{said}");

        // Without SLURM_CONF and without /etc/slurm, Slurm's own message is passed on.
        lab.slurm = "timeout = \"20s\"\n".to_owned();
        one_shard(lab);
        if !Path::new("/etc/slurm/slurm.conf").exists() {
            let output = lab.command_with(&[], &["tick"]).output().expect("it starts");
            assert_eq!(output.status.code(), Some(75));
            assert_eq!(lab.status().0["last_tick"]["skipped_in_a_row"], 2);
            let reason = lab.status().0["last_tick"]["reason"].to_string();
            assert!(reason.contains("exit code 1") && reason.contains("squeue"), "{reason}");
        }
        assert_eq!(lab.queue(), []);
        lab.tick_until("done", |status| status.all_done());
        lab.prove(&ids("find/s0"), 1);
    }

    /// A state that is no state: nothing is decided. The probes, which change nothing, are under way
    /// while it is read.
    fn a_state_that_cannot_be(lab) {
        one_shard(lab);
        lab.write("state.json", "{ \"version\": 99 }");
        let (code, said) = lab.tick_anyhow();
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("state.json") && said.contains("99"), "{said}");
        lab.write("state.json", "");
        assert_eq!(lab.tick_anyhow().0, 1);
        let probe = |name: &str| name == "squeue" || name == "sinfo";
        assert!(lab.calls().iter().all(|(name, _)| probe(name)), "{:?}", lab.calls());
        assert_eq!(lab.queue(), []);
        assert_eq!(lab.read("state.json"), "", "and it is left for a person to look at");
    }

    /// The state was lost while jobs live: they are not submitted a second time.
    fn a_state_that_was_lost(lab) {
        lab.shards_toml(&[LANES, &Family { shards: 2, ..Family::default() }.toml()]);
        ids("find/s0 find/s1").iter().for_each(|shard| lab.pause(shard));
        lab.tick();
        lab.wait_running(2);
        let kept = lab.read("state.json");
        for file in ["state.json", "state.json.bak"] {
            if lab.path(file).exists() {
                lab.remove(file);
            }
        }
        let (code, said) = lab.tick_anyhow();
        assert_eq!(code, 1, "{said}");
        assert_eq!(lab.queue().len(), 2);
        lab.write("state.json", &kept);
        lab.tick();
        assert_eq!(lab.queue().len(), 2);
        ids("find/s0 find/s1").iter().for_each(|shard| lab.go_on(shard));
        lab.tick_until("all done", |status| status.all_done());
        lab.prove(&ids("find/s0 find/s1"), 4);
    }
}
