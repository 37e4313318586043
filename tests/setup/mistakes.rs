//! What a newcomer gets wrong, with only the README at hand: each message holds the fix, so that one step
//! is enough.

use crate::lab::{Lab, SINFO, TOML, has};

/// What was done wrong to a campaign that is right.
type Slip = fn(&Lab);

struct Mistake {
    name: &'static str,
    slip: Slip,
    command: &'static [&'static str],
    code: i32,
    /// Parts of the message: what is wrong and what to do.
    says: &'static [&'static str],
}

fn nothing(_: &Lab) {}

fn edit(lab: &Lab, from: &str, to: &str) {
    let text = lab.read("shards.toml");
    assert!(text.contains(from), "{from}");
    lab.write("shards.toml", &text.replacen(from, to, 1));
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "no shards.toml, or in the wrong folder",
        slip: |lab| std::fs::remove_file(lab.at("shards.toml")).expect("there"),
        command: &["status"],
        code: 2,
        says: &[
            "no shards.toml in",
            "cd to the project",
            "--config PATH",
            "`babysit init` writes one",
        ],
    },
    Mistake {
        name: "the folder instead of the file",
        slip: nothing,
        command: &["status", "--config", "."],
        code: 2,
        says: &["which is a folder", "name the file: ", "shards.toml"],
    },
    Mistake {
        name: "the command line of init was not filled in",
        slip: |lab| edit(lab, "command = \"true\"", "command = \"\""),
        command: &["tick"],
        code: 2,
        says: &["shards.toml:8: families.find.command: is empty; fill it in"],
    },
    Mistake {
        name: "a slip in a key",
        slip: |lab| edit(lab, "row_time", "row_tme"),
        command: &["tick"],
        code: 2,
        says: &["shards.toml:10: families.find.row_tme: unknown key; did you mean \"row_time\"?"],
    },
    Mistake {
        name: "a slip in a family's name",
        slip: nothing,
        command: &["hold", "fnd"],
        code: 2,
        says: &["no shard is called `fnd`", "did you mean `find`?"],
    },
    Mistake {
        name: "a family where one shard is wanted",
        slip: nothing,
        command: &["why", "restore/s7"],
        code: 2,
        says: &["did you mean `restore/s0`?"],
    },
    Mistake {
        name: "a pattern that matches none of the files",
        slip: |lab| {
            std::fs::create_dir_all(lab.at("runs/find/s0")).expect("a folder");
            lab.write("runs/find/s0/row-1.json", "{}");
        },
        command: &["check"],
        code: 0,
        says: &[
            "shards.toml:11: families.find.done: no file matches",
            "1 file is there, such as row-1.json; correct the pattern",
        ],
    },
    Mistake {
        name: "all shards count the same rows",
        slip: |lab| edit(lab, "runs/find/{shard}/row", "runs/find/row"),
        command: &["check"],
        code: 2,
        says: &["holds neither {shard} nor {index}", "put {shard} in the path"],
    },
    Mistake {
        name: "no squeue on PATH",
        slip: |lab| std::fs::remove_file(lab.at("bin/squeue")).expect("there"),
        command: &["tick"],
        code: 75,
        says: &["no program squeue in", "correct `bin_dir` under [slurm] in shards.toml"],
    },
    Mistake {
        name: "a QOS that one may not use",
        slip: |lab| {
            edit(
                lab,
                "[families.find]",
                "[own]\nqos = \"own\"\ngpus = 4\n[extra]\nqos = \"extra\"\n[families.find]",
            );
            lab.program(
                "sacctmgr",
                "case \"$*\" in *assoc*) printf 'QOS\\nextra,normal\\n';; \
                 *) printf 'Name|GrpTRES\\nown|gres/gpu=4\\nextra|\\n';; esac",
            );
        },
        command: &["check"],
        code: 3,
        says: &["[own]: QOS `own` is none that you may use; yours are: extra, normal"],
    },
    Mistake {
        name: "sbatch refuses",
        slip: |lab| {
            lab.program(
                "sbatch",
                "cat >/dev/null; echo 'sbatch: error: Invalid account' >&2; exit 1",
            );
            lab.run(&["tick"], 0);
        },
        command: &["status", "--check"],
        code: 3,
        says: &["Slurm refuses this job: sbatch: error: Invalid account", "babysit retry find/s0"],
    },
    Mistake {
        name: "a cap that is spent already",
        slip: |lab| {
            std::fs::create_dir_all(lab.at("runs/find/s0")).expect("a folder");
            lab.write("runs/find/s0/row_1.json", "{}");
            lab.write("runs/find/s0.jsonl", "{\"cost_usd\": 20}\n");
            lab.run(&["tick"], 0);
        },
        command: &["status", "find", "--check"],
        code: 3,
        says: &["Its cost cap is reached: $20 of $15", "babysit cap set find/s0 "],
    },
    Mistake {
        name: "an amount with words",
        slip: nothing,
        command: &["cap", "set", "find", "25 dollars"],
        code: 2,
        says: &["`25 dollars` is no cap", "write an amount of dollars above 0, such as 40"],
    },
    Mistake {
        name: "a cap below nothing",
        slip: nothing,
        command: &["cap", "set", "find", "-5"],
        code: 2,
        says: &["`-5` is no cap", "write an amount of dollars above 0"],
    },
    Mistake {
        name: "a cap without `set`",
        slip: nothing,
        command: &["cap", "find", "40"],
        code: 2,
        says: &["a similar subcommand exists: 'set find'"],
    },
    Mistake {
        name: "a shard without its family",
        slip: nothing,
        command: &["why", "s1"],
        code: 2,
        says: &["no shard is called `s1`", "did you mean `find/s1`?"],
    },
    Mistake {
        name: "a partition that is none",
        slip: |lab| edit(lab, "bin_dir = \"bin\"", "bin_dir = \"bin\"\npartition = \"gpus\""),
        command: &["check"],
        code: 3,
        says: &["[slurm]: there is no partition `gpus`; did you mean `gpu`?"],
    },
    Mistake {
        name: "a word of another tool",
        slip: nothing,
        command: &["submit"],
        code: 2,
        says: &["a similar subcommand exists: 'tick'"],
    },
    Mistake {
        name: "a second tick while one runs",
        slip: |lab| {
            // The inner one meets the lock of the outer one, and says so into a file.
            let program = assert_cmd::cargo::cargo_bin("babysit");
            let folder = lab.dir.path().display().to_string();
            let inner =
                format!("(cd {folder} && {} tick -v) >{folder}/second 2>&1", program.display());
            lab.program("sinfo", &format!("[ -f {folder}/second ] || {inner}\n{SINFO}"));
            lab.run(&["tick"], 0);
        },
        command: &["completions", "bash"],
        code: 0,
        says: &[],
    },
    Mistake {
        name: "no command",
        slip: nothing,
        command: &[],
        code: 2,
        says: &["babysit init", "babysit tick --dry-run", "babysit cron --install"],
    },
    Mistake {
        name: "a command that is none",
        slip: nothing,
        command: &["statsu"],
        code: 2,
        says: &["a similar subcommand exists: 'status'"],
    },
    Mistake {
        name: "a flag that is none",
        slip: nothing,
        command: &["tick", "--dryrun"],
        code: 2,
        says: &["a similar argument exists: '--dry-run'"],
    },
    Mistake {
        name: "a length of time in words",
        slip: |lab| edit(lab, "\"15m\"", "\"15 minutes\""),
        command: &["check"],
        code: 2,
        says: &["\"15 minutes\" is not a length of time; write it like \"30s\", \"15m\""],
    },
    Mistake {
        name: "a time limit that Slurm does not read",
        slip: |lab| edit(lab, "shards = 2", "shards = 2\ntime = \"2 days\""),
        command: &["check"],
        code: 2,
        says: &["write days-hours:minutes:seconds, like \"2-00:00:00\""],
    },
    Mistake {
        name: "a rhythm that is none",
        slip: nothing,
        command: &["loop", "--every", "1min30"],
        code: 2,
        says: &["write it as 60s, 5m or 1h"],
    },
];

