//! `babysit init`: the first shards.toml, on a cluster, on a bare machine, and where one is already.

use babysit::config;

use crate::lab::{Lab, SINFO, has};

const SACCTMGR: &str = r#"
case "$*" in
  *name=own*) printf 'Name|GrpTRES\nown|gres/gpu=8\n' ;;
  *name=extra*) printf 'Name|GrpTRES\nextra|\n' ;;
  *"show qos"*)
    echo 'Name|GrpTRES|MaxTRESPU|Preempt'
    echo 'normal|||'
    echo 'own|gres/gpu=8||extra'
    echo 'extra|||'
    echo 'secret|gres/gpu=64||extra' ;;
  *format=QOS*) echo QOS; echo extra,normal,own ;;
  *format=Account*) echo Account; echo lab; echo side ;;
esac
"#;

impl Lab {
    /// A folder without shards.toml, and a Slurm that is on PATH.
    fn bare(nodes: &str) -> Lab {
        let lab = Lab::new();
        std::fs::remove_file(lab.at("shards.toml")).expect("it was there");
        lab.program("sacctmgr", SACCTMGR);
        let row = "row x1 gpu idle gpu:rtx4090:4 'gpu:rtx4090:0(IDX:N/A)' 0/16/0/16 64000 0\n";
        let star = "case \"$*\" in *%P*) printf 'cpu*\\ngpu\\n'; exit;; esac\n";
        lab.program("sinfo", &format!("{star}{}", SINFO.replace(row, nodes)));
        lab
    }

    fn init(&self, words: &[&str], code: i32) -> (String, String) {
        let path = format!("{}:/usr/bin:/bin", self.at("bin").display());
        let words = [&["init"], words].concat();
        let output = self.command(&words).env("PATH", path).output().expect("it ran");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{out}{err}");
        (out, err)
    }

    fn fill_in_the_command(&self) {
        let text = self.read("shards.toml");
        assert_eq!(text.matches("command = \"\"").count(), 1, "{text}");
        self.write("shards.toml", &text.replace("command = \"\"", "command = \"true {shard}\""));
    }
}

/// A node with two models, one of the other partition, one that nobody has heard of.
const NODES: &str = "\
row x1 gpu idle gpu:nvidia_a100-sxm4-80gb:4 'gpu:nvidia_a100-sxm4-80gb:0(IDX:N/A)' 0/16/0/16 64000 0
row x2 gpu idle gpu:rtx4090:4,gpu:rtx_3080_ti:2 'gpu:rtx4090:0(IDX:N/A),gpu:rtx_3080_ti:0(IDX:N/A)' 0/16/0/16 64000 0
row x3 new idle gpu:xpu.9:2 'gpu:xpu.9:0(IDX:N/A)' 0/16/0/16 64000 0
row x4 cpu idle '(null)' 'gpu:0' 0/16/0/16 64000 0
";

