//! Sorting with ties by shard id, which is how every order of the policy ends.
//!
//! In a large campaign most shards have as much left as some other one, so that nearly all the work
//! of such a sort would be comparing names, each of them somewhere else in memory. Only ties look at
//! names here, and compare them as two numbers.

use std::cmp::Ordering;

use crate::model::id::ShardId;

/// Sorts by `key`, ascending; equals by id, and what is equal in that too stays as it was.
pub fn sort<'a, T: Copy, K: Ord>(
    items: &mut Vec<T>,
    key: impl Fn(&T) -> K,
    id: impl Fn(&T) -> &'a ShardId,
) {
    // Places instead of the items: what is moved about stays small.
    let mut keyed: Vec<(K, usize)> = items.iter().map(key).zip(0..).collect();
    keyed.sort_unstable();
    for equals in keyed.chunk_by_mut(|a, b| a.0 == b.0).filter(|run| run.len() > 1) {
        equals.sort_by_cached_key(|(_, place)| Name::of(id(&items[*place])));
    }
    *items = keyed.into_iter().map(|(_, place)| items[place]).collect();
}

/// An id, the first bytes of both of its parts beside it. Ordered as the id is.
#[derive(Debug, Clone, Copy)]
struct Name<'a> {
    family: u128,
    shard: u128,
    id: &'a ShardId,
}

impl<'a> Name<'a> {
    fn of(id: &'a ShardId) -> Name<'a> {
        Name { family: head(&id.family), shard: head(&id.shard), id }
    }
}

/// The first sixteen bytes, zeros behind a shorter text: no text of ours holds a zero, so a shorter
/// one comes first here as well.
fn head(text: &str) -> u128 {
    let mut head = [0; 16];
    head.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
    u128::from_be_bytes(head)
}

impl Ord for Name<'_> {
    fn cmp(&self, other: &Name<'_>) -> Ordering {
        let long = |text: &str| text.len() > 16;
        self.family.cmp(&other.family).then_with(|| {
            if long(&self.id.family) || long(&other.id.family) {
                return self.id.cmp(other.id);
            }
            self.shard.cmp(&other.shard).then_with(|| self.id.shard.cmp(&other.id.shard))
        })
    }
}

impl PartialOrd for Name<'_> {
    fn partial_cmp(&self, other: &Name<'_>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Name<'_> {
    fn eq(&self, other: &Name<'_>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Name<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> Vec<ShardId> {
        let families =
            ["a", "a.b", "b", "a-long-name-of-16", "a-long-name-of-16x", "a-long-name-of-15"];
        let shards = ["s0", "s1", "s10", "s2", "", "sixteen-bytes-is", "sixteen-bytes-is1", "z"];
        let of = |family| shards.iter().map(move |shard| ShardId::new(family, shard));
        families.into_iter().flat_map(of).collect()
    }

    #[test]
    fn names_as_numbers_are_ordered_as_the_ids_are() {
        let ids = ids();
        for a in &ids {
            for b in &ids {
                assert_eq!(Name::of(a).cmp(&Name::of(b)), a.cmp(b), "{a} {b}");
            }
        }
    }

    #[test]
    fn the_key_counts_first_and_ids_settle_the_rest() {
        let ids = ids();
        let mut items: Vec<usize> = (0..ids.len()).rev().collect();
        sort(&mut items, |i| i % 3, |i| &ids[*i]);
        let mut plain: Vec<usize> = (0..ids.len()).collect();
        plain.sort_by(|a, b| (a % 3, &ids[*a]).cmp(&(b % 3, &ids[*b])));
        assert_eq!(items, plain);
    }
}
