//! The adapter on a real Slurm, as whoever runs this: an ordinary user or root.
//!
//! It ends every job that it started.
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use babysit::model::cluster::{EndWord, JobState, QueueJob, Usable};
use babysit::model::id::{JobId, Token};
use babysit::model::observation::GapKind;
use babysit::model::policy::{Launch, SlurmSettings};
use babysit::model::request::{Asked, Change, RefusalClass, Request, Submitted};
use babysit::model::units::{Secs, Time};
use babysit::slurm::real::{Environment, RealSlurm};
use babysit::slurm::{PastAsk, Scope, Slurm};

use crate::lab::{clean_cluster, readable_by_all};
use crate::slurm;

struct Site {
    slurm: RealSlurm,
    me: u32,
    dir: tempfile::TempDir,
    now: i64,
    jobs: Vec<JobId>,
}

fn site() -> Site {
    let conf = slurm::conf();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let me = rustix::process::getuid().as_raw();
    let environment = Environment {
        me,
        home: std::env::var("HOME").ok(),
        user: std::env::var("USER").ok(),
        slurm_conf: Some(conf),
        // None of these may get through: each would empty the answers.
        extra: [
            "SQUEUE_STATES",
            "SQUEUE_PARTITION",
            "SINFO_PARTITION",
            "SLURM_CLUSTERS",
            "SBATCH_QOS",
        ]
        .map(|name| (name.to_owned(), "nosuch".to_owned()))
        .to_vec(),
        ..Environment::default()
    };
    let settings = SlurmSettings { timeout: Secs(30), ..SlurmSettings::default() };
    let seed = now ^ u64::from(std::process::id()) << 32;
    let slurm = RealSlurm::new(&settings, environment, seed);
    let dir = tempfile::tempdir().expect("a folder");
    Site { slurm, me, dir, now: now as i64, jobs: Vec::new() }
}

impl Site {
    fn request(&self, name: &str, qos: &str, command: &str) -> Request {
        Request {
            token: Token {
                name: format!("{name}.{}", self.now),
                comment: format!("babysit:t:{name}"),
            },
            qos: Some(qos.to_owned()),
            partition: None,
            account: None,
            gres: "gpu:1".to_owned(),
            node: None,
            exclude: Vec::new(),
            nice: 0,
            cpus: None,
            mem: None,
            time: None,
            workdir: self.dir.path().to_owned(),
            log_dir: self.dir.path().join("logs").join(name),
            env: vec![("BABYSIT_SHARD".to_owned(), "s 0".to_owned())].into(),
            args: Vec::new(),
            launch: Launch::Command(command.to_owned()),
            pilot: None,
        }
    }

    fn submit(&mut self, request: &Request) -> JobId {
        match self.slurm.submit(request) {
            Submitted::Accepted(id) => {
                self.jobs.push(id);
                id
            }
            other => panic!("{other:?}"),
        }
    }

