//! The cluster as one user meets it: the trait `Slurm`, with the faults on the way.

use std::sync::Arc;

use super::cluster::Cluster;
use super::effect::Effect;
use super::faults::{Command, DBD, Fault, Hit};
use super::hardware::NodeState;
use super::job::{Job, Phase};
use super::rows::Rows;
use super::site::{Accounting, Controller};
use super::work::Work;
use crate::model::cluster::{Node, QueueJob};
use crate::model::id::JobId;
use crate::model::observation::{self, Gap, GapKind, PastJob, Seen};
use crate::model::request::{Asked, Change, Refusal, RefusalClass, Request, Submitted};
use crate::slurm::{PastAsk, Scope, Slurm};

/// A user at the command line.
#[derive(Debug)]
pub struct Door<'a, W = Rows> {
    pub cluster: &'a mut Cluster<W>,
    pub uid: u32,
}

impl<W: Work> Cluster<W> {
    /// The trait, for this user (made known if new).
    pub fn door(&mut self, user: &str) -> Door<'_, W> {
        let uid = self.uid_of(user);
        Door { cluster: self, uid }
    }

    /// What becomes of a call before the request is looked at.
    fn trouble(&mut self, command: Command) -> Option<Hit> {
        let scripted = self.faults.draw(command);
        let database = matches!(command, Command::Sacct | Command::Sacctmgr);
        let down = |text: &str, fault, certain| Hit {
            fault,
            text: text.to_owned(),
            certain,
            scripted: false,
        };
        match self.controller {
            _ if database => scripted,
            Controller::Up => scripted,
            Controller::Down => {
                let text = "Unable to contact slurm controller (connect failure)";
                Some(down(text, Fault::Error, true))
            }
            Controller::Stalled => {
                let text = "Socket timed out on send/recv operation";
                Some(down(text, Fault::LostReply, false))
            }
        }
    }

    /// Lets a change happen now, later or never, as the fault has it. True: it was done just now
    /// and the caller may use what came of it.
    fn fate(&mut self, hit: Option<&Hit>, effect: impl FnOnce() -> Effect) -> bool {
        if self.controller == Controller::Stalled {
            self.waiting.push(effect());
            return false;
        }
        match hit.map(|hit| hit.fault) {
            None => true,
            Some(Fault::LostReply | Fault::HangDone | Fault::Torn | Fault::FalseAlarm) => true,
            Some(Fault::HangLate(after)) => {
                self.calendar.put(self.now + after, super::clock::Due::Effect(effect()));
                false
            }
            Some(Fault::Silent) => matches!(effect(), Effect::Submit { .. }),
            Some(Fault::Error | Fault::Hang | Fault::Bare) => false,
        }
    }

    pub(super) fn squeue(&mut self, uid: Option<u32>) -> Vec<QueueJob> {
        let mut sheet = std::mem::take(match uid {
            None => &mut self.lines.jobs,
            Some(_) => &mut self.lines.mine,
        });
        let all = self.queue.iter().filter_map(|&place| self.jobs.get(place));
        let asked = all.filter(|job| uid.is_none_or(|uid| uid == job.uid));
        let nowhere: Arc<str> = Arc::default();
        let write = |job: &Job, line: &mut QueueJob| {
            let partition = self.partitions.get(job.partition).unwrap_or(&nowhere);
            let node = match &job.phase {
                Phase::Running(run) => self.nodes.get(run.node).map_or("", |n| n.name.as_str()),
                Phase::Pending | Phase::Over => "",
            };
            let qos = self.qos_shown(job, &line.qos);
            job.show(line, qos, partition, node);
        };
        let shown = sheet.renew(asked, write, |job| self.priority(job));
        match uid {
            None => self.lines.jobs = sheet,
            Some(_) => self.lines.mine = sheet,
        }
        shown
    }

    pub(super) fn sinfo(&mut self) -> Vec<Node> {
        let mut lines = std::mem::take(&mut self.lines.nodes);
        let there = self.nodes.iter().filter(|node| node.state != NodeState::Gone);
        let mut count = 0;
        for node in there {
            match lines.get_mut(count) {
                Some(line) => node.show(line),
                None => {
                    let mut line = Node::default();
                    node.show(&mut line);
                    lines.push(line);
                }
            }
            count += 1;
        }
        lines.truncate(count);
        lines
    }

    /// What a look showed and nobody needs any more: the next one writes over it, which is cheaper
    /// than to make every line of squeue and sinfo anew. It must be this cluster's own.
    pub fn take_back(&mut self, seen: observation::Cluster) {
        self.lines.jobs.take_back(seen.jobs);
        self.lines.nodes = seen.nodes;
    }
}

