//! Pilots: which shards they are offered, and where their jobs belong (docs/pilots.md).
//!
//! Pilots of one group are interchangeable: a job belongs to the shard that it claimed, whichever it was
//! submitted for. One live job per shard stays true throughout. Booking claims is in `book.rs`.

mod book;
mod choice;
mod order;
mod strays;

use std::fmt::Write;
use std::path::PathBuf;

use crate::model::id::JobId;
use crate::model::pilot::{Claims, Offer, Offered, Pilot};
use crate::model::policy::{Kin, Launch, Policy, Shard};
use crate::model::state::{Gate, ShardRecord, Slot, State};
use crate::model::units::{Money, Secs};

use super::lpt::Lpt;
use super::measure::is_done;
use super::quick::QuickMap;
use super::submit;

pub use book::{Booked, book};
pub use choice::{Choice, choices, stands};
pub use order::Order;

/// Must claims be read and an offer be kept? Also where the last pilot family was just taken out of
/// shards.toml: its jobs still run.
pub fn are_about(policy: &Policy, state: &State) -> bool {
    let of_pilot = |record: &ShardRecord| record.live().is_some_and(|live| live.attempt.pilot);
    policy.has_pilots() || state.shards.iter().chain(&state.orphans).any(of_pilot)
}

/// What the job of a shard must be told to be a pilot; `None`: it is none, or there is no place for
/// claims.
pub fn place(policy: &Policy, shard: &Shard, record: &ShardRecord) -> Option<Pilot> {
    let (program, folder) = (policy.slurm.babysit.clone()?, policy.slurm.pilots.clone()?);
    shard.pilot.then(|| Pilot {
        program,
        folder,
        shard: shard.id.clone(),
        group: group(shard, record.min_tier),
        fence: next_fence(record),
    })
}

/// Shards that may stand in for each other's job: with the same demands on Slurm, and of one family or
/// of those that say that they take in others.
pub fn group(shard: &Shard, raised: Option<u32>) -> String {
    Demands::of(shard, raised).text()
}

/// What shards of one group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Demands<'p> {
    family: &'p str,
    gpus: u32,
    cpus: Option<u32>,
    mem: Option<&'p str>,
    tier: Option<u32>,
    time: Option<&'p str>,
    args: &'p [String],
}

impl Demands<'_> {
    fn of(shard: &Shard, raised: Option<u32>) -> Demands<'_> {
        let family = match shard.kin {
            // No family has that name.
            Kin::Any => "*",
            Kin::Family => shard.id.family.as_str(),
        };
        Demands {
            family,
            gpus: shard.gpus,
            cpus: shard.cpus,
            mem: shard.mem.as_deref(),
            tier: raised.or(shard.min_tier),
            time: shard.time.as_deref(),
            args: &shard.args,
        }
    }

    fn text(&self) -> String {
        let Demands { family, gpus, cpus, mem, tier, time, args } = self;
        let mut group = [family, " gpus=", itoa::Buffer::new().format(*gpus)].concat();
        // Writing to a text cannot fail.
        let mut add = |words: std::fmt::Arguments<'_>| group.write_fmt(words).unwrap_or_default();
        if let Some(cpus) = cpus {
            add(format_args!(" cpus={cpus}"));
        }
        if let Some(mem) = mem {
            add(format_args!(" mem={mem}"));
        }
        if let Some(rank) = tier {
            add(format_args!(" tier={rank}"));
        }
        if let Some(time) = time {
            add(format_args!(" time={time}"));
        }
        let args = args.join(" ");
        if !args.is_empty() {
            add(format_args!(" args={args}"));
        }
        group
    }
}

fn next_fence(record: &ShardRecord) -> u32 {
    record.claims.saturating_add(1)
}

/// Shards whose next claim is there, and the job that made it; by shard.
pub fn claimed(policy: &Policy, state: &State, claims: &Claims) -> Vec<(usize, JobId)> {
    if claims.claims.is_empty() {
        return Vec::new();
    }
    let by_id: QuickMap<_, _> =
        claims.claims.iter().map(|claim| ((&claim.shard, claim.fence), claim.job)).collect();
    let shards = policy.shards.iter().zip(&state.shards).enumerate();
    let next = |(i, (shard, record)): (usize, (&Shard, &ShardRecord))| {
        by_id.get(&(&shard.id, next_fence(record))).map(|job| (i, *job))
    };
    shards.filter_map(next).collect()
}

