//! `babysit status --forecast`: the rest of the campaign, simulated from where it stands. Reads
//! shards.toml and the state file only.

use crate::output::forecast::{Forecast, Range, SCHEMA, ShardForecast, text};
use crate::study::forecast::{Future, Rest, future, rest};
use crate::study::many::side_by_side;
use crate::study::method::by_name;
use crate::study::statistics::quantile;

use super::context::Context;
use super::exit::{Exit, Stop};
use super::scenario::Chosen;
use super::simulate::with_bar;

/// Enough for the ends of a range in which nine of ten lie.
const FUTURES: u64 = 200;

pub fn run(cx: &Context, chosen: &Chosen) -> Result<Exit, Stop> {
    let campaign = cx.campaign()?;
    let policy = &campaign.loaded.policy;
    let state = cx.look(&campaign)?;
    let mut rest = rest(chosen.scenario.clone(), policy, &state);
    chosen.apply_around(&mut rest.setting);
    let Some(method) = by_name("now") else {
        return Err(Stop::failed("forecast", "the present policy has no name".to_owned()));
    };
    let futures = match rest.left.is_empty() {
        true => Vec::new(),
        false => with_bar(cx, FUTURES, 1, |orders| {
            side_by_side(1, orders, |_, seed| future(&rest, &method, seed))
        })?,
    };
    let futures: Vec<Future> = futures.into_iter().flatten().map(|(_, future)| future).collect();
    let name = |i: &usize| policy.shards.get(*i).map(|shard| shard.id.to_string());
    let seen = Forecast {
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
        left_out: rest.left_out.iter().filter_map(name).collect(),
    };
    if cx.talk.json {
        cx.talk.result_json(&seen)?;
    } else {
        cx.talk.result(&text(&seen, cx.talk.width, cx.talk.paint))?;
    }
    Ok(Exit::Done)
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
