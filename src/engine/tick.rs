//! One cycle, phase by phase, in the order of policy.md section 2.

use crate::model::notice::Message;
use crate::model::observation::{Cluster, GapKind, Measured, Observation, PastJob, Seen};
use crate::model::pilot::Claims;
use crate::model::policy::Policy;
use crate::model::state::{State, TakesBoth, TickOutcome, TickRecord};
use crate::model::units::{Secs, Time};
use crate::planning::event::{Event, What};
use crate::planning::plan::{Action, Plan, Purpose};
use crate::planning::questions::{Questions, questions};
use crate::planning::roster::Roster;
use crate::planning::submit::Moment;
use crate::planning::{apply, both, check, notices, pilots, plan, plan_with};
use crate::progress::Progress;
use crate::slurm::{PastAsk, Scope, Slurm};

use super::Checkpoint;
use super::act::act;

/// The own QOS's size changes rarely; it is read again after this.
const OWN_SIZE_HOLDS: Secs = Secs::hours(24);
/// Log lines of an ended job handed to the planner.
const LOG_LINES: usize = 40;

/// All that a cycle is handed.
pub struct Hands<'a> {
    pub policy: &'a Policy,
    pub slurm: &'a mut dyn Slurm,
    pub progress: &'a mut dyn Progress,
    pub checkpoint: &'a mut dyn Checkpoint,
    pub now: Time,
    /// Randomness of this cycle (nonces).
    pub seed: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Ok,
    /// A probe failed: nothing was decided (policy.md section 2.1).
    Skipped(String),
    /// It could not go on; what was not done is done by the next cycle.
    Failed(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub outcome: Outcome,
    pub plan: Plan,
    /// Of the plan and of what came of it.
    pub events: Vec<Event>,
    /// What the plan was made from; `None` where it was not made.
    pub seen: Option<Observation>,
    /// For the notify hook: the state that is saved has it as told.
    pub message: Option<Message>,
}

impl Report {
    fn seeing(self, seen: Observation) -> Report {
        Report { seen: Some(seen), ..self }
    }
}

/// What the two probes that a cycle starts with are asked. They need neither state nor shards, so they
/// may run while these are read. `places`: babysit itself looks for places for one of the shards.
///
/// Strangers matter for the own lane's room, for placements and for backfill; elsewhere a large
/// cluster's whole queue need not be read.
pub fn scope(policy: &Policy, places: bool) -> Scope {
    if policy.lanes.is_some() || policy.backfill.is_some() || places {
        Scope::Everybody
    } else {
        Scope::Mine
    }
}

fn look(policy: &Policy, slurm: &mut dyn Slurm) -> Seen<Cluster> {
    slurm.look(scope(policy, policy.places()))
}

/// Runs one cycle on `state`, which the caller has loaded under the lock.
pub fn tick(hands: &mut Hands<'_>, state: &mut State) -> Report {
    let looked = look(hands.policy, hands.slurm);
    tick_on(hands, state, looked)
}

/// The same after the probes, which the caller has made under the lock.
pub fn tick_on(hands: &mut Hands<'_>, state: &mut State, looked: Seen<Cluster>) -> Report {
    state.align(hands.policy, hands.now);
    let cluster = match looked {
        Ok(cluster) => cluster,
        Err(gap) => return skip(hands, state, gap.to_string()),
    };
    // Everything after the probes goes by one roster: it is made once a cycle.
    let mut seen = Beyond::default().beside(cluster);
    let roster = Roster::new(state, &seen.cluster.jobs, seen.cluster.me);
    if let Some(text) = strangers_under_our_names(state, &roster) {
        return fail(hands, state, Plan::default(), Vec::new(), text);
    }
    let claims = claims(hands, state);
    let Beyond { accounting, progress, logs, own_gpus } =
        look_beyond(hands, state, &roster, claims.as_ref());
    seen.claims = claims;
    (seen.accounting, seen.progress) = (accounting, progress);
    (seen.logs, seen.own_gpus) = (logs, own_gpus);
    seen.takes_both = ask_both(hands, state, &seen.cluster);
    let plan = plan_with(hands.policy, state, &seen, &roster, hands.now, hands.seed);
    let violations = check::violations(hands.policy, state, &plan);
    if !violations.is_empty() {
        let text =
            format!("the plan breaks its own rules, nothing was done: {}", violations.join("; "));
        return fail(hands, state, plan, Vec::new(), text).seeing(seen);
    }
    let mut events = plan.events.clone();
    // Before the intents are saved: a crash must not swallow what their save takes as known.
    notices::note(hands.policy, state, &events);
    let kept = match intend(hands, state, &plan) {
        Ok(kept) => kept,
        Err(text) => return fail(hands, state, plan, events, text).seeing(seen),
    };
    // What is in the saved state by now is told even if no later save works.
    let told = if kept { events.len() } else { 0 };
    hands.checkpoint.journal(events.get(..told).unwrap_or_default());
    let (said, lost) = act(hands, state, &plan, &mut events);
    let moved = |action: &Action| matches!(action, Action::Update { .. });
    if plan.actions.iter().any(moved) || !said.answers.is_empty() {
        let after = hands.slurm.jobs(Scope::Mine);
        let jobs = after.as_deref().ok();
        events.extend(apply::verify(hands.policy, state, &plan, &said, jobs, hands.now));
        after.into_iter().for_each(|jobs| hands.slurm.take_back(jobs));
    }
    notices::note(hands.policy, state, events.get(plan.events.len()..).unwrap_or_default());
    if let Some(why) = lost {
        let text = format!("broken off, nothing more was asked of Slurm: {why}");
        record(state, hands.now, TickOutcome::Failed(text.clone()));
        return finish(hands, state, plan, events, told, Outcome::Failed(text)).seeing(seen);
    }
    record(state, hands.now, TickOutcome::Ok);
    notices::review(hands.policy, state, events.is_empty(), hands.now);
    finish(hands, state, plan, events, told, Outcome::Ok).seeing(seen)
}

