//! One sentence per reason that somebody who has never used Slurm understands, a short form of it
//! for a narrow table, and a one-word code for scripts.

use crate::model::policy::Lane;
use crate::model::reason::Reason;
use crate::model::units::Time;

use super::format::{count, dollars, one_line, ordinal, span};
use super::slurm_words;

/// A whole sentence; the shard itself is its subject.
pub fn sentence(reason: &Reason, now: Time) -> String {
    match reason {
        Reason::NotLookedYet => "Waits for the next tick, which decides about it.".into(),
        Reason::Running { node } if node.is_empty() => "Runs.".into(),
        Reason::Running { node } => format!("Runs on {node}."),
        Reason::NothingFinished { count: n, looked_for } => format!(
            "Its job ended without an error {n} times in a row, and none finished a row: no new one of \
             what `done` names, {}.",
            one_line(looked_for)
        ),
        Reason::AllRows { node, since } => {
            let on = if node.is_empty() { String::new() } else { format!(" on {node}") };
            let long = since.map_or(String::new(), |since| {
                format!(", {} after the last one", span(now.since(since)))
            });
            format!("All rows are there; its job still runs{on}{long}.")
        }
        Reason::RunsHeld { node, by } => {
            let on = if node.is_empty() { String::new() } else { format!(" on {node}") };
            format!("Runs{on}; held by {}, so no job follows this one.", one_line(by))
        }
        Reason::Done => "All rows are done.".into(),
        Reason::OverCap { spent, cap } => {
            format!(
                "Its cost cap is reached: {} of {} spent; only a raised cap lets it go on.",
                dollars(*spent),
                dollars(*cap)
            )
        }
        Reason::HeldByPerson { by } => {
            format!("Held by {}; `babysit release` lets it go on.", one_line(by))
        }
        Reason::JobCancelled { job, by } => match by {
            Some(uid) => format!("Its job {job} was cancelled by user {uid}, not by babysit."),
            None => format!("Its job {job} was cancelled by somebody, not by babysit."),
        },
        Reason::TooManyFailures { count: n, last } => {
            let failed = format!("It failed {n} times in a row without a new row");
            match one_line(last).as_str() {
                "" => format!("{failed}; its log has no last line."),
                line => format!("{failed}; last line of its log: {line}"),
            }
        }
        Reason::TopTierOutOfMemory => {
            "It ran out of GPU memory on the largest GPU model there is.".into()
        }
        Reason::HostOutOfMemory => {
            "It ran out of the node's memory (not the GPU's): `mem` must be raised.".into()
        }
        Reason::Refused { text } => format!("Slurm refuses this job: {}", one_line(text)),
        Reason::NoFit { asked, largest } => {
            format!("No node can ever give {asked}; the most there is: {largest}.")
        }
        Reason::Cancelled { by } => format!("Cancelled for good by {}.", one_line(by)),
        Reason::Backoff { until, failures } => format!(
            "Waits after {} in a row; next try {}.",
            count(*failures, "failure"),
            in_words(*until, now)
        ),
        Reason::Settling { until } => format!(
            "Its job ended short of rows; late files are waited for, {} more at most.",
            span(until.since(now))
        ),
        Reason::OutcomeUnknown { since, said } => format!(
            "Submitted {} ago without a clear answer ({}); looked for in the queue before anything \
             else is done.",
            span(now.since(*since)),
            one_line(said)
        ),
        Reason::EndUnknown { since, said } => {
            let more = match one_line(said).as_str() {
                "" | "not in the queue" => String::new(),
                said => format!(": {said}"),
            };
            format!(
                "Its job left the queue {} ago, and Slurm cannot say yet how it ended{more}.",
                span(now.since(*since)),
            )
        }
        Reason::PendingInSlurm { lane, parked, rank, of, slurm } => {
            pending(*lane, *parked, *rank, *of, slurm)
        }
        Reason::StuckInSlurm { slurm } => match slurm_words::words(slurm) {
            Some(words) => format!("Its pending job cannot start by itself: {words} ({slurm})."),
            None => format!("Its pending job cannot start by itself: {}.", one_line(slurm)),
        },
        Reason::InSlurm { word } => format!("Slurm has its job in state {}.", one_line(word)),
        Reason::Stopping { job } => format!("babysit has asked Slurm to end its job {job}."),
        Reason::SubmitBudget { rank: 0 } => "Submitted by one of the next ticks.".into(),
        Reason::SubmitBudget { rank } => format!(
            "{} in line; the share of submissions of this tick was used up.",
            ordinal(*rank)
        ),
        Reason::SlurmBusy { said } => {
            format!("Put off to the next tick: {}", one_line(said))
        }
        Reason::Collecting { node, tier, have, need } => {
            format!("First in line: collects {tier} GPUs on {node}, {have} of {need} so far.")
        }
        Reason::QueueWait { rank, ahead, idle_but_reserved } => {
            // A shard whose job goes to Slurm has no rank in babysit's queue.
            let mut text = match rank {
                0 => "Every GPU it may use is taken".to_owned(),
                rank => format!("{} in line; every GPU it may use is taken", ordinal(*rank)),
            };
            if let Some(ahead) = ahead {
                text.push_str(&format!(", and {ahead} is ahead of it"));
            }
            if *idle_but_reserved > 0 {
                text.push_str(&format!(
                    " ({} idle, but reserved for another)",
                    count(*idle_but_reserved, "GPU")
                ));
            }
            text + "."
        }
        Reason::FitNodesDown => "Every node that could hold it is down or drained.".into(),
        Reason::NoCpusOrMemory => {
            "GPUs for it are free, but their node lacks the CPUs or the memory it asks for.".into()
        }
        Reason::RowsInHand { rows } => format!(
            "Its last {} in hand with its helpers: a job of its own would find none to do.",
            if *rows == 1 { "row is".to_owned() } else { format!("{rows} rows are") }
        ),
        Reason::NoHelpNeeded => "Its shard needs no help now, or other shards wait.".into(),
        Reason::Submitted => "Just submitted to Slurm.".into(),
        Reason::BreakerOpen { refused, said } => format!(
            "Not tried: Slurm refused {} of its family in a row, the last one with: {}",
            count(*refused, "submission"),
            one_line(said)
        ),
        Reason::Stalled { node, since } => {
            format!("Runs on {node}, but has finished no row for {}.", span(now.since(*since)))
        }
    }
}