#[test]
fn each_mistake_is_one_step_from_its_fix() {
    for Mistake { name, slip, command, code, says } in MISTAKES {
        let lab = Lab::new();
        assert_eq!(lab.read("shards.toml"), TOML);
        slip(&lab);
        let said = lab.run(command, *code);
        let text = said.out + &said.err;
        for part in *says {
            assert!(text.contains(part), "{name}: {part:?} is not in:\n{text}");
        }
    }
}

#[test]
fn fake_slurm_a_second_tick_says_who_is_at_work() {
    let lab = Lab::new();
    let second = MISTAKES.iter().find(|m| m.name.starts_with("a second tick")).expect("above");
    (second.slip)(&lab);
    let said = lab.read("second");
    has(&said, "another babysit is at work on this state: ");
    has(&said, "pid ");
    assert_eq!(lab.asked_of_sbatch(), 3, "each shard once");
}

#[test]
fn fake_slurm_a_family_renamed_while_its_jobs_run_is_told_by_check() {
    let lab = Lab::new();
    lab.run(&["tick"], 0);
    edit(&lab, "[families.restore]", "[families.rebuild]");
    let said = lab.run(&["check"], 0).out;
    has(
        &said,
        "warning: restore/s0 is not in shards.toml any more, but its job 101 is still in Slurm",
    );
    has(&said, "`scancel 101`, before the next tick");
}
