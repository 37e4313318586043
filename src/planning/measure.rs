//! Rows, money and seconds per row, from what the files say.

use crate::model::observation::{Measured, Seen};
use crate::model::policy::{CostIn, Shard};
use crate::model::state::{Finished, Mark, Progress, ShardRecord, Slot};
use crate::model::units::{GpuSeconds, Money, Secs, Time};

use super::event::{Event, What};
use super::helpers;

/// Takes the reading of one shard into its record; a failed one keeps the older numbers. `None`: it
/// was not read in this cycle. `helpers`: what else works on its rows.
pub fn measure_one(
    shard: &Shard,
    record: &mut ShardRecord,
    helpers: &[ShardRecord],
    reading: Option<&Seen<Measured>>,
    now: Time,
    events: &mut Vec<Event>,
) {
    if let Some(reading) = reading {
        take(record, helpers, reading, now, events);
    }
    if let Some(CostIn::GpuHour(price)) = shard.cost {
        record.progress.spent = Some(run_cost(record, helpers, price, now));
    }
    let all = record.progress.rows >= shard.rows;
    if all && record.finished.is_none_or(|f| f.rows < shard.rows) {
        record.finished = Some(Finished { at: now, rows: shard.rows });
        let what = What::Done { rows: record.progress.rows };
        events.push(Event { at: now, shard: Some(record.id.clone()), what });
    }
}

fn take(
    record: &mut ShardRecord,
    helpers: &[ShardRecord],
    reading: &Seen<Measured>,
    now: Time,
    events: &mut Vec<Event>,
) {
    let mut tell = |record: &ShardRecord, what| {
        events.push(Event { at: now, shard: Some(record.id.clone()), what });
    };
    let measured = match reading {
        Ok(measured) => measured,
        Err(gap) => {
            if record.progress.gap.is_none() {
                tell(record, What::MeasureFailed { why: gap.to_string() });
            }
            record.progress.gap = Some(gap.to_string());
            return;
        }
    };
    let before = record.progress.rows;
    if measured.rows < before {
        tell(record, What::RowsShrank { before, now: measured.rows });
    }
    record.progress = Progress {
        rows: measured.rows,
        spent: measured.spent.or(record.progress.spent),
        bad_lines: measured.bad_lines,
        measured_at: Some(now),
        begun: measured.claims.as_ref().map_or(0, |claims| claims.begun.len() as u32),
        gap: None,
    };
    pace(record, helpers, now);
}

/// Seconds per row: running time between new rows, summed over all attempts. Time in the queue
/// is not in it, the start of a run is.
fn pace(record: &mut ShardRecord, helpers: &[ShardRecord], now: Time) {
    let rows = record.progress.rows;
    let (mark, from, until) = match &mut record.slot {
        Slot::Live(live) => match live.started {
            Some(started) => (&mut live.mark, (live.attempt.rows_before, started), now),
            None => return,
        },
        Slot::Settling(end) => match end.started {
            Some(started) => (&mut end.mark, (end.rows_before, started), end.ended),
            None => return,
        },
        Slot::Free | Slot::Submitting(_) => return,
    };
    // Rows that came before the first look at this run may be those of helpers.
    let first = if helpers.is_empty() { from } else { (rows, until) };
    let last = mark.get_or_insert(Mark { rows: first.0, at: first.1 });
    if rows > last.rows {
        let worked = until.since(last.at).0 + helpers::worked(helpers, last.at, until).0;
        record.pace.rows = record.pace.rows.saturating_add(rows - last.rows);
        record.pace.time = Secs(record.pace.time.0.saturating_add(worked));
        *last = Mark { rows, at: until };
    } else if rows < last.rows {
        *last = Mark { rows, at: until };
    }
}

/// What the runs so far cost at a price per GPU-hour.
fn run_cost(record: &ShardRecord, helpers: &[ShardRecord], price: Money, now: Time) -> Money {
    let mut ran = GpuSeconds::default();
    for record in std::iter::once(record).chain(helpers) {
        ran += record.ran;
        if let Slot::Live(live) = &record.slot
            && let Some(started) = live.started
        {
            ran += GpuSeconds::of(live.attempt.gpus, now.since(started));
        }
    }
    Money((i128::from(ran.0) * i128::from(price.0) / 3600).min(i128::from(i64::MAX)) as i64)
}

/// Rows that are still to be done.
pub fn rows_left(shard: &Shard, record: &ShardRecord) -> u32 {
    if is_done(shard, record) { 0 } else { shard.rows.saturating_sub(record.progress.rows) }
}

pub fn is_done(shard: &Shard, record: &ShardRecord) -> bool {
    record.finished.is_some_and(|f| f.rows >= shard.rows)
}