fn pending(lane: Option<Lane>, parked: bool, rank: u32, of: u32, slurm: &str) -> String {
    let place = match rank {
        0 => String::new(),
        rank => format!(" ({} of {of})", ordinal(rank)),
    };
    let because = match slurm_words::words(slurm) {
        Some(words) => format!(": {words}"),
        None if slurm_words::is_said(slurm) => format!(": Slurm says {}", one_line(slurm)),
        None => String::new(),
    };
    match (lane, parked) {
        (Some(Lane::Own), true) => {
            format!("Parked in own for the next own GPU{place}{because}.")
        }
        (Some(Lane::Own), false) => format!("Waits in own for a GPU{place}{because}."),
        (Some(Lane::Extra), _) => format!("Waits in extra for any free GPU{place}{because}."),
        (Some(Lane::Both), _) => {
            format!("Waits in own and extra at once, for whichever is first{place}{because}.")
        }
        (None, _) => format!("Waits in Slurm for a GPU{place}{because}."),
    }
}

fn in_words(until: Time, now: Time) -> String {
    if until <= now {
        "with the next tick".into()
    } else {
        format!("in {}", span(until.since(now)))
    }
}

/// What fits in `room`: the sentence, else its first part, else the few words.
pub fn fitting(reason: &Reason, room: usize, now: Time) -> String {
    let sentence = sentence(reason, now);
    let sentence = sentence.trim_end_matches('.');
    let fits = |text: &&str| text.chars().count() <= room;
    let parts = sentence.split_once(": ").or_else(|| sentence.split_once("; "));
    let part = [Some(sentence), parts.map(|(first, _)| first)].into_iter().flatten().find(fits);
    part.map_or_else(|| short(reason, now), str::to_owned)
}

