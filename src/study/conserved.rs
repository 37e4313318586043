//! What must add up after every campaign: rows, GPU-seconds, money.

use crate::model::units::{GpuSeconds, Money, Secs, Usage};
use crate::sim::Job;

use super::campaign::ME;
use super::setting::{Price, Setting};
use super::world::World;

/// # Errors
/// The first sum that is not what it must be.
pub fn check(
    setting: &Setting,
    world: &World,
    tables: &[Vec<Secs>],
    ended: bool,
) -> Result<(), String> {
    if let Some(complaint) = world.cluster.complaints.first() {
        return Err(format!("an event went wrong: {complaint}"));
    }
    // Which shard a pilot works on, its job's name does not tell.
    let named = !world.policy.has_pilots();
    if let Some(twice) = world.cluster.overlaps().first().filter(|_| named) {
        return Err(format!("two jobs of one shard at a time: {twice:?}"));
    }
    match world.cluster.work.doubled() {
        0 => {}
        some => return Err(format!("{some} runs began on a shard that another was at")),
    }
    world.cluster.check()?;
    let (rows, now) = (&world.cluster.work, world.now());
    let mut worked = 0i64;
    let mut lost = 0u32;
    for (work, times) in setting.work.iter().zip(tables) {
        let Some(index) = rows.index_of_shard(&work.id) else {
            return Err(format!("{}: its rows are gone", work.id));
        };
        let done = rows.rows_at(index, now);
        if rows.redone(index) > 0 {
            return Err(format!("{}: {} rows were done twice", work.id, rows.redone(index)));
        }
        let record = world.state.shards.iter().find(|record| record.id == work.id);
        let Some(record) = record else {
            return Err(format!("{}: its record is gone", work.id));
        };
        if ended && done != work.rows && record.over_cap.is_none() {
            return Err(format!("{}: ended with {done} of {} rows", work.id, work.rows));
        }
        if ended && done != record.progress.rows {
            let seen = record.progress.rows;
            return Err(format!("{}: {done} rows done, {seen} recorded", work.id));
        }
        let spent = match work.price {
            Price::Row(price) => Money(price.0 * i64::from(done)),
            Price::GpuHour(price) => {
                let helpers = world.state.shards.iter().filter(|r| r.id.helps(&record.id));
                let ran = record.ran.0 + helpers.map(|helper| helper.ran.0).sum::<u64>();
                Money((i128::from(ran) * i128::from(price.0) / 3600) as i64)
            }
        };
        if ended && record.progress.spent != Some(spent) {
            let seen = record.progress.spent;
            return Err(format!("{}: spent {spent}, recorded {seen:?}", work.id));
        }
        let took = rows.worked(index, work.done);
        let all: i64 = times.iter().skip(work.done as usize).map(|time| time.0).sum();
        if ended && done == work.rows && took != all {
            return Err(format!("{}: its rows take {all} s, {took} s were worked", work.id));
        }
        worked += took * i64::from(work.gpus);
        lost += rows.lost(index);
    }
    let ours = |job: &Job| *job.user == *ME;
    if !ended {
        // What still runs is charged at its end; what ended was charged once at most.
        let ran = world.cluster.gpu_seconds(ours);
        let charges = world.state.shards.iter().flat_map(|record| &record.charges);
        let charged: u64 = charges.map(|charge| charge.gpu_seconds.0).sum();
        return match charged <= ran.0 {
            true => Ok(()),
            false => Err(format!("{charged} GPU-seconds charged, {} run", ran.0)),
        };
    }
    let ran = world.cluster.gpu_seconds(ours);
    let mut recorded = GpuSeconds::default();
    world.state.shards.iter().for_each(|record| recorded += record.ran);
    let usage: Usage = world.state.labs.values().map(|lab| lab.usage).sum();
    let weighed = world.state.shards.iter().flat_map(|record| &record.charges);
    let weighed: Usage = weighed.map(|c| c.gpu_seconds.weighted(c.weight)).sum();
    if usage != weighed {
        return Err(format!("usage of the labs is {usage:?}, their charges are {weighed:?}"));
    }
    let mut charged = GpuSeconds::default();
    world.state.shards.iter().flat_map(|r| &r.charges).for_each(|c| charged += c.gpu_seconds);
    if ran != recorded || ran != charged {
        let (ran, recorded, charged) = (ran.0, recorded.0, charged.0);
        return Err(format!("{ran} GPU-seconds run, {recorded} recorded, {charged} charged"));
    }
    // What was run and brought no row is starts and rows in flight that were lost.
    let starts = world.cluster.history().iter().filter(|job| ours(job));
    let starts: usize = starts.map(|job| world.cluster.runs_of(job).len()).sum();
    // A pilot that goes on starts a program in the same run.
    let starts = starts + rows.claims_made().filter(|claim| claim.place > 0).count();
    let rest = ran.0 as i64 - worked;
    let least = if lost == 0 { setting.work.iter().filter(|w| w.done < w.rows).count() } else { 0 };
    if rest < 0 || starts < least {
        return Err(format!("{rest} s beside rows in {starts} starts, {lost} rows lost"));
    }
    Ok(())
}
