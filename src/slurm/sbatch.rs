//! sbatch: what one submission is asked with.

mod answer;

use std::path::Path;

use crate::model::pilot::Pilot;
use crate::model::policy::Launch;
use crate::model::request::Request;

use super::command::render;
use super::hostlist;

pub use answer::parse;
pub(super) use answer::parse_dry;

/// Arguments. The user's own come last, so that they win; but who the job is (name, comment) and who
/// restarts it must stay ours, which the configuration sees to.
pub fn argv(request: &Request) -> Result<Vec<String>, String> {
    let mut argv: Vec<String> = [
        "--parsable",
        // One party restarts jobs, and it is babysit (policy.md section 3).
        "--no-requeue",
        "--export=ALL",
        "--open-mode=append",
    ]
    .map(str::to_owned)
    .to_vec();
    argv.push(format!("--job-name={}", request.token.name));
    argv.push(format!("--comment={}", request.token.comment));
    // A percent sign of the user's own must not become a field of Slurm's.
    let logs = text(&request.log_dir)?.replace('%', "%%");
    argv.push(format!("--output={}/%j.out", logs.trim_end_matches('/')));
    argv.push(format!("--chdir={}", text(&request.workdir)?));
    let mut option = |name: &str, value: Option<&str>| {
        argv.extend(value.map(|value| format!("--{name}={value}")));
    };
    option("qos", request.qos.as_deref());
    option("partition", request.partition.as_deref());
    option("account", request.account.as_deref());
    option("gres", Some(&request.gres));
    option("cpus-per-task", request.cpus.map(|n| n.to_string()).as_deref());
    option("mem", request.mem.as_deref());
    option("time", request.time.as_deref());
    option("nodelist", request.node.as_deref());
    // A user may only lower his priority; and 0 is what a job has by itself.
    let nice = (request.nice > 0).then(|| request.nice.to_string());
    option("nice", nice.as_deref());
    let (excluded, args) = split_exclude(&request.args);
    let excluded = merged(&excluded, &request.exclude);
    option("exclude", (!excluded.is_empty()).then_some(excluded.as_str()));
    argv.extend(args);
    if let Launch::Script(path) = &request.launch {
        argv.push(text(path)?.to_owned());
    }
    Ok(argv)
}

/// A dry submission: would this one be taken? With all of its arguments, since a site may want some
/// of them (an account, a time limit) before it looks at any other.
pub(super) fn dry_argv(request: &Request) -> Result<Vec<String>, String> {
    let dry = std::iter::once("--test-only".to_owned());
    Ok(dry.chain(argv(request)?).collect())
}

/// The batch script on stdin; `None` where the user has one of his own.
///
/// A login shell: the job then has the user's PATH and modules, not cron's.
pub fn script(request: &Request) -> Option<String> {
    match (&request.launch, &request.pilot) {
        (Launch::Script(_), _) => None,
        (Launch::Command(command), None) => Some(format!(
            "#!/bin/bash -l\n# {} (the login shell loads your profile)\n{command}\n",
            request.token.name
        )),
        (Launch::Command(command), Some(pilot)) => Some(format!(
            "#!/bin/bash\n# {} (a pilot: each command gets a login shell of its own)\nexec {}\n",
            request.token.name,
            render(&pilot_argv(request, pilot, command))
        )),
    }
}

/// What a pilot's job runs. All of it that babysit wrote itself stands before the `--`.
fn pilot_argv(request: &Request, pilot: &Pilot, command: &str) -> Vec<String> {
    let mut argv = vec![
        pilot.program.display().to_string(),
        "exec".to_owned(),
        format!("--pilots={}", pilot.folder.display()),
        format!("--shard={}", pilot.shard),
        format!("--group={}", pilot.group),
        format!("--fence={}", pilot.fence),
        format!("--token={}", request.token.comment),
    ];
    argv.extend(request.time.as_ref().map(|limit| format!("--time={limit}")));
    argv.extend(["--".to_owned(), command.to_owned()]);
    argv
}

fn text(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| {
        format!("{} is no UTF-8, which sbatch cannot be given: rename it", path.display())
    })
}

/// Takes `--exclude=x`, `--exclude x`, `-x x` and `-xx` out of the user's options: sbatch would take
/// only the last of two.
fn split_exclude(args: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut excluded, mut rest) = (Vec::new(), Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        // Shorter forms than `--exclud` could also mean --exclusive, and sbatch refuses them.
        let long = arg.strip_prefix("--exclude").or_else(|| arg.strip_prefix("--exclud"));
        match (long, arg.strip_prefix("-x")) {
            (Some(""), _) | (_, Some("")) => excluded.extend(args.next().cloned()),
            (Some(value), _) if value.starts_with('=') => excluded.push(value[1..].to_owned()),
            (None, Some(value)) => excluded.push(value.to_owned()),
            _ => rest.push(arg.clone()),
        }
    }
    (excluded, rest)
}

/// One list, each node once. What cannot be expanded is passed on as it is, for Slurm to judge.
fn merged(users: &[String], ours: &[String]) -> String {
    let mut nodes: Vec<String> = Vec::new();
    let expanded = users
        .iter()
        .flat_map(|list| hostlist::expand(list).unwrap_or_else(|| vec![list.trim().to_owned()]));
    for node in expanded.chain(ours.iter().cloned()) {
        if !nodes.contains(&node) {
            nodes.push(node);
        }
    }
    nodes.join(",")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::model::id::Token;

    pub fn request() -> Request {
        Request {
            token: Token { name: "p.find.s0.a1".into(), comment: "babysit:i:find/s0:a1:n".into() },
            qos: Some("own".into()),
            partition: None,
            account: None,
            gres: "gpu:rtx4090:1".into(),
            node: None,
            exclude: vec!["c1".into(), "a2".into()],
            nice: 3,
            cpus: Some(8),
            mem: Some("64G".into()),
            time: None,
            workdir: "/data/100%/w".into(),
            log_dir: "/data/100%/logs".into(),
            env: [("BABYSIT_SHARD".into(), "s0".into())].into(),
            args: ["-x", "a[1-2]", "--constraint=ib", "--exclude=b1", "--exclusive"]
                .map(str::to_owned)
                .to_vec(),
            launch: Launch::Command("python run.py --shard s0".into()),
            pilot: None,
        }
    }

    #[test]
    fn the_command_line() {
        let line = argv(&request()).expect("utf-8").join(" ");
        assert_eq!(
            line,
            "--parsable --no-requeue --export=ALL --open-mode=append --job-name=p.find.s0.a1 \
             --comment=babysit:i:find/s0:a1:n --output=/data/100%%/logs/%j.out --chdir=/data/100%/w \
             --qos=own --gres=gpu:rtx4090:1 --cpus-per-task=8 --mem=64G --nice=3 \
             --exclude=a1,a2,b1,c1 --constraint=ib --exclusive"
        );
        let script = script(&request()).expect("a command");
        assert!(
            script.starts_with("#!/bin/bash -l\n")
                && script.ends_with("\npython run.py --shard s0\n")
        );
    }

    #[test]
    fn a_script_of_the_users_comes_last() {
        let launch = Launch::Script(PathBuf::from("/w/find.sbatch"));
        let request =
            Request { launch, exclude: vec![], args: vec!["-t1".into()], nice: 0, ..request() };
        let line = argv(&request).expect("utf-8").join(" ");
        assert!(line.ends_with("--mem=64G -t1 /w/find.sbatch"), "{line}");
        assert_eq!(script(&request), None);
    }
}
