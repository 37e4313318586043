//! A scenario of the user's own for `simulate` and `status --forecast`: what the cluster around a
//! campaign is like. Read as shards.toml is, every fault at once.

use std::path::Path;

use toml::de::DeValue;

use super::document::{Section, Sink};
use super::fault::Faults;
use super::keys;
use super::values::{self, Parsed, whole, wrong};
use crate::model::units::Secs;

/// What a scenario file says; what it leaves out is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioFile {
    pub name: String,
    pub says: Option<String>,
    /// Hour of the day at which the campaign begins.
    pub begins: Option<f64>,
    pub tick_every: Option<Secs>,
    pub never_after: Option<Secs>,
    /// Spent at each start of a job before its first row.
    pub start: Option<Secs>,
    /// Deviation of a row's time over its mean.
    pub row_spread: Option<f64>,
    pub own_gpus: Option<u32>,
    pub own_held: Option<u32>,
    /// Mean number of extra GPUs from that hour of the day until the next entry, by hour. Never
    /// empty; one entry is the whole day.
    pub extra: Vec<(f64, f64)>,
    pub extra_life: Secs,
    pub extra_at_begin: Option<u32>,
    /// How many an hour, and how long each stays.
    pub visitors: Option<(f64, Secs)>,
    /// By family: its mean row time, instead of that of shards.toml, and the line that says so.
    pub row_times: Vec<(String, Secs, Option<usize>)>,
}

/// An hour in extra, where the file does not say how long one lasts.
const LIFE: Secs = Secs::hours(3);
const MOST_EXTRA: f64 = 1000.0;
const MOST_VISITORS: f64 = 100.0;
const MOST_SPREAD: f64 = 3.0;

/// Reads and checks a scenario file.
///
/// # Errors
/// Everything that is wrong with it, by line.
pub fn scenario(path: &Path) -> Result<ScenarioFile, Faults> {
    let text = super::text_of(path)?;
    let (file, sink) = super::parsed(path, &text, |table, sink| {
        let top = Section::root(sink, table, keys::SCENARIO);
        read(path, &top, sink)
    })?;
    if sink.faults.is_empty() { Ok(file) } else { Err(Faults::new(path, sink.all_faults())) }
}

fn read(path: &Path, top: &Section<'_>, sink: &mut Sink) -> ScenarioFile {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = top.read(sink, "name", values::name_value);
    let says = top.read(sink, "says", values::text).optional();
    let begins = top.read(sink, "begins", |v| values::text(v).and_then(|t| hour(&t))).optional();
    let tick_every = top.read(sink, "tick_every", values::duration).optional();
    let never_after = top.read(sink, "never_after", values::duration).optional();
    let start = top.read(sink, "start", values::duration).optional();
    let row_spread = top.read(sink, "row_spread", |v| up_to(v, MOST_SPREAD)).optional();
    let own = top.section(sink, "own", keys::SCENARIO_OWN);
    let own_gpus = own.read(sink, "gpus", |v| whole(v, 1, 10_000)).optional();
    let own_held = own.read(sink, "held", |v| whole(v, 0, 10_000)).optional();
    if let (Some(gpus), Some(held)) = (own_gpus, own_held)
        && held >= gpus
    {
        let hint = "leave at least one for the campaign, or raise own.gpus";
        sink.fault("own.held", format!("is {held}, which is all {gpus} of own.gpus"), hint);
    }
    let extra = top.section(sink, "extra", keys::SCENARIO_EXTRA);
    let mean = extra.read(sink, "mean", |v| up_to(v, MOST_EXTRA));
    let extra_life = extra.read(sink, "life", values::duration).or(LIFE);
    let extra_at_begin = extra.read(sink, "at_begin", |v| whole(v, 0, 1000)).optional();
    let by_hour = by_hour(&extra, sink, !mean.is_absent());
    let visitors = top.section(sink, "visitors", keys::SCENARIO_VISITORS);
    let per_hour = visitors.read(sink, "per_hour", |v| up_to(v, MOST_VISITORS));
    let stay = visitors.read(sink, "stay", values::duration);
    if visitors.present {
        visitors.require(sink, "per_hour", &per_hour, "say how many come an hour, like 0.25");
        visitors.require(sink, "stay", &stay, "say how long each has a GPU, like \"4h\"");
    }
    ScenarioFile {
        name: name.optional().or(stem).unwrap_or_else(|| "own".to_owned()),
        says,
        begins,
        tick_every,
        never_after,
        start,
        row_spread,
        own_gpus,
        own_held,
        extra: if by_hour.is_empty() { vec![(0.0, mean.or(0.0))] } else { by_hour },
        extra_life,
        extra_at_begin,
        visitors: per_hour.optional().filter(|n| *n > 0.0).zip(stay.optional()),
        row_times: row_times(top, sink),
    }
}

