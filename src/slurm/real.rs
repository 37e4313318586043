//! The real Slurm: finds the commands, runs them, hands on what they said.
//!
//! Decides nothing, keeps nothing between calls but where a command was found.

use std::collections::HashMap;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::model::cluster::{Node, QueueJob};
use crate::model::id::JobId;
use crate::model::observation::{Cluster, Gap, GapKind, PastJob, Seen};
use crate::model::policy::SlurmSettings;
use crate::model::request::{Asked, Change, Refusal, RefusalClass, Request, Submitted};

pub use super::environment::Environment;

use super::command::{Call, NotFound, Outcome, follow, quote, render, run};
use super::{
    PastAsk, Scope, Slurm, error, health, rows, sacct, sbatch, scancel, scontrol, sinfo, squeue,
};

/// Where sites put Slurm when it is not on cron's PATH.
const USUAL_PLACES: [&str; 5] = [
    "/usr/bin",
    "/usr/local/bin",
    "/opt/slurm/bin",
    "/usr/local/slurm/bin",
    "/cm/shared/apps/slurm/current/bin",
];
/// Slurm's own messages come after 10 to 20 s; less would end commands before they speak.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// sbatch tries again inside for up to two minutes, and an interrupted one leaves a job behind.
const SBATCH_TIMEOUT: Duration = Duration::from_secs(180);

/// Less than this is not given to sbatch: it says by itself after about 10 s what is wrong.
const SBATCH_LEAST: Duration = Duration::from_secs(10);
const OUT_OF_TIME: &str =
    "not asked: this tick's time is used up (`tick_budget` under [policy]), the next one goes on";

/// The trait [`Slurm`] on top of the commands.
#[derive(Debug)]
pub struct RealSlurm {
    bin_dir: Option<PathBuf>,
    timeout: Duration,
    environment: Environment,
    tags: rows::Tags,
    found: HashMap<&'static str, Result<String, NotFound>>,
    /// When the time of this cycle is used up; no command runs longer.
    ends: Option<Instant>,
}

const COMMANDS: [&str; 7] =
    ["squeue", "sinfo", "sacct", "sbatch", "scontrol", "scancel", "sacctmgr"];

impl RealSlurm {
    /// `seed` makes the separators of this run differ from those of any other: time, process id.
    pub fn new(settings: &SlurmSettings, environment: Environment, seed: u64) -> RealSlurm {
        let timeout = match u64::try_from(settings.timeout.0) {
            Ok(seconds) if seconds > 0 => Duration::from_secs(seconds),
            _ => DEFAULT_TIMEOUT,
        };
        let mut slurm = RealSlurm {
            bin_dir: settings.bin_dir.clone(),
            timeout,
            environment,
            tags: rows::Tags::new(seed),
            found: HashMap::new(),
            ends: None,
        };
        slurm.found = COMMANDS.into_iter().map(|name| (name, slurm.find(name))).collect();
        slurm
    }

    /// From now on all commands together may take so long: whoever holds a lock meanwhile holds it
    /// no longer, however many commands hang.
    pub fn with_budget(mut self, budget: Duration) -> RealSlurm {
        self.ends = Instant::now().checked_add(budget);
        self
    }

