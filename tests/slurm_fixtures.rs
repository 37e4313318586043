//! Real outputs of Slurm 22.05 and 24.11, well and failing, read by our parsers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use babysit::model::cluster::{EndWord, JobState, Usable};
use babysit::model::observation::{Gap, GapKind};
use babysit::model::request::{RefusalClass, Submitted};
use babysit::model::units::{Secs, Time};
use babysit::slurm::command::{End, NotFound, Outcome};
use babysit::slurm::{PastAsk, error, sacct, sbatch, scontrol, sinfo, squeue};

const RELEASES: [&str; 2] = ["22.05.8", "24.11.5"];

fn folder(release: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/slurm").join(release)
}

/// One recorded command: `# rc=N`, then `--- stdout` and `--- stderr`.
fn outcome(file: &Path) -> Outcome {
    let text = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, rest) = text.split_once("--- stdout\n").expect("stdout");
    let (stdout, stderr) = rest.split_once("--- stderr\n").unwrap_or((rest, ""));
    let rc = head.split("# rc=").nth(1).and_then(|t| t.split_whitespace().next());
    Outcome {
        end: End::Code(rc.and_then(|t| t.parse().ok()).expect("rc")),
        stdout: stdout.into(),
        stderr: stderr.into(),
        overflow: false,
        elapsed: Duration::from_secs(1),
    }
}

fn stdout(release: &str, name: &str) -> String {
    String::from_utf8(outcome(&folder(release).join(name)).stdout).expect("utf-8")
}

fn failures(release: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder(release))
        .expect("fixtures")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| name(path).starts_with("fail-"))
        .collect();
    found.sort();
    assert_eq!(found.len(), 17, "{release}");
    found
}

fn name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Runs `check` on each failure where the command was recorded; says how many there were.
fn each_failure(command: &str, mut check: impl FnMut(&str, &str, Outcome)) -> usize {
    let mut seen = 0;
    for release in RELEASES {
        for folder in failures(release) {
            let file = folder.join(command);
            if file.exists() {
                seen += 1;
                check(release, name(&folder).trim_start_matches("fail-"), outcome(&file));
            }
        }
    }
    seen
}

#[test]
fn squeue_with_separators() {
    use squeue::Column as C;
    let columns = [
        C::JobId,
        C::Ignored,
        C::Name,
        C::State,
        C::Qos,
        C::TresPerNode,
        C::Reason,
        C::NodeList,
        C::SubmitTime,
        C::Comment,
    ];
    for release in RELEASES {
        let text = stdout(release, "squeue-O-sep.txt");
        // One name holds the separator of this recording: no reading, rather than a wrong one.
        assert!(squeue::parse_rows(&text, "|", &columns).is_err(), "{release}");
        let text = text.replace("h-own two|x", "h-own two x");
        let jobs = squeue::parse_rows(&text, "|", &columns).expect(release);
        assert_eq!(jobs.len(), 17, "{release}");
        let job = |name: &str| jobs.iter().find(|job| job.name == name).expect("there");
        let own3 = job("h-own3");
        assert_eq!((own3.state.clone(), own3.qos.as_ref()), (JobState::Pending, "own"));
        assert_eq!((own3.gpus, own3.reason.as_ref()), (Some(1), "QOSGrpGRES"));
        assert_eq!(own3.asked.first().and_then(|g| g.model.as_deref()), Some("rtx4090"));
        assert_eq!(
            (own3.comment.as_str(), job("h-gpus").comment.as_str()),
            ("waits-for-own-slot", "")
        );
        let own1 = job("h-own1");
        assert_eq!(
            (own1.state.clone(), own1.nodes.join(",")),
            (JobState::Running, "a1".to_owned())
        );
        assert!(own1.submitted.is_some(), "an ISO time is a time");
        assert_eq!(
            job("h-begin").asked.first().map(|g| (g.model.clone(), g.count)),
            Some((None, 1))
        );
    }
}

/// The separator of the recordings that were made with our own arguments.
const TAGGED: &str = "\u{1f}a1b2c3d4";