impl<W: Work> Door<'_, W> {
    fn who(&self, scope: Scope) -> Option<u32> {
        match scope {
            Scope::Everybody => None,
            Scope::Mine => Some(self.uid),
        }
    }

    /// False: a header and no rows.
    fn read(&mut self, command: Command) -> Seen<bool> {
        match self.cluster.trouble(command) {
            None => Ok(true),
            Some(Hit { fault: Fault::Bare, .. }) => Ok(false),
            Some(hit) => Err(gap(command, &hit)),
        }
    }
}

impl<W: Work> Slurm for Door<'_, W> {
    fn look(&mut self, scope: Scope) -> Seen<observation::Cluster> {
        self.cluster.calls.looks += 1;
        self.cluster.calls.sinfo += 1;
        // Both are under way before either answers, so both have their luck.
        let nodes = self.read(Command::Sinfo);
        let jobs = self.jobs(scope)?;
        let nodes = if nodes? { self.cluster.sinfo() } else { Vec::new() };
        Ok(observation::Cluster { jobs, nodes, me: self.uid })
    }

    fn jobs(&mut self, scope: Scope) -> Seen<Vec<QueueJob>> {
        self.cluster.calls.squeue += 1;
        if !self.read(Command::Squeue)? {
            return Ok(Vec::new());
        }
        Ok(self.cluster.squeue(self.who(scope)))
    }

    fn take_back(&mut self, jobs: Vec<QueueJob>) {
        self.cluster.lines.mine.take_back(jobs);
    }

    fn past(&mut self, ask: &PastAsk) -> Seen<Vec<PastJob>> {
        self.cluster.calls.sacct += 1;
        let rows = self.read(Command::Sacct)?;
        self.cluster.accounting_answers(Command::Sacct)?;
        Ok(if rows { self.cluster.sacct(self.uid, ask) } else { Vec::new() })
    }

    fn qos_gpus(&mut self, qos: &str) -> Seen<Option<u32>> {
        self.cluster.calls.sacctmgr += 1;
        let rows = self.read(Command::Sacctmgr)?;
        self.cluster.accounting_answers(Command::Sacctmgr)?;
        Ok(self.cluster.qos.iter().find(|q| rows && *q.name == *qos).and_then(|q| q.gpus))
    }

    fn takes_both(&mut self, request: &Request) -> Seen<(bool, String)> {
        self.cluster.calls.sbatch += 1;
        self.read(Command::Sbatch)?;
        let qos = request.qos.as_deref().and_then(|names| self.cluster.qos_list(self.uid, names));
        let words = if qos.is_some() { "slurm 24.11" } else { "Invalid qos specification" };
        Ok((qos.is_some(), words.to_owned()))
    }

    fn submit(&mut self, request: &Request) -> Submitted {
        self.cluster.calls.sbatch += 1;
        let hit = self.cluster.trouble(Command::Sbatch);
        let uid = self.uid;
        let effect = || Effect::Submit { uid, request: Box::new(request.clone()) };
        let done = self.cluster.fate(hit.as_ref(), effect);
        let answer = done.then(|| self.cluster.accept(uid, request));
        self.cluster.catch_up();
        match (hit, answer) {
            (None, Some(Ok(id))) => Submitted::Accepted(id),
            (None, Some(Err(refusal))) => Submitted::Refused(refusal),
            (None, None) => Submitted::Unknown("sbatch: no answer".to_owned()),
            (Some(hit), _) if hit.certain => {
                Submitted::Refused(Refusal { class: RefusalClass::Overload, text: hit.text })
            }
            // A scenario's own words for a request that Slurm will never take.
            (Some(hit), _) if hit.scripted && hit.text.contains("failed: Invalid ") => {
                Submitted::Refused(Refusal { class: RefusalClass::Request, text: hit.text })
            }
            (Some(hit), _) => Submitted::Unknown(said(Command::Sbatch, &hit)),
        }
    }

    fn update(&mut self, jobs: &[JobId], change: &Change) -> Asked {
        self.cluster.calls.scontrol += 1;
        let hit = self.cluster.trouble(Command::Scontrol);
        let uid = self.uid;
        let effect = || Effect::Update { uid, jobs: jobs.to_vec(), change: change.clone() };
        let done = self.cluster.fate(hit.as_ref(), effect);
        let answer = if done { self.cluster.change(uid, jobs, change) } else { Ok(()) };
        self.cluster.catch_up();
        asked(Command::Scontrol, jobs, hit, answer)
    }

    /// Commands of the user's are only written down: what they would do is the scenario's to say.
    fn run(&mut self, line: &str) -> Asked {
        self.cluster.ran.push(line.to_owned());
        match &self.cluster.run_fails {
            Some(text) => Asked::Failed(text.clone()),
            None => Asked::Done,
        }
    }

    fn cancel(&mut self, jobs: &[JobId]) -> Asked {
        self.cluster.calls.scancel += 1;
        let hit = self.cluster.trouble(Command::Scancel);
        let uid = self.uid;
        let effect = || Effect::Cancel { uid, jobs: jobs.to_vec() };
        let done = self.cluster.fate(hit.as_ref(), effect);
        let answer = if done { self.cluster.scancel(uid, jobs) } else { Ok(()) };
        self.cluster.catch_up();
        asked(Command::Scancel, jobs, hit, answer)
    }
}

