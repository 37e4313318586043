//! Row claims: how several jobs share the rows of one shard. A folder holds them, one file a row;
//! whoever makes the file has the row. Names and contents only; who writes and who reads them lies
//! elsewhere.

use std::sync::Arc;

use super::id::{JobId, ShardId};

/// What the claims folder of a shard says, as far as the planner needs it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowClaims {
    /// Begun and not marked as done, by row.
    pub begun: Vec<RowClaim>,
    /// Marked as done.
    pub done: u32,
    /// Of these, how many each worker marked; by worker.
    pub by: Vec<RowsBy>,
}

/// A row that somebody works on, or did when he died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowClaim {
    pub row: u32,
    /// The claim's first line: the comment of the job's token, then its id. Empty where it could
    /// not be read.
    pub claimant: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsBy {
    pub worker: Arc<str>,
    pub rows: u32,
}

impl RowClaims {
    /// Rows that this attempt of this shard (or helper) marked as done.
    pub fn done_by(&self, id: &ShardId, attempt: u32) -> u32 {
        let worker = worker(id, attempt);
        self.by.iter().filter(|by| *by.worker == *worker).map(|by| by.rows).sum()
    }

    /// Done marks that name nobody: made by a program without `babysit row done`.
    pub fn done_by_nobody(&self) -> u32 {
        let named: u32 = self.by.iter().map(|by| by.rows).sum();
        self.done.saturating_sub(named)
    }
}

/// What a file of the folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimFile<'a> {
    /// `17`: the row is taken.
    Claim(u32),
    /// `17.done`, or `17.done-s1.a3`: it is finished, by that worker.
    Done(u32, &'a str),
    /// Not of ours: left alone, and counted as nothing.
    Other,
}

/// Reads a file's name. A row has one spelling only, so that no two names are one row.
pub fn claim_file(name: &str) -> ClaimFile<'_> {
    let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
    let (number, rest) = name.split_at(digits);
    let padded = number.len() > 1 && number.starts_with('0');
    let Some(row) = number.parse::<u32>().ok().filter(|_| !padded) else {
        return ClaimFile::Other;
    };
    match rest.strip_prefix(".done") {
        _ if rest.is_empty() => ClaimFile::Claim(row),
        Some("") => ClaimFile::Done(row, ""),
        Some(by) => by.strip_prefix('-').map_or(ClaimFile::Other, |by| ClaimFile::Done(row, by)),
        None => ClaimFile::Other,
    }
}

/// How a worker is named in a done mark: `s1.a3`, `s1~2.a1`.
pub fn worker(id: &ShardId, attempt: u32) -> String {
    format!("{}.a{attempt}", id.shard)
}

pub fn done_mark(row: u32, worker: &str) -> String {
    if worker.is_empty() { format!("{row}.done") } else { format!("{row}.done-{worker}") }
}

/// Who made a claim: shard (or helper) and attempt by its token, and its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant<'a> {
    pub family: &'a str,
    pub shard: &'a str,
    pub attempt: u32,
    /// The comment of its job.
    pub comment: &'a str,
    /// `None`: the program wrote the token alone.
    pub job: Option<JobId>,
}

impl<'a> Claimant<'a> {
    /// Reads a claim's first line; `None` where it is of no babysit, so of nobody that Slurm could
    /// be asked about.
    pub fn read(line: &'a str) -> Option<Claimant<'a>> {
        let mut words = line.split_ascii_whitespace();
        let comment = words.next()?;
        let job = words.next().and_then(|id| id.parse().ok()).map(JobId);
        let mut parts = comment.splitn(5, ':').skip(2);
        let (family, shard) = parts.next()?.split_once('/')?;
        let attempt = parts.next()?.strip_prefix('a')?.parse().ok()?;
        parts.next()?;
        comment.starts_with("babysit:").then_some(Claimant { family, shard, attempt, comment, job })
    }

    /// How its done marks name it.
    pub fn worker(&self) -> String {
        worker(&ShardId::new(self.family, self.shard), self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_read_and_nothing_else_is_taken_for_one() {
        assert_eq!(claim_file("0"), ClaimFile::Claim(0));
        assert_eq!(claim_file("17"), ClaimFile::Claim(17));
        assert_eq!(claim_file("17.done"), ClaimFile::Done(17, ""));
        assert_eq!(claim_file("17.done-s1~2.a3"), ClaimFile::Done(17, "s1~2.a3"));
        for other in
            ["", "x", "017", "00", "-1", "17.don", "17.done.x", "17 ", ".17", "99999999999", "1.2"]
        {
            assert_eq!(claim_file(other), ClaimFile::Other, "{other:?}");
        }
        assert_eq!(claim_file(&done_mark(4, "s.a1")), ClaimFile::Done(4, "s.a1"));
        assert_eq!(claim_file(&done_mark(4, "")), ClaimFile::Done(4, ""));
    }

    #[test]
    fn a_claimant_is_who_its_token_says() {
        let found = Claimant::read("babysit:0af:find/s1~2:a3:00ff 4711").expect("a claimant");
        assert_eq!((found.family, found.shard, found.attempt), ("find", "s1~2", 3));
        assert_eq!(found.job, Some(JobId(4711)));
        assert_eq!(found.worker(), "s1~2.a3");
        assert_eq!(Claimant::read("babysit:0af:find/s1:a3:00ff").expect("one").job, None);
        for nobody in ["", "x", "babysit:0af", "babysit:0af:find/s1:b3:0", "dusty:0af:find/s1:a3:0"]
        {
            assert_eq!(Claimant::read(nobody), None, "{nobody:?}");
        }
    }
}