#[test]
fn our_own_question_to_a_queue_with_hostile_names() {
    let release = "22.05.8";
    let text = error::reading("squeue", Ok(outcome(&folder(release).join("tagged-squeue.txt"))));
    let text = text.expect("a complaint about the column that 22.05 lacks is no failure");
    let jobs = squeue::parse(&text, TAGGED).expect("whole");
    assert_eq!(jobs.len(), 26);
    let job = |id: u64| jobs.iter().find(|job| job.id.0 == id).expect("there");
    let ours = job(24);
    assert_eq!(
        (ours.name.as_str(), ours.comment.as_str()),
        ("p.find.s0.a1", "babysit:i:find/s0:a1:n")
    );
    assert_eq!((ours.uid, ours.nice, ours.requeue, ours.excluded.clone()), (1001, 7, false, None));
    assert_eq!(
        (ours.submitted, ours.started),
        (Some(Time(1_795_956_489)), Some(Time(1_795_956_489)))
    );
    assert_eq!(ours.time_limit, Some(Secs(365 * 86_400)));
    // Newlines, separators and a byte that is no UTF-8: one job each, and none of them forged.
    for (id, state) in [
        (12, JobState::Over(EndWord::Cancelled)),
        (18, JobState::Over(EndWord::Cancelled)),
        (25, JobState::Running),
    ] {
        let hostile = job(id);
        assert_eq!((hostile.name.as_str(), hostile.comment.as_str()), ("", ""), "{id}");
        assert_eq!(hostile.state, state, "{id}");
    }
    assert!(jobs.iter().all(|job| job.id.0 != 9999));
    assert_eq!((job(26).gpus, job(26).ends), (Some(2), None));
    let asked = |id| job(id).asked.iter().map(|g| (g.model.clone(), g.count)).collect::<Vec<_>>();
    assert_eq!(asked(26), [(Some("rtx5090".to_owned()), 2)]);
    assert_eq!((asked(27), job(27).gpus), (vec![], Some(0)));
    assert_eq!((job(29).gpus, job(29).reason.as_ref(), job(30).nice), (Some(4), "QOSGrpGRES", -50));
    assert_eq!(jobs.iter().filter(|job| job.id.0 == 28).count(), 3, "pending elements of an array");

    let nodes = sinfo::parse(&stdout(release, "tagged-sinfo.txt"), TAGGED).expect("whole");
    let idle: Vec<_> = nodes.iter().map(|n| (n.cpus_idle, n.mem_idle, n.usable)).collect();
    assert_eq!(idle[0], (Some(61), Some(253_000), Usable::Yes));
    assert_eq!((idle.len(), nodes[0].partitions.join(" ")), (3, "gpu".to_owned()));

    let ask = PastAsk {
        names: vec!["p.find.s0.a1".into(), "gone".into(), "both".into()],
        since: Time(0),
    };
    let past = sacct::parse(&stdout(release, "tagged-sacct.txt"), TAGGED, &ask).expect("whole");
    let ends: Vec<_> = past.iter().map(|job| (job.id.0, job.end)).collect();
    assert_eq!(ends, [(3, Some(EndWord::Failed)), (24, None), (31, Some(EndWord::Cancelled))]);
    assert_eq!(past[2].ended, Some(Time(1_795_956_492)));

    // Cut anywhere, none of the three is a reading.
    for cut in [1, 10, 100, 300] {
        let squeue = &text[..text.len() - cut];
        assert!(squeue::parse(squeue, TAGGED).is_err(), "{cut}");
        let sinfo = stdout(release, "tagged-sinfo.txt");
        assert!(sinfo::parse(&sinfo[..sinfo.len() - cut], TAGGED).is_err(), "{cut}");
        let sacct = stdout(release, "tagged-sacct.txt");
        assert!(sacct::parse(&sacct[..sacct.len() - cut], TAGGED, &ask).is_err(), "{cut}");
    }
}

#[test]
fn every_column_of_squeue_has_the_header_that_we_require() {
    for release in RELEASES {
        let mut seen = 0;
        for (column, field, header) in squeue::COLUMNS {
            let file = folder(release).join(format!("squeueO/squeue-O-{field}.txt"));
            if !file.exists() {
                continue; // NumNodes and NumCPUs were not recorded
            }
            seen += 1;
            let text = String::from_utf8_lossy(&outcome(&file).stdout).into_owned();
            let mut lines = text.lines();
            let first =
                lines.next().expect("header").strip_prefix("JOBID").expect("id first").trim();
            let missing = release == "22.05.8" && column == squeue::Column::ExcNodes;
            assert_eq!(first, if missing { "" } else { header }, "{release} {field}");
            // Every value by itself, in a table of two columns.
            let rows: String = lines
                .map(|line| {
                    let (id, value) = line.split_at_checked(12).expect("width");
                    format!("{}\t{}\t\n", id.trim(), value.trim())
                })
                .collect();
            let columns = [squeue::Column::JobId, column];
            let jobs = squeue::parse_rows(&rows, "\t", &columns).expect(field);
            assert_eq!(jobs.len(), rows.lines().count());
            if column == squeue::Column::Nice {
                assert_eq!(jobs.iter().map(|job| job.nice).max(), Some(50), "plain, no offset");
            }
            if column == squeue::Column::Requeue {
                assert!(jobs.iter().all(|job| job.requeue));
            }
        }
        assert_eq!(seen, 23, "{release}");
    }
}

