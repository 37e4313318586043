//! Every order of the policy is: what counts, then who waits longest, then the id. Here it is one
//! number, since most of a sort is comparing.

use crate::model::units::Time;

/// The smaller goes first. `counts`: smaller is better. `place`: among all ids (`Shards::by_id`).
///
/// Seconds since 1970 have 32 bits, which is enough until 2106.
pub fn key(counts: u64, queued_since: Time, place: u32) -> u128 {
    let since = u32::try_from(queued_since.0.max(0)).unwrap_or(u32::MAX);
    u128::from(counts) << 64 | u128::from(since) << 32 | u128::from(place)
}

/// A number of work left as one that is the smaller the more there is.
pub fn longest_first(left: f64) -> u64 {
    let bits = left.to_bits();
    // In the order of `total_cmp`: with its sign turned, or all of it where that is set.
    let ascending = bits ^ if bits >> 63 == 1 { u64::MAX } else { 1 << 63 };
    !ascending
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_goes_before_the_wait_and_the_wait_before_the_id() {
        let mut keys = Vec::new();
        for counts in [0, 1, u64::MAX] {
            for since in [-5, 1, 1_793_718_000, i64::from(u32::MAX)] {
                for place in [0, 7, u32::MAX] {
                    keys.push(key(counts, Time(since), place));
                }
            }
        }
        assert!(keys.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn more_work_goes_first() {
        let left = [f64::INFINITY, 1e9, 2.5, 2.0, 1e-300, 0.0, -0.0, -1.0, f64::NEG_INFINITY];
        assert!(left.map(longest_first).is_sorted_by(|a, b| a < b));
    }
}
