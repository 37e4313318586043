//! Slurm's state words, of jobs and of nodes. Both are open lists: a job word that nobody knows is
//! alive, and a node word that nobody knows is not placeable.

use crate::model::cluster::{EndWord, JobState, Usable};

/// A job's state as squeue or sacct prints it: any letter case, `CANCELLED by 1000`, cut with `+`.
pub fn job(text: &str) -> JobState {
    let word = text.split_whitespace().next().unwrap_or("").to_ascii_uppercase();
    if let Some(end) = end_word(&word) {
        return JobState::Over(end);
    }
    match word.as_str() {
        "PENDING" => JobState::Pending,
        "RUNNING" => JobState::Running,
        _ => JobState::Alive(word),
    }
}

fn end_word(word: &str) -> Option<EndWord> {
    let exact = EndWord::ALL.into_iter().find(|end| end.word() == word);
    let cut = || {
        let begin = word.strip_suffix('+')?;
        let mut fits = EndWord::ALL.into_iter().filter(|end| end.word().starts_with(begin));
        let first = fits.next()?;
        // Two letters could be many words; an ambiguous one is not an end.
        (fits.next().is_none() && begin.len() >= 3).then_some(first)
    };
    exact.or_else(cut)
}

/// The uid in `CANCELLED by 1000`.
pub fn cancelled_by(text: &str) -> Option<u32> {
    text.trim().strip_prefix("CANCELLED by ")?.trim().parse().ok()
}

/// A node's state: what it is, and what else holds of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// `IDLE`, `MIXED`, `ALLOCATED_OR_MIXED` (draining with jobs), ... or `UNRECOGNISED`.
    pub base: &'static str,
    /// `DRAIN`, `NOT_RESPONDING`, `PLANNED`, ... in the order that Slurm gives them.
    pub flags: Vec<String>,
}

/// Word, base, flag that the word implies. Long (`-O StateLong`) and short (`StateCompact`) forms.
const WORDS: [(&str, &str, &str); 49] = [
    ("idle", "IDLE", ""),
    ("mixed", "MIXED", ""),
    ("mix", "MIXED", ""),
    ("allocated", "ALLOCATED", ""),
    ("alloc", "ALLOCATED", ""),
    ("completing", "COMPLETING", ""),
    ("comp", "COMPLETING", ""),
    ("planned", "IDLE", "PLANNED"),
    ("plnd", "IDLE", "PLANNED"),
    ("reserved", "RESERVED", ""),
    ("resv", "RESERVED", ""),
    ("drained", "IDLE", "DRAIN"),
    ("drain", "IDLE", "DRAIN"),
    ("draining", "ALLOCATED_OR_MIXED", "DRAIN"),
    ("drng", "ALLOCATED_OR_MIXED", "DRAIN"),
    ("fail", "FAIL", ""),
    ("failing", "ALLOCATED_OR_MIXED", "FAIL"),
    ("failg", "ALLOCATED_OR_MIXED", "FAIL"),
    ("down", "DOWN", ""),
    ("error", "ERROR", ""),
    ("unknown", "UNKNOWN", ""),
    ("unk", "UNKNOWN", ""),
    ("future", "FUTURE", ""),
    ("futr", "FUTURE", ""),
    ("inval", "INVAL", ""),
    ("invalid", "INVAL", ""),
    ("maint", "IDLE", "MAINT"),
    ("reboot", "IDLE", "REBOOT_ISSUED"),
    ("rebt", "IDLE", "REBOOT_ISSUED"),
    ("reboot_issued", "IDLE", "REBOOT_ISSUED"),
    ("reboot_requested", "IDLE", "REBOOT_REQUESTED"),
    ("boot", "IDLE", "POWERING_UP"),
    ("power_up", "IDLE", "POWERING_UP"),
    ("pow_up", "IDLE", "POWERING_UP"),
    ("powering_up", "IDLE", "POWERING_UP"),
    ("power_down", "IDLE", "POWER_DOWN"),
    ("pow_dn", "IDLE", "POWER_DOWN"),
    ("powering_down", "IDLE", "POWERING_DOWN"),
    ("powrng_dn", "IDLE", "POWERING_DOWN"),
    ("powered_down", "IDLE", "POWERED_DOWN"),
    ("npc", "IDLE", "PERFCTRS"),
    ("perfctrs", "IDLE", "PERFCTRS"),
    ("block", "IDLE", "BLOCKED"),
    ("blocked", "IDLE", "BLOCKED"),
    ("cloud", "IDLE", "CLOUD"),
    ("no_respond", "UNKNOWN", "NOT_RESPONDING"),
    ("not_responding", "UNKNOWN", "NOT_RESPONDING"),
    ("undraining", "UNKNOWN", "DRAIN"),
    ("resuming", "UNKNOWN", "RESUME"),
];

/// sinfo's signs behind a word.
const SIGNS: [(char, &str); 9] = [
    ('*', "NOT_RESPONDING"),
    ('~', "POWERED_DOWN"),
    ('#', "POWERING_UP"),
    ('!', "POWER_DOWN"),
    ('%', "POWERING_DOWN"),
    ('$', "MAINT"),
    ('@', "REBOOT_REQUESTED"),
    ('^', "REBOOT_ISSUED"),
    ('-', "PLANNED"),
];

