//! `babysit init` on a real Slurm: the file it writes needs its command line only.

use crate::slurm;

both! {
    fn the_first_file(lab) {
        let conf = format!("SLURM_CONF={}", slurm::conf());
        let user = format!("USER={}", lab.user);
        let output = lab.command_with(&[&conf, &user], &["init"]).output().expect("it starts");
        let said = slurm::stdout(&output);
        assert!(output.status.success(), "{said}{}", slurm::stderr(&output));
        assert!(said.contains("GPU models rtx3080ti, rtx4090, rtx5090; lanes own and extra"), "{said}");
        assert!(!said.contains("not learned"), "{said}");
        let text = lab.read("shards.toml");
        assert!(text.contains("own (4 GPUs, preempts extra)"), "{text}");
        let text = text.replace("command = \"\"", "command = \"bash rows.sh runs/{shard} 0.1\"");
        let text = text.replace("rows = 10", "rows = 2").replace("shards = 4", "shards = 2");
        let text = text.replacen("\n# state", "\nstate = \"state.json\"\n# state", 1);
        lab.write("shards.toml", &text);
        lab.done(&["check"]);
        lab.tick_until("done", |status| status.all_done());
    }
}
