//! `babysit exec`: a pilot, inside of its job. It works on the longest shard of its family, or of several, that nobody
//! has, and then on the next one, as long as its job's time allows. docs/pilots.md.
//!
//! It reads and writes nothing but the folder of offers and claims: neither shards.toml nor the state
//! nor Slurm need be within a node's reach.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

use crate::model::id::{JobId, ShardId};
use crate::model::pilot::{Claim, Offered};
use crate::model::units::{Secs, Time};
use crate::planning::pilots::{Choice, choices, stands};
use crate::slurm::program::{self, Program};
use crate::slurm::time::length;
use crate::store::{Claimed, Pilots};

use super::args::Exec;
use super::context::Context;
use super::exit::{Exit, Stop};

/// They end the job: no other shard is begun after one of them.
const ENDING: [i32; 3] = [SIGTERM, SIGINT, SIGHUP];
const PASSED_ON: [i32; 5] = [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2];

pub fn run(cx: &Context, asked: &Exec) -> Result<Exit, Stop> {
    let heard = listen()?;
    let mut pilot = Seat::new(cx, asked)?;
    let mut ending = false;
    while let Some(shard) = if ending { None } else { pilot.next()? } {
        let log = (shard.shard != pilot.own).then(|| shard.log_dir.join(pilot.log_name()));
        let program = Program {
            command: &shard.command,
            workdir: &shard.workdir,
            env: &shard.env,
            log: log.as_deref(),
        };
        let mut signals = || {
            let now = heard.iter().filter(|(_, flag)| flag.swap(false, Ordering::Relaxed));
            let now: Vec<i32> = now.map(|(signal, _)| *signal).collect();
            ending |= now.iter().any(|signal| ENDING.contains(signal));
            now
        };
        let code = program::run(&program, &mut signals);
        let code = code.map_err(|error| Stop::failed("program", error))?;
        // Its job ends as it did: what that means is judged by the shard's rows, as for any job.
        if code != 0 {
            pilot.say(&format!("{} ended with exit code {code}", shard.shard));
            return Ok(Exit::Program(code));
        }
        pilot.say(&format!("{} ended", shard.shard));
    }
    Ok(Exit::Done)
}

fn listen() -> Result<Vec<(i32, Arc<AtomicBool>)>, Stop> {
    let listen = |signal: i32| {
        let flag = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal, Arc::clone(&flag)).map_err(|error| {
            Stop::failed("signal", format!("signal {signal} cannot be listened to: {error}"))
        })?;
        Ok((signal, flag))
    };
    PASSED_ON.into_iter().map(listen).collect()
}

/// This pilot: its job, and what it has claimed so far.
struct Seat<'a> {
    cx: &'a Context<'a>,
    asked: &'a Exec,
    pilots: Pilots,
    /// The shard that its job was submitted for.
    own: ShardId,
    instance: String,
    job: JobId,
    run: u32,
    /// Claims made.
    made: u32,
    began: Instant,
    ends: Option<Time>,
    me: u32,
}

