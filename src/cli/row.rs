//! `babysit row take` and `babysit row done`: how a program of a split family shares its shard's
//! rows with its helpers. Called inside a job; all it needs is in the job's environment.

use std::path::PathBuf;

use serde_json::json;

use crate::model::rows::Claimant;
use crate::store::{self, Marked, Taker};

use super::args::Row;
use super::context::Context;
use super::exit::{Exit, Stop};

pub fn run(cx: &Context, command: &Row) -> Result<Exit, Stop> {
    let job = Job::of(cx)?;
    match command {
        Row::Take { done, unless } => {
            if let Some(row) = done {
                job.done(*row)?;
            }
            job.take(cx, unless.as_deref())
        }
        Row::Done { row } => job.done(*row).map(|()| Exit::Done),
    }
}

/// Whoever asks, by the environment that babysit gave its job.
struct Job {
    claims: PathBuf,
    rows: u32,
    claimant: String,
    worker: String,
    unique: String,
}

impl Job {
    fn of(cx: &Context) -> Result<Job, Stop> {
        let var = |name: &str| {
            cx.surroundings.var(name).ok_or_else(|| {
                Stop::usage(
                    format!("${name} is not set"),
                    "`babysit row` works inside a job of a family with `split` in shards.toml",
                )
            })
        };
        let claims = PathBuf::from(var("BABYSIT_ROW_CLAIMS")?);
        let token = var("BABYSIT_ROW_CLAIMANT")?;
        let id = cx.surroundings.var("SLURM_JOB_ID").unwrap_or("0");
        let claimant = format!("{token} {id}");
        let Some(who) = Claimant::read(&claimant).filter(|who| who.comment == token) else {
            let text = format!("$BABYSIT_ROW_CLAIMANT is no token of babysit's: {token:?}");
            return Err(Stop::usage(text, "leave it as the job got it"));
        };
        let worker = who.worker();
        let rows = var("BABYSIT_ROWS")?;
        let rows = rows.parse().map_err(|_| {
            Stop::usage(
                format!("$BABYSIT_ROWS is no number: {rows:?}"),
                "leave it as the job got it",
            )
        })?;
        // Apart from every other process that makes a claim right now, also on other hosts.
        let host = cx.surroundings.var("SLURMD_NODENAME").unwrap_or("host").replace('/', "-");
        let unique = format!("{id}-{host}-{}", std::process::id());
        Ok(Job { claims, rows, claimant, worker, unique })
    }

    fn taker(&self) -> Taker<'_> {
        Taker { claimant: &self.claimant, worker: &self.worker, unique: &self.unique }
    }

    /// `unless`: a row whose file is there is finished, whatever the claims say.
    fn take(&self, cx: &Context, unless: Option<&str>) -> Result<Exit, Stop> {
        let has = |row: u32| {
            let path = unless.map(|path| path.replace("{row}", &row.to_string()));
            path.is_some_and(|path| cx.surroundings.cwd.join(path).exists())
        };
        let row = store::take_row(&self.claims, &self.taker(), self.rows, has)?;
        match row {
            _ if cx.talk.json => {
                cx.talk.result_json(&json!({ "schema": "babysit/row/v1", "row": row }))?;
            }
            Some(row) => cx.talk.result(&format!("{row}\n"))?,
            None => {}
        }
        Ok(if row.is_some() { Exit::Done } else { Exit::Person })
    }

    fn done(&self, row: u32) -> Result<(), Stop> {
        match store::mark_row(&self.claims, &self.taker(), row)? {
            Marked::Done => Ok(()),
            Marked::NotYours => Err(Stop::failed(
                "row",
                format!(
                    "row {row} is not this job's: it never took it, or Slurm said that this job was \
                     over and the row was given to another"
                ),
            )),
        }
    }
}