/// What it takes to run a shard.
#[derive(Debug, Default)]
pub struct Equipment {
    pub command: String,
    pub workdir: PathBuf,
    pub log_dir: PathBuf,
    pub env: Vec<(String, String)>,
}

/// All that pilots may take now, longest first (policy.md section 3): what nobody works on, and what
/// may be submitted or was.
pub fn offer(policy: &Policy, state: &State) -> Offer {
    offer_with(policy, state, |shard, number, cap| {
        let Launch::Command(command) = &shard.launch else { return None };
        Some(Equipment {
            command: command.clone(),
            workdir: shard.workdir.to_path_buf(),
            log_dir: shard.log_dir.clone(),
            env: submit::env(policy, shard, number, cap, None),
        })
    })
}

/// The same for pilots that need other things: `equip` is told the attempt and the cap. Where it gives
/// nothing the shard is not offered.
pub fn offer_with(
    policy: &Policy,
    state: &State,
    equip: impl Fn(&Shard, u32, Option<Money>) -> Option<Equipment>,
) -> Offer {
    let taken = |record: &ShardRecord| {
        let live = record.live().filter(|live| !live.is_unclaimed())?;
        Some((record.id.clone(), live.turn?.fence, live.job))
    };
    let taken = state.shards.iter().filter_map(taken).collect();
    let mut offer = Offer { instance: state.instance.clone(), shards: Vec::new(), taken };
    if !policy.has_pilots() {
        return offer;
    }
    let lpt = Lpt::new(policy, state);
    let mut before = None;
    for i in free(policy, state, &lpt) {
        let Some((shard, record)) = policy.shards.get(i).zip(state.shards.get(i)) else { continue };
        let demands = Demands::of(shard, record.min_tier);
        // Most are of the same group as the one before: its text need not be made anew.
        let group = match offer.shards.last() {
            Some(last) if before == Some(demands) => last.group.clone(),
            _ => demands.text(),
        };
        if let Some(offered) = offered(policy, state, &lpt, i, group, &equip) {
            offer.shards.push(offered);
            before = Some(demands);
        }
    }
    offer
}

fn free(policy: &Policy, state: &State, lpt: &Lpt) -> Vec<usize> {
    let mut free: Vec<usize> = (0..policy.shards.len().min(state.shards.len()))
        .filter(|&i| may_be_taken(&policy.shards[i], &state.shards[i]))
        .collect();
    lpt.sort(policy, &mut free, |i| *i);
    free
}

fn may_be_taken(shard: &Shard, record: &ShardRecord) -> bool {
    let idle = match &record.slot {
        Slot::Free => true,
        Slot::Live(live) => live.is_unclaimed() && live.stop.is_none(),
        Slot::Submitting(_) | Slot::Settling(_) => false,
    };
    shard.pilot
        && idle
        && record.gate == Gate::Open
        && record.over_cap.is_none()
        && !is_done(shard, record)
        && record.progress.measured_at.is_some()
}

fn offered(
    policy: &Policy,
    state: &State,
    lpt: &Lpt,
    i: usize,
    group: String,
    equip: impl Fn(&Shard, u32, Option<Money>) -> Option<Equipment>,
) -> Option<Offered> {
    let (shard, record) = (policy.shards.get(i)?, state.shards.get(i)?);
    let number = match &record.slot {
        Slot::Live(live) => live.attempt.number,
        _ => record.attempts.saturating_add(1),
    };
    let cap = state.cap_of(&shard.id, shard.cap);
    let Equipment { command, workdir, log_dir, env } = equip(shard, number, cap)?;
    Some(Offered {
        shard: shard.id.clone(),
        group,
        fence: next_fence(record),
        command,
        workdir,
        log_dir,
        env,
        remaining: Secs(lpt.remaining.get(i).copied()?.ceil() as i64),
        row: Secs(lpt.seconds_per_row.get(i).copied()?.ceil() as i64),
    })
}

#[cfg(test)]
mod tests;