#[test]
fn fake_slurm_the_first_file_knows_the_cluster_and_passes_check() {
    let lab = Lab::bare(NODES);
    let (out, err) = lab.init(&[], 0);
    assert_eq!(err, "");
    has(&out, "GPU models rtx_3080_ti, rtx4090, nvidia_a100-sxm4-80gb, xpu.9 (to be ranked)");
    has(&out, "lanes own and extra");
    has(&out, "next: fill in `command`");
    let text = lab.read("shards.toml");
    has(&text, "partition = \"gpu\"    # the default one, cpu, has no GPUs");
    has(&text, "# account = \"side\"");
    has(&text, "# QOS here: normal; own (8 GPUs, preempts extra); extra.");
    assert!(!text.contains("secret"), "a QOS that this user may not use:\n{text}");
    has(&text, "# [tiers.xpu-9]    # 2 GPUs on 1 node");
    has(&text, "# gres = [\"xpu.9\"]");

    // The only fault is the command line, told with its line.
    let line = text.lines().position(|line| line.starts_with("command = ")).expect("a line") + 1;
    has(
        &lab.run(&["check"], 2).err,
        &format!("shards.toml:{line}: families.work.command: is empty"),
    );
    lab.fill_in_the_command();
    let loaded = config::load(&lab.at("shards.toml")).expect("no fault");
    let tiers: Vec<(&str, f64)> =
        loaded.policy.tiers.iter().map(|t| (t.name.as_str(), t.tflops.as_f64())).collect();
    assert_eq!(
        tiers,
        [("rtx_3080_ti", 68.2), ("rtx4090", 165.2), ("nvidia_a100-sxm4-80gb", 312.0)]
    );
    let bin = loaded.policy.slurm.bin_dir.as_deref();
    assert_eq!(bin, Some(lab.at("bin").as_path()), "cron would not find it");
    let said = lab.run(&["check"], 0).out;
    has(&said, "fine (4 shards, 40 rows)");
    has(&said, "GPU model `xpu.9` is in no tier");
    lab.run(&["tick", "--dry-run"], 0);

    // With the questions of the comments answered it is right, too.
    let asked = "# [tiers.xpu-9]    # 2 GPUs on 1 node\n# rank =\n# tflops =\n# gres = [\"xpu.9\"]\n# partition = \"new\"\n";
    has(&text, asked);
    let answer =
        "[tiers.xpu-9]\nrank = 4\ntflops = 1000\ngres = [\"xpu.9\"]\npartition = \"new\"\n";
    lab.write("shards.toml", &lab.read("shards.toml").replace(asked, answer));
    let said = lab.run(&["check"], 0).out;
    assert!(!said.contains("is in no tier"), "{said}");

    // And it can be seen what the better preset would save, then taken.
    has(&text, "babysit simulate --compare field,best");
    let line = lab.run(&["simulate", "--seeds", "2", "--compare", "field,best"], 0).out;
    assert!(line.starts_with("best instead of field: "), "{line}");
    let (asked, answer) = ("# [policy]\n# preset = \"best\"\n", "[policy]\npreset = \"best\"\n");
    has(&text, asked);
    lab.write("shards.toml", &lab.read("shards.toml").replace(asked, answer));
    lab.run(&["check"], 0);
}

#[test]
fn fake_slurm_a_file_that_is_there_is_only_replaced_by_force_and_then_kept() {
    let lab = Lab::bare(NODES);
    lab.write("shards.toml", "mine\n");
    let (_, err) = lab.init(&[], 2);
    has(&err, "babysit init --force");
    assert_eq!(lab.read("shards.toml"), "mine\n");
    let (out, _) = lab.init(&["--force"], 0);
    has(&out, "shards.toml.old");
    assert_eq!(lab.read("shards.toml.old"), "mine\n");
    let first = lab.read("shards.toml");
    lab.init(&["--force"], 0);
    assert_eq!(
        (lab.read("shards.toml.old"), lab.read("shards.toml.old2")),
        ("mine\n".into(), first)
    );
    assert!(!lab.at("shards.toml.tmp").exists());
    lab.init(&["--config", "other.toml"], 0);
    lab.init(&["--config", "nowhere/other.toml"], 1);
}

#[test]
fn fake_slurm_what_could_not_be_learned_is_said() {
    let lab = Lab::bare(NODES);
    lab.program("sacctmgr", "echo 'sacctmgr: error: Problem talking to the database' >&2; exit 1");
    let (out, _) = lab.init(&[], 0);
    has(&out, "not learned: QOS, which of them you may use, your accounts: exit code 1: sacctmgr");
    has(&out, "no lanes");
    lab.fill_in_the_command();
    lab.run(&["check"], 0);

    // No GPU has a model: tiers could not tell them apart.
    let lab = Lab::bare("row x1 cpu idle gpu:4 'gpu:0(IDX:N/A)' 0/16/0/16 64000 0\n");
    has(&lab.init(&[], 0).0, "no GPU models");
    has(&lab.read("shards.toml"), "Slurm names no model for 4 GPUs");
    lab.fill_in_the_command();
    lab.run(&["check"], 0);
}

#[test]
fn without_slurm_there_is_a_file_to_begin_with() {
    let lab = Lab::bare("");
    let name = "größe 1.d";
    std::fs::create_dir(lab.at(name)).expect("a folder");
    let output = lab.command(&["init", "--json"]).current_dir(lab.at(name)).output().expect("ran");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((output.status.code(), &said["schema"]), (Some(0), &"babysit/init/v1".into()));
    assert!(said["not_learned"].as_array().is_some_and(|gaps| !gaps.is_empty()), "{said}");
    let text = lab.read(&format!("{name}/shards.toml"));
    has(&text, "project = \"gr--e-1.d\"");
    has(&text, "# Not learned: GPU models");
    let text = text.replace("command = \"\"", "command = \"true {shard}\"");
    lab.write("shards.toml", &text);
    config::load(&lab.at("shards.toml")).expect("no fault");
}