/// The plan that a tick would carry out now; asks Slurm, changes nothing.
pub fn dry_run(hands: &mut Hands<'_>, state: &mut State) -> Report {
    state.align(hands.policy, hands.now);
    let report = |outcome, plan: Plan| Report {
        outcome,
        events: plan.events.clone(),
        plan,
        seen: None,
        message: None,
    };
    let cluster = match look(hands.policy, hands.slurm) {
        Ok(cluster) => cluster,
        Err(gap) => return report(Outcome::Skipped(gap.to_string()), Plan::default()),
    };
    let roster = Roster::new(state, &cluster.jobs, cluster.me);
    if let Some(text) = strangers_under_our_names(state, &roster) {
        return report(Outcome::Failed(text), Plan::default());
    }
    let seen = observe(hands, state, cluster);
    report(Outcome::Ok, plan(hands.policy, state, &seen, hands.now, hands.seed))
}

/// A state without any history, and live jobs under its project's names: the state was lost, or
/// two folders use one project name. Either way the work may be running already.
fn strangers_under_our_names(state: &State, roster: &Roster<'_>) -> Option<String> {
    if state.shards.iter().chain(&state.orphans).any(|record| record.attempts > 0) {
        return None;
    }
    let first = roster.foreign.first()?;
    Some(format!(
        "{} live job(s) of project `{}` belong to another state (first: job {}, {}): if this is a \
         second campaign, give it a `project` name of its own; if the state file was lost, put it \
         back, or see what `babysit reconcile` says. Nothing was submitted",
        roster.foreign.len(),
        state.project,
        first.id,
        first.name
    ))
}

/// The parts of an observation that are not of the two probes.
#[derive(Default)]
struct Beyond {
    accounting: Option<Seen<Vec<PastJob>>>,
    progress: Vec<Option<Seen<Measured>>>,
    logs: Vec<(usize, String)>,
    own_gpus: Option<Seen<Option<u32>>>,
}

impl Beyond {
    fn beside(self, cluster: Cluster) -> Observation {
        let Beyond { accounting, progress, logs, own_gpus } = self;
        Observation {
            cluster,
            accounting,
            progress,
            logs,
            own_gpus,
            takes_both: None,
            claims: None,
        }
    }
}

/// Everything that this cycle needs to know.
pub(super) fn observe(hands: &mut Hands<'_>, state: &State, cluster: Cluster) -> Observation {
    let roster = Roster::new(state, &cluster.jobs, cluster.me);
    let claims = claims(hands, state);
    let beyond = look_beyond(hands, state, &roster, claims.as_ref());
    Observation { claims, ..beyond.beside(cluster) }
}

fn claims(hands: &mut Hands<'_>, state: &State) -> Option<Seen<Claims>> {
    pilots::are_about(hands.policy, state).then(|| hands.checkpoint.claims(state, hands.now))
}

fn look_beyond(
    hands: &mut Hands<'_>,
    state: &State,
    roster: &Roster<'_>,
    claims: Option<&Seen<Claims>>,
) -> Beyond {
    let Questions { names, since, measure, logs } =
        questions(hands.policy, state, roster, claims, hands.now);
    let accounting = match since {
        Some(since) if !state.learned.accounting_off => {
            Some(hands.slurm.past(&PastAsk { names, since }))
        }
        _ => None,
    };
    let shards: Vec<_> = measure.iter().map(|&i| &hands.policy.shards[i]).collect();
    let mut progress = Vec::new();
    progress.resize_with(hands.policy.shards.len(), || None);
    for (at, reading) in measure.iter().zip(hands.progress.measure(&shards, hands.seed)) {
        progress[*at] = Some(reading);
    }
    let mut tails = Vec::new();
    for (i, job) in logs {
        let text = match hands.progress.log_tail(&hands.policy.shards[i], job, LOG_LINES) {
            Ok(lines) => lines.join("\n"),
            // No later tick would read it either: it is no file, or not for this user's eyes. To wait for
            // it would hold the shard up for ever.
            Err(gap) if gap.kind == GapKind::Unreadable => gap.to_string(),
            // What an end means is read from its log too. Its shard's files are a gap as a whole then,
            // over which no end is judged.
            Err(gap) => {
                progress[i] = Some(Err(gap));
                continue;
            }
        };
        tails.push((i, text));
    }
    let own_qos = hands.policy.lanes.as_ref().filter(|lanes| lanes.own_gpus.is_none());
    let stale = |at: &Time| hands.now.since(*at) >= OWN_SIZE_HOLDS;
    let own_gpus = match own_qos.and_then(|lanes| lanes.own.qos.as_deref()) {
        Some(qos) if state.learned.own_gpus.as_ref().is_none_or(|(_, at)| stale(at)) => {
            Some(hands.slurm.qos_gpus(qos))
        }
        _ => None,
    };
    Beyond { accounting, progress, logs: tails, own_gpus }
}

