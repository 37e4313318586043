//! squeue: every job there is, as one table.
//!
//! Never `-j` (one purged id fails all), never filtered by partition, QOS or account (we move jobs
//! ourselves), always `-r` (pending array elements would be merged) and `-t all` (an end that is
//! still shown is the cheapest news of it).

mod row;

use crate::model::cluster::QueueJob;

use self::row::{Above, job};
use super::Scope;
use super::rows::{RowEnd, Table, for_each, shown};

/// A column of squeue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Column {
    JobId,
    UserId,
    UserName,
    State,
    Qos,
    Partition,
    Account,
    TresAlloc,
    TresPerNode,
    TresPerJob,
    NumNodes,
    NumCpus,
    SubmitTime,
    StartTime,
    EndTime,
    TimeLimit,
    Priority,
    Nice,
    NodeList,
    ExcNodes,
    RestartCnt,
    Requeue,
    Reason,
    Name,
    Comment,
    /// Read past.
    Ignored,
}

use Column as C;

/// What is asked for, in this order: column, its `-O` name, its header.
pub const COLUMNS: [(Column, &str, &str); 25] = [
    (C::JobId, "JobID", "JOBID"),
    (C::UserId, "UserID", "UID"),
    (C::UserName, "UserName", "USER"),
    (C::State, "State", "STATE"),
    (C::Qos, "QOS", "QOS"),
    (C::Partition, "Partition", "PARTITION"),
    (C::Account, "Account", "ACCOUNT"),
    (C::TresAlloc, "tres-alloc", "TRES_ALLOC"),
    (C::TresPerNode, "tres-per-node", "TRES_PER_NODE"),
    (C::TresPerJob, "tres-per-job", "TRES_PER_JOB"),
    (C::NumNodes, "NumNodes", "NODES"),
    (C::NumCpus, "NumCPUs", "CPUS"),
    (C::SubmitTime, "SubmitTime", "SUBMIT_TIME"),
    (C::StartTime, "StartTime", "START_TIME"),
    (C::EndTime, "EndTime", "END_TIME"),
    (C::TimeLimit, "TimeLimit", "TIME_LIMIT"),
    (C::Priority, "PriorityLong", "PRIORITY"),
    (C::Nice, "Nice", "NICE"),
    (C::NodeList, "NodeList", "NODELIST"),
    (C::ExcNodes, "ExcNodes", "EXC_NODES"),
    (C::RestartCnt, "RestartCnt", "RESTART_COUNT"),
    (C::Requeue, "Requeue", "REQUEUE"),
    (C::Reason, "Reason", "REASON"),
    (C::Name, "Name", "NAME"),
    (C::Comment, "Comment", "COMMENT"),
];

/// Arguments for one reading; `me` is a numeric uid, as names may not resolve.
pub fn argv(scope: Scope, me: u32, separator: &str) -> Vec<String> {
    let mut argv = ["-a", "-r", "-t", "all", "-O"].map(str::to_owned).to_vec();
    let columns = COLUMNS.map(|(_, name, _)| format!("{name}:{separator}"));
    argv.push(columns.join(","));
    if scope == Scope::Mine {
        argv.extend(["-u".to_owned(), me.to_string()]);
    }
    argv
}

/// Reads the answer to [`argv`].
pub fn parse(text: &str, separator: &str) -> Result<Vec<QueueJob>, String> {
    let mut reading = Reading::new(separator);
    reading.feed(text.as_bytes());
    reading.end()
}

/// Reads the answer to [`argv`] while squeue prints it: ten thousand jobs take it longer than us.
#[derive(Debug)]
pub struct Reading {
    table: Table,
    columns: [Column; COLUMNS.len()],
    is_header_read: bool,
    above: Above,
    jobs: Vec<QueueJob>,
}

impl Reading {
    pub fn new(separator: &str) -> Reading {
        Reading {
            table: Table::new(separator, COLUMNS.len()),
            columns: COLUMNS.map(|(column, _, _)| column),
            is_header_read: false,
            above: Above::default(),
            jobs: Vec::new(),
        }
    }

    /// The next bytes of the answer, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        let Reading { table, columns, is_header_read, above, jobs } = self;
        table.feed(bytes, &mut |cells| {
            if std::mem::replace(is_header_read, true) {
                jobs.push(job(cells, columns, above)?);
                Ok(())
            } else {
                check_header(cells, columns)
            }
        });
    }

    /// The jobs; an error where the answer was not whole, or one row cannot be read.
    pub fn end(self) -> Result<Vec<QueueJob>, String> {
        self.table.end().map(|()| self.jobs)
    }
}

/// A release that does not know a column prints it empty, with an empty header. Only the excluded
/// nodes may be missing so: 22.05 has no name for them.
fn check_header(cells: &[&str], columns: &mut [Column]) -> Result<(), String> {
    for ((cell, column), (_, name, header)) in cells.iter().zip(columns).zip(COLUMNS) {
        match cell.trim() {
            "" if *column == C::ExcNodes => *column = C::Ignored,
            text if text == header => {}
            text => {
                return Err(format!(
                    "column {name} has the header {}, not {header:?}",
                    shown(text)
                ));
            }
        }
    }
    Ok(())
}

