//! Arbitrary states for tests, from a seed. The macros of `form.rs` roll every field they list,
//! so a field that is added is covered without anyone thinking of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::model::cluster::EndWord;
use crate::model::id::{JobId, ShardId};
use crate::model::observation::{Cluster, Observation, Seen};
use crate::model::policy::{Policy, Shard};
use crate::model::state::{CapSet, CapTarget, ShardRecord, State};
use crate::model::units::{GpuSeconds, Money, Secs, Tflops, Time, Usage};

pub(crate) struct Dice(u64);

pub(crate) trait Roll: Sized {
    fn roll(dice: &mut Dice) -> Self;
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// A Weyl sequence through a bit mixer: enough for test data.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        for shift in [31, 27, 33] {
            bits = (bits ^ (bits >> shift)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        }
        bits ^ (bits >> 32)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub(crate) fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }

    /// Small numbers, the ends of the range, and anything.
    fn number(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => u64::MAX,
            2 => self.next(),
            _ => self.next() % 1000,
        }
    }
}

macro_rules! numbers {
    ($($ty:ty),*) => { $(
        impl Roll for $ty {
            fn roll(dice: &mut Dice) -> $ty {
                dice.number() as $ty
            }
        }
    )* };
}
numbers!(u32, u64, i64, usize);

macro_rules! tuples {
    ($($ty:ident),*) => { $(
        impl Roll for $ty {
            fn roll(dice: &mut Dice) -> $ty {
                $ty(Roll::roll(dice))
            }
        }
    )* };
}
tuples!(JobId, Secs, GpuSeconds, Usage, Tflops, Money);

impl Roll for Time {
    fn roll(dice: &mut Dice) -> Time {
        match dice.below(8) {
            0 => Time(Roll::roll(dice)),
            1 => Time(-(dice.number() as i64 >> 1)),
            _ => Time(1_790_000_000 + (dice.next() % 10_000_000) as i64),
        }
    }
}

impl Roll for bool {
    fn roll(dice: &mut Dice) -> bool {
        dice.below(2) == 1
    }
}

impl Roll for std::sync::Arc<str> {
    fn roll(dice: &mut Dice) -> std::sync::Arc<str> {
        String::roll(dice).into()
    }
}

impl Roll for String {
    fn roll(dice: &mut Dice) -> String {
        let words = [
            "",
            "find",
            "node07",
            "rtx4090",
            "QOSGrpGRES",
            "0:53",
            "say \"no\"\n",
            "Zürich 東京",
            "a\\b",
            "\u{0}\u{7f}\u{1b}[31m",
            "{\"version\": 9}",
            "extra",
            "alice",
        ];
        (*dice.pick(&words)).to_owned()
    }
}

impl Roll for EndWord {
    fn roll(dice: &mut Dice) -> EndWord {
        *dice.pick(&EndWord::ALL)
    }
}

impl Roll for ShardId {
    fn roll(dice: &mut Dice) -> ShardId {
        ShardId::new(
            dice.pick::<&str>(&["find", "restore", "a.b-c_d"]),
            &format!("s{}", dice.below(99)),
        )
    }
}

impl Roll for std::sync::Arc<std::path::Path> {
    fn roll(dice: &mut Dice) -> std::sync::Arc<std::path::Path> {
        PathBuf::roll(dice).into()
    }
}

impl Roll for PathBuf {
    fn roll(dice: &mut Dice) -> PathBuf {
        PathBuf::from(String::roll(dice))
    }
}

impl<T: Roll> Roll for Seen<T> {
    fn roll(dice: &mut Dice) -> Seen<T> {
        if dice.below(2) == 0 { Ok(Roll::roll(dice)) } else { Err(Roll::roll(dice)) }
    }
}

impl<T: Roll> Roll for Option<T> {
    fn roll(dice: &mut Dice) -> Option<T> {
        (dice.below(2) == 1).then(|| T::roll(dice))
    }
}

impl<T: Roll> Roll for Box<T> {
    fn roll(dice: &mut Dice) -> Box<T> {
        Box::new(T::roll(dice))
    }
}

impl<T: Roll> Roll for Vec<T> {
    fn roll(dice: &mut Dice) -> Vec<T> {
        (0..dice.below(4)).map(|_| T::roll(dice)).collect()
    }
}

impl<T: Roll> Roll for BTreeMap<String, T> {
    fn roll(dice: &mut Dice) -> BTreeMap<String, T> {
        (0..dice.below(3)).map(|_| Roll::roll(dice)).collect()
    }
}

impl<A: Roll, B: Roll> Roll for (A, B) {
    fn roll(dice: &mut Dice) -> (A, B) {
        (A::roll(dice), B::roll(dice))
    }
}

/// A state with `shards` records and a few orphans, no id twice.
pub(crate) fn state(dice: &mut Dice, shards: usize) -> State {
    let orphans = dice.below(3);
    let mut records: Vec<ShardRecord> = (0..shards + orphans)
        .map(|n| ShardRecord {
            id: ShardId::new(dice.pick::<&str>(&["find", "restore"]), &format!("s{n}")),
            ..Roll::roll(dice)
        })
        .collect();
    let orphans = records.split_off(shards);
    let cap_target = |dice: &mut Dice| match dice.below(2) {
        0 => CapTarget::Family("find".to_owned()),
        _ => CapTarget::Shard(Roll::roll(dice)),
    };
    let cap_set = |dice: &mut Dice| CapSet {
        amount: Roll::roll(dice),
        by: Roll::roll(dice),
        at: Roll::roll(dice),
    };
    State {
        project: "oracle-plan".to_owned(),
        instance: "1f3a9c".to_owned(),
        generation: Roll::roll(dice),
        shards: records,
        orphans,
        labs: (0..dice.below(3)).map(|_| Roll::roll(dice)).collect(),
        caps: (0..dice.below(3))
            .map(|_| (cap_target(dice), cap_set(dice)))
            .collect::<BTreeMap<_, _>>(),
        last_tick: Roll::roll(dice),
        learned: Roll::roll(dice),
        caution: Roll::roll(dice),
        notices: Roll::roll(dice),
        host: Roll::roll(dice),
    }
}

/// A policy of so many shards, none of which is as any other part of it would have it.
pub(crate) fn policy(dice: &mut Dice, shards: usize) -> Policy {
    Policy {
        project: Roll::roll(dice),
        shards: (0..shards).map(|_| Shard::roll(dice)).collect(),
        tiers: Roll::roll(dice),
        lanes: Roll::roll(dice),
        backfill: Roll::roll(dice),
        rules: Roll::roll(dice),
        slurm: Roll::roll(dice),
        logs: Roll::roll(dice),
        notify: Roll::roll(dice),
    }
}

pub(crate) fn observation(dice: &mut Dice, shards: usize) -> Observation {
    Observation {
        cluster: Cluster { jobs: Roll::roll(dice), nodes: Roll::roll(dice), me: Roll::roll(dice) },
        accounting: Roll::roll(dice),
        progress: (0..shards).map(|_| Roll::roll(dice)).collect(),
        logs: Roll::roll(dice),
        own_gpus: Roll::roll(dice),
        takes_both: Roll::roll(dice),
        claims: Roll::roll(dice),
    }
}