/// Longer than a node's state with all of the flags that there are.
const LONGEST: usize = 200;

/// Reads sinfo's words (`mixed-`, `drng`) and scontrol's (`DOWN*+DRAIN`).
pub fn node(text: &str) -> NodeState {
    // What is no state of any release is not read to its end.
    if text.len() > LONGEST {
        return NodeState { base: "UNRECOGNISED", flags: Vec::new() };
    }
    let mut parts = text.trim().split('+');
    let first = parts.next().unwrap_or("");
    let (word, signs) = split_signs(first);
    let known = WORDS.iter().find(|(name, _, _)| word.eq_ignore_ascii_case(name));
    let (base, implied) = known.map_or(("UNRECOGNISED", ""), |(_, base, flag)| (*base, *flag));
    let mut flags = Vec::new();
    if !implied.is_empty() {
        flags.push(implied.to_owned());
    }
    add_signs(&mut flags, signs);
    for part in parts {
        let (word, signs) = split_signs(part);
        // Old releases print `alloc+` where some of the jobs are on their way out.
        flags.push(if word.is_empty() {
            "COMPLETING".to_owned()
        } else {
            word.to_ascii_uppercase()
        });
        add_signs(&mut flags, signs);
    }
    NodeState { base, flags }
}

fn split_signs(word: &str) -> (&str, &str) {
    let end = word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
    (end, word.get(end.len()..).unwrap_or(""))
}

/// Each once, however often it stands there.
fn add_signs(flags: &mut Vec<String>, signs: &str) {
    for c in signs.chars() {
        let known = SIGNS.iter().find(|(sign, _)| *sign == c);
        let flag = known.map_or("UNKNOWN_SIGN", |(_, flag)| flag);
        if !flags.iter().any(|there| there == flag) {
            flags.push(flag.to_owned());
        }
    }
}

impl NodeState {
    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }

    /// Powered off to save energy; Slurm boots it for a job. Not placeable for us, who promise a
    /// start now.
    pub fn must_boot(&self) -> bool {
        self.has("POWER") && self.worst_flag_but_power() == Usable::Yes
    }

    /// May a job be placed there now? One flag that is not known to be harmless is enough for no.
    pub fn usable(&self) -> Usable {
        if self.has("POWER") { Usable::No } else { self.worst_flag_but_power() }
    }

    fn worst_flag_but_power(&self) -> Usable {
        let base = match self.base {
            "IDLE" | "MIXED" => Usable::Yes,
            "ALLOCATED" | "COMPLETING" => Usable::Full,
            "RESERVED" => Usable::Reserved,
            _ => Usable::No,
        };
        let flags = self.flags.iter().map(|flag| match flag.as_str() {
            "CLOUD" | "DYNAMIC_NORM" | "DYNAMIC_FUTURE" | "EXTERNAL" | "POWER" => Usable::Yes,
            "PLANNED" => Usable::Backfill,
            "RESERVED" => Usable::Reserved,
            "COMPLETING" => Usable::Full,
            _ => Usable::No,
        });
        flags.fold(base, worse)
    }
}

/// The less usable of two.
pub fn worse(a: Usable, b: Usable) -> Usable {
    let rank = |usable| match usable {
        Usable::Yes => 4,
        Usable::Backfill => 3,
        Usable::Reserved => 2,
        Usable::Full => 1,
        Usable::No => 0,
    };
    if rank(a) <= rank(b) { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_words() {
        let check = |text: &str, expected: JobState| assert_eq!(job(text), expected, "{text:?}");
        check("PENDING", JobState::Pending);
        check("running", JobState::Running);
        check("COMPLETING", JobState::Alive("COMPLETING".to_owned()));
        check("NEW_WORD", JobState::Alive("NEW_WORD".to_owned()));
        check("", JobState::Alive(String::new()));
        check("CANCELLED by 1000", JobState::Over(EndWord::Cancelled));
        check("CANCELLED+", JobState::Over(EndWord::Cancelled));
        check("OUT_OF_ME+", JobState::Over(EndWord::OutOfMemory));
        check("CO+", JobState::Alive("CO+".to_owned()));
        for end in EndWord::ALL {
            check(end.word(), JobState::Over(end));
        }
        assert_eq!(cancelled_by("CANCELLED by 1000"), Some(1000));
        assert_eq!(cancelled_by("CANCELLED"), None);
    }

    #[test]
    fn every_sign_but_the_plan_of_backfill_closes_a_node() {
        for (sign, _) in SIGNS {
            let usable = node(&format!("idle{sign}")).usable();
            let expected = match sign {
                '-' => Usable::Backfill,
                _ => Usable::No,
            };
            assert_eq!(usable, expected, "{sign}");
        }
        assert_eq!(node("idle").usable(), Usable::Yes);
        assert_eq!(node("alloc+").usable(), Usable::Full);
        assert_eq!(node("mixed?").usable(), Usable::No);
        assert_eq!(node("planned").usable(), Usable::Backfill);
        for word in ["expediting", "", "IDLE_BUT_NOT_QUITE", "MIXED+SOMETHING_NEW", "idle+"] {
            assert_ne!(node(word).usable(), Usable::Yes, "{word:?}");
        }
    }
}
