//! The rest of a campaign from where it stands: when each shard is done, what it costs, and how
//! likely a cap is in the way.
//!
//! Rates are what was measured so far, and as uncertain as the few rows behind them make them.

use std::sync::atomic::AtomicBool;

use crate::model::policy::{Lane, Policy, Shard};
use crate::model::state::{Gate, ShardRecord, State};
use crate::model::units::{Money, Secs};
use crate::planning::lpt::Lpt;
use crate::planning::measure::{is_done, rows_left};
use crate::sim::Rng;

use super::kinds::Kinds;
use super::method::Method;
use super::picture::finish;
use super::price::{Price, prices};
use super::scenario::Scenario;
use super::setting::{Setting, ShardWork};

/// One shard's part of what is left.
#[derive(Debug, Clone, PartialEq)]
pub struct Left {
    /// Index in the policy.
    pub shard: usize,
    pub rows: u32,
    /// Rows behind the measured rates.
    pub seen: u32,
    pub spent: Money,
    /// Dollars a row so far; `None` where nothing was spent yet.
    pub price: Option<f64>,
    pub cap: Option<Money>,
}

/// What is forecast, and from what.
#[derive(Debug, Clone)]
pub struct Rest {
    pub setting: Setting,
    pub left: Vec<Left>,
    /// Shards that wait for a person.
    pub left_out: Vec<usize>,
    /// Time between two points of a future's rows.
    pub every: Secs,
}

/// One possible future: hours and dollars by `Rest::left`.
#[derive(Debug, Clone, PartialEq)]
pub struct Future {
    pub ends: Vec<f64>,
    pub costs: Vec<f64>,
    /// Finished rows of all of them: now, and each `Rest::every` after that until the last row.
    pub done: Vec<u32>,
}

/// `state` must have been aligned with `policy`.
pub fn rest(scenario: Scenario, policy: &Policy, state: &State) -> Rest {
    let lpt = Lpt::new(policy, state);
    let prices = prices(policy, state);
    let mut kin = Kinds::default();
    let helpers = state.busy_helpers();
    let (mut work, mut left, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for (i, (shard, record)) in policy.shards.iter().zip(&state.shards).enumerate() {
        if !goes_on(shard, record) {
            let gone = is_done(shard, record) || matches!(record.gate, Gate::Cancelled { .. });
            left_out.extend((!gone).then_some(i));
            continue;
        }
        let done = record.progress.rows.min(shard.rows);
        let spent = record.progress.spent.unwrap_or_default();
        let price = (done > 0 && spent > Money::ZERO).then(|| spent.dollars() / f64::from(done));
        let each = lpt.seconds_per_row.get(i).copied().unwrap_or(shard.row_time.as_f64());
        work.push(ShardWork {
            id: shard.id.clone(),
            gpus: shard.gpus,
            rows: shard.rows,
            done,
            row_hours: each.max(1.0) / 3600.0,
            price: prices.get(i).copied().unwrap_or(Price::NONE),
            cap: None,
            workers: shard.split.as_ref().map_or(1, |split| split.workers),
            pilot: kin.may(shard),
            set_pilot: kin.set(shard, record),
            runs: runs(record),
            helped: helpers.iter().filter_map(|helper| helps(helper, shard)).collect(),
        });
        let cap = state.cap_of(&shard.id, shard.cap);
        let (rows, seen) = (rows_left(shard, record), record.pace.rows);
        left.push(Left { shard: i, rows, seen, spent, price, cap });
    }
    let mut setting = Setting::of(scenario, work);
    match (&policy.lanes, state.learned.own_lane) {
        (Some(lanes), lane) => {
            let size = lanes.own_gpus.or(lane.and_then(|lane| lane.size));
            setting.own = size.unwrap_or(setting.own).max(1);
            // Those who are in it now are taken to stay; the scenario's visitors come and go.
            let others = lane.map_or(setting.own / 2, |lane| lane.running_others);
            setting.held = others.min(setting.own - 1);
            setting.park = lanes.park;
        }
        // No lanes: as many GPUs as were at hand, for good.
        (None, _) => {
            setting.scenario = Scenario::None;
            setting.own = state.learned.gpus_at_hand.max(1);
            setting.held = 0;
        }
    }
    setting.make_room();
    let every = every(&setting);
    Rest { setting, left, left_out, every }
}

/// Is anything left that will be done without a person?
pub(super) fn goes_on(shard: &Shard, record: &ShardRecord) -> bool {
    let open = matches!(record.gate, Gate::Open | Gate::Backoff { .. });
    !is_done(shard, record) && open && record.over_cap.is_none()
}

/// The lane in which its job has its GPUs now.
fn runs(record: &ShardRecord) -> Option<Lane> {
    let live = record.live().filter(|live| live.started.is_some())?;
    Some(live.lane.unwrap_or(Lane::Own))
}

/// Which helper of this shard it is, and where it runs.
fn helps(helper: &ShardRecord, shard: &Shard) -> Option<(u32, Lane)> {
    let number = helper.id.helper_number().filter(|_| helper.id.helps(&shard.id))?;
    Some((number, runs(helper)?))
}

/// Points that a usual future's rows are told at.
const POINTS: i64 = 60;

/// So that a campaign has about that many, whatever its length; whole ticks.
fn every(setting: &Setting) -> Secs {
    let hours = |work: &ShardWork| f64::from(work.rows.saturating_sub(work.done)) * work.row_hours;
    let longest = setting.work.iter().map(hours).fold(0.0, f64::max);
    let all: f64 = setting.work.iter().map(hours).sum();
    let about = longest.max(all / f64::from(setting.own_free().max(1)));
    let about = Secs((about * 3600.0) as i64 / POINTS).min(setting.limit);
    Secs((about.0 / setting.every.0).max(1) * setting.every.0)
}

/// `None`: it was broken off, since `stop` was set.
///
/// # Errors
/// As of a campaign; and one that does not end.
pub fn future(
    rest: &Rest,
    method: &Method,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Option<Future>, String> {
    let mut rng = Rng::stream(seed, 30);
    let mut setting = rest.setting.clone();
    let mut costs = Vec::with_capacity(rest.left.len());
    for (work, left) in setting.work.iter_mut().zip(&rest.left) {
        // The mean over n rows is off by CV / sqrt(n); without a row the guess is off by CV.
        let off = setting.row_cv / f64::from(left.seen.max(1)).sqrt();
        work.row_hours *= rng.lognormal_cv(1.0, off);
        let behind = f64::from(work.done.max(1));
        let spread = setting.row_cv * (1.0 / behind + 1.0 / f64::from(left.rows.max(1))).sqrt();
        let factor = rng.lognormal_cv(1.0, spread);
        let more = left.price.unwrap_or(0.0) * f64::from(left.rows) * factor;
        costs.push(left.spent.dollars() + more);
    }
    let finished = finish(&setting, method, seed, rest.every, stop)?;
    Ok(finished.map(|(ends, done)| Future { ends, costs, done }))
}
