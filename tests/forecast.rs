//! Forecasts from a state: what is left, how long it takes, whether a cap is in the way. With jobs that
//! claim their shards, and with helpers: from a campaign that the real tick has brought half-way.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use babysit::config;
use babysit::model::id::{JobId, Token};
use babysit::model::policy::{CostIn, Kin, Lane, LaneMode, OwnShare, Policy, Shard, SubmitMode};
use babysit::model::split::Split;
use babysit::model::state::{
    Attempt, Gate, HeldWhy, Live, OthersInOwn, OwnLane, Pace, ShardRecord, Slot, State, TakesBoth,
};
use babysit::model::units::{GpuSeconds, Money, Secs, Time};
use babysit::study::forecast::{Future, Rest, future, rest};
use babysit::study::method::{Method, by_name};
use babysit::study::picture::{Run, picture};
use babysit::study::sample;
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

/// The example's shards on the sample's cluster: four GPUs of own are ours, and up to three of extra.
fn half_way(change: impl Fn(&mut Shard), is_it: impl Fn(&State) -> bool) -> (Policy, State) {
    let mut policy = campaign().0;
    policy.rules.lanes.mode = LaneMode::Both;
    policy.shards.iter_mut().for_each(change);
    let mut world = sample::world(policy.clone()).expect("a world");
    for _ in 0..600 {
        world.tick();
        if is_it(&world.state) {
            let mut state = world.state.clone();
            state.align(&policy, world.now());
            return (policy, state);
        }
        world.advance(sample::EVERY);
    }
    panic!("it never came to that");
}

fn is_pilot(shard: &mut Shard) {
    (shard.pilot, shard.kin) = (true, Kin::Any);
}

fn runs(record: &ShardRecord) -> bool {
    record.live().is_some_and(|live| live.started.is_some() && !live.is_unclaimed())
}

fn pends(record: &ShardRecord) -> bool {
    record.live().is_some_and(|live| live.started.is_none())
}

/// One that runs has gone on from another shard, and others pend.
fn with_pilots_under_way() -> (Policy, State) {
    half_way(is_pilot, |state| {
        let went_on = |record: &ShardRecord| {
            record.live().and_then(|live| live.turn).is_some_and(|turn| turn.after > Secs(0))
        };
        let all = || state.shards.iter();
        all().any(|r| runs(r) && went_on(r)) && all().filter(|r| pends(r)).count() >= 2
    })
}

fn ends(rest: &Rest, method: &Method) -> Vec<f64> {
    let last = |seed| one(rest, method, seed).ends.into_iter().fold(0.0, f64::max);
    (1..=20).map(last).collect()
}

/// Who gives its GPU back between two shards gives it to the visitors of own.
#[test]
fn a_forecast_with_pilots_ends_earlier_where_own_is_scarce() {
    let (policy, state) = with_pilots_under_way();
    let with = rest(Scenario::Scarce, &policy, &state);
    let method = Method::of(&policy, &state);
    assert!(method.pilots && method.as_set && !method.split, "{method:?}");
    let mut usual = policy.clone();
    usual.shards.iter_mut().for_each(|shard| shard.pilot = false);
    let without = rest(Scenario::Scarce, &usual, &state);
    let (with, without) = (ends(&with, &method), ends(&without, &Method::of(&usual, &state)));
    let earlier = with.iter().zip(&without).filter(|(with, without)| with < without).count();
    let mean = |ends: &[f64]| ends.iter().sum::<f64>() / ends.len() as f64;
    assert!(earlier >= 15 && mean(&with) < 0.95 * mean(&without), "{with:?} {without:?}");
}