#[test]
fn sinfo_with_separators() {
    use sinfo::Column as C;
    let columns = [C::Node, C::Gres, C::GresUsed, C::Ignored, C::State];
    for release in RELEASES {
        let nodes =
            sinfo::parse_rows(&stdout(release, "sinfo-N-O-sep.txt"), "|", &columns).expect(release);
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["a1", "b1", "c1"]);
        let gpus = |at: usize| nodes.get(at).and_then(|node| node.gpus.clone()).expect("read");
        let b1: Vec<_> =
            gpus(1).into_iter().map(|g| (g.model.expect("typed"), g.used, g.capacity)).collect();
        assert_eq!(b1, [("rtx4090".to_owned(), 2, 2), ("rtx5090".to_owned(), 2, 2)]);
        assert_eq!(gpus(2).first().map(|g| (g.used, g.capacity)), Some((1, 2)));
        // 24.11 tells that backfill has plans for two of them.
        let planned = nodes.iter().filter(|node| node.usable == Usable::Backfill).count();
        assert_eq!(planned, if release == "24.11.5" { 2 } else { 0 }, "{release}");
    }
}

#[test]
fn sacct_in_both_releases() {
    use sacct::Column as C;
    for release in RELEASES {
        // The header says which columns this recording has; the job name with a `|` is made whole.
        let text = stdout(release, "sacct-header.txt").replace("h-own two|x", "h-own two x");
        let (header, rows) = text.split_once('\n').expect("header");
        let columns: Vec<C> = header
            .split('|')
            .map(|name| {
                let known = sacct::COLUMNS.iter().find(|(_, known)| *known == name);
                known.map_or(C::Ignored, |(column, _)| *column)
            })
            .collect();
        let jobs = sacct::parse_rows(rows, "|", &columns).expect(release);
        assert_eq!(jobs.len(), rows.lines().count());
        let job = |name: &str| jobs.iter().find(|job| job.name == name).expect("there");
        let cancelled = job("h-cancel");
        assert_eq!((cancelled.end, cancelled.cancelled_by), (Some(EndWord::Cancelled), Some(3001)));
        assert_eq!(cancelled.nodes.len(), 0, "None assigned");
        let ok = job("h-ok");
        assert_eq!((ok.end, ok.exit.as_str()), (Some(EndWord::Completed), "0:0"));
        assert_eq!((job("h-own1").end, job("h-own1").ended), (None, None));

        let columns = |restarts: bool| {
            let mut list =
                vec![C::JobIdRaw, C::State, C::ExitCode, C::Start, C::End, C::Ignored, C::NodeList];
            list.extend(restarts.then_some(C::Ignored));
            list.extend([C::Qos, C::Ignored, C::Comment]);
            list
        };
        let text = stdout(release, "sacct-delim.txt");
        let jobs =
            sacct::parse_rows(&text, "\u{1f}", &columns(release == "24.11.5")).expect(release);
        assert_eq!(jobs.len(), text.lines().count());
    }
}

#[test]
fn the_size_of_the_own_qos() {
    for release in RELEASES {
        let text = stdout(release, "scontrol-assoc.txt");
        assert_eq!(scontrol::parse_qos(&text, "own"), Ok(Some(Some(4))), "{release}");
        assert_eq!(scontrol::parse_qos(&text, "nosuch"), Ok(None), "{release}");
    }
}

#[test]
fn reading_commands_that_fail_are_gaps_of_the_right_kind() {
    for command in ["squeue.txt", "squeue-O.txt", "sinfo.txt", "sacct.txt", "sacctmgr.txt"] {
        let accounting = command.starts_with("sacct");
        let seen = each_failure(command, |release, failure, outcome| {
            let well = match failure {
                "ok" => true,
                "munge-down" | "conf-missing" => false,
                "dbd-down" | "mysql-down" | "dbd-noresolve" => !accounting,
                // Whatever happens to the controller does not concern the accounting.
                _ => accounting,
            };
            let place = format!("{release} {failure} {command}");
            match error::reading("it", Ok(outcome)) {
                Ok(text) => assert!(well && !text.is_empty(), "{place}"),
                Err(Gap { kind, detail, .. }) => {
                    assert!(!well && kind == GapKind::Failed, "{place}: {kind:?} {detail}");
                    assert!(
                        detail.contains("exit code ") && detail.len() > 20,
                        "{place}: {detail}"
                    );
                }
            }
        });
        assert!(seen >= 20, "{command}: {seen}");
    }
}

