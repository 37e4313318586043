//! Events as sentences.

use crate::model::cluster::EndWord;
use crate::model::state::EndHow;
use crate::model::units::Time;
use crate::planning::event::{Event, What};

use super::super::format::{count, dollars, one_line, span};

/// `find/s0: submitted ...`
pub fn line(event: &Event) -> String {
    let sentence = sentence(&event.what, event.at);
    match &event.shard {
        Some(shard) => format!("{shard}: {sentence}"),
        None => sentence,
    }
}

pub fn sentence(what: &What, at: Time) -> String {
    let lane_of = |lane: &Option<crate::model::policy::Lane>| {
        lane.map_or(String::new(), |lane| format!(" in {}", lane.word()))
    };
    match what {
        What::CycleSkipped { why } => {
            format!("this tick was skipped, nothing was decided: {}", one_line(why))
        }
        What::Submitted { job, lane, attempt } => {
            format!("submitted as job {job}{} (attempt {attempt})", lane_of(lane))
        }
        What::OutcomeUnknown { attempt, said } => format!(
            "submitted (attempt {attempt}) without a clear answer, looked for before anything else \
             is done: {}",
            one_line(said)
        ),
        What::Adopted { job, attempt } => {
            format!("job {job} was found in the queue as attempt {attempt}")
        }
        What::Took { job, after: Some(after), .. } => format!("job {job} took it after {after}"),
        What::Took { job, after: None, instead: Some(instead) } => {
            format!("job {job}, submitted for {instead}, took it as the longest that waited")
        }
        What::Took { job, after: None, instead: None } => format!("job {job} took it"),
        What::ClaimRefused { job, fence, why } => format!(
            "claim {fence}{} of it counts for nothing: {}",
            job.map_or(String::new(), |job| format!(" (job {job})")),
            one_line(why)
        ),
        What::SubmissionGivenUp { attempt } => {
            format!("attempt {attempt} never reached Slurm; it is submitted again")
        }
        What::SubmitRefused { said } => format!("refused by Slurm: {}", one_line(said)),
        What::SubmitPaused { said } => {
            format!("not submitted now, tried again later: {}", one_line(said))
        }
        What::Started { job, lane, node } => {
            format!("job {job} started on {node}{}", lane_of(lane))
        }
        What::Moved { job, to } => format!("pending job {job} moved to {}", to.word()),
        What::MoveRefused { job, to, said } => format!(
            "pending job {job} could not be moved to {}, not tried again for a while: {}",
            to.word(),
            one_line(said)
        ),
        What::MoveUnanswered { job, to, said } => format!(
            "pending job {job} is not in {} yet, the next tick tries again: {}",
            to.word(),
            one_line(said)
        ),
        What::MovedDespiteError { job, to, said } => format!(
            "pending job {job} moved to {}, although Slurm answered: {}",
            to.word(),
            one_line(said)
        ),
        What::Ended { job, how, new_rows } => {
            format!("job {job} {} after {}", ended(*how), count(*new_rows, "new row"))
        }
        What::EndPutOff { job, why } => format!(
            "job {job} is not in the queue, and what became of it cannot be told yet: {}",
            one_line(why)
        ),
        What::Done { rows } => format!("done, {}", count(*rows, "row")),
        What::BackedOff { until, failures } => format!(
            "{} in a row, next try in {}",
            count(*failures, "failure"),
            span(until.since(at))
        ),
        What::Held { why } => format!("held: {}", one_line(why)),
        What::OverCap { spent, cap } => {
            format!("cost cap reached: {} of {} spent", dollars(*spent), dollars(*cap))
        }
        What::CapRaised { cap } => format!("goes on: its cap is now {}", dollars(*cap)),
        What::StopAsked { job, why } => format!("end of job {job} asked: {}", one_line(why)),
        What::StopFailed { job, said } => {
            format!("job {job} could not be cancelled: {}", one_line(said))
        }
        What::Twin { kept, other, cancelled } => format!(
            "two live jobs: {kept} is kept, {other} {}",
            match cancelled {
                true => "is cancelled".to_owned(),
                false => format!("is left alone, since it runs: `scancel {other}` would end it"),
            }
        ),
        What::RowsShrank { before, now } => {
            format!("finished rows went down from {before} to {now}: were files removed?")
        }
        What::MeasureFailed { why } => {
            format!("its files cannot be read, the numbers are older: {}", one_line(why))
        }
        What::Reserved { node, tier, gpus } => {
            format!("{} on {node} ({tier}) reserved for it", count(*gpus, "GPU"))
        }
        What::ReservationShrank { before, now } => {
            format!(
                "its reservation shrank from {} to {now}: others took GPUs",
                count(*before, "GPU")
            )
        }
        What::ReservationReleased { node, tier, gpu_seconds, why } => format!(
            "its reservation on {node} ({tier}) is released after {gpu_seconds} GPU-seconds: {}",
            one_line(why)
        ),
        What::BackfillAsked { node, jobs, gpus } => format!(
            "{} of backfill on {node} told to give {} back",
            count(jobs.len() as u64, "job"),
            count(*gpus, "GPU")
        ),
        What::BackfillStopFailed { node, said } => {
            format!("backfill on {node} could not be told to give way: {}", one_line(said))
        }
        What::MinTierRaised { tier } => {
            format!("out of GPU memory; from now on only on {tier} or better")
        }
        What::NoFit { asked, largest } => {
            format!("fits no node: asks for {asked}; the largest there is: {largest}")
        }
        What::Charged { attempt, gpu_seconds } => {
            format!("attempt {attempt} charged to its lab: {gpu_seconds} GPU-seconds")
        }
        What::KeptOff { job, nodes } if nodes.is_empty() => {
            format!("pending job {job} may use every node again")
        }
        What::KeptOff { job, nodes } => {
            format!(
                "pending job {job} is kept off {}: GPUs are reserved there, or jobs die there",
                nodes.join(", ")
            )
        }
        What::BreakerOpened { family, refused, said } => format!(
            "family {family}: {} refused in a row, no more are tried until `babysit retry \
             {family}`: {}",
            count(*refused, "submission"),
            one_line(said)
        ),
        What::NodeBlamed { job, node } => format!(
            "job {job} died within a minute on {node}; that is held against the node, and it is \
             tried elsewhere"
        ),
        What::NodeKeptOut { node, deaths, until } => format!(
            "node {node} is kept out for {} after {}",
            span(until.since(at)),
            deaths_of(*deaths)
        ),
        What::NodeLetBack { node } => format!("node {node} is used again"),
        What::Stalled { job, since, restarted } => format!(
            "job {job} runs, but has finished no row for {}{}",
            span(at.since(*since)),
            if *restarted { "; it is ended and started again" } else { "" }
        ),
        What::Lingers { job, since, ended } => format!(
            "all rows are there, but job {job} runs on, {} after the last one{}",
            span(at.since(*since)),
            if *ended { "; it is ended" } else { "" }
        ),
        What::Totals { rows, of, spent } => {
            format!("{rows} of {} done, {} spent", count(*of, "row"), dollars(*spent))
        }
        What::Notified { events } => {
            format!("notify hook: {} told", count(*events, "event"))
        }
        What::NotifyFailed { events, said } => format!(
            "notify hook: {} not told, and not tried again: {}",
            count(*events, "event"),
            one_line(said)
        ),
        What::RowsFreed { rows: _, all: true } => {
            "rows are missing though all were marked as done: all are given out again".into()
        }
        What::RowsFreed { rows, all: false } => format!(
            "{} in hand of jobs that are over: given out again",
            if *rows == 1 { "1 row was".to_owned() } else { format!("{rows} rows were") }
        ),
        What::Person { by, did } => format!("{}, by {}", one_line(did), one_line(by)),
    }
}

/// `1 death there`, `2 deaths there`
fn deaths_of(deaths: u32) -> String {
    format!("{} there", count(deaths, "death"))
}

fn ended(how: EndHow) -> String {
    match how {
        EndHow::Word(EndWord::Completed) => "ended".into(),
        EndHow::Word(EndWord::Preempted) => "was preempted".into(),
        EndHow::Word(EndWord::Cancelled) => "was cancelled".into(),
        EndHow::Word(word) => format!("ended as {}", word.word()),
        EndHow::Vanished => "is gone (accounting does not say how)".into(),
    }
}
