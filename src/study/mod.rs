//! Campaigns on the simulated cluster: the real tick, many times, with a virtual clock.

mod world;

pub use world::{Shards, World};
