//! The adapter with commands that are shell scripts: what they are given, and what becomes of it.
#![allow(clippy::disallowed_methods)] // a test writes files and starts a shell

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use babysit::model::id::{JobId, Token};
use babysit::model::observation::GapKind;
use babysit::model::policy::{Launch, SlurmSettings};
use babysit::model::request::{Asked, Change, RefusalClass, Request, Submitted};
use babysit::model::units::{Secs, Time};
use babysit::slurm::real::{Environment, RealSlurm};
use babysit::slurm::{PastAsk, Scope, Slurm, sinfo};

struct Site {
    dir: tempfile::TempDir,
}

impl Site {
    fn new() -> Site {
        let site = Site { dir: tempfile::tempdir().expect("a folder") };
        std::fs::create_dir(site.path("bin")).expect("bin");
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, name: &str, script: &str) {
        let file = self.path("bin").join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("a script");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("mode");
    }

    /// A command that keeps its arguments (one a line), environment and input in files of its name.
    fn records(&self, name: &str, script: &str) {
        let file = self.path(name).display().to_string();
        let record = format!(
            "printf '<%s>\\n' \"$@\" >> {file}.args\n/usr/bin/env | /usr/bin/sort > {file}.env\n\
             /bin/cat > {file}.stdin\n{script}"
        );
        self.command(name, &record);
    }

    fn recorded(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap_or_default()
    }

    fn slurm(&self) -> RealSlurm {
        let text = |t: &str| Some(t.to_owned());
        let pair = |(a, b): (&str, &str)| (a.to_owned(), b.to_owned());
        let environment = Environment {
            me: 1001,
            path: text(".:/home/alice/bin:/usr/bin"),
            home: text("/home/alice"),
            user: text("alice"),
            shell: text("/bin/bash"),
            lang: text("de_DE.UTF-8"),
            slurm_conf: text("/etc/slurm/slurm.conf"),
            extra: [
                ("SQUEUE_STATES", "PD"),
                ("SLURM_JOB_ID", "7"),
                ("SBATCH_QOS", "own"),
                ("SLURM_TIME_FORMAT", "relative"),
                ("TZ", "Asia/Tokyo"),
                ("KRB5CCNAME", "/tmp/krb5"),
            ]
            .map(pair)
            .to_vec(),
        };
        let settings = SlurmSettings {
            bin_dir: Some(self.path("bin")),
            timeout: Secs(1),
            ..SlurmSettings::default()
        };
        RealSlurm::new(&settings, environment, 42)
    }

    fn request(&self) -> Request {
        Request {
            token: Token { name: "p.find.s0.a1".into(), comment: "babysit:i:find/s0:a1:n".into() },
            qos: Some("own".into()),
            partition: None,
            account: None,
            gres: "gpu:1".into(),
            node: None,
            exclude: vec!["c1".into()],
            nice: 0,
            cpus: None,
            mem: None,
            time: None,
            workdir: self.path("w w"),
            log_dir: self.path("logs/it's"),
            env: [("BABYSIT_SHARD".into(), "s0 $HOME".into()), ("SBATCH_HOLD".into(), "1".into())]
                .into(),
            args: vec!["--constraint=a&b".into()],
            launch: Launch::Command("echo 'END'\nEND\necho \"$BABYSIT_SHARD\" `date`".into()),
            pilot: None,
        }
    }
}

fn shell(line: &str) {
    let status = std::process::Command::new("/bin/sh").arg("-c").arg(line).status().expect("sh");
    assert!(status.success(), "{line}");
}

#[test]
fn reading_commands_get_an_environment_that_changes_nothing() {
    let site = Site::new();
    site.records("squeue", "exit 1");
    assert!(site.slurm().jobs(Scope::Mine).is_err());
    let bin = site.path("bin").display().to_string();
    let env = site.recorded("squeue.env");
    let names: Vec<&str> = env.lines().filter(|line| !line.starts_with("PWD=")).collect();
    let path = format!("PATH=/home/alice/bin:/usr/bin:/usr/local/bin:/bin:{bin}");
    let expected = [
        "HOME=/home/alice",
        "KRB5CCNAME=/tmp/krb5",
        "LANG=C.UTF-8",
        "LC_ALL=C.UTF-8",
        "LOGNAME=alice",
        &path,
        "SHELL=/bin/bash",
        "SLURM_CONF=/etc/slurm/slurm.conf",
        "SLURM_TIME_FORMAT=%s",
        "TZ=UTC0",
        "USER=alice",
    ];
    assert_eq!(
        names.iter().filter(|line| !line.starts_with("_=")).copied().collect::<Vec<_>>(),
        expected
    );
    let args = site.recorded("squeue.args");
    assert!(args.starts_with("<-a>\n<-r>\n<-t>\n<all>\n<-O>\n<JobID:\u{1f}"), "{args}");
    assert!(args.ends_with("\n<-u>\n<1001>\n"), "{args}");
}

