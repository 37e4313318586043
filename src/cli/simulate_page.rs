//! What `babysit simulate -o FILE` draws beyond its figures: the work left over all seeds, and one
//! campaign of each policy.

use std::sync::atomic::AtomicBool;

use crate::model::units::Secs;
use crate::output::page::simulate::{One, PolicyPicture};
use crate::study::Ran;
use crate::study::many::side_by_side;
use crate::study::method::Method;
use crate::study::picture::{Curve, Picture, Run, picture, run_with_curve};
use crate::study::setting::Setting;
use crate::study::statistics::quantile;

use super::context::Context;
use super::exit::Stop;
use super::simulate::with_bar;

/// Between two points of a curve.
const EVERY: Secs = Secs::hours(1);

/// The same campaigns as without a page, and what can be drawn of them.
pub fn run(
    cx: &Context,
    setting: &Setting,
    methods: &[Method],
    seeds: u64,
) -> Result<(Vec<Vec<Ran>>, Vec<PolicyPicture>), Stop> {
    let found = with_bar(cx, seeds, methods.len(), |orders| {
        side_by_side(methods.len(), orders, |n, seed| match methods.get(n) {
            Some(method) => run_with_curve(setting, method, seed, EVERY, orders.stop),
            None => Err(format!("no policy number {n}")),
        })
    })?;
    let mut runs = Vec::new();
    let mut pictures = Vec::new();
    for (method, list) in methods.iter().zip(found) {
        let (ran, curves): (Vec<Ran>, Vec<Curve>) = list.into_iter().map(|(_, both)| both).unzip();
        // The first seed, as good as any other and the same for all.
        let one = match ran.first() {
            Some(first) => {
                // It has run before, so it does so to its end.
                picture(setting, method, first.seed, EVERY, &AtomicBool::new(false))
                    .map(|picture| picture.map(|picture| one(setting, first.seed, picture)))
                    .map_err(|text| Stop::failed("simulate", format!("a campaign broke: {text}")))?
            }
            None => None,
        };
        pictures.push(PolicyPicture { left: left(&curves), one });
        runs.push(ran);
    }
    Ok((runs, pictures))
}

fn hour(n: usize) -> f64 {
    n as f64 * EVERY.as_f64() / 3600.0
}

/// Until nine of ten campaigns have ended: what is left after that is a line on the floor.
fn left(curves: &[Curve]) -> Vec<(f64, f64, f64, f64)> {
    let longest = curves.iter().map(Vec::len).max().unwrap_or(0);
    let at = |n: usize| {
        let left: Vec<f64> =
            curves.iter().map(|curve| curve.get(n).copied().unwrap_or(0.0)).collect();
        Some((hour(n), quantile(&left, 0.05)?, quantile(&left, 0.5)?, quantile(&left, 0.95)?))
    };
    let all: Vec<_> = (0..longest).filter_map(at).collect();
    let end = all.iter().position(|(.., high)| *high <= 0.0).map_or(all.len(), |n| n + 1);
    all.into_iter().take(end).collect()
}

fn one(setting: &Setting, seed: u64, picture: Picture) -> One {
    let points = |curve: Curve| curve.into_iter().enumerate().map(|(n, v)| (hour(n), v)).collect();
    let Picture { curve, least, runs } = picture;
    let named = |run: Run| {
        let work = setting.work.get(run.shard)?;
        let id = run.helper.map_or(work.id.clone(), |n| work.id.helper(n));
        Some((id.to_string(), run.lane, run.from, run.to, run.end))
    };
    One {
        seed,
        left: points(curve),
        least: points(least),
        runs: runs.into_iter().filter_map(named).collect(),
    }
}
