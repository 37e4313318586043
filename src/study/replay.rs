//! A past cycle planned again: by the policy it had, and by others.
//!
//! No simulation: each cycle starts from what really was, whatever a policy would have made of it.

use std::collections::BTreeMap;

use crate::model::observation::Observation;
use crate::model::policy::{Lane, Policy};
use crate::model::state::State;
use crate::model::units::Time;
use crate::planning::plan;
use crate::planning::plan::{Action, Plan, Purpose};

use super::method::{self, Method};
use super::placing::{self, PLACINGS, Placing};

/// What one cycle was given to decide on.
#[derive(Debug, Clone, Copy)]
pub struct Cycle<'a> {
    pub state: &'a State,
    pub seen: &'a Observation,
    pub now: Time,
    pub seed: u64,
}

/// The plan that a tick makes of it.
pub fn plan_again(policy: &Policy, cycle: &Cycle<'_>) -> Plan {
    let mut state = cycle.state.clone();
    state.align(policy, cycle.now);
    plan(policy, &mut state, cycle.seen, cycle.now, cycle.seed)
}

/// A policy by name, for lanes or for placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    Lanes(Method),
    Placing(Placing),
    /// One name of both parts (`best`), as the preset in shards.toml sets both.
    Whole(Method, Placing),
}

pub fn rivals() -> Vec<Rival> {
    // Which shards are split, and whose jobs are pilots, is in the recorded policy, and no rule of a
    // policy.
    let of_rules = |method: &Method| !method.split && !method.pilots;
    let lanes = method::all().filter(of_rules).map(|method| match placing::by_name(method.name) {
        Some(placing) => Rival::Whole(method, placing),
        None => Rival::Lanes(method),
    });
    let only = PLACINGS.into_iter().filter(|placing| method::by_name(placing.name).is_none());
    lanes.chain(only.map(Rival::Placing)).collect()
}

pub fn by_name(name: &str) -> Option<Rival> {
    rivals().into_iter().find(|rival| rival.name() == name)
}

impl Rival {
    pub fn name(&self) -> &'static str {
        match self {
            Rival::Lanes(method) | Rival::Whole(method, _) => method.name,
            Rival::Placing(placing) => placing.name,
        }
    }

    /// The same policy but for this setting.
    pub fn of(&self, policy: &Policy) -> Policy {
        let mut policy = policy.clone();
        let (method, placing) = match self {
            Rival::Lanes(method) => (Some(method), None),
            Rival::Placing(placing) => (None, Some(placing)),
            Rival::Whole(method, placing) => (Some(method), Some(placing)),
        };
        if let Some(method) = method {
            policy.rules.lanes = method.rules;
            if let (Some(lanes), Some(park)) = (&mut policy.lanes, method.park) {
                lanes.park = park;
            }
        }
        if let Some(placing) = placing {
            placing.set(&mut policy.rules);
        }
        policy
    }
}

/// What one policy asked for, over all cycles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Jobs by what was asked for them; a submission tells its lane.
    pub jobs: BTreeMap<&'static str, u64>,
    /// Cycles in which it asked for something else than the campaign's own policy.
    pub different: u64,
    /// The first of them.
    pub first: Option<Time>,
}

impl Tally {
    pub fn count(&mut self, plan: &Plan, own: &Plan, at: Time) {
        for action in &plan.actions {
            let (kind, jobs) = asked(action);
            *self.jobs.entry(kind).or_default() += jobs as u64;
        }
        if plan.actions != own.actions {
            self.different += 1;
            self.first.get_or_insert(at);
        }
    }
}

fn asked(action: &Action) -> (&'static str, usize) {
    match action {
        Action::Submit(submit) => match submit.attempt.lane {
            Some(Lane::Own) => ("submit-own", 1),
            Some(Lane::Extra) => ("submit-extra", 1),
            Some(Lane::Both) => ("submit-both", 1),
            None => (action.kind(), 1),
        },
        // Letting jobs back is no part of what it costs to keep them off.
        Action::Update { purpose: Purpose::KeepOff(nodes), jobs, .. } if nodes.is_empty() => {
            ("let-back", jobs.len())
        }
        Action::Update { jobs, .. } | Action::Cancel { jobs, .. } => (action.kind(), jobs.len()),
        Action::StopBackfill { jobs, .. } => (action.kind(), jobs.len()),
        Action::FreeRows(free) => (action.kind(), free.rows.len()),
    }
}