/// The same in a few words, the telling ones first.
pub fn short(reason: &Reason, now: Time) -> String {
    match reason {
        Reason::NotLookedYet => "next tick".into(),
        Reason::Running { node } if node.is_empty() => String::new(),
        Reason::Running { node } => format!("on {node}"),
        Reason::NothingFinished { .. } => "no row found".into(),
        Reason::AllRows { .. } => "all rows, job runs".into(),
        Reason::RunsHeld { node, .. } if node.is_empty() => "then held".into(),
        Reason::RunsHeld { node, .. } => format!("on {node}, then held"),
        Reason::Done => String::new(),
        Reason::OverCap { .. } => "cap reached".into(),
        Reason::HeldByPerson { by } => format!("by {}", one_line(by)),
        Reason::JobCancelled { by: Some(uid), .. } => format!("scancel by {uid}"),
        Reason::JobCancelled { by: None, .. } => "job cancelled".into(),
        Reason::TooManyFailures { count, .. } => format!("{count} failures"),
        Reason::TopTierOutOfMemory => "GPU memory".into(),
        Reason::HostOutOfMemory => "node memory".into(),
        Reason::Refused { text } => one_line(text),
        Reason::NoFit { .. } => "fits no node".into(),
        Reason::Cancelled { by } => format!("by {}", one_line(by)),
        Reason::Backoff { until, .. } => format!(
            "retry {}",
            match until.since(now).0 {
                0 => "next tick".into(),
                _ => format!("in {}", super::format::span(until.since(now))),
            }
        ),
        Reason::Settling { .. } => "late files?".into(),
        Reason::OutcomeUnknown { .. } => "sbatch unclear".into(),
        Reason::EndUnknown { .. } => "end unknown".into(),
        Reason::PendingInSlurm { lane, parked, rank, of, .. } => {
            let what = match (lane, parked) {
                (_, true) => "parked",
                (Some(Lane::Own), false) => "own next",
                (Some(Lane::Extra), false) => "any GPU",
                (Some(Lane::Both), false) => "both lanes",
                (None, false) => "in Slurm",
            };
            if *rank == 0 { what.into() } else { format!("{what} {rank}/{of}") }
        }
        Reason::StuckInSlurm { slurm } => one_line(slurm),
        Reason::InSlurm { word } => one_line(word).to_lowercase(),
        Reason::Stopping { .. } => "being stopped".into(),
        Reason::SubmitBudget { .. } => "next tick".into(),
        Reason::SlurmBusy { .. } => "put off".into(),
        Reason::Collecting { node, have, need, .. } => format!("{have}/{need} on {node}"),
        Reason::QueueWait { rank: 0, .. } => "GPUs taken".into(),
        Reason::QueueWait { rank, .. } => format!("{} in line", ordinal(*rank)),
        Reason::FitNodesDown => "nodes down".into(),
        Reason::NoCpusOrMemory => "no CPUs/memory".into(),
        Reason::RowsInHand { .. } => "with its helpers".into(),
        Reason::NoHelpNeeded => "not needed".into(),
        Reason::Submitted => "just submitted".into(),
        Reason::BreakerOpen { .. } => "family refused".into(),
        Reason::Stalled { since, .. } => {
            format!("no row for {}", super::format::span(now.since(*since)))
        }
    }
}

/// For scripts: stays when the sentence is reworded.
pub fn code(reason: &Reason) -> &'static str {
    match reason {
        Reason::NotLookedYet => "not-looked-yet",
        Reason::Running { .. } => "running",
        Reason::Done => "done",
        Reason::OverCap { .. } => "over-cap",
        Reason::HeldByPerson { .. } => "held-by-person",
        Reason::JobCancelled { .. } => "job-cancelled",
        Reason::TooManyFailures { .. } => "too-many-failures",
        Reason::TopTierOutOfMemory => "gpu-memory-top-tier",
        Reason::HostOutOfMemory => "host-memory",
        Reason::Refused { .. } => "refused",
        Reason::NoFit { .. } => "NO_FIT_PLACEMENT",
        Reason::Cancelled { .. } => "cancelled",
        Reason::Backoff { .. } => "backoff",
        Reason::Settling { .. } => "settling",
        Reason::OutcomeUnknown { .. } => "outcome-unknown",
        Reason::EndUnknown { .. } => "end-unknown",
        Reason::PendingInSlurm { lane, parked, .. } => match (lane, parked) {
            (Some(Lane::Own), true) => "pending-own-parked",
            (Some(Lane::Own), false) => "pending-own",
            (Some(Lane::Extra), _) => "pending-extra",
            (Some(Lane::Both), _) => "pending-both",
            (None, _) => "pending",
        },
        Reason::StuckInSlurm { .. } => "stuck-in-slurm",
        Reason::InSlurm { .. } => "in-slurm",
        Reason::Stopping { .. } => "stopping",
        Reason::SubmitBudget { .. } => "submit-budget",
        Reason::SlurmBusy { .. } => "slurm-busy",
        Reason::Collecting { .. } => "collecting",
        Reason::QueueWait { .. } => "queue-wait",
        Reason::FitNodesDown => "fit-nodes-down",
        Reason::NoCpusOrMemory => "no-cpus-or-memory",
        Reason::RowsInHand { .. } => "rows-in-hand",
        Reason::NoHelpNeeded => "no-help-needed",
        Reason::Submitted => "submitted",
        Reason::BreakerOpen { .. } => "family-refused",
        Reason::Stalled { .. } => "stalled",
        Reason::NothingFinished { .. } => "nothing-finished",
        Reason::AllRows { .. } => "all-rows-job-runs",
        Reason::RunsHeld { .. } => "running-held",
    }
}