/// Rows of any columns, without a header.
pub fn parse_rows(
    text: &str,
    separator: &str,
    columns: &[Column],
) -> Result<Vec<QueueJob>, String> {
    let (mut jobs, mut above) = (Vec::new(), Above::default());
    for_each(text, separator, columns.len(), RowEnd::SeparatorNewline, |cells| {
        jobs.push(job(cells, columns, &mut above)?);
        Ok(())
    })?;
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cluster::{GpuCount, JobState};
    use crate::model::id::JobId;
    use crate::model::units::{Secs, Time};

    /// A table with the header and one row, as squeue would print it.
    fn table(separator: &str, change: &[(Column, &str)]) -> String {
        let plain = |column| match column {
            C::JobId => "7",
            C::UserId => "1001",
            C::UserName => "alice",
            C::State => "RUNNING",
            C::Qos => "own",
            C::TresAlloc => "cpu=1,mem=1000M,node=1,billing=1,gres/gpu=2",
            C::TresPerNode => "gres:gpu:rtx4090:2",
            C::NumNodes | C::NumCpus => "1",
            C::SubmitTime => "1795955109",
            C::TimeLimit => "5:00",
            C::Nice => "-50",
            C::NodeList => "a[1-2]",
            C::RestartCnt | C::Requeue => "1",
            C::Reason => "None",
            C::Name => "p.find.s0.a1",
            C::Comment => "(null)",
            C::TresPerJob | C::StartTime | C::EndTime => "N/A",
            _ => "",
        };
        let mut lines = String::new();
        for (_, _, header) in COLUMNS {
            lines += &format!("{header}{separator}");
        }
        lines += "\n";
        for (column, _, _) in COLUMNS {
            let changed = change.iter().find(|(c, _)| *c == column).map(|(_, text)| *text);
            lines += &format!("{}{separator}", changed.unwrap_or(plain(column)));
        }
        lines + "\n"
    }

    fn read(change: &[(Column, &str)]) -> Result<QueueJob, String> {
        let mut jobs = parse(&table("\u{1f}ab", change), "\u{1f}ab")?;
        assert_eq!(jobs.len(), 1);
        Ok(jobs.remove(0))
    }

    #[test]
    fn a_row_becomes_a_job() {
        let job = read(&[]).expect("fits");
        assert_eq!((job.id, job.uid, job.user.as_ref()), (JobId(7), 1001, "alice"));
        assert_eq!((job.state, job.gpus, job.nice), (JobState::Running, Some(2), -50));
        assert_eq!(job.asked, [GpuCount { model: Some("rtx4090".to_owned()), count: 2 }]);
        assert_eq!((job.submitted, job.started), (Some(Time(1_795_955_109)), None));
        assert_eq!(job.time_limit, Some(Secs(300)));
        assert_eq!(job.nodes, ["a1", "a2"]);
        assert_eq!(job.excluded, Some(vec![]));
        assert_eq!((job.requeue, job.restarts, job.comment.as_str()), (true, 1, ""));
    }

    #[test]
    fn hostile_names_stay_in_their_cell() {
        let evil = "x\u{1f}\n8\u{1f}0\u{1f}root";
        let job = read(&[(C::Name, evil), (C::Comment, "p|q, r")]).expect("fits");
        assert_eq!((job.name.as_str(), job.comment.as_str()), ("", "p|q, r"));
    }

    #[test]
    fn gpus_are_counted_in_every_spelling() {
        let check = |alloc, node, job, nodes, expected: Option<u32>| {
            let row = [
                (C::TresAlloc, alloc),
                (C::TresPerNode, node),
                (C::TresPerJob, job),
                (C::NumNodes, nodes),
            ];
            assert_eq!(read(&row).expect("fits").gpus, expected, "{row:?}");
        };
        check("cpu=1,gres/gpu=3", "N/A", "gres/gpu:rtx4090:3", "1", Some(3));
        check("cpu=2", "gres/gpu:2", "N/A", "2", Some(4));
        check("cpu=2", "gres:gpu", "N/A", "1-4", Some(1));
        check("cpu=2", "N/A", "N/A", "1", Some(0));
        check("cpu=2,gres/gp", "gres:gpu", "N/A", "1", None);
        check("cpu=2", "gres:gpu:a:b:c", "N/A", "1", None);
        check("cpu=2,gres/gpu=1", "gres:gpu:a:b:c", "N/A", "1", Some(1));
    }

    #[test]
    fn each_row_has_the_gpus_of_its_own_words() {
        let rows = ["gres/gpu=3", "gres/gpu=3", "cpu=1", "gres/gp", "gres/gpu=2", "gres/gpu=3"];
        let header = table("|", &[]).lines().next().map(|line| format!("{line}\n"));
        let mut text = header.expect("a header");
        for row in rows {
            let alone = table("|", &[(C::TresAlloc, row), (C::TresPerNode, "N/A")]);
            text += alone.split_inclusive('\n').nth(1).expect("a row");
        }
        let gpus: Vec<_> = parse(&text, "|").expect("fits").iter().map(|job| job.gpus).collect();
        assert_eq!(gpus, [Some(3), Some(3), Some(0), None, Some(2), Some(3)]);
    }

    #[test]
    fn a_column_that_this_release_does_not_know_is_told() {
        let text = table("|", &[]);
        let without = text.replacen("EXC_NODES", "", 1);
        let jobs = parse(&without, "|").expect("22.05 has no such column");
        assert_eq!(jobs.first().and_then(|job| job.excluded.clone()), None);
        let fault = parse(&text.replacen("QOS", "", 1), "|").expect_err("needed");
        assert_eq!(fault, "column QOS has the header \"\", not \"QOS\"");
    }

    #[test]
    fn a_row_that_does_not_parse_spoils_the_reading() {
        for (column, bad) in [
            (C::JobId, "x"),
            (C::UserId, ""),
            (C::State, ""),
            (C::Nice, "N/A"),
            (C::SubmitTime, "soon"),
            (C::NodeList, "a[1-"),
        ] {
            assert!(read(&[(column, bad)]).is_err(), "{column:?} {bad:?}");
        }
    }
}