#[test]
fn sbatch_and_the_line_that_a_dry_run_shows_are_the_same() {
    let site = Site::new();
    site.records("sbatch", "echo 12");
    let mut slurm = site.slurm();
    let request = site.request();
    let lines = slurm.lines_for_submit(&request);
    assert_eq!(slurm.submit(&request), Submitted::Accepted(JobId(12)));
    let of_submit = ["args", "stdin"].map(|end| site.recorded(&format!("sbatch.{end}")));
    let env = site.recorded("sbatch.env");
    assert!(request.log_dir.is_dir(), "made before sbatch");

    for name in ["sbatch.args", "sbatch.stdin", "sbatch.env"] {
        std::fs::remove_file(site.path(name)).expect("recorded");
    }
    std::fs::remove_dir(&request.log_dir).expect("empty");
    lines.iter().for_each(|line| shell(line));
    let of_line = ["args", "stdin"].map(|end| site.recorded(&format!("sbatch.{end}")));
    assert_eq!(of_line, of_submit);
    assert!(site.recorded("sbatch.env").contains("BABYSIT_SHARD=s0 $HOME\n"));
    assert!(request.log_dir.is_dir());

    // What the job will see: ours, the user's language and time zone, nothing of Slurm's.
    for there in ["BABYSIT_SHARD=s0 $HOME", "LANG=de_DE.UTF-8", "TZ=Asia/Tokyo", "HOME=/home/alice"]
    {
        assert!(env.lines().any(|line| line == there), "{there}: {env}");
    }
    for gone in ["SLURM_TIME_FORMAT=", "LC_ALL=", "SBATCH_", "SQUEUE_", "SLURM_JOB_ID="] {
        assert!(!env.lines().any(|line| line.starts_with(gone)), "{gone}: {env}");
    }
}

#[test]
fn only_a_refusal_says_that_no_job_can_be_in_both_lanes() {
    let check = |script: &str, expected: Result<bool, GapKind>| {
        let site = Site::new();
        site.command("squeue", "echo 'slurm 24.11.5'");
        site.records("sbatch", script);
        let request = Request { qos: Some("own,extra".into()), ..site.request() };
        let said = site.slurm().takes_both(&request);
        let kind = said.as_ref().map(|(yes, _)| *yes).map_err(|gap| gap.kind);
        assert_eq!(kind, expected, "{script}: {said:?}");
        site
    };
    let failed = |text: &str| format!("echo 'sbatch: error: {text}' >&2; exit 1");
    let site = check("echo 'sbatch: Job 7 to start at 2026-11-03T15:00:00' >&2", Ok(true));
    // As it would really be submitted.
    let dry = site.recorded("sbatch.args");
    site.slurm().submit(&Request { qos: Some("own,extra".into()), ..site.request() });
    assert_eq!(
        site.recorded("sbatch.args"),
        format!("{dry}{}", dry.replace("<--test-only>\n", ""))
    );
    assert!(dry.contains("--test-only") && dry.contains("--constraint=a&b"), "{dry}");
    check(&failed("Batch job submission failed: Invalid qos specification"), Ok(false));
    check("echo 'allocation failure: Invalid qos specification' >&2; exit 1", Ok(false));
    check("sleep 20", Err(GapKind::TimedOut));
    for text in [
        "Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "allocation failure: Socket timed out on send/recv operation",
        "Munge encode failed: Failed to access \"/run/munge/munge.socket.2\"",
        "Batch job submission failed: Slurm temporarily unable to accept job, sleeping and retrying",
        "QOSMaxSubmitJobPerUserLimit",
        "a plugin of the site has a word",
    ] {
        check(&failed(text), Err(GapKind::Failed));
    }
}

#[test]
fn changes_go_in_lots_and_one_refusal_stops_none() {
    let site = Site::new();
    site.records("scontrol", "case \"$2\" in JobId=1,*) echo 'denied' >&2; exit 1;; esac");
    site.records("scancel", "exit 0");
    let mut slurm = site.slurm();
    let jobs: Vec<JobId> = (1..=450).map(JobId).collect();
    let change = Change::Nice(5);
    let lines = slurm.lines_for_change(&jobs, &change);
    assert_eq!(lines.len(), 3);
    assert_eq!(slurm.update(&jobs, &change), Asked::Failed("scontrol: exit code 1: denied".into()));
    let by_update = site.recorded("scontrol.args");
    assert_eq!(by_update.matches("<update>").count(), 3, "the others were asked all the same");
    std::fs::remove_file(site.path("scontrol.args")).expect("recorded");
    lines.iter().for_each(|line| shell(&format!("{line} </dev/null; true")));
    assert_eq!(site.recorded("scontrol.args"), by_update);

    assert_eq!(slurm.cancel(&jobs), Asked::Done);
    assert_eq!(site.recorded("scancel.args").lines().count(), 450);
    assert_eq!(slurm.lines_for_cancel(&[JobId(7)]).len(), 1);
    assert_eq!(slurm.cancel(&[]), Asked::Done);
    assert_eq!(
        slurm.update(&jobs, &Change::Lane { qos: None, partition: None, account: None }),
        Asked::Done
    );
}

