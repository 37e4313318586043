//! The user's own sbatch options: those that babysit sets itself are refused, with the key to use
//! instead, and so is every form that could swallow what babysit adds after it.

use super::values::{Parsed, wrong};

/// Which lanes name what, since an option may not fight with a lane.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Laned {
    pub qos: bool,
    pub partition: bool,
    pub account: bool,
}

struct Owned {
    long: &'static str,
    short: Option<char>,
    instead: &'static str,
}

const fn owned(long: &'static str, short: Option<char>, instead: &'static str) -> Owned {
    Owned { long, short, instead }
}

const RESTARTS: &str = "babysit alone restarts shards, so Slurm must not";
const LOGS: &str = "use the key `logs` at the top";
const GPUS: &str = "use the key `gpus` (and `min_tier` for the model)";
const NAMED: &str = "babysit finds its jobs by name and comment; leave it out";
const HOLD: &str = "use `babysit hold SHARD`";
const NODE: &str =
    "babysit picks the node (policy section 6); use --exclude, --constraint or `min_tier`";
const ONE_JOB: &str = "one shard is one job; use the key `shards`";
const NO_JOB: &str = "sbatch would submit nothing; leave it out";

const OWNED: &[Owned] = &[
    owned("job-name", Some('J'), NAMED),
    owned("comment", None, NAMED),
    owned("parsable", None, "babysit reads sbatch's answer itself; leave it out"),
    owned("requeue", None, RESTARTS),
    owned("no-requeue", None, RESTARTS),
    owned("array", Some('a'), ONE_JOB),
    owned("output", Some('o'), LOGS),
    owned("error", Some('e'), LOGS),
    owned("open-mode", None, LOGS),
    owned("gres", None, GPUS),
    owned("gpus", Some('G'), GPUS),
    owned("gpus-per-node", None, GPUS),
    owned("gpus-per-task", None, GPUS),
    owned("gpus-per-socket", None, GPUS),
    owned("nice", None, "babysit orders its pending jobs by nice (policy section 3); leave it out"),
    owned("hold", Some('H'), HOLD),
    owned("wrap", None, "use the key `command`"),
    owned("export", None, "set variables in `command` or in the script"),
    owned("export-file", None, "set variables in `command` or in the script"),
    owned("chdir", Some('D'), "use the key `workdir`"),
    owned("test-only", None, NO_JOB),
    owned("help", Some('h'), NO_JOB),
    owned("usage", None, NO_JOB),
    owned("version", Some('V'), NO_JOB),
    owned("nodelist", Some('w'), NODE),
    owned("nodefile", Some('F'), NODE),
    owned("clusters", Some('M'), "babysit works on the one cluster that its Slurm commands reach"),
    owned("cluster", None, "babysit works on the one cluster that its Slurm commands reach"),
    owned("wait", Some('W'), "sbatch would not return before the job's end; leave it out"),
];

/// Options that sbatch gives the next argument to where they have no `=`: it would be ours.
const TAKES_VALUE: &[&str] = &[
    "account",
    "acctg-freq",
    "batch",
    "bb",
    "bbf",
    "begin",
    "constraint",
    "container",
    "core-spec",
    "cores-per-socket",
    "cpu-freq",
    "cpus-per-gpu",
    "cpus-per-task",
    "deadline",
    "delay-boot",
    "dependency",
    "distribution",
    "exclude",
    "extra-node-info",
    "gid",
    "gpu-bind",
    "gpu-freq",
    "gres-flags",
    "hint",
    "input",
    "kill-on-invalid-dep",
    "licenses",
    "mail-type",
    "mail-user",
    "mcs-label",
    "mem",
    "mem-bind",
    "mem-per-cpu",
    "mem-per-gpu",
    "mincpus",
    "network",
    "nodes",
    "ntasks",
    "ntasks-per-core",
    "ntasks-per-gpu",
    "ntasks-per-node",
    "ntasks-per-socket",
    "partition",
    "prefer",
    "priority",
    "profile",
    "qos",
    "reservation",
    "signal",
    "sockets-per-node",
    "switches",
    "thread-spec",
    "threads-per-core",
    "time",
    "time-min",
    "tmp",
    "tres-per-task",
    "uid",
    "wait-all-nodes",
    "wckey",
];

/// Short options without a value, which may be bundled: `-sv`.
const SHORT_FLAGS: &str = "OsQvk";

/// One element of `args`: one whole option.
pub(super) fn check(element: &str, laned: Laned) -> Parsed<String> {
    let fine = match element.strip_prefix("--") {
        Some(long) => check_long(element, long, laned),
        None => match element.strip_prefix('-') {
            Some(short) if !short.is_empty() => check_short(element, short, laned),
            _ => wrong(
                format!("{element:?} is not an option: sbatch would take it for the script"),
                "each element is one whole option, its value after `=`: \"--constraint=ib\"",
            ),
        },
    };
    fine.map(|()| element.to_owned())
}

