//! What goes wrong between a command and its answer, by chance of a seed or by script.
//!
//! Texts are Slurm's own (facts, sections 3 and 4). What a fault does to each command is in door.rs.

use super::rng::Rng;
use crate::model::units::Secs;

/// The commands behind the trait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    Squeue,
    Sinfo,
    Sacct,
    Sacctmgr,
    Sbatch,
    Scontrol,
    Scancel,
}

impl Command {
    pub const ALL: [Command; 7] = [
        Command::Squeue,
        Command::Sinfo,
        Command::Sacct,
        Command::Sacctmgr,
        Command::Sbatch,
        Command::Scontrol,
        Command::Scancel,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Command::Squeue => "squeue",
            Command::Sinfo => "sinfo",
            Command::Sacct => "sacct",
            Command::Sacctmgr => "sacctmgr",
            Command::Sbatch => "sbatch",
            Command::Scontrol => "scontrol",
            Command::Scancel => "scancel",
        }
    }

    /// What Slurm puts before its reason (section 4, "X"); scontrol update never says a word about
    /// the controller, see door.rs.
    fn prefix(self) -> &'static str {
        match self {
            Command::Squeue => "slurm_load_jobs error: ",
            Command::Sinfo => "slurm_load_partitions: ",
            Command::Sbatch => "sbatch: error: Batch job submission failed: ",
            Command::Scancel => "scancel: error: Kill job error: ",
            Command::Sacct | Command::Sacctmgr | Command::Scontrol => "",
        }
    }
}

/// One thing that goes wrong. Of a reading there is nothing to take effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An error, and nothing was done.
    Error,
    /// The same error, and it was done: the answer was lost.
    LostReply,
    /// No answer by the deadline, and nothing was done.
    Hang,
    /// No answer by the deadline, and it was done.
    HangDone,
    /// No answer by the deadline, and it is done so much later.
    HangLate(Secs),
    /// rc 0 and not a byte. A change was not made; a submission was.
    Silent,
    /// The output breaks off in a line. Changes were made.
    Torn,
    /// Done in full, and yet an error and a non-zero rc.
    FalseAlarm,
    /// A reading with its header and not one row, rc 0: a filter in the environment, or a
    /// controller that has not read its state yet. Looks like the truth, so it is in no mix; a
    /// change is not made.
    Bare,
}

impl Fault {
    /// Every kind that can be told from the truth, once.
    pub const MIX: [Fault; 8] = [
        Fault::Error,
        Fault::LostReply,
        Fault::Hang,
        Fault::HangDone,
        Fault::HangLate(Secs(20)),
        Fault::Silent,
        Fault::Torn,
        Fault::FalseAlarm,
    ];
}

/// A fault that has been drawn, with the reason that Slurm gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hit {
    pub fault: Fault,
    /// First stderr line.
    pub text: String,
    /// The text says that the controller took nothing in.
    pub certain: bool,
    /// The scenario chose the words.
    pub scripted: bool,
}

const LOST: [&str; 3] = [
    "Connection reset by peer",
    "Zero Bytes were transmitted or received",
    "Socket timed out on send/recv operation",
];
const NEVER_SENT: [&str; 2] =
    ["Unable to contact slurm controller (connect failure)", "Protocol authentication error"];
pub(super) const DBD: &str = "Problem talking to the database: Connection refused";

/// When commands fail. The default is never.
#[derive(Debug, Clone, PartialEq)]
pub struct Faults {
    rates: [f64; 7],
    mix: Vec<Fault>,
    /// One stream per command: another call of one leaves the others' luck as it was.
    luck: Vec<Rng>,
    script: Vec<(Command, Fault, Option<String>)>,
    /// How many were dealt.
    pub dealt: u64,
}

impl Faults {
    pub fn none() -> Faults {
        Faults::seeded(0)
    }

