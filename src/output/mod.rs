//! Values in, strings out: every sentence, table and JSON document that a person or a script reads.
//!
//! Nothing here prints, reads a clock or decides anything; computed values are handed in.

pub mod archive;
pub mod around;
pub mod board;
pub mod caps;
pub mod causes;
pub mod check;
pub mod contract;
pub mod crontab;
pub mod differences;
pub mod doctor;
pub mod evidence;
pub mod fault;
pub mod forecast;
pub mod format;
mod heading;
pub mod init;
pub mod journal;
pub mod layout;
pub mod log;
pub mod notify;
pub mod page;
pub mod paint;
pub mod placed;
pub mod placement;
pub mod plan;
pub mod replay;
pub mod simulate;
pub mod slurm_words;
pub mod spark;
pub mod steps;
pub mod table;
mod totals;
pub mod usage;
pub mod view;
pub mod why;
pub mod word;
