//! One job in both lanes (`[policy] lanes = "both"`): Slurm takes a list of QOS from 24.11 on and
//! starts the job in the first that has room (slurm-facts.md section 9).
//!
//! Whether this cluster's Slurm does is found out once, by the engine, and kept in the state.

use crate::model::cluster::QueueJob;
use crate::model::policy::{Lane, LaneMode, LaneSpec, Lanes, Policy};
use crate::model::state::{State, TakesBoth};
use crate::model::units::{Secs, Time};

use super::roster::in_lane;

/// A "no" is asked for again after this: sites upgrade.
const NO_HOLDS: Secs = Secs::hours(24);

/// May a job be put into both lanes on this cluster?
pub fn works(policy: &Policy, state: &State) -> bool {
    let possible = policy.lanes.as_ref().is_some_and(Lanes::differ_by_qos_alone);
    possible && state.learned.takes_both.as_ref().is_some_and(|answer| answer.yes)
}

/// The lane to try a dry submission with, where it is time to ask Slurm.
pub fn to_ask(policy: &Policy, state: &State, now: Time) -> Option<LaneSpec> {
    let lanes = policy.lanes.as_ref().filter(|lanes| lanes.differ_by_qos_alone())?;
    let fresh = |answer: &TakesBoth| answer.yes || now.since(answer.at) < NO_HOLDS;
    let due = !state.learned.takes_both.as_ref().is_some_and(fresh);
    (policy.rules.lanes.mode == LaneMode::Both && due).then(|| lanes.spec(Lane::Both).into_owned())
}

/// Does the job wait in both? Its QOS column then lists the two, in whatever order.
pub fn in_both(lanes: &Lanes, job: &QueueJob) -> bool {
    let (Some(own), Some(extra)) = (&lanes.own.qos, &lanes.extra.qos) else { return false };
    let Some((first, second)) = job.qos.split_once(',') else { return false };
    let listed = (first == own && second == extra) || (first == extra && second == own);
    listed && in_lane(&LaneSpec { qos: None, ..lanes.own.clone() }, job)
}