#[test]
fn what_is_no_reading_is_a_gap() {
    let site = Site::new();
    let ask = PastAsk { names: vec!["x".into()], since: Time(0) };
    let gap = site.slurm().jobs(Scope::Everybody).expect_err("no squeue");
    assert_eq!(gap.kind, GapKind::NotFound);
    assert!(gap.detail.contains("squeue") && gap.detail.contains("bin_dir"), "{gap}");
    assert!(matches!(
        site.slurm().submit(&site.request()),
        Submitted::Refused(refusal) if refusal.class == RefusalClass::Overload
    ));

    let kind = |script: &str| {
        site.command("squeue", script);
        site.slurm().jobs(Scope::Everybody).expect_err(script).kind
    };
    assert_eq!(kind("exit 0"), GapKind::Unreadable);
    assert_eq!(kind("echo JOBID"), GapKind::Unreadable);
    assert_eq!(kind("printf '\\377\\000'"), GapKind::Unreadable);
    assert_eq!(kind("echo 'squeue: error: x' >&2; exit 1"), GapKind::Failed);
    assert_eq!(kind("kill -9 $$"), GapKind::Failed);
    assert_eq!(kind("exec sleep 60"), GapKind::TimedOut);

    site.command("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1");
    assert_eq!(site.slurm().past(&ask).expect_err("off").kind, GapKind::Off);
    let gap = site.slurm().look(Scope::Everybody).expect_err("both fail");
    assert_eq!(gap.source, "squeue -a -r -t all -O ...");
}

#[test]
fn the_controller_is_asked_for_a_qos_only_where_there_is_accounting() {
    let site = Site::new();
    let answer =
        "printf 'Current Association Manager state\\nQOS=own(2)\\n GrpTRES=gres/gpu=8(1)\\n'";
    site.records("scontrol", answer);
    site.command("sacctmgr", "printf 'Name|GrpTRES\\nown|gres/gpu=4\\n'");
    assert_eq!(site.slurm().qos_gpus("own"), Ok(Some(4)));
    site.command("sacctmgr", "printf 'Name|GrpTRES\\n'");
    assert!(site.slurm().qos_gpus("own").expect_err("unknown").detail.contains("knows no QOS"));
    let off = "echo 'You are not running a supported accounting_storage plugin' >&2; exit 1";
    site.command("sacctmgr", off);
    assert_eq!(site.slurm().qos_gpus("own").expect_err("off").kind, GapKind::Off);
    assert_eq!(site.recorded("scontrol.args"), "", "not asked: it would end slurmctld 22.05");
    site.command("sacctmgr", "echo 'sacctmgr: error: Connection refused' >&2; exit 1");
    assert_eq!(site.slurm().qos_gpus("own"), Ok(Some(8)));
}

#[test]
fn squeue_and_sinfo_run_side_by_side() {
    let site = Site::new();
    // Each waits for the other's mark: one after the other, both would be ended at their deadline.
    let headers = sinfo::COLUMNS.map(|(_, _, header)| header).join(" ");
    let squeue = babysit::slurm::squeue::COLUMNS.map(|(_, _, header)| header).join(" ");
    let meet = |mine: &Path, other: &Path, headers: &str| {
        format!(
            "touch {}; while [ ! -e {} ]; do sleep 0.01; done\n\
             for word; do case \"$word\" in *,*) list=$word;; esac; done\n\
             separator=${{list##*:}}\n\
             for header in {headers}; do printf '%s%s' \"$header\" \"$separator\"; done; echo",
            mine.display(),
            other.display()
        )
    };
    let (one, two) = (site.path("one"), site.path("two"));
    site.command("squeue", &meet(&one, &two, &squeue));
    site.command("sinfo", &meet(&two, &one, &headers.replace("CPUS(A/I/O/T)", "'CPUS(A/I/O/T)'")));
    let cluster = site.slurm().look(Scope::Everybody).expect("both answer");
    assert_eq!((cluster.jobs.len(), cluster.nodes.len(), cluster.me), (0, 0, 1001));
}