/// Once per cluster, since the dry submission may use up a job id; so a dry run does not ask.
/// No answer is a gap: the next tick asks.
fn ask_both(hands: &mut Hands<'_>, state: &State, cluster: &Cluster) -> Option<TakesBoth> {
    let Hands { policy, now, seed, .. } = *hands;
    let request = both::to_ask(&Moment { policy, cluster, now, seed }, state)?;
    let (yes, said) = hands.slurm.takes_both(&request).ok()?;
    Some(TakesBoth { yes, said, at: now, asked: request.qos.unwrap_or_default() })
}

/// Saves what is about to be asked, before it is asked: a crash from here on leaves a record of
/// every job that may exist (architecture.md item 4). `false`: nothing is, so nothing was saved.
fn intend(hands: &mut Hands<'_>, state: &mut State, plan: &Plan) -> Result<bool, String> {
    let mut effects = false;
    for action in &plan.actions {
        match action {
            Action::Submit(submit) => {
                apply::begin(state, submit);
                effects = true;
            }
            Action::Update { purpose: Purpose::KeepOff(nodes), jobs, .. } => {
                apply::begin_keeping_off(state, nodes, jobs);
                effects = true;
            }
            Action::FreeRows(free) => {
                apply::begin_freeing(state, free);
                effects = true;
            }
            Action::Cancel { .. } | Action::StopBackfill { .. } => effects = true,
            Action::Update { .. } => {}
        }
    }
    if !effects {
        return Ok(false);
    }
    hands.checkpoint.save(state).map(|()| true).map_err(|error| {
        for action in &plan.actions {
            if let Action::Submit(submit) = action {
                apply::not_asked(state, submit);
            }
        }
        format!("the state could not be saved, so nothing was asked of Slurm: {error:#}")
    })
}

fn skip(hands: &mut Hands<'_>, state: &mut State, why: String) -> Report {
    record(state, hands.now, TickOutcome::Skipped(why.clone()));
    notices::skipped(hands.policy, state, &why, hands.now);
    let event = Event { at: hands.now, shard: None, what: What::CycleSkipped { why: why.clone() } };
    finish(hands, state, Plan::default(), vec![event], 0, Outcome::Skipped(why))
}

fn fail(
    hands: &mut Hands<'_>,
    state: &mut State,
    plan: Plan,
    events: Vec<Event>,
    why: String,
) -> Report {
    record(state, hands.now, TickOutcome::Failed(why.clone()));
    finish(hands, state, plan, events, 0, Outcome::Failed(why))
}

fn record(state: &mut State, now: Time, outcome: TickOutcome) {
    let before = state.last_tick.as_ref();
    let skipped = matches!(outcome, TickOutcome::Skipped(_));
    let ok = outcome == TickOutcome::Ok;
    state.last_tick = Some(TickRecord {
        at: now,
        skipped_in_a_row: if skipped { before.map_or(0, |t| t.skipped_in_a_row) + 1 } else { 0 },
        last_ok: if ok { Some(now) } else { before.and_then(|t| t.last_ok) },
        outcome,
    });
}

/// Saves, then tells: a journal ahead of a state that was never saved would make that state look
/// lost. The first `told` of the events are in the journal already.
fn finish(
    hands: &mut Hands<'_>,
    state: &mut State,
    plan: Plan,
    events: Vec<Event>,
    told: usize,
    outcome: Outcome,
) -> Report {
    let message = notices::take(hands.policy, state, hands.now);
    let saved = hands.checkpoint.save(state);
    if saved.is_ok() {
        hands.checkpoint.journal(events.get(told..).unwrap_or_default());
        // Only what is saved is offered: a number that was offered is never given out again.
        if outcome == Outcome::Ok && pilots::are_about(hands.policy, state) {
            hands.checkpoint.offer(hands.policy, state, hands.now);
        }
    }
    // What was not saved as told is told by a later cycle.
    let message = message.filter(|_| saved.is_ok());
    let outcome = match (saved, outcome) {
        (Ok(()), outcome) => outcome,
        (Err(error), Outcome::Ok | Outcome::Skipped(_)) => {
            Outcome::Failed(format!("the state could not be saved: {error:#}"))
        }
        (Err(_), failed) => failed,
    };
    Report { outcome, plan, events, seen: None, message }
}
