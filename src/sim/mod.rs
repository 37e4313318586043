//! A simulated Slurm cluster behind the trait `slurm::Slurm`: virtual clock, other people's jobs,
//! faults by seed or by script.
//!
//! It knows Slurm's rules as they were measured and nothing of babysit's policy. The same seed and
//! the same calls give the same run.
//!
//! ```
//! use babysit::model::units::{Secs, Time};
//! use babysit::sim::{Cluster, Table};
//!
//! let mut cluster = Cluster::at(Time(0))
//!     .node("p", &[("rtx4090", 2)])
//!     .qos("extra", 10, None, &[])
//!     .qos("own", 100, Some(8), &["extra"]);
//! cluster.work.add("find/s0", Table::new(44, Secs::minutes(15)));
//! let id = cluster.add_job_of("bob", "own", "gpu:1", Some(Secs::hours(1))).expect("fits");
//! cluster.advance(60);
//! assert!(cluster.job(id).is_some_and(|job| job.is_running()));
//! ```

mod accounts;
mod ask;
mod build;
mod calendar;
mod clock;
mod cluster;
mod door;
mod effect;
mod events;
mod faults;
mod hardware;
mod job;
mod meddling;
mod pilots;
mod proof;
mod rng;
mod rows;
mod schedule;
mod sheet;
mod site;
mod split;
mod table;
mod trouble;
mod work;

pub use cluster::Cluster;
pub use door::Door;
pub use events::{Event, Stranger};
pub use faults::{Calls, Command, Fault, Faults};
pub use job::{Job, Program, Stay};
pub use pilots::Choose;
pub use proof::{Overlap, without_attempt};
pub use rng::{Lognormal, Rng};
pub use rows::Rows;
pub use site::{Accounting, Controller, PreemptMode, Site};
pub use table::Table;
pub use trouble::Trouble;
pub use work::{Lasting, Run, Start, Work};

#[cfg(test)]
mod tests;
