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
    let work: i64 = shards.iter().map(|(s, gpus)| s.0 * i64::from(*gpus)).sum();
    let most: i64 = shards.iter().map(|(_, gpus)| i64::from(*gpus)).sum();
    // What is there changes at these moments and stays between them.
    let mut reach = Secs::hours(48).min(limit);
    loop {
        path.reach(begins + reach);
        let end = begins + reach;
        let mut changes: Vec<(Time, i64)> = path
            .extra
            .iter()
            .flat_map(|life| [(life.from, 1), (life.to, -1)])
            .filter(|(at, _)| *at < end)
            .collect();
        changes.sort_unstable();
        changes.push((end, 0));
        let (mut left, mut there, mut at) = (work, i64::from(own), begins);
        for (moment, change) in changes {
            let gpus = there.min(most);
            let length = moment.since(at).0;
            if gpus > 0 && gpus * length >= left {
                let done = at.since(begins).0 as f64 + left as f64 / gpus as f64;
                return done.max(longest as f64) / 3600.0;
            }
            left -= gpus * length;
            there += change;
            at = at.max(moment);
        }
        if reach >= limit {
            return f64::INFINITY;
        }
        reach = Secs(reach.0 * 2).min(limit);
    }
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
}
