//! Jobs that decide at their start, and again after each shard, what they work on: the offer and the
//! claims as every node sees them, and the jobs that make claims.
//!
//! Which of the offered shards they try is not known here: whoever builds the cluster hands that in.

use std::collections::BTreeMap;

use super::rows::Rows;
use super::work::{Run, Start};
use crate::model::cluster::GpuCount;
use crate::model::id::{JobId, ShardId};
use crate::model::pilot::{Claim, Offer, Pilot};
use crate::model::units::{Secs, Time};

/// What a pilot tries to claim, first things first: of an offer, at its start or when it `goes_on`, at
/// that moment and with that end of its time. With each shard the number that its claim carries.
pub type Choose = fn(&Offer, &Pilot, bool, Time, Option<Time>) -> Vec<(ShardId, u32)>;

/// A job that finds nothing to do has looked for it: a process takes its time to start.
const LOOKS: Secs = Secs(1);

/// What lies in the folder that pilots and ticks share, and who sits in which job.
#[derive(Debug, Clone, Default)]
pub(super) struct Pilots {
    choose: Option<Choose>,
    offer: Option<Offer>,
    /// By shard, with growing numbers.
    claims: BTreeMap<ShardId, Vec<Claim>>,
    /// How many there are.
    count: u64,
    seats: Vec<Seat>,
}

/// A pilot inside of its job.
#[derive(Debug, Clone)]
struct Seat {
    job: JobId,
    user: String,
    uid: u32,
    name: String,
    comment: String,
    env: Vec<(String, String)>,
    node: String,
    gpus: Vec<GpuCount>,
    restarts: u32,
    began: Time,
    ends: Option<Time>,
    pilot: Pilot,
    /// Claims made.
    made: u32,
}

impl Seat {
    fn of(pilot: &Pilot, start: &Start<'_>) -> Seat {
        Seat {
            job: start.job,
            user: start.user.to_owned(),
            uid: start.uid,
            name: start.name.to_owned(),
            comment: start.comment.to_owned(),
            env: start.env.to_vec(),
            node: start.node.to_owned(),
            gpus: start.gpus.to_vec(),
            restarts: start.restarts,
            began: start.at,
            ends: start.ends,
            pilot: pilot.clone(),
            made: 0,
        }
    }

    /// As the program of a shard meets it that begins at that moment.
    fn start<'a>(&'a self, env: &'a [(String, String)], at: Time) -> Start<'a> {
        Start {
            job: self.job,
            user: &self.user,
            uid: self.uid,
            name: &self.name,
            comment: &self.comment,
            env,
            at,
            node: &self.node,
            gpus: &self.gpus,
            restarts: self.restarts,
            ends: self.ends,
            pilot: Some(&self.pilot),
        }
    }
}

impl Pilots {
    /// Claims one more shard for a pilot; `None`: there is none for it.
    fn claim(&mut self, seat: &mut Seat, at: Time) -> Option<ShardId> {
        let goes_on = seat.made > 0;
        let own = || vec![(seat.pilot.shard.clone(), seat.pilot.fence)];
        let instance = seat.comment.split(':').nth(1).unwrap_or_default().to_owned();
        let tries = match (&self.offer, self.choose) {
            (Some(offer), Some(choose)) if offer.instance == instance => {
                choose(offer, &seat.pilot, goes_on, at, seat.ends)
            }
            (None, _) if !goes_on => own(),
            _ => Vec::new(),
        };
        let free = |(shard, fence): &(ShardId, u32)| {
            let last = self.claims.get(shard).and_then(|claims| claims.last());
            last.is_none_or(|last| last.fence < *fence)
        };
        let (shard, fence) = tries.into_iter().find(free)?;
        let claim = Claim {
            shard: shard.clone(),
            fence,
            instance,
            job: seat.job,
            token: seat.comment.clone(),
            run: seat.restarts,
            place: seat.made,
            // Up to the first claim the run is the first shard's.
            after: if goes_on { at.since(seat.began) } else { Secs(0) },
            host: seat.node.clone(),
            at,
            uid: seat.uid,
            returned: false,
        };
        seat.made += 1;
        self.count += 1;
        self.claims.entry(shard.clone()).or_default().push(claim);
        Some(shard)
    }

    /// What it takes to run a shard, as it was offered.
    fn env(&self, shard: &ShardId) -> Option<&[(String, String)]> {
        let offered = self.offer.iter().flat_map(|offer| &offer.shards);
        offered.into_iter().find(|offered| offered.shard == *shard).map(|o| o.env.as_slice())
    }

    pub(super) fn leave(&mut self, job: JobId) {
        self.seats.retain(|seat| seat.job != job);
    }
}

impl Rows {
    /// Pilots choose by this rule from now on. Without one they work on what they were submitted for.
    pub fn choose_by(&mut self, choose: Choose) {
        self.pilots.choose = Some(choose);
    }

    /// What pilots may take from now on.
    pub fn offer(&mut self, offer: Offer) {
        self.pilots.offer = Some(offer);
    }

    /// Claims of a shard by this number and by higher ones.
    pub fn claims_of(&self, shard: &ShardId, from: u32) -> &[Claim] {
        let all = self.pilots.claims.get(shard).map_or(&[][..], Vec::as_slice);
        all.get(all.partition_point(|claim| claim.fence < from)..).unwrap_or_default()
    }

    /// Grows with every claim.
    pub fn count_of_claims(&self) -> u64 {
        self.pilots.count
    }

    /// Every claim there ever was.
    pub fn claims_made(&self) -> impl Iterator<Item = &Claim> {
        self.pilots.claims.values().flatten()
    }

    pub(super) fn board(&mut self, pilot: &Pilot, start: &Start<'_>) -> Run {
        if self.pilots.choose.is_none() {
            return self.begin(&pilot.shard.to_string(), start);
        }
        let seat = Seat::of(pilot, start);
        self.next_shard(seat, start.at).unwrap_or_else(|| Run::completes(LOOKS))
    }

    /// A pilot's shard has ended well: the next one, if there is one for it.
    pub(super) fn next_of_pilot(&mut self, job: JobId, at: Time) -> Option<Run> {
        let place = self.pilots.seats.iter().position(|seat| seat.job == job)?;
        let seat = self.pilots.seats.swap_remove(place);
        self.close(job, at);
        self.next_shard(seat, at)
    }

    fn next_shard(&mut self, mut seat: Seat, at: Time) -> Option<Run> {
        let shard = self.pilots.claim(&mut seat, at)?;
        let env = self.pilots.env(&shard).map(<[_]>::to_vec);
        let run =
            self.begin(&shard.to_string(), &seat.start(env.as_deref().unwrap_or(&seat.env), at));
        self.pilots.seats.push(seat);
        Some(run)
    }
}
