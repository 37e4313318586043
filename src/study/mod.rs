//! Campaigns on the simulated cluster: the real tick, many times, with a virtual clock.

mod backfill;
mod bound;
mod campaign;
mod conserved;
pub mod forecast;
mod kinds;
pub mod lab_mix;
mod left_out;
mod luck;
pub mod many;
pub mod measures;
pub mod method;
mod path;
pub mod picture;
pub mod placed;
pub mod placing;
mod price;
pub mod replay;
pub mod sample;
pub mod scenario;
pub mod setting;
pub mod site;
pub mod statistics;
pub mod trace;
pub mod waits;
mod world;

pub use campaign::{Ran, run, run_with};
pub use luck::Luck;
pub use world::{Shards, World};