#[test]
fn gaps_that_were_not_recorded() {
    let outcome = |end, stdout: &str, stderr: &str| Outcome {
        end,
        stdout: stdout.into(),
        stderr: stderr.into(),
        overflow: false,
        elapsed: Duration::from_secs(30),
    };
    let check = |run: Result<Outcome, NotFound>, expected: Option<GapKind>| {
        assert_eq!(
            error::reading("it", run.clone()).err().map(|gap| gap.kind),
            expected,
            "{run:?}"
        );
    };
    check(Err(NotFound("no squeue".into())), Some(GapKind::NotFound));
    check(Ok(outcome(End::TimedOut, "JOBID", "")), Some(GapKind::TimedOut));
    check(Ok(outcome(End::Signal(11), "JOBID", "")), Some(GapKind::Failed));
    check(
        Ok(outcome(End::Code(1), "", "Slurm accounting storage is disabled\n")),
        Some(GapKind::Off),
    );
    check(
        Ok(outcome(End::Code(0), "JOBID", "squeue: error: Connection reset by peer\n")),
        Some(GapKind::Failed),
    );
    check(Ok(outcome(End::Code(0), "JOBID", "Welcome to the cluster\n")), None);
    let overflow = Outcome { overflow: true, ..outcome(End::TimedOut, "", "") };
    check(Ok(overflow), Some(GapKind::Unreadable));
    // A release that does not know a column: rc 0 and blank lines.
    for release in RELEASES {
        let text = stdout(release, "squeue-badfield.txt");
        assert!(squeue::parse(&text, "\u{1f}1").is_err(), "{release}");
    }
}

fn submitted(outcome: Outcome) -> String {
    match sbatch::parse(&Ok(outcome)) {
        Submitted::Accepted(id) => format!("accepted {id}"),
        Submitted::Unknown(text) => {
            assert!(!text.is_empty());
            "unknown".to_owned()
        }
        Submitted::Refused(refusal) => {
            assert!(refusal.text.starts_with("sbatch: "), "{}", refusal.text);
            match refusal.class {
                RefusalClass::Limit => "limit",
                RefusalClass::Overload => "overload",
                RefusalClass::Request => "request",
            }
            .to_owned()
        }
    }
}

#[test]
fn sbatch_under_each_failure() {
    let seen = each_failure("sbatch.txt", |release, failure, outcome| {
        let expected = match failure {
            // Never reached: nothing exists, and the next one would fare the same.
            "ctld-down" | "munge-down" | "conf-missing" | "host-noresolve" => "overload",
            // The same words whether the job exists (rst_reply, ctld-stopped) or not (rst_req).
            "ctld-stopped" | "ctld-stopped-mt3" | "hole" | "fin_reply" | "fin_req"
            | "rst_accept" | "rst_reply" | "rst_req" | "host-unreachable" => "unknown",
            // Only the accounting is away.
            "dbd-down" | "mysql-down" | "ok" => "accepted",
            other => panic!("a new failure: {other}"),
        };
        let found = submitted(outcome);
        assert_eq!(found.split(' ').next(), Some(expected), "{release} {failure}");
    });
    assert_eq!(seen, 32);
}

#[test]
fn sbatch_that_the_controller_refuses() {
    for release in RELEASES {
        let mut seen = 0;
        for entry in std::fs::read_dir(folder(release).join("submit-update")).expect("fixtures") {
            let file = entry.expect("entry").path();
            let name = name(&file);
            if !name.starts_with("sbatch-") || name.contains("plain") {
                continue;
            }
            seen += 1;
            let outcome = outcome(&file);
            let expected = if outcome.end == End::Code(0) { "accepted" } else { "request" };
            let found = submitted(outcome);
            assert_eq!(found.split(' ').next(), Some(expected), "{release} {name}");
        }
        assert_eq!(seen, 25, "{release}");
    }
}

#[test]
fn commands_that_change_something_under_each_failure() {
    for command in ["scontrol-update", "scancel"] {
        let seen = each_failure(&format!("{command}.txt"), |release, failure, outcome| {
            let well = matches!(failure, "ok" | "dbd-down" | "mysql-down");
            let asked = error::asked(command, &Ok(outcome));
            assert_eq!(asked.is_ok(), well, "{release} {failure} {command}: {asked:?}");
        });
        assert!(seen >= 24, "{command}: {seen}");
    }
    for release in RELEASES {
        for (file, expected) in [
            ("upd-qos-pending", None),
            ("scancel-finished", None),
            ("upd-qos-running-user", Some("Job is no longer pending execution for job")),
            ("upd-qos-unknown", Some("Invalid job id specified for job")),
            ("upd-nice-neg", Some("Access/permission denied")),
            ("scancel-other", Some("exit code 210")),
        ] {
            let outcome = outcome(&folder(release).join(format!("submit-update/{file}.txt")));
            let said = error::asked("it", &Ok(outcome)).err();
            let fits = match (&said, expected) {
                (None, None) => true,
                (Some(said), Some(part)) => said.contains(part),
                _ => false,
            };
            assert!(fits, "{release} {file}: {said:?}");
        }
    }
}
