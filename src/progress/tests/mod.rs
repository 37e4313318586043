//! Rows and money out of real files, however they grow, break or are replaced.
#![allow(clippy::disallowed_methods, reason = "the tests play the program that writes rows")]

mod files;
mod ledgers;
mod patterns;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use proptest::prelude::ProptestConfig;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use crate::model::id::ShardId;
use crate::model::policy::{CostIn, RowsIn, Shard};
use crate::model::units::Money;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn put(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("makes");
    fs::write(path, text).expect("writes");
}

fn append(path: &Path, text: impl AsRef<[u8]>) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).expect("opens");
    file.write_all(text.as_ref()).expect("writes");
}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("makes a FIFO");
}

pub(super) fn shard(name: &str, done: RowsIn, cost: Option<CostIn>) -> Shard {
    Shard { rows: 44, done, cost, ..Shard::plain(ShardId::new("find", name)) }
}

fn dollars(amount: f64) -> Money {
    Money::from_dollars(amount).expect("an amount")
}

/// `usual`, or as many as $PROPTEST_CASES says (scripts/fuzz).
fn cases(usual: u32) -> u32 {
    const UNSET: u32 = 256;
    Some(ProptestConfig::default().cases).filter(|wish| *wish != UNSET).unwrap_or(usual)
}
