//! The shards of a policy, and what follows from them alone: each one's place in the order of ids,
//! and the labs. Worked out when it is first asked for (not in every cycle, and of a tick while it
//! waits for Slurm), forgotten as soon as anything about the shards may change.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use super::id::ShardId;
use super::policy::Shard;

#[derive(Debug, Clone, Default)]
pub struct Shards {
    all: Vec<Shard>,
    follows: OnceLock<Follows>,
}

#[derive(Debug, Clone)]
struct Follows {
    /// By shard index: its place among all, in the order of their ids.
    place: Vec<u32>,
    /// Each lab once, in the order in which the shards name them.
    labs: Vec<Arc<str>>,
    /// By shard index: where its lab stands in `labs`.
    lab: Vec<u32>,
    /// By shard index: the number of its family, from 0 in the order in which the shards name them.
    family: Vec<u32>,
    families: usize,
}

impl Shards {
    /// By shard index: its place among all, in the order of their ids, which is how every order of
    /// the policy ends (a tie is broken by id).
    pub fn by_id(&self) -> &[u32] {
        &self.follows().place
    }

    /// Each lab once.
    pub fn labs(&self) -> &[Arc<str>] {
        &self.follows().labs
    }

    /// By shard index: where its lab stands in `labs`.
    pub fn lab_of(&self) -> &[u32] {
        &self.follows().lab
    }

    /// By shard index: the number of its family, below `families`.
    pub fn family_of(&self) -> &[u32] {
        &self.follows().family
    }

    pub fn families(&self) -> usize {
        self.follows().families
    }

    /// Works all of it out now, for whom there is time.
    pub fn work_out(&self) {
        self.follows();
    }

    fn follows(&self) -> &Follows {
        self.follows.get_or_init(|| Follows::of(&self.all))
    }
}

impl Follows {
    fn of(shards: &[Shard]) -> Follows {
        let mut order: Vec<u32> = (0..shards.len() as u32).collect();
        order.sort_by_cached_key(|i| Name::of(&shards[*i as usize].id));
        let mut place = vec![0; shards.len()];
        for (at, i) in (0..).zip(&order) {
            place[*i as usize] = at;
        }
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut labs = Vec::new();
        let mut number = |shard: &'_ Shard| {
            labs.push(shard.lab.clone());
            labs.len() as u32 - 1
        };
        let lab =
            shards.iter().map(|shard| *known.entry(&shard.lab).or_insert_with(|| number(shard)));
        let lab = lab.collect();
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut last: Option<(&str, u32)> = None;
        let mut family = Vec::with_capacity(shards.len());
        for shard in shards {
            let next = known.len() as u32;
            // Shards of a family stand together, nearly always.
            let number = match last {
                Some((name, number)) if *name == *shard.id.family => number,
                _ => *known.entry(&shard.id.family).or_insert(next),
            };
            last = Some((&shard.id.family, number));
            family.push(number);
        }
        Follows { place, lab, labs, family, families: known.len() }
    }
}

impl Deref for Shards {
    type Target = Vec<Shard>;

    fn deref(&self) -> &Vec<Shard> {
        &self.all
    }
}

impl DerefMut for Shards {
    fn deref_mut(&mut self) -> &mut Vec<Shard> {
        self.follows.take();
        &mut self.all
    }
}

impl PartialEq for Shards {
    fn eq(&self, other: &Shards) -> bool {
        self.all == other.all
    }
}

impl From<Vec<Shard>> for Shards {
    fn from(all: Vec<Shard>) -> Shards {
        Shards { all, follows: OnceLock::new() }
    }
}

impl FromIterator<Shard> for Shards {
    fn from_iter<I: IntoIterator<Item = Shard>>(shards: I) -> Shards {
        Shards::from(shards.into_iter().collect::<Vec<_>>())
    }
}

impl<'a> IntoIterator for &'a Shards {
    type Item = &'a Shard;
    type IntoIter = std::slice::Iter<'a, Shard>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

impl<'a> IntoIterator for &'a mut Shards {
    type Item = &'a mut Shard;
    type IntoIter = std::slice::IterMut<'a, Shard>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

/// An id, the first bytes of both of its parts beside it. Ordered as the id is: most names are
/// compared as two numbers, and not each of them somewhere else in memory.
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
    fn places_are_those_of_the_ids_and_follow_every_change() {
        let ids = ids();
        let mut shards: Shards = ids.iter().rev().map(|id| Shard::plain(id.clone())).collect();
        let right = |shards: &Shards| {
            let mut sorted: Vec<&ShardId> = shards.iter().map(|shard| &shard.id).collect();
            sorted.sort();
            let places = shards.by_id().iter().map(|place| sorted[*place as usize]);
            places.zip(shards.iter()).all(|(id, shard)| *id == shard.id)
        };
        assert!(right(&shards));
        assert_eq!((shards.labs(), shards.lab_of()[0]), (&["lab".into()][..], 0));
        shards.swap(0, 3);
        shards.pop();
        shards[1].lab = "AI".into();
        assert!(right(&shards));
        assert_eq!(shards.labs(), ["lab".into(), "AI".into()]);
        assert_eq!(shards.lab_of()[..3], [0, 1, 0]);
    }
}
