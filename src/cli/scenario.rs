//! `--scenario`: a name, or a file of the user's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{self, Fault, Faults, ScenarioFile};
use crate::model::units::Secs;
use crate::study::scenario::{Around, BEGINS, Scenario, Visitors};
use crate::study::setting::Setting;

use super::exit::{Exit, Stop};
use super::target::did_you_mean;

/// A scenario, and what its file says beside it.
#[derive(Debug)]
pub struct Chosen {
    pub scenario: Scenario,
    file: Option<(PathBuf, ScenarioFile)>,
}

impl Chosen {
    /// # Errors
    /// No such name, or a file with faults (all of them).
    pub fn of(word: &str) -> Result<Chosen, Stop> {
        if let Some(scenario) = Scenario::parse(word) {
            return Ok(Chosen { scenario, file: None });
        }
        let path = Path::new(word);
        let like_a_file = word.contains('/') || path.extension().is_some_and(|end| end == "toml");
        if !like_a_file {
            let words: Vec<&str> = Scenario::ALL.iter().map(Scenario::word).collect();
            let hint = did_you_mean(word, words.iter().copied());
            let hint = hint.unwrap_or_else(|| {
                format!("scenarios: {}, or a file of yours, FILE.toml", words.join(", "))
            });
            return Err(Stop::usage(format!("there is no scenario `{word}`"), &hint));
        }
        let file = config::scenario(path).map_err(stop)?;
        let scenario = Scenario::Own(Arc::new(around(&file)));
        Ok(Chosen { scenario, file: Some((path.to_owned(), file)) })
    }

    /// Brings what the file says of tick, starts and own lane into the setting.
    pub fn apply_around(&self, setting: &mut Setting) {
        let Some((_, file)) = &self.file else { return };
        setting.own = file.own_gpus.unwrap_or(setting.own);
        if let Some(held) = file.own_held {
            setting.held = held;
        }
        setting.make_room();
        setting.every = file.tick_every.unwrap_or(setting.every);
        setting.limit = file.never_after.unwrap_or(setting.limit);
        setting.start = file.start.unwrap_or(setting.start);
        setting.row_cv = file.row_spread.unwrap_or(setting.row_cv);
        setting.at_begin = file.extra_at_begin.or(setting.at_begin);
    }

    /// The same, and its row times: for campaigns whose rates are not measured yet.
    ///
    /// # Errors
    /// Families that the campaign does not have.
    pub fn apply(&self, setting: &mut Setting) -> Result<(), Stop> {
        self.apply_around(setting);
        let Some((path, file)) = &self.file else { return Ok(()) };
        let mut faults = Vec::new();
        for (family, time, line) in &file.row_times {
            let mut found = false;
            for work in setting.work.iter_mut().filter(|work| work.id.family == *family) {
                work.row_hours = hours(*time);
                found = true;
            }
            if !found {
                let known: Vec<&str> = setting.work.iter().map(|w| w.id.family.as_str()).collect();
                let hint = did_you_mean(family, known.iter().copied());
                faults.push(Fault {
                    line: *line,
                    key: format!("row_time.{family}"),
                    text: "the campaign has no such family".to_owned(),
                    hint: hint.or_else(|| Some("take it out".to_owned())),
                });
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(stop(Faults { path: path.clone(), faults })) }
    }
}

/// Each row of a simulated campaign is in memory, with its time: so many take a gigabyte or two.
const MOST_ROWS: u64 = 50_000_000;

/// # Errors
/// A campaign of more rows than memory is likely to hold.
pub fn may_simulate(rows: impl Iterator<Item = u32>) -> Result<(), Stop> {
    let rows: u64 = rows.map(u64::from).sum();
    if rows <= MOST_ROWS {
        return Ok(());
    }
    let text = format!("{rows} rows are too many: a simulation keeps each in memory");
    let hint = format!("simulate a shards.toml of fewer shards or rows: at most {MOST_ROWS} rows");
    Err(Stop::new(Exit::Failed, "simulate", text, Some(hint)))
}

fn stop(faults: Faults) -> Stop {
    let hint = format!("correct {}; docs/simulate.md has every key", faults.path.display());
    Stop::new(Exit::Usage, "config", faults.to_string(), Some(hint))
}

fn hours(length: Secs) -> f64 {
    length.as_f64() / 3600.0
}

fn around(file: &ScenarioFile) -> Around {
    let visitors = file.visitors.map(|(per_hour, stay)| Visitors { per_hour, hours: hours(stay) });
    Around {
        name: file.name.clone(),
        says: file.says.clone(),
        begins: file.begins.unwrap_or(BEGINS),
        extra: file.extra.clone(),
        life: hours(file.extra_life),
        visitors,
    }
}
