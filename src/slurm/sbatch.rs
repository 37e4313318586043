//! sbatch: one submission, and what became of it.
//!
//! Nothing about sbatch is atomic for us: killed, timed out or cut off, the job may exist. So an
//! outcome is Accepted only with an id, Refused only where the controller said so or was never
//! reached, and Unknown in all other cases: then the job's token is looked for, and sbatch is not
//! called again.

use std::path::Path;

use crate::model::id::JobId;
use crate::model::observation::Seen;
use crate::model::pilot::Pilot;
use crate::model::policy::Launch;
use crate::model::request::{Refusal, RefusalClass, Request, Submitted};

use super::command::{End, NotFound, Outcome, render};
use super::{error, hostlist};

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

/// What it says: taken, or the words of the refusal. All else is no answer: who was not reached, is
/// overloaded or at a limit has refused nothing.
pub(super) fn parse_dry(source: &str, run: Result<Outcome, NotFound>) -> Seen<Result<(), String>> {
    let submitted = parse(&run);
    match (error::reading(source, run), submitted) {
        (Ok(_), _) => Ok(Ok(())),
        (Err(_), Submitted::Refused(Refusal { class: RefusalClass::Request, text })) => {
            Ok(Err(text))
        }
        (Err(gap), _) => Err(gap),
    }
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

/// Limits that bind a job by itself, so that waiting does not help.
const PER_JOB: [&str; 5] = ["PerJob", "MaxWall", "MinCPU", "MinGRES", "MinTRES"];
/// Limits of a lane, which pass by waiting.
const LIMITS: [&str; 12] = [
    "QOSMax",
    "QOSGrp",
    "QOSJobLimit",
    "QOSResourceLimit",
    "QOSUsageThreshold",
    "AssocMax",
    "AssocGrp",
    "AssociationJobLimit",
    "MaxJobs",
    "MaxSubmitJobs",
    "MaxJobCount",
    "violates accounting/QOS policy",
];
/// Faults that sbatch finds by itself, before it asks anybody.
const LOCAL: [&str; 9] = [
    "nvalid",
    "unrecognized option",
    "unrecognised option",
    "requires an argument",
    "is ambiguous",
    "Unable to open file",
    "does not look like a batch script",
    "Batch script",
    "specification can not be satisfied",
];

/// Before the controller's own words: of a submission, and of a dry one.
const SUBMISSION_FAILED: [&str; 2] = ["Batch job submission failed:", "allocation failure:"];

/// The request never left this host ...
const NEVER_SENT: [&str; 2] =
    ["Munge encode failed", "Unable to establish control machine address"];
/// ... unless an earlier try of the same sbatch did.
const SENT: [&str; 4] =
    ["Socket timed out", "Zero Bytes", "Connection reset", "sleeping and retrying"];

/// What became of a submission.
pub fn parse(run: &Result<Outcome, NotFound>) -> Submitted {
    let outcome = match run {
        Ok(outcome) => outcome,
        Err(NotFound(text)) => return refused(RefusalClass::Overload, text.clone()),
    };
    let words = error::in_words(outcome);
    match outcome.end {
        // Whatever stderr says.
        End::Code(0) => match id(&String::from_utf8_lossy(&outcome.stdout)) {
            Some(id) => Submitted::Accepted(id),
            None => Submitted::Unknown(format!("sbatch said success without a job id ({words})")),
        },
        End::Code(_) => failed(&String::from_utf8_lossy(&outcome.stderr), words),
        End::TimedOut | End::Signal(_) => Submitted::Unknown(words),
    }
}

fn failed(stderr: &str, words: String) -> Submitted {
    let line = error::telling_line(stderr);
    let why = SUBMISSION_FAILED
        .iter()
        .find_map(|words| stderr.lines().find_map(|line| line.split_once(words)));
    let any = |texts: &[&str]| texts.iter().any(|text| stderr.contains(text));
    // Munge refuses to sign before anything is sent; the broken text that follows comes from that.
    if any(&NEVER_SENT) && !any(&SENT) {
        return refused(RefusalClass::Overload, line);
    }
    if error::is_broken(stderr) {
        return Submitted::Unknown(words);
    }
    if error::is_unreached(stderr) {
        return refused(RefusalClass::Overload, line);
    }
    if any(&PER_JOB) {
        return refused(RefusalClass::Request, line);
    }
    if any(&LIMITS) {
        return refused(RefusalClass::Limit, line);
    }
    match why {
        // An error number that belongs to no answer of the controller.
        Some((_, text)) if matches!(text.trim(), "" | "No error" | "Success") => {
            Submitted::Unknown(words)
        }
        Some(_) => refused(RefusalClass::Request, line),
        None if any(&LOCAL) => refused(RefusalClass::Request, line),
        None => Submitted::Unknown(words),
    }
}

fn refused(class: RefusalClass, text: String) -> Submitted {
    Submitted::Refused(Refusal { class, text })
}

/// The last line that as a whole is `digits` or `digits;cluster`: sites print banners around it.
///
/// A line without its newline may be cut off, and a shorter number is somebody else's job.
fn id(stdout: &str) -> Option<JobId> {
    stdout.split_inclusive('\n').rev().find_map(|line| {
        let line = line.strip_suffix('\n')?.trim_end();
        let (digits, cluster) = line.split_once(';').unwrap_or((line, "-"));
        let whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let named = !cluster.is_empty() && !cluster.contains(char::is_whitespace);
        let id = digits.parse().ok().filter(|id| *id > 0);
        if whole && named { id.map(JobId) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

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

    /// `class` is the first letter of the variant, then of the class.
    fn check(end: End, stdout: &str, stderr: &str, expected: &str) {
        let outcome = Outcome {
            end,
            stdout: stdout.into(),
            stderr: stderr.into(),
            overflow: false,
            elapsed: Duration::ZERO,
        };
        let found = match parse(&Ok(outcome)) {
            Submitted::Accepted(id) => format!("accepted {id}"),
            Submitted::Unknown(_) => "unknown".to_owned(),
            Submitted::Refused(refusal) => format!("{:?}", refusal.class),
        };
        assert_eq!(found, expected, "{end:?} {stdout:?} {stderr:?}");
    }

    #[test]
    fn success_needs_an_id_and_nothing_else() {
        check(End::Code(0), "22\n", "", "accepted 22");
        check(End::Code(0), "24;lab\n", "sbatch: error: Socket timed out\n", "accepted 24");
        check(End::Code(0), "Welcome 7\n12\n\nYour quota: 3 of 4\n", "", "accepted 12");
        check(End::Code(0), "Submitted batch job 12\n", "", "unknown");
        check(End::Code(0), "", "", "unknown");
        check(End::Code(0), "15205", "", "unknown");
        check(End::Code(0), "152054\nYour quo", "", "accepted 152054");
        check(End::Code(0), "0\n", "", "unknown");
        check(End::Code(0), "99999999999999999999999\n", "", "unknown");
        check(End::Code(1), "12\n", "", "unknown");
        check(End::Signal(9), "12\n", "", "unknown");
        check(End::TimedOut, "", "", "unknown");
        let missing = parse(&Err(NotFound("sbatch is not on PATH".into())));
        assert!(matches!(missing, Submitted::Refused(r) if r.class == RefusalClass::Overload));
    }

    #[test]
    fn refusals_by_class() {
        let failed = |text: &str| format!("sbatch: error: Batch job submission failed: {text}\n");
        let policy = failed(
            "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
        );
        let coded = |code: &str| format!("sbatch: error: {code}\n{policy}");
        check(End::Code(1), "", &coded("QOSMaxSubmitJobPerUserLimit"), "Limit");
        check(End::Code(1), "", &coded("QOSGrpGRES"), "Limit");
        check(End::Code(1), "", &coded("AssocGrpSubmitJobsLimit"), "Limit");
        check(End::Code(1), "", &coded("QOSMaxGRESPerUser"), "Limit");
        check(End::Code(1), "", &policy, "Limit");
        check(End::Code(1), "", &coded("QOSMaxGRESPerJob"), "Request");
        check(End::Code(1), "", &coded("QOSMaxWallDurationPerJobLimit"), "Request");
        check(End::Code(1), "", &failed("Something new that nobody has seen"), "Request");
        check(End::Code(1), "", &failed("Unspecified error"), "Request");
        check(
            End::Code(255),
            "",
            "sbatch: unrecognized option '--foo'\nTry \"sbatch --help\"\n",
            "Request",
        );
        check(End::Code(1), "", "sbatch: error: a plugin of the site has a word\n", "unknown");
        check(End::Code(1), "", &failed("No error"), "unknown");
        check(End::Code(1), "", "", "unknown");
        check(End::Code(1), "", &failed("Slurm temporarily unable to accept job"), "Overload");
        // It was sent once, then it could not be sent again: the first may have arrived.
        let twice = "sbatch: error: Slurm controller not responding, sleeping and retrying.\n"
            .to_owned()
            + &failed("Unable to contact slurm controller (connect failure)");
        check(End::Code(1), "", &twice, "unknown");
        let munge = format!(
            "sbatch: error: Munge encode failed: x\n{}",
            failed("Protocol authentication error")
        );
        check(End::Code(1), "", &munge, "Overload");
        check(
            End::Code(1),
            "",
            &format!(
                "sbatch: error: Slurm controller not responding, sleeping and retrying.\n{munge}"
            ),
            "unknown",
        );
    }
}