    /// What a command may take of `usual`; nothing left: it is not started.
    fn within_budget(&self, usual: Duration) -> Result<Duration, NotFound> {
        let Some(ends) = self.ends else { return Ok(usual) };
        match ends.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(NotFound(OUT_OF_TIME.to_owned())),
            left => Ok(usual.min(left)),
        }
    }

    /// Path of a command, or what is wrong. For `doctor`.
    pub fn path_of(&self, name: &str) -> Result<String, NotFound> {
        let unused = || Err(NotFound(format!("babysit does not use a command {name}")));
        self.found.get(name).cloned().unwrap_or_else(unused)
    }

    /// Is this folder looked at also where PATH is as poor as cron's?
    pub fn finds_without_path(&self, folder: &str) -> bool {
        let folder = Path::new(folder);
        self.bin_dir.is_some() || USUAL_PLACES.iter().any(|place| Path::new(place) == folder)
    }

    fn find(&self, name: &str) -> Result<String, NotFound> {
        let path = self.environment.path.as_deref().unwrap_or("");
        let places: Vec<&Path> = match &self.bin_dir {
            Some(dir) => vec![dir.as_path()],
            // An entry that is relative would depend on the folder that cron happens to be in.
            None => path
                .split(':')
                .map(Path::new)
                .filter(|dir| dir.is_absolute())
                .chain(USUAL_PLACES.map(Path::new))
                .collect(),
        };
        let is_program = |file: &PathBuf| {
            std::fs::metadata(file)
                .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        };
        let found = places.iter().map(|dir| dir.join(name)).find(is_program);
        let path = found.as_deref().and_then(Path::to_str).map(str::to_owned);
        path.ok_or_else(|| match &self.bin_dir {
            Some(dir) => NotFound(format!(
                "no program {name} in {}; correct `bin_dir` under [slurm] in shards.toml",
                dir.display()
            )),
            None => NotFound(format!(
                "no program {name} on PATH nor in the usual places; set `bin_dir` under [slurm] in shards.toml"
            )),
        })
    }

    /// Program and arguments; the bare name where it was not found.
    fn line(&self, name: &'static str, arguments: Vec<String>) -> Vec<String> {
        let program = self.path_of(name).unwrap_or_else(|_| name.to_owned());
        std::iter::once(program).chain(arguments).collect()
    }

    /// `by` runs the command.
    fn call(
        &self,
        name: &'static str,
        arguments: Vec<String>,
        env: &[(String, String)],
        stdin: Option<&[u8]>,
        deadline: Duration,
        by: impl FnOnce(&Call<'_>) -> Result<Outcome, NotFound>,
    ) -> Result<Outcome, NotFound> {
        self.path_of(name)?;
        let deadline = self.within_budget(deadline)?;
        let argv = self.line(name, arguments);
        by(&Call { argv: &argv, env, stdin, deadline })
    }

    /// stdout of a reading command, and the command as it is named in faults.
    pub(super) fn read(
        &self,
        name: &'static str,
        arguments: Vec<String>,
    ) -> Seen<(String, String)> {
        self.read_by(name, arguments, run)
    }

    /// The same; `by` runs the command.
    fn read_by(
        &self,
        name: &'static str,
        arguments: Vec<String>,
        by: impl FnOnce(&Call<'_>) -> Result<Outcome, NotFound>,
    ) -> Seen<(String, String)> {
        let mut shown = vec![name.to_owned()];
        // Lists of columns and names are long, separators are no sight for people.
        shown.extend(arguments.iter().map(|a| {
            match a.len() > 40 || a.contains(char::is_control) {
                true => "...".to_owned(),
                false => a.clone(),
            }
        }));
        let source = render(&shown);
        let env = self.environment.of_reading(self.bin_dir.as_deref());
        let outcome = self.call(name, arguments, &env, None, self.timeout, by);
        Ok((error::reading(&source, outcome)?, source))
    }

    fn read_jobs(&self, scope: Scope, separator: &str) -> Seen<Vec<QueueJob>> {
        let arguments = squeue::argv(scope, self.environment.me, separator);
        let mut reading = squeue::Reading::new(separator);
        let (_, source) = self
            .read_by("squeue", arguments, |call| follow(call, &mut |bytes| reading.feed(bytes)))?;
        reading.end().map_err(|fault| error::unreadable(&source, fault))
    }

    fn read_nodes(&self, separator: &str) -> Seen<Vec<Node>> {
        let (text, source) = self.read("sinfo", sinfo::argv(separator))?;
        sinfo::parse(&text, separator).map_err(|fault| error::unreadable(&source, fault))
    }

    /// sinfo alone.
    pub fn nodes(&mut self) -> Seen<Vec<Node>> {
        let separator = self.tags.next_separator();
        self.read_nodes(&separator)
    }

    fn change_all(&self, name: &'static str, calls: impl Iterator<Item = Vec<String>>) -> Asked {
        // All calls are made, whatever the first one says: they concern other jobs.
        let faults: Vec<String> = calls
            .filter_map(|arguments| {
                let ran = self.call(
                    name,
                    arguments,
                    &self.environment.of_reading(self.bin_dir.as_deref()),
                    None,
                    self.timeout,
                    run,
                );
                error::asked(name, &ran).err()
            })
            .collect();
        match faults.into_iter().next() {
            None => Asked::Done,
            Some(fault) => Asked::Failed(fault),
        }
    }

    /// The shell lines that do what [`Slurm::submit`] does.
    pub fn lines_for_submit(&self, request: &Request) -> Vec<String> {
        let arguments = match sbatch::argv(request) {
            Ok(arguments) => arguments,
            Err(fault) => return vec![format!("# cannot be submitted: {fault}")],
        };
        let mut line = String::new();
        for (name, value) in request.env.iter() {
            line += &format!("{name}={} ", quote(value));
        }
        line += &render(&self.line("sbatch", arguments));
        if let Some(script) = sbatch::script(request) {
            let mut end = "END".to_owned();
            while script.lines().any(|line| line == end) {
                end.push('_');
            }
            line += &format!(" <<'{end}'\n{script}{end}");
        }
        let folder = request.log_dir.display().to_string();
        vec![render(&["mkdir".to_owned(), "-p".to_owned(), folder]), line]
    }

    /// The shell lines that do what [`Slurm::update`] does.
    pub fn lines_for_change(&self, jobs: &[JobId], change: &Change) -> Vec<String> {
        updates(jobs, change).map(|arguments| render(&self.line("scontrol", arguments))).collect()
    }

    /// The shell lines that do what [`Slurm::cancel`] does.
    pub fn lines_for_cancel(&self, jobs: &[JobId]) -> Vec<String> {
        cancels(jobs).map(|arguments| render(&self.line("scancel", arguments))).collect()
    }
}

impl RealSlurm {
    /// A command line of the user's, by a shell, with `stdin` to read and `env` on top. Slurm has
    /// nothing to do with it, so the time of the cycle is not counted.
    pub fn hook(
        &self,
        line: &str,
        stdin: &[u8],
        env: Vec<(String, String)>,
        deadline: Duration,
    ) -> Asked {
        let argv = ["/bin/sh", "-c", line].map(str::to_owned);
        let mut all = self.environment.base(self.bin_dir.as_deref());
        all.extend(env);
        let outcome = run(&Call { argv: &argv, env: &all, stdin: Some(stdin), deadline });
        error::asked(line, &outcome).map_or_else(Asked::Failed, |()| Asked::Done)
    }
}

/// With its parents; for user and group at most, whatever the umask: others could put files there.
pub(super) fn make_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o775).create(folder)
}