/// `[extra.by_hour]`: from each of these times of the day on, by hour.
fn by_hour(extra: &Section<'_>, sink: &mut Sink, has_mean: bool) -> Vec<(f64, f64)> {
    let Some(DeValue::Table(table)) = extra.value("by_hour").map(|v| v.get_ref()) else {
        if let Some(value) = extra.value("by_hour") {
            let line = sink.line_of("extra.by_hour");
            let example = "{ \"08:00\" = 0.2, \"22:00\" = 6 }";
            let told = values::wrong_type::<()>(value.get_ref(), "a table", example);
            sink.accept(line, "extra.by_hour", told);
        }
        return Vec::new();
    };
    if has_mean {
        let hint = "keep one of the two: a mean for the whole day, or one from each hour on";
        sink.fault("extra.by_hour", "stands beside extra.mean", hint);
    }
    if table.is_empty() {
        let hint = "write at least one time, like \"08:00\" = 2";
        sink.fault("extra.by_hour", "is empty", hint);
    }
    let mut hours = Vec::new();
    for (key, value) in table {
        let line = Some(sink.line_at(key.span().start));
        let at = sink.accept(line, "extra.by_hour", hour(key.get_ref()));
        let mean = sink.accept(line, "extra.by_hour", up_to(value.get_ref(), MOST_EXTRA));
        hours.extend(at.zip(mean));
    }
    hours.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let Some(twice) =
        hours.windows(2).find(|pair| pair.first().map(|p| p.0) == pair.last().map(|p| p.0))
    {
        let at = twice.first().map_or(0.0, |pair| pair.0);
        let text = format!("names {:02.0}:{:02.0} twice", at.floor(), at.fract() * 60.0);
        sink.fault("extra.by_hour", text, "take one out");
    }
    hours
}

fn row_times(top: &Section<'_>, sink: &mut Sink) -> Vec<(String, Secs, Option<usize>)> {
    let mut times = Vec::new();
    for (family, value) in top.children(sink, "row_time") {
        let key = format!("row_time.{family}");
        let line = sink.line_of(&key);
        let time = sink.accept(line, &key, values::duration(value));
        times.extend(time.map(|time| (family, time, line)));
    }
    times
}

/// `15:23` as hours.
fn hour(text: &str) -> Parsed<f64> {
    let parts = text
        .split_once(':')
        .and_then(|(h, m)| Some((h.parse::<u32>().ok()?, m.parse::<u32>().ok()?)));
    match parts {
        Some((hours, minutes)) if hours < 24 && minutes < 60 => {
            Ok(f64::from(hours) + f64::from(minutes) / 60.0)
        }
        _ => wrong(format!("{text:?} is no time of the day"), "write it like \"08:00\""),
    }
}

fn up_to(value: &DeValue<'_>, most: f64) -> Parsed<f64> {
    match values::number(value)? {
        n if (0.0..=most).contains(&n) => Ok(n),
        n => wrong(format!("is {n}"), format!("allowed are 0 to {most}")),
    }
}
