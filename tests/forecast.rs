//! Forecasts from a state: what is left, how long it takes, whether a cap is in the way.

use std::sync::atomic::AtomicBool;

use babysit::config;
use babysit::model::id::{JobId, Token};
use babysit::model::policy::{CostIn, Lane, Policy, SubmitMode};
use babysit::model::state::{Attempt, Gate, HeldWhy, Live, Pace, Slot, State};
use babysit::model::units::{Money, Secs, Time};
use babysit::study::forecast::{Future, Rest, future, rest};
use babysit::study::method::{Method, by_name};
use babysit::study::scenario::Scenario;

const NOW: Time = Time(1_793_718_000);

fn one(rest: &Rest, method: &Method, seed: u64) -> Future {
    let future = future(rest, method, seed, &AtomicBool::new(false));
    future.expect("it ends").expect("nobody stops it")
}

/// The example's shards, of which all but two have only their last row left.
fn campaign() -> (Policy, State) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("shards.toml");
    let policy = config::load(&path).expect("the example").policy;
    let mut state = State::new(&policy.project, "abc");
    state.align(&policy, NOW);
    for (shard, record) in policy.shards.iter().zip(&mut state.shards) {
        assert!(matches!(shard.cost, Some(CostIn::Jsonl { .. })));
        record.progress.rows = shard.rows - 1;
        record.progress.measured_at = Some(NOW);
        record.progress.spent = Some(Money(i64::from(shard.rows - 1) * 100_000_000));
        record.pace = Pace { rows: 30, time: Secs(30 * 600) };
    }
    let (a, b) = (&mut state.shards[0].progress, policy.shards[0].rows);
    a.rows = b / 2;
    a.spent = Some(Money(24_000_000_000));
    state.shards[1].gate = Gate::Held { why: HeldWhy::Person { by: "ann".to_owned() }, at: NOW };
    (policy, state)
}

#[test]
fn a_forecast_covers_what_moves_by_itself_and_names_the_rest() {
    let (policy, mut state) = campaign();
    let last = state.shards.len() - 1;
    state.shards[last].gate = Gate::Cancelled { by: "ann".to_owned(), at: NOW };
    let seen = rest(Scenario::Seed, &policy, &state);
    assert_eq!(seen.left_out, [1]);
    assert_eq!(seen.left.len(), policy.shards.len() - 2);
    assert_eq!(seen.left[0].rows, policy.shards[0].rows - policy.shards[0].rows / 2);
    // Measured, not as shards.toml guesses.
    assert!((seen.setting.work[0].row_hours - 600.0 / 3600.0).abs() < 1e-9);
}

#[test]
fn the_longest_shard_ends_last_and_its_rows_take_the_measured_time() {
    let (policy, state) = campaign();
    let seen = rest(Scenario::None, &policy, &state);
    let method = by_name("now").expect("a policy");
    let futures: Vec<_> = (1..=30).map(|seed| one(&seen, &method, seed)).collect();
    let mean = futures.iter().map(|f| f.ends[0]).sum::<f64>() / 30.0;
    let hours = f64::from(seen.left[0].rows) * 600.0 / 3600.0;
    assert!((hours..hours * 1.3).contains(&mean), "{mean} h for {hours} h of rows");
    for future in &futures {
        assert!(future.ends.iter().all(|end| *end <= future.ends[0] + 1e-9), "{future:?}");
    }
}

#[test]
fn money_grows_by_the_measured_price_and_tells_of_the_cap() {
    let (policy, state) = campaign();
    let seen = rest(Scenario::Rich, &policy, &state);
    let cap = seen.left[0].cap.expect("a cap").dollars();
    let method = by_name("now").expect("a policy");
    let costs: Vec<f64> = (1..=20).map(|seed| one(&seen, &method, seed).costs[0]).collect();
    // Half of the rows took 24 dollars, so all take about 48.
    let mean = costs.iter().sum::<f64>() / 20.0;
    assert!((44.0..53.0).contains(&mean), "{mean}");
    assert!(costs.iter().all(|cost| *cost >= cap), "{costs:?}");
    assert!(costs.iter().any(|cost| (cost - costs[0]).abs() > 0.1), "no spread: {costs:?}");
}

/// A shard that runs goes on running: one with two rows left is not put behind longer ones.
#[test]
fn what_runs_now_goes_on_running() {
    let (policy, mut state) = campaign();
    for (shard, record) in policy.shards.iter().zip(&mut state.shards).skip(2) {
        record.progress.rows = shard.rows / 3;
        let token = Token { name: "n".to_owned(), comment: "c".to_owned() };
        let attempt = Attempt {
            number: 1,
            token,
            lane: Some(Lane::Extra),
            gpus: 1,
            pin: None,
            rows_before: 0,
            asked_at: NOW,
            uid: 7,
            exclude: Vec::new(),
            pilot: false,
        };
        // Four short ones run, in both lanes; the long ones wait.
        if record.id.family == "find" || matches!(record.id.shard.as_str(), "s0" | "s1") {
            record.progress.rows = shard.rows - 2;
            let lane = Some(if record.id.shard == "s0" { Lane::Own } else { Lane::Extra });
            let live = Live { lane, started: Some(NOW), ..Live::new(attempt, JobId(9)) };
            record.slot = Slot::Live(live.into());
        }
    }
    let seen = rest(Scenario::Rich, &policy, &state);
    let runs: Vec<usize> =
        (0..seen.left.len()).filter(|n| seen.setting.work[*n].runs.is_some()).collect();
    assert_eq!(runs.len(), 4);
    let method = by_name("now").expect("a policy");
    let futures: Vec<_> = (1..=20).map(|seed| one(&seen, &method, seed)).collect();
    for n in runs {
        let mut ends: Vec<f64> = futures.iter().map(|f| f.ends[n]).collect();
        ends.sort_by(f64::total_cmp);
        assert!(ends[10] < 1.0, "{}: {ends:?}", seen.setting.work[n].id);
    }
}

/// A shard of several GPUs waits until own (or extra) has them all, so it takes part in the forecast
/// and delays those that need the same GPUs.
#[test]
fn shards_of_several_gpus_are_part_of_the_forecast() {
    let (mut policy, mut state) = campaign();
    let last = policy.shards.len() - 1;
    policy.shards[last].gpus = 4;
    policy.shards[last].submit = SubmitMode::Placed;
    state.shards[last].progress.rows = policy.shards[last].rows / 2;
    let seen = rest(Scenario::None, &policy, &state);
    assert_eq!(seen.left_out, [1]);
    let place = seen.left.iter().position(|left| left.shard == last).expect("it is in");
    assert_eq!(seen.setting.work[place].gpus, 4);
    let method = by_name("now").expect("a policy");
    let hours = f64::from(seen.left[place].rows) * 600.0 / 3600.0;
    for seed in 1..=10 {
        let found = one(&seen, &method, seed).ends[place];
        assert!(
            found > hours * 0.6 && found < hours * 4.0 + 10.0,
            "{found} h for {hours} h of rows"
        );
    }
}