/// Its shard is still its own, it goes on to another without a break, and one that pends takes the
/// longest of those that wait. Rows, GPU-seconds and money are held against each other in each future.
#[test]
fn pilots_hold_what_they_have_and_go_on_from_there() {
    let (policy, state) = with_pilots_under_way();
    let seen = rest(Scenario::None, &policy, &state);
    let method = Method::of(&policy, &state);
    let rows: u32 = seen.setting.work.iter().map(|work| work.rows).sum();
    for seed in 1..=10 {
        assert_eq!(one(&seen, &method, seed).done.last(), Some(&rows), "seed {seed}");
    }
    let never = AtomicBool::new(false);
    let picture = picture(&seen.setting, &method, 1, Secs::hours(1), &never).expect("adds up");
    let picture = picture.expect("nobody stops it").runs;
    let mut first: Vec<&Run> = picture.iter().collect();
    first.sort_by(|a, b| a.from.total_cmp(&b.from));
    let running = |n: &usize| runs(&state.shards[seen.left[*n].shard]);
    let all = 0..seen.left.len();
    let held: BTreeSet<usize> = all.clone().filter(running).collect();
    let (begun, later) = first.split_at(held.len());
    assert_eq!(begun.iter().map(|run| run.shard).collect::<BTreeSet<_>>(), held);
    let goes_on =
        |run: &Run| picture.iter().any(|next| next.from == run.to && next.lane == run.lane);
    let of_own: Vec<_> = begun.iter().filter(|run| run.lane == Lane::Own).collect();
    assert!(of_own.len() >= 3 && of_own.iter().all(|run| goes_on(run)), "{picture:?}");
    let left = |n: &usize| f64::from(seen.left[*n].rows) * seen.setting.work[*n].row_hours;
    let longest = all.filter(|n| !running(n)).map(|n| left(&n)).fold(0.0, f64::max);
    assert_eq!(later.first().map(|run| left(&run.shard)), Some(longest), "{picture:?}");
}

/// A family's pilots go on to their own family only, if shards.toml says no more.
#[test]
fn pilots_of_one_family_are_not_those_of_another() {
    let (mut policy, state) = with_pilots_under_way();
    policy.shards.iter_mut().for_each(|shard| shard.kin = Kin::Family);
    let seen = rest(Scenario::None, &policy, &state);
    for a in &seen.setting.work {
        for b in &seen.setting.work {
            assert_eq!(a.set_pilot == b.set_pilot, a.id.family == b.id.family, "{} {}", a.id, b.id);
            assert_eq!(a.pilot, b.pilot, "with pilot = \"any\" they would be one");
        }
    }
    policy.shards[0].pilot = false;
    assert_eq!(rest(Scenario::None, &policy, &state).setting.work[0].set_pilot, None);
}

/// Helpers that run have their GPUs from the beginning, and their part of the rows.
#[test]
fn helpers_that_run_are_part_of_the_forecast() {
    let split = |shard: &mut Shard| {
        shard.split = Some(Split { workers: 4, claims: "/claims".into() });
    };
    let (policy, state) = half_way(split, |state| {
        let helping = state.busy_helpers().into_iter().filter(|record| runs(record)).count();
        helping >= 2 && state.shards.iter().any(|r| runs(r) && !r.id.is_helper())
    });
    let seen = rest(Scenario::Scarce, &policy, &state);
    let helped: usize = seen.setting.work.iter().map(|work| work.helped.len()).sum();
    assert!(helped >= 2, "{:?}", seen.setting.work);
    let method = Method::of(&policy, &state);
    assert!(method.split && !method.pilots, "{method:?}");
    let mut alone = policy.clone();
    alone.shards.iter_mut().for_each(|shard| shard.split = None);
    let usual = Method::of(&alone, &state);
    let (with, without) =
        (ends(&seen, &method), ends(&rest(Scenario::Scarce, &alone, &state), &usual));
    assert!(
        with.iter().zip(&without).all(|(with, without)| with < without),
        "{with:?} {without:?}"
    );
}

/// What the cluster cannot do, and what the state knows already, is not forecast otherwise.
#[test]
fn the_policy_of_a_forecast_is_that_of_shards_toml_on_this_cluster() {
    let (mut policy, mut state) = campaign();
    assert_eq!(Method::of(&policy, &state).from_here(&state).rules, policy.rules.lanes);
    policy.rules.lanes.mode = LaneMode::Both;
    policy.rules.lanes.own_share = OwnShare::Average;
    let found = Method::of(&policy, &state).from_here(&state).rules;
    assert_eq!((found.mode, found.own_share), (LaneMode::Both, OwnShare::Average));
    let asked = "own,extra".to_owned();
    state.learned.takes_both = Some(TakesBoth { asked, yes: false, said: String::new(), at: NOW });
    state.learned.own_lane = Some(OwnLane { size: Some(8), ..OwnLane::default() });
    let day = Secs::hours(24);
    let gpu_seconds = GpuSeconds::of(3, day);
    state.learned.others_in_own = Some(OthersInOwn { gpu_seconds, over: day, until: NOW });
    let found = Method::of(&policy, &state).from_here(&state).rules;
    assert_eq!((found.mode, found.own_share), (LaneMode::Adaptive, OwnShare::Gpus(5)));
    policy.lanes = None;
    let found = Method::of(&policy, &state);
    assert_eq!((found.park, found.rules.mode), (Some(usize::MAX), LaneMode::Fixed));
}