    pub fn seeded(seed: u64) -> Faults {
        Faults {
            rates: [0.0; 7],
            mix: Fault::MIX.to_vec(),
            luck: (0..7).map(|n| Rng::stream(seed, n)).collect(),
            script: Vec::new(),
            dealt: 0,
        }
    }

    /// Every command fails with this probability.
    pub fn all(mut self, probability: f64) -> Faults {
        self.rates = [probability; 7];
        self
    }

    pub fn rate(mut self, command: Command, probability: f64) -> Faults {
        if let Some(rate) = self.rates.get_mut(command as usize) {
            *rate = probability;
        }
        self
    }

    /// Only these kinds, each equally likely; one named twice is twice as likely.
    pub fn only(mut self, kinds: &[Fault]) -> Faults {
        self.mix = kinds.to_vec();
        self
    }

    /// The next call of this command that no earlier line of the script takes fails so.
    pub fn next(&mut self, command: Command, fault: Fault) {
        self.script.push((command, fault, None));
    }

    /// As `next`, with this first stderr line (without Slurm's prefix).
    pub fn next_says(&mut self, command: Command, fault: Fault, text: &str) {
        self.script.push((command, fault, Some(text.to_owned())));
    }

    pub(super) fn draw(&mut self, command: Command) -> Option<Hit> {
        let scripted = self.script.iter().position(|(c, _, _)| *c == command);
        let luck = self.luck.get_mut(command as usize)?;
        let (fault, said) = match scripted {
            Some(place) => {
                let (_, fault, said) = self.script.remove(place);
                (fault, said)
            }
            None => {
                let rate = self.rates.get(command as usize).copied().unwrap_or(0.0);
                if rate <= 0.0 || !luck.chance(rate) {
                    return None;
                }
                (*self.mix.get(luck.below(self.mix.len() as u64) as usize)?, None)
            }
        };
        self.dealt += 1;
        let scripted = said.is_some();
        let database = matches!(command, Command::Sacct | Command::Sacctmgr);
        let text = match (said, fault) {
            (Some(text), _) => text,
            (None, _) if database => DBD.to_owned(),
            // Only an error without effect may claim that nothing was taken in.
            (None, Fault::Error) if luck.chance(0.5) => one_of(luck, &NEVER_SENT),
            (None, _) => one_of(luck, &LOST),
        };
        let certain = fault == Fault::Error && NEVER_SENT.iter().any(|t| text.contains(t));
        Some(Hit { fault, text: format!("{}{text}", command.prefix()), certain, scripted })
    }
}

fn one_of(luck: &mut Rng, texts: &[&str]) -> String {
    texts.get(luck.below(texts.len() as u64) as usize).copied().unwrap_or_default().to_owned()
}

/// How often each command was called, faults included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Calls {
    /// squeue and sinfo side by side: what every cycle costs. Counted in `squeue` and `sinfo` too.
    pub looks: u64,
    pub squeue: u64,
    pub sinfo: u64,
    pub sacct: u64,
    pub sacctmgr: u64,
    pub sbatch: u64,
    pub scontrol: u64,
    pub scancel: u64,
}

impl Calls {
    /// Processes started in all.
    pub fn commands(&self) -> u64 {
        self.squeue + self.sinfo + self.sacct + self.sacctmgr + self.changes()
    }

    /// Those that change Slurm.
    pub fn changes(&self) -> u64 {
        self.sbatch + self.scontrol + self.scancel
    }

    /// What was called since an earlier count.
    pub fn since(&self, earlier: &Calls) -> Calls {
        Calls {
            looks: self.looks - earlier.looks,
            squeue: self.squeue - earlier.squeue,
            sinfo: self.sinfo - earlier.sinfo,
            sacct: self.sacct - earlier.sacct,
            sacctmgr: self.sacctmgr - earlier.sacctmgr,
            sbatch: self.sbatch - earlier.sbatch,
            scontrol: self.scontrol - earlier.scontrol,
            scancel: self.scancel - earlier.scancel,
        }
    }
}
