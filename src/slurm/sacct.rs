//! sacct: how jobs ended that left the queue. One call for all of them.
//!
//! It lags, forgets held jobs, and has no comment unless the site stores them; every row of a
//! requeued job is handed on, and the engine decides which one is meant.

use crate::model::cluster::JobState;
use crate::model::id::JobId;
use crate::model::observation::PastJob;
use crate::model::units::{Secs, Time};

use super::rows::{RowEnd, for_each, job_id, own_text, shown};
use super::{PastAsk, hostlist, state, time};

/// A column of sacct; its name is its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    JobIdRaw,
    Uid,
    JobName,
    Comment,
    State,
    Qos,
    Submit,
    Start,
    End,
    NodeList,
    ExitCode,
    /// Read past.
    Ignored,
}

use Column as C;

/// What is asked for. The last one is none that users can write, as its row ends with a mere newline;
/// `Restarts` is not among them, as it makes all of sacct fail on 22.05.
pub const COLUMNS: [(Column, &str); 11] = [
    (C::JobIdRaw, "JobIDRaw"),
    (C::Uid, "UID"),
    (C::JobName, "JobName"),
    (C::Comment, "Comment"),
    (C::State, "State"),
    (C::Qos, "QOS"),
    (C::Submit, "Submit"),
    (C::Start, "Start"),
    (C::End, "End"),
    (C::NodeList, "NodeList"),
    (C::ExitCode, "ExitCode"),
];

/// Bytes of `--name`; Linux takes 128 KiB in one argument. Longer lists are not given at all.
const MOST_NAMES: usize = 100_000;
/// Two hosts' clocks may differ by this much.
const SKEW: Secs = Secs::minutes(10);

/// Arguments. All users' jobs (`-a`), as a lab may share one state file; a site that hides others'
/// jobs shows ours all the same.
pub fn argv(ask: &PastAsk, separator: &str) -> Vec<String> {
    let columns = COLUMNS.map(|(_, name)| name).join(",");
    let mut argv = ["-a", "-D", "-X", "-P"].map(str::to_owned).to_vec();
    argv.push(format!("--delimiter={separator}"));
    argv.extend(["-S".to_owned(), since(ask.since - SKEW), "-o".to_owned(), columns]);
    let names = ask.names.join(",");
    if !names.is_empty() && names.len() <= MOST_NAMES {
        argv.push(format!("--name={names}"));
    }
    argv
}

/// In UTC, as the command's TZ is.
fn since(at: Time) -> String {
    let at = chrono::DateTime::from_timestamp(at.0.max(0), 0).unwrap_or_default();
    at.format("%Y-%m-%dT%H:%M:%S").to_string()
}

/// Reads the answer to [`argv`], and keeps the rows that were asked for.
pub fn parse(text: &str, separator: &str, ask: &PastAsk) -> Result<Vec<PastJob>, String> {
    let names: std::collections::HashSet<&str> = ask.names.iter().map(String::as_str).collect();
    let columns = COLUMNS.map(|(column, _)| column);
    let mut jobs = Vec::new();
    let mut header = true;
    for_each(text, separator, columns.len(), RowEnd::Newline, |cells| {
        if !std::mem::take(&mut header) {
            let job = job(cells, &columns)?;
            if names.contains(job.name.as_str()) {
                jobs.push(job);
            }
            return Ok(());
        }
        for (cell, (_, name)) in cells.iter().zip(COLUMNS) {
            if cell.trim() != name {
                return Err(format!("column {name} has the header {}", shown(cell)));
            }
        }
        Ok(())
    })?;
    Ok(jobs)
}

/// Rows of any columns, without a header.
pub fn parse_rows(text: &str, separator: &str, columns: &[Column]) -> Result<Vec<PastJob>, String> {
    let mut jobs = Vec::new();
    for_each(text, separator, columns.len(), RowEnd::Newline, |cells| {
        jobs.push(job(cells, columns)?);
        Ok(())
    })?;
    Ok(jobs)
}