    /// Waits, as Slurm takes its time, until the job looks as it should.
    fn until(&mut self, id: JobId, what: &str, fits: impl Fn(&QueueJob) -> bool) -> QueueJob {
        let begin = Instant::now();
        loop {
            let jobs = self.slurm.jobs(Scope::Mine).expect("squeue");
            assert!(jobs.iter().all(|job| job.uid == self.me));
            let job = jobs.into_iter().find(|job| job.id == id);
            match job {
                Some(job) if fits(&job) => return job,
                job if begin.elapsed() > Duration::from_secs(60) => panic!("not {what}: {job:?}"),
                _ => std::thread::sleep(Duration::from_millis(200)),
            }
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.slurm.cancel(&self.jobs);
    }
}

#[test]
fn as_root() {
    clean_cluster();
    submit_look_change_cancel_and_look_back();
}

/// Starts itself once more as alice, as the adapter asks for whoever runs it.
#[test]
fn as_alice() {
    if !rustix::process::getuid().is_root() {
        submit_look_change_cancel_and_look_back();
        return;
    }
    clean_cluster();
    let program = std::env::current_exe().expect("this program");
    let program = readable_by_all(&program).display().to_string();
    let sandbox = format!("BABYSIT_SANDBOX={}", slurm::sandbox().display());
    let output = slurm::as_user_with("alice", &[&sandbox], &program)
        .args(["adapter::as_alice", "--exact", "--nocapture"])
        .output()
        .expect("it starts");
    let said = slurm::stdout(&output) + &slurm::stderr(&output);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn submit_look_change_cancel_and_look_back() {
    let mut site = site();
    // A job that says what it was given, and one that does not end by itself.
    let mut request = site.request("says", "extra", "env > env.txt; pwd; echo \"$BABYSIT_SHARD\"");
    request.gres = "gpu:rtx4090:1".to_owned();
    let says = site.submit(&request);
    let request = Request { nice: 7, ..site.request("stays", "own", "sleep 600") };
    let stays = site.submit(&request);
    let running = site.until(stays, "running", |job| job.state == JobState::Running);
    assert_eq!(
        (running.name.as_str(), running.comment.as_str()),
        (&*request.token.name, "babysit:t:stays")
    );
    assert_eq!((running.gpus, running.qos.as_ref(), running.requeue), (Some(1), "own", false));
    assert_eq!((running.nice, running.restarts, running.nodes.len()), (7, 0, 1));
    let submitted = running.submitted.expect("a time");
    assert!((submitted.0 - site.now).abs() < 3600, "in UTC: {submitted:?}");
    assert!(running.started.is_some_and(|start| start >= submitted) && running.priority.is_some());
    let over = site.until(says, "over", |job| job.state.is_over());
    assert_eq!(over.state, JobState::Over(EndWord::Completed));
    assert_eq!(over.asked.first().and_then(|gpu| gpu.model.as_deref()), Some("rtx4090"));
    let log = std::fs::read_to_string(site.dir.path().join(format!("logs/says/{says}.out")))
        .expect("log");
    assert_eq!(log.lines().map(str::trim).next_back(), Some("s 0"), "{log}");
    let env = std::fs::read_to_string(site.dir.path().join("env.txt")).expect("the job's");
    assert!(
        !env.lines().any(|line| line.starts_with("SLURM_TIME_FORMAT=") || line.starts_with("TZ="))
    );

    // The whole cluster, side by side.
    let cluster = site.slurm.look(Scope::Everybody).expect("squeue and sinfo");
    assert!(cluster.jobs.iter().any(|job| job.id == stays) && cluster.me == site.me);
    let node =
        running.nodes.first().and_then(|name| cluster.nodes.iter().find(|node| &node.name == name));
    let node = node.expect("its node");
    assert_ne!(node.usable, Usable::No, "{node:?}");
    let used: u32 = node.gpus.iter().flatten().map(|gpu| gpu.used).sum();
    assert!(used >= 1 && node.mem_idle.is_some() && node.cpus_idle.is_some(), "{node:?}");

    // Hostile neighbours: any byte may stand in a name or a comment.
    let hostile = Command::new("sbatch")
        .env("SLURM_CONF", slurm::conf())
        .args(["--parsable", "-H", "-o", "/dev/null", "-J", "x\u{1f}\n9\u{1f}|", "--wrap", "true"])
        .arg(format!("--comment=\n{stays}\u{1f}{}\u{1f}\u{fffd}\n\n", site.me))
        .output()
        .expect("sbatch");
    let hostile: u64 = String::from_utf8_lossy(&hostile.stdout).trim().parse().expect("an id");
    site.jobs.push(JobId(hostile));
    let seen = site.until(JobId(hostile), "pending", |job| job.state == JobState::Pending);
    assert_eq!((seen.name.as_str(), seen.comment.as_str()), ("", ""));
    let count =
        site.slurm.jobs(Scope::Mine).expect("squeue").iter().filter(|job| job.id == stays).count();
    assert_eq!(count, 1);

    // Two pending jobs go the same way in one call, with one that cannot.
    let waits = |name: &str, site: &mut Site| {
        let request = Request { args: vec!["-H".to_owned()], ..site.request(name, "own", "true") };
        site.submit(&request)
    };
    let two = [waits("w1", &mut site), waits("w2", &mut site)];
    let lane = Change::Lane { qos: Some("extra".to_owned()), partition: None, account: None };
    assert_eq!(site.slurm.update(&two, &lane), Asked::Done);
    for id in two {
        site.until(id, "in extra", |job| &*job.qos == "extra");
    }
    let back = Change::Lane { qos: Some("own".to_owned()), partition: None, account: None };
    let asked = site.slurm.update(&[stays, JobId(999_999), two[0], two[1]], &back);
    assert!(matches!(&asked, Asked::Failed(text) if text.contains("exit code 1")), "{asked:?}");
    site.until(two[1], "back in own", |job| &*job.qos == "own");
    assert_eq!(
        site.slurm.update(&two, &Change::Exclude(vec!["a1".into(), "c1".into()])),
        Asked::Done
    );
    let shown = site.until(two[0], "there", |_| true).excluded;
    assert!(shown.is_none_or(|nodes| nodes == ["a1", "c1"]));
    assert_eq!(site.slurm.update(&two, &Change::Exclude(vec![])), Asked::Done);
    assert_eq!(site.slurm.update(&two, &Change::Nice(30)), Asked::Done);
    site.until(two[1], "nice", |job| job.nice == 30);

    // What is ended is found in the accounting, with every name that was asked for.
    assert_eq!(site.slurm.cancel(&[stays, JobId(999_999)]), Asked::Done);
    site.until(stays, "over", |job| job.state.is_over());
    let names = [says, stays].map(|id| if id == says { "says" } else { "stays" });
    let names = names.map(|name| format!("{name}.{}", site.now)).to_vec();
    let ask = PastAsk { names: names.clone(), since: Time(site.now) };
    let begin = Instant::now();
    let past = loop {
        match site.slurm.past(&ask) {
            // A cluster without accounting.
            Err(gap) if gap.kind == GapKind::Off => break Vec::new(),
            past => {
                let past = past.expect("sacct");
                if past.iter().filter(|job| job.end.is_some()).count() == 2 {
                    break past;
                }
                assert!(begin.elapsed() < Duration::from_secs(60), "{past:?}");
            }
        }
    };
    for job in past {
        assert!(names.contains(&job.name) && job.uid == site.me);
        assert_eq!(job.submitted.is_some(), job.ended.is_some());
        if job.id == stays {
            // The `by` goes away again when the last step reports its end.
            assert_eq!(job.end, Some(EndWord::Cancelled));
            assert!(job.cancelled_by.is_none_or(|by| by == site.me));
            assert_eq!(job.submitted, Some(submitted));
        }
    }

    assert_eq!(site.slurm.qos_gpus("own").expect("scontrol"), Some(4));
    assert_eq!(site.slurm.qos_gpus("extra").expect("scontrol"), None);
    let gap = site.slurm.qos_gpus("nosuch").expect_err("there is none");
    assert!(gap.detail.contains("nosuch"), "{gap}");

    // Refusals.
    let refused = |request: &Request, site: &mut Site| match site.slurm.submit(request) {
        Submitted::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    let bad = Request { gres: "gpu:h100:1".to_owned(), ..site.request("bad", "own", "true") };
    let refusal = refused(&bad, &mut site);
    assert_eq!(refusal.class, RefusalClass::Request);
    assert!(
        refusal.text.contains("Requested node configuration is not available"),
        "{}",
        refusal.text
    );
    let file = site.dir.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let bad = Request { log_dir: file.join("logs"), ..site.request("bad", "own", "true") };
    assert!(refused(&bad, &mut site).text.contains("log folder"));
    let bad = Request {
        launch: Launch::Script(Path::new("/nowhere.sbatch").to_owned()),
        ..site.request("bad", "own", "true")
    };
    assert!(refused(&bad, &mut site).text.contains("Unable to open file"));
}
