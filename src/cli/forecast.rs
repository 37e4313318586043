//! `babysit status --forecast`: the rest of the campaign, simulated from where it stands. Reads
//! shards.toml and the state file only.

use crate::model::policy::Policy;
use crate::model::state::State;
use crate::output::forecast::{Forecast, Range, RowsAt, SCHEMA, ShardForecast, text};
use crate::study::forecast::{Future, Rest, future, rest};
use crate::study::many::side_by_side;
use crate::study::method::Method;
use crate::study::statistics::quantile;

use super::context::Context;
use super::exit::{Exit, Stop};
use super::scenario::{Chosen, may_simulate};
use super::simulate::with_bar;

/// Enough for the ends of a range in which nine of ten lie.
const FUTURES: u64 = 200;
/// Of a large campaign fewer are simulated, so that it takes a minute and not twenty: a future of
/// ten thousand shards takes ten seconds of a core, and chance evens out among so many.
const SHARDS_IN_ALL: u64 = 100_000;
/// With helpers or pilots there is something to decide in more of the cycles: a future takes so many
/// times as long.
const BUSIER: u64 = 4;
/// Of fewer, one in twenty at either end would be none.
const LEAST: u64 = 20;

pub fn run(cx: &Context, chosen: &Chosen) -> Result<Exit, Stop> {
    let campaign = cx.campaign()?;
    let seen = forecast(cx, chosen, &campaign.loaded.policy, &cx.look(&campaign)?)?;
    if cx.talk.json {
        cx.talk.result_json(&seen)?;
    } else {
        cx.talk.result(&text(&seen, cx.talk.width, cx.talk.paint))?;
    }
    Ok(Exit::Done)
}

/// The same numbers for whoever shows them.
pub(super) fn forecast(
    cx: &Context,
    chosen: &Chosen,
    policy: &Policy,
    state: &State,
) -> Result<Forecast, Stop> {
    let mut rest = rest(chosen.scenario.clone(), policy, state);
    chosen.apply_around(&mut rest.setting);
    may_simulate(rest.setting.work.iter().map(|work| work.rows))?;
    let method = Method::of(policy, state).from_here(state);
    let futures = match rest.left.is_empty() {
        true => Vec::new(),
        false => with_bar(cx, futures_of(rest.left.len(), &method), 1, |orders| {
            side_by_side(1, orders, |_, seed| future(&rest, &method, seed, orders.stop))
        })?,
    };
    let futures: Vec<Future> = futures.into_iter().flatten().map(|(_, future)| future).collect();
    // A table without any would say that nothing is left.
    if futures.is_empty() && !rest.left.is_empty() {
        return Err(Stop::failed("forecast", "broken off before any future had ended".to_owned()));
    }
    let name = |i: &usize| policy.shards.get(*i).map(|shard| shard.id.to_string());
    Ok(Forecast {
        schema: SCHEMA,
        project: policy.project.clone(),
        scenario: rest.setting.scenario.word().to_owned(),
        scenario_says: rest.setting.scenario.sentence().into_owned(),
        futures: futures.len(),
        shards: shards(&rest, &futures),
        all_done_in: range(
            futures.iter().map(|f| f.ends.iter().copied().fold(0.0, f64::max) * 3600.0),
        ),
        cost: range(futures.iter().map(|f| f.costs.iter().sum())),
        rows_done: rows_done(policy, state, &rest, &futures),
        left_out: rest.left_out.iter().filter_map(name).collect(),
    })
}

fn futures_of(shards: usize, method: &Method) -> u64 {
    let each = if method.split || method.pilots { BUSIER } else { 1 };
    (SHARDS_IN_ALL / each / (shards as u64).max(1)).clamp(LEAST, FUTURES)
}

/// Rows of shards that are done or left out stay as they are.
fn rows_done(policy: &Policy, state: &State, rest: &Rest, futures: &[Future]) -> Vec<RowsAt> {
    let pairs = policy.shards.iter().zip(&state.shards);
    let done = pairs.map(|(shard, record)| record.progress.rows.min(shard.rows));
    let now: u64 = done.map(u64::from).sum();
    let moving: u64 = rest.setting.work.iter().map(|work| u64::from(work.done)).sum();
    let others = now.saturating_sub(moving) as f64;
    let points = futures.iter().map(|future| future.done.len()).max().unwrap_or(0);
    let at = |n: usize| {
        // After its end a future stays where it is.
        let of = |future: &Future| future.done.get(n).or(future.done.last()).copied();
        let done = range(futures.iter().filter_map(of).map(|rows| others + f64::from(rows)))?;
        Some(RowsAt { seconds: n as f64 * rest.every.as_f64(), done })
    };
    (0..points).filter_map(at).collect()
}

fn shards(rest: &Rest, futures: &[Future]) -> Vec<ShardForecast> {
    let one = |(n, (left, work)): (usize, (&crate::study::forecast::Left, _))| {
        let work: &crate::study::setting::ShardWork = work;
        let costs = || futures.iter().filter_map(move |f| f.costs.get(n).copied());
        let cap = left.cap.map(|cap| cap.dollars());
        let over =
            |cap: f64| costs().filter(|cost| *cost >= cap).count() as f64 / futures.len() as f64;
        Some(ShardForecast {
            id: work.id.to_string(),
            rows_left: left.rows,
            done_in: range(futures.iter().filter_map(|f| f.ends.get(n).map(|end| end * 3600.0)))?,
            cost: range(costs())?,
            cap,
            hits_cap: cap.filter(|_| left.price.is_some()).map(over),
        })
    };
    rest.left.iter().zip(&rest.setting.work).enumerate().filter_map(one).collect()
}

fn range(values: impl Iterator<Item = f64>) -> Option<Range> {
    let values: Vec<f64> = values.collect();
    let at = |q| quantile(&values, q);
    Some(Range { median: at(0.5)?, low: at(0.05)?, high: at(0.95)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::method::by_name;

    #[test]
    fn of_a_large_campaign_fewer_futures_are_simulated() {
        let check = |name: &str, shards: [usize; 4], expected: [u64; 4]| {
            let method = by_name(name).expect("a policy");
            assert_eq!(shards.map(|shards| futures_of(shards, &method)), expected, "{name}");
        };
        check("now", [0, 500, 1000, 10_000], [200, 200, 100, 20]);
        check("pilots", [0, 125, 500, 10_000], [200, 200, 50, 20]);
        check("split", [0, 125, 500, 10_000], [200, 200, 50, 20]);
    }
}