impl<W: Work> Cluster<W> {
    fn accounting_answers(&self, command: Command) -> Seen<()> {
        let (kind, text) = match self.site.accounting {
            Accounting::On => return Ok(()),
            Accounting::Down => (GapKind::Failed, DBD),
            Accounting::Off => (GapKind::Off, "Slurm accounting storage is disabled"),
        };
        let source = command.word().to_owned();
        Err(Gap { kind, source, detail: format!("exit code 1: {text}") })
    }
}

fn asked(command: Command, jobs: &[JobId], hit: Option<Hit>, answer: Result<(), String>) -> Asked {
    match (hit, answer) {
        (None, Ok(())) => Asked::Done,
        (Some(Hit { fault: Fault::Silent | Fault::Bare, .. }), _) => Asked::Done,
        (None, Err(text)) => Asked::Failed(format!("{}: exit code 1: {text}", command.word())),
        (Some(mut hit), _) => {
            if command == Command::Scontrol && !hit.scripted {
                // Whatever went wrong, these are its words (section 3).
                let id = jobs.first().copied().unwrap_or_default();
                hit.text = match hit.fault {
                    Fault::FalseAlarm => format!("Access/permission denied for job {id}"),
                    _ => format!("Unexpected message received for job {id}"),
                };
            }
            Asked::Failed(said(command, &hit))
        }
    }
}

fn said(command: Command, hit: &Hit) -> String {
    let word = command.word();
    match hit.fault {
        Fault::Hang | Fault::HangDone | Fault::HangLate(_) => {
            format!("{word}: no answer by the deadline, ended")
        }
        Fault::Silent | Fault::Bare => format!("{word}: exit code 0, printed nothing"),
        Fault::Torn => format!("{word}: exit code 0, the output breaks off"),
        Fault::Error | Fault::LostReply | Fault::FalseAlarm => {
            format!("{word}: exit code 1: {}", hit.text)
        }
    }
}

fn gap(command: Command, hit: &Hit) -> Gap {
    let source = command.word().to_owned();
    let (kind, detail) = match hit.fault {
        Fault::Hang | Fault::HangDone | Fault::HangLate(_) => {
            (GapKind::TimedOut, "no answer by the deadline, ended".to_owned())
        }
        Fault::Silent | Fault::Bare => {
            (GapKind::Unreadable, "exit code 0, printed nothing where a header is due".to_owned())
        }
        Fault::Torn => (GapKind::Unreadable, "the last line breaks off".to_owned()),
        Fault::Error | Fault::LostReply | Fault::FalseAlarm => {
            (GapKind::Failed, format!("exit code 1: {}", hit.text))
        }
    };
    Gap { kind, source, detail }
}
