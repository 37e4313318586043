//! One job in both lanes (`[policy] lanes = "both"`): Slurm takes a list of QOS from 24.11 on and
//! starts the job in the first that has room (slurm-facts.md section 9).
//!
//! Whether this cluster's Slurm does is found out once, by the engine, and kept in the state.

use crate::model::cluster::QueueJob;
use crate::model::policy::{Lane, LaneMode, Lanes, Policy, SubmitMode};
use crate::model::request::Request;
use crate::model::state::{State, TakesBoth};
use crate::model::units::Secs;

use super::measure::is_done;
use super::roster::in_lane_but_for_qos;
use super::submit::{self, Moment, Way};

/// A "no" is asked for again after this: sites upgrade.
const NO_HOLDS: Secs = Secs::hours(24);

/// May a job be put into both lanes on this cluster?
pub fn works(policy: &Policy, state: &State) -> bool {
    answer(policy, state).is_some_and(|answer| answer.yes)
}

/// Is it wanted, possible by shards.toml, and not known yet? Until then the rule is "adaptive".
pub fn is_unknown(policy: &Policy, state: &State) -> bool {
    let wanted = policy.rules.lanes.mode == LaneMode::Both && list(policy).is_some();
    wanted && answer(policy, state).is_none()
}

/// The list of QOS of a job in both lanes.
fn list(policy: &Policy) -> Option<String> {
    let lanes = policy.lanes.as_ref().filter(|lanes| lanes.differ_by_qos_alone())?;
    lanes.spec(Lane::Both).qos.clone()
}

/// What is known of these lanes; another list of QOS is another question.
fn answer<'a>(policy: &Policy, state: &'a State) -> Option<&'a TakesBoth> {
    let lanes = policy.lanes.as_ref().filter(|lanes| lanes.differ_by_qos_alone())?;
    let (own, extra) = (lanes.own.qos.as_deref()?, lanes.extra.qos.as_deref()?);
    state.learned.takes_both.as_ref().filter(|answer| is_list(&answer.asked, own, extra))
}

/// Is it the list of these two? Compared without being made: this is asked more often than anything
/// else.
fn is_list(list: &str, first: &str, second: &str) -> bool {
    list.len() == first.len() + 1 + second.len()
        && list.strip_prefix(first).and_then(|rest| rest.strip_prefix(',')) == Some(second)
}

/// The submission to try dry, where it is time to ask Slurm: that of the first shard with work left,
/// as it would really be.
pub fn to_ask(moment: &Moment<'_>, state: &State) -> Option<Request> {
    let Moment { policy, now, .. } = *moment;
    let fresh = |answer: &TakesBoth| answer.yes || now.since(answer.at) < NO_HOLDS;
    if policy.rules.lanes.mode != LaneMode::Both || answer(policy, state).is_some_and(fresh) {
        return None;
    }
    list(policy)?;
    let shard = policy.shards.iter().zip(&state.shards).position(|(shard, record)| {
        shard.submit == SubmitMode::Queued && !is_done(shard, record)
    })?;
    let way = Way::Queued { kept_off: &[] };
    Some(submit::request(moment, state, shard, Some(Lane::Both), &way).request)
}

/// Does the job wait in both? Its QOS column then lists the two, in whatever order.
pub fn in_both(lanes: &Lanes, job: &QueueJob) -> bool {
    let (Some(own), Some(extra)) = (&lanes.own.qos, &lanes.extra.qos) else { return false };
    let listed = is_list(&job.qos, own, extra) || is_list(&job.qos, extra, own);
    listed && in_lane_but_for_qos(&lanes.own, job)
}