fn job(cells: &[&str], columns: &[Column]) -> Result<PastJob, String> {
    let mut job = PastJob {
        id: JobId(0),
        uid: 0,
        name: String::new(),
        comment: String::new(),
        qos: String::new(),
        end: None,
        submitted: None,
        started: None,
        ended: None,
        nodes: Vec::new(),
        exit: String::new(),
        cancelled_by: None,
    };
    for (cell, column) in cells.iter().zip(columns) {
        let cell = cell.trim();
        match column {
            C::JobIdRaw => job.id = JobId(job_id(cell)?),
            C::Uid => job.uid = cell.parse().map_err(|_| format!("{} is no uid", shown(cell)))?,
            C::JobName => job.name = own_text(cell),
            C::Comment => job.comment = own_text(cell),
            C::State if cell.is_empty() => return Err("a row without a state".to_owned()),
            C::State => {
                job.cancelled_by = state::cancelled_by(cell);
                job.end = match state::job(cell) {
                    JobState::Over(end) => Some(end),
                    JobState::Pending | JobState::Running | JobState::Alive(_) => None,
                };
            }
            C::Qos => job.qos = cell.to_owned(),
            C::Submit => job.submitted = time::moment(cell)?,
            C::Start => job.started = time::moment(cell)?,
            C::End => job.ended = time::moment(cell)?,
            C::NodeList => {
                job.nodes = hostlist::expand(cell).ok_or_else(|| "no list of nodes".to_owned())?;
            }
            C::ExitCode => job.exit = cell.to_owned(),
            C::Ignored => {}
        }
    }
    Ok(job)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question() {
        let ask = PastAsk {
            names: vec!["p.f.s0.a1".into(), "p.f.s1.a1".into()],
            since: Time(1_795_955_109),
        };
        let line = argv(&ask, "|").join(" ");
        assert_eq!(
            line,
            "-a -D -X -P --delimiter=| -S 2026-11-29T12:15:09 -o JobIDRaw,UID,JobName,Comment,State,\
             QOS,Submit,Start,End,NodeList,ExitCode --name=p.f.s0.a1,p.f.s1.a1"
        );
        let many = PastAsk { names: vec!["n".repeat(60); 2000], since: Time(0) };
        assert!(!argv(&many, "|").iter().any(|a| a.starts_with("--name")), "too long for execve");
    }

    #[test]
    fn a_table_of_other_columns_is_no_answer_of_sacct() {
        let ask = PastAsk { names: vec!["x".into()], since: Time(0) };
        let header = COLUMNS.map(|(_, name)| name).join("|");
        assert_eq!(parse(&format!("{header}\n"), "|", &ask), Ok(Vec::new()));
        let swapped = header.replace("Start|End", "End|Start");
        let fault = parse(&format!("{swapped}\n"), "|", &ask).expect_err("another order");
        assert_eq!(fault, "column Start has the header \"End\"");
        // No header at all: its first row would be lost, and with it how a job ended.
        let row = "7|1001|x||FAILED|own|1795955109|1795955110|1795955111|a1|1:0\n";
        assert!(parse(row, "|", &ask).is_err());
    }

    #[test]
    fn rows_of_others_are_left_out_even_when_they_try() {
        let header = COLUMNS.map(|(_, name)| name).join("|");
        let row = |id, name: &str, comment: &str| {
            format!(
                "{id}|1001|{name}|{comment}|CANCELLED by 1000|own|1795955109|None|1795955110|None assigned|0:0\n"
            )
        };
        let text = format!("{header}\n")
            + &row(7, "mine", "")
            + &row(8, "mine\n9", "x\ny")
            + &row(7, "mine", "");
        let ask = PastAsk { names: vec!["mine".into()], since: Time(0) };
        let jobs = parse(&text, "|", &ask).expect("fits");
        assert_eq!(jobs.iter().map(|job| job.id.0).collect::<Vec<_>>(), [7, 7]);
        let job = jobs.first().expect("two");
        assert_eq!((job.cancelled_by, job.started, job.nodes.len()), (Some(1000), None, 0));
    }
}
