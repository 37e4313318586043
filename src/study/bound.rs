//! The least time any policy could need for a campaign of one seed.

use crate::model::units::{Secs, Time};

use super::path::Path;

/// Hours: the longest shard, or the first moment by which the GPUs that were there, no more than
/// their shards can use, could have done all work; whichever is later. It takes visitors for absent
/// and rows for splittable, so it is optimistic.
///
/// `shards`: how long each runs, and on how many GPUs.
pub fn bound(path: &mut Path, begins: Time, own: u32, limit: Secs, shards: &[(Secs, u32)]) -> f64 {
    let longest = shards.iter().map(|(s, _)| s.0).max().unwrap_or(0);
    let (work, most) = work_and_most(shards);
    let mut reach = Secs::hours(48).min(limit);
    loop {
        let (mut left, mut at) = (work, begins);
        for (until, gpus) in stretches(path, begins, own, most, reach) {
            let length = until.since(at).0;
            if gpus > 0 && gpus * length >= left {
                let done = at.since(begins).0 as f64 + left as f64 / gpus as f64;
                return done.max(longest as f64) / 3600.0;
            }
            left -= gpus * length;
            at = until;
        }
        if reach >= limit {
            return f64::INFINITY;
        }
        reach = Secs(reach.0 * 2).min(limit);
    }
}

/// GPU-seconds of all, and how many GPUs they can use at once.
fn work_and_most(shards: &[(Secs, u32)]) -> (i64, i64) {
    let each = shards.iter().map(|(s, gpus)| (s.0, i64::from(*gpus)));
    each.fold((0, 0), |(work, most), (s, gpus)| (work + s * gpus, most + gpus))
}

/// What is there changes at these moments and stays between them: until when how many GPUs could
/// work, no more than `most`.
fn stretches(path: &mut Path, begins: Time, own: u32, most: i64, reach: Secs) -> Vec<(Time, i64)> {
    let end = begins + reach;
    path.reach(end);
    let mut changes: Vec<(Time, i64)> = path
        .extra
        .iter()
        .flat_map(|life| [(life.from, 1), (life.to, -1)])
        .filter(|(at, _)| *at < end)
        .collect();
    changes.sort_unstable();
    changes.push((end, 0));
    let mut there = i64::from(own);
    let stretch = |(moment, change): (Time, i64)| {
        let gpus = there.min(most);
        there += change;
        (moment.max(begins), gpus)
    };
    changes.into_iter().map(stretch).collect()
}

/// GPU-hours of work left, had every GPU that was there always worked: at the beginning, and each
/// `every` after it until none is left or `limit` is reached.
pub fn least_left(
    path: &mut Path,
    begins: Time,
    own: u32,
    limit: Secs,
    shards: &[(Secs, u32)],
    every: Secs,
) -> Vec<f64> {
    let (work, most) = work_and_most(shards);
    let mut curve = vec![work as f64 / 3600.0];
    let (mut done, mut at) = (0, begins);
    for (until, gpus) in stretches(path, begins, own, most, limit) {
        while at < until {
            // To the next point of the curve, or to the end of the stretch.
            let next = (begins + Secs(every.0 * curve.len() as i64)).min(until);
            done += gpus * next.since(at).0;
            at = next;
            if at == begins + Secs(every.0 * curve.len() as i64) {
                curve.push((work - done).max(0) as f64 / 3600.0);
            }
            if done >= work {
                return curve;
            }
        }
    }
    curve
}

#[cfg(test)]
mod tests {
    use super::super::scenario::Scenario;
    use super::*;

    fn check(own: u32, hours: &[i64], expected: f64) {
        let mut path = Path::new(Scenario::None, 1, Time(0), None);
        let shards: Vec<_> = hours.iter().map(|h| (Secs::hours(*h), 1)).collect();
        let found = bound(&mut path, Time(0), own, Secs::hours(600), &shards);
        assert!((found - expected).abs() < 1e-9 || found == expected, "{own} {hours:?}: {found}");
    }

    #[test]
    fn it_is_the_longest_shard_or_all_work_over_all_gpus() {
        check(4, &[10, 10, 10, 10, 10, 10], 15.0);
        check(4, &[30, 10, 10], 30.0);
        check(4, &[8, 8], 8.0);
        check(0, &[1], f64::INFINITY);
        let mut path = Path::new(Scenario::None, 1, Time(0), None);
        let wide = [(Secs::hours(6), 4), (Secs::hours(10), 1)];
        let found = bound(&mut path, Time(0), 4, Secs::hours(600), &wide);
        assert!((found - 10.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn extra_gpus_bring_it_down() {
        let mut path = Path::new(Scenario::Rich, 3, Time(0), None);
        let shards = vec![(Secs::hours(20), 1); 12];
        let found = bound(&mut path, Time(0), 4, Secs::hours(600), &shards);
        assert!((20.0..45.0).contains(&found), "{found}");
    }

    #[test]
    fn the_least_that_is_left_ends_at_the_bound() {
        for scenario in Scenario::ALL {
            let shards = vec![(Secs::hours(20), 1); 12];
            let limit = Secs::hours(600);
            let path = || Path::new(scenario.clone(), 3, Time(0), None);
            let at = bound(&mut path(), Time(0), 4, limit, &shards);
            let curve = least_left(&mut path(), Time(0), 4, limit, &shards, Secs::hours(1));
            assert_eq!(curve[0], 240.0);
            assert!(curve.is_sorted_by(|a, b| a >= b), "{curve:?}");
            // The longest shard is not in the curve.
            assert!((curve.len() - 1) as f64 <= at.ceil(), "{scenario:?}: {at}");
            assert!(at <= 20.0 || (curve.len() as f64) >= at - 1.0, "{scenario:?}: {at}");
        }
    }
}