fn updates<'a>(jobs: &'a [JobId], change: &'a Change) -> impl Iterator<Item = Vec<String>> + 'a {
    jobs.chunks(scontrol::MOST_JOBS).filter_map(|jobs| scontrol::argv(jobs, change))
}

fn cancels(jobs: &[JobId]) -> impl Iterator<Item = Vec<String>> + '_ {
    jobs.chunks(scontrol::MOST_JOBS).map(scancel::argv)
}

impl Slurm for RealSlurm {
    fn look(&mut self, scope: Scope) -> Seen<Cluster> {
        let (first, second) = (self.tags.next_separator(), self.tags.next_separator());
        let this = &*self;
        let (jobs, nodes) = std::thread::scope(|scope_of_threads| {
            let nodes = scope_of_threads.spawn(|| this.read_nodes(&second));
            let jobs = this.read_jobs(scope, &first);
            (jobs, nodes.join())
        });
        let died = |_| error::unreadable("sinfo", "reading it failed inside of babysit".to_owned());
        Ok(Cluster { jobs: jobs?, nodes: nodes.map_err(died)??, me: self.environment.me })
    }

    fn jobs(&mut self, scope: Scope) -> Seen<Vec<QueueJob>> {
        let separator = self.tags.next_separator();
        self.read_jobs(scope, &separator)
    }

    fn past(&mut self, ask: &PastAsk) -> Seen<Vec<PastJob>> {
        let separator = self.tags.next_separator();
        let (text, source) = self.read("sacct", sacct::argv(ask, &separator))?;
        sacct::parse(&text, &separator, ask).map_err(|fault| error::unreadable(&source, fault))
    }