fn check_long(element: &str, long: &str, laned: Laned) -> Parsed<()> {
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    if name.is_empty() {
        return wrong(
            format!("{element:?} is not an option"),
            "sbatch would take what follows for the script; leave it out",
        );
    }
    // sbatch takes an abbreviation for the whole, so the beginning of an owned option is refused.
    let begins = |option: &str| option == name || (name.len() >= 2 && option.starts_with(name));
    let exact = OWNED.iter().find(|o| o.long == name);
    let hit = exact.or_else(|| OWNED.iter().find(|o| begins(o.long)));
    if let Some(hit) = hit {
        return refuse(element, &format!("--{}", hit.long), hit.instead);
    }
    if name.starts_with("tres-per-") && value.is_some_and(|v| v.contains("gpu")) {
        return refuse(element, &format!("--{name}"), GPUS);
    }
    let whole = TAKES_VALUE.iter().find(|o| **o == name);
    let whole = whole.or_else(|| TAKES_VALUE.iter().find(|o| begins(o)));
    refuse_laned(element, whole.copied().unwrap_or(name), laned)?;
    if let (Some(whole), None) = (whole, value) {
        return needs_value(element, &format!("--{whole}=VALUE"));
    }
    Ok(())
}

fn check_short(element: &str, short: &str, laned: Laned) -> Parsed<()> {
    for (i, letter) in short.char_indices() {
        if let Some(hit) = OWNED.iter().find(|o| o.short == Some(letter)) {
            return refuse(element, &format!("-{letter} (--{})", hit.long), hit.instead);
        }
        if SHORT_FLAGS.contains(letter) {
            continue;
        }
        let long = match letter {
            'q' => "qos",
            'p' => "partition",
            'A' => "account",
            _ => "",
        };
        refuse_laned(element, long, laned)?;
        let glued = short.get(i + letter.len_utf8()..).is_some_and(|v| !v.is_empty());
        return if glued { Ok(()) } else { needs_value(element, &format!("-{letter}VALUE")) };
    }
    Ok(())
}

fn refuse_laned(element: &str, long: &str, laned: Laned) -> Parsed<()> {
    let in_lane = match long {
        "qos" => laned.qos,
        "partition" => laned.partition,
        "account" => laned.account,
        _ => false,
    };
    if in_lane {
        return refuse(
            element,
            &format!("--{long}"),
            &format!("the lanes set it: use `{long}` in [own] and [extra]"),
        );
    }
    Ok(())
}

fn refuse(element: &str, option: &str, instead: &str) -> Parsed<()> {
    wrong(format!("{element:?}: {option} is babysit's own"), instead)
}

fn needs_value(element: &str, form: &str) -> Parsed<()> {
    wrong(
        format!("{element:?} has no value: it would swallow the option after it"),
        format!("write it in one element, as \"{form}\""),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANED: Laned = Laned { qos: true, partition: false, account: false };

    #[test]
    fn the_users_own_options_pass() {
        for good in [
            "--constraint=ib",
            "-Cib",
            "--exclude=n1,n2",
            "-xn1",
            "--mem=64G",
            "--exclusive",
            "--dependency=afterok:1",
            "--partition=p",
            "-pgpu",
            "--no-kill",
            "-s",
            "-sv",
            "-N1",
            "--nodes=1",
            "--signal=USR1@60",
            "--ntasks=1",
            "--overcommit",
            "--wait-all-nodes=1",
        ] {
            assert_eq!(check(good, LANED), Ok(good.to_owned()));
        }
        assert!(check("--qos=x", Laned::default()).is_ok());
    }

    #[test]
    fn what_babysit_owns_or_could_be_swallowed_is_refused() {
        let bad = |element: &str, part: &str| {
            let all = check(element, LANED).expect_err(element);
            let message = format!("{}; {}", all[0].text, all[0].hint.clone().unwrap_or_default());
            assert!(message.contains(part), "{element}: {message}");
        };
        bad("--job-name=x", "babysit's own");
        bad("--job=x", "--job-name is babysit's own");
        bad("-Jx", "-J (--job-name)");
        bad("-vHx", "-H (--hold)");
        bad("-G2", "key `gpus`");
        bad("--gpus-per-node=2", "key `gpus`");
        bad("--gres=gpu:1", "key `gpus`");
        bad("--tres-per-task=gres/gpu:1", "key `gpus`");
        bad("--no-requeue", "alone restarts");
        bad("--output=x", "`logs`");
        bad("--chdir=/x", "`workdir`");
        bad("-w", "picks the node");
        bad("--wrap=true", "`command`");
        bad("--array=1-4", "`shards`");
        bad("--wait", "would not return");
        bad("--qos=x", "[own] and [extra]");
        bad("-qx", "[own] and [extra]");
        bad("--constraint", "no value");
        bad("--constr", "no value");
        bad("--qo=x", "[own] and [extra]");
        bad("-C", "-CVALUE");
        bad("ib", "for the script");
        bad("-", "for the script");
        bad("--", "is not an option");
    }
}