impl<'a> Seat<'a> {
    fn new(cx: &'a Context<'a>, asked: &'a Exec) -> Result<Seat<'a>, Stop> {
        let number = |name: &str| cx.surroundings.var(name).and_then(|text| text.parse().ok());
        let hint = "it is for job scripts that babysit wrote: see docs/pilots.md";
        let wrong = |what: &str| Stop::usage(what.to_owned(), hint);
        let job = number("SLURM_JOB_ID").ok_or_else(|| {
            wrong("babysit exec works inside of a Slurm job, and SLURM_JOB_ID is not set")
        })?;
        let own =
            ShardId::parse(&asked.shard).ok_or_else(|| wrong("--shard is to be family/shard"))?;
        let instance = asked.token.split(':').nth(1).unwrap_or_default().to_owned();
        let limit = asked.time.as_deref().and_then(|text| length(text).ok().flatten());
        let ends = number("SLURM_JOB_END_TIME").map(|at| Time(at as i64));
        Ok(Seat {
            cx,
            asked,
            pilots: Pilots::at(asked.pilots.clone()),
            own,
            instance,
            job: JobId(job),
            run: number("SLURM_RESTART_COUNT").and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
            made: 0,
            began: Instant::now(),
            ends: ends.or(limit.map(|limit| (cx.clock)() + limit)),
            me: rustix::process::getuid().as_raw(),
        })
    }

    fn say(&self, what: &str) {
        self.cx.talk.say(&format!("babysit exec: job {}: {what}", self.job));
    }

    fn log_name(&self) -> String {
        format!("{}.out", self.job)
    }

    /// The next shard, claimed; `None`: there is none for this job, which is no fault of anybody's.
    fn next(&mut self) -> Result<Option<Offered>, Stop> {
        let goes_on = self.made > 0;
        let offer = match self.pilots.offer(self.me) {
            Ok(offer) if offer.instance == self.instance => offer,
            Ok(offer) => {
                let theirs = &offer.instance;
                self.say(&format!("the offer is of another state ({theirs}), so nothing is taken"));
                return Ok(None);
            }
            Err(why) if goes_on => {
                self.say(&format!("no further shard is taken: {why}"));
                return Ok(None);
            }
            Err(why) => {
                self.say(&format!("no offer can be read, {} it is then: {why}", self.own));
                return self.own_shard();
            }
        };
        let group = &self.asked.group;
        let now = (self.cx.clock)();
        for choice in choices(&offer, &self.own, group, goes_on, now, self.ends) {
            let Choice::Offered(shard) = choice else { return self.own_shard() };
            let Some(claim) = self.claim(&shard.shard, shard.fence)? else { continue };
            // An offer that cannot be read any more takes nothing back.
            if self.pilots.offer(self.me).is_ok_and(|again| !stands(&again, &claim)) {
                self.pilots.give_back(&claim).map_err(|why| Stop::failed("claim", why))?;
                self.say(&format!("{} is not to be had any more", shard.shard));
                continue;
            }
            self.say(&format!("takes {} (claim {})", shard.shard, shard.fence));
            return Ok(Some(shard.clone()));
        }
        self.say("no shard waits that it could work on");
        Ok(None)
    }

    /// The shard that the job was submitted for, unless somebody has it.
    fn own_shard(&mut self) -> Result<Option<Offered>, Stop> {
        let (own, fence) = (self.own.clone(), self.asked.fence);
        if self.claim(&own, fence)?.is_none() {
            self.say(&format!("{own} has been taken by another job, so there is nothing to do"));
            return Ok(None);
        }
        self.say(&format!("takes {own} (claim {fence}), which it was submitted for"));
        Ok(Some(Offered {
            shard: own,
            group: self.asked.group.clone(),
            fence,
            command: self.asked.command.clone(),
            workdir: self.cx.surroundings.cwd.clone(),
            log_dir: PathBuf::new(),
            env: Vec::new(),
            remaining: Secs(0),
            row: Secs(0),
        }))
    }

    /// `None`: somebody else has it.
    fn claim(&mut self, shard: &ShardId, fence: u32) -> Result<Option<Claim>, Stop> {
        let worked = i64::try_from(self.began.elapsed().as_secs()).unwrap_or(i64::MAX);
        let claim = Claim {
            shard: shard.clone(),
            fence,
            instance: self.instance.clone(),
            job: self.job,
            token: self.asked.token.clone(),
            run: self.run,
            place: self.made,
            // Up to the first claim the run is the first shard's.
            after: Secs(if self.made == 0 { 0 } else { worked }),
            host: self.cx.surroundings.var("SLURMD_NODENAME").unwrap_or("a-node").to_owned(),
            at: (self.cx.clock)(),
            uid: self.me,
            returned: false,
        };
        let claimed = self.pilots.claim(&claim).map_err(|why| {
            let message = format!("{shard} cannot be claimed: {why}");
            let hint = "the folder of the state must be there, and writable, on every node";
            Stop::new(Exit::Failed, "claim", message, Some(hint.to_owned()))
        })?;
        Ok(match claimed {
            Claimed::Lost => None,
            Claimed::Won => {
                self.made += 1;
                Some(claim)
            }
        })
    }
}