    fn qos_gpus(&mut self, qos: &str) -> Seen<Option<u32>> {
        // The accounting first. On a cluster without one, asking the controller of 22.05 for this ends
        // the controller (measured, twice of two); sacctmgr sees the lack by itself, from slurm.conf.
        let (found, source) = match self.read("sacctmgr", scontrol::sacctmgr_argv(qos)) {
            Ok((text, source)) => (scontrol::parse_sacctmgr(&text, qos), source),
            // Its daemon is away; the controller goes on enforcing what it knows.
            Err(gap) if gap.kind == GapKind::Failed => {
                let (text, source) = self.read("scontrol", scontrol::qos_argv(qos))?;
                (scontrol::parse_qos(&text, qos), source)
            }
            Err(gap) => return Err(gap),
        };
        let detail = format!("Slurm knows no QOS {qos:?}, or hides it from you");
        match found {
            Ok(Some(limit)) => Ok(limit),
            Ok(None) => Err(Gap { kind: GapKind::Failed, source, detail }),
            Err(fault) => Err(error::unreadable(&source, fault)),
        }
    }

    fn takes_both(&mut self, request: &Request) -> Seen<(bool, String)> {
        let version = self.version()?;
        if !health::takes_a_list_of_qos(&version) {
            return Ok((false, version));
        }
        let source = "sbatch --test-only";
        let arguments =
            sbatch::dry_argv(request).map_err(|fault| error::unreadable(source, fault))?;
        let script = sbatch::script(request);
        let stdin = script.as_ref().map(String::as_bytes);
        let env = self.environment.of_sbatch(self.bin_dir.as_deref(), request);
        let ran = self.call("sbatch", arguments, &env, stdin, self.timeout, run);
        Ok(match sbatch::parse_dry(source, ran)? {
            Ok(()) => (true, version),
            Err(words) => (false, format!("{version}: {words}")),
        })
    }

    fn submit(&mut self, request: &Request) -> Submitted {
        let refused = |text| Submitted::Refused(Refusal { class: RefusalClass::Request, text });
        let arguments = match sbatch::argv(request) {
            Ok(arguments) => arguments,
            Err(fault) => return refused(fault),
        };
        // Without its folder a job fails within seconds, with no word but `0:53`.
        if let Err(fault) = make_folder(&request.log_dir) {
            let folder = request.log_dir.display();
            let text = format!("the log folder {folder} cannot be made: {fault}");
            return Submitted::Refused(Refusal { class: error::of_folder(&fault), text });
        }
        // Ended too early it would leave a job behind whose fate must be found out.
        let enough = |left: Duration| left >= SBATCH_LEAST;
        if !self.within_budget(SBATCH_TIMEOUT).is_ok_and(enough) {
            let text = OUT_OF_TIME.to_owned();
            return Submitted::Refused(Refusal { class: RefusalClass::Limit, text });
        }
        let script = sbatch::script(request);
        let stdin = script.as_ref().map(String::as_bytes);
        let deadline = self.timeout.max(SBATCH_TIMEOUT);
        let env = self.environment.of_sbatch(self.bin_dir.as_deref(), request);
        sbatch::parse(&self.call("sbatch", arguments, &env, stdin, deadline, run))
    }

    fn update(&mut self, jobs: &[JobId], change: &Change) -> Asked {
        self.change_all("scontrol", updates(jobs, change))
    }

    fn cancel(&mut self, jobs: &[JobId]) -> Asked {
        self.change_all("scancel", cancels(jobs))
    }

    fn run(&mut self, line: &str) -> Asked {
        let argv = ["/bin/sh", "-c", line].map(str::to_owned);
        let env = self.environment.base(self.bin_dir.as_deref());
        let outcome = self
            .within_budget(self.timeout)
            .and_then(|deadline| run(&Call { argv: &argv, env: &env, stdin: None, deadline }));
        error::asked(line, &outcome).map_or_else(Asked::Failed, |()| Asked::Done)
    }
}
