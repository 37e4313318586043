//! The nouns of policy.md section 1 and what is remembered of them.
//!
//! No other folder of ours is used here, and no file, process, environment or clock.

pub mod account;
pub mod attempt;
pub mod caution;
pub mod cluster;
pub mod id;
pub mod notice;
pub mod observation;
pub mod pilot;
pub mod policy;
pub mod reason;
pub mod request;
pub mod rows;
pub mod rules;
pub mod shards;
pub mod split;
pub mod state;
pub mod survey;
pub mod units;
