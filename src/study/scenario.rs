//! What the cluster around a campaign is like: GPUs that come and go in extra, visitors in own.
//!
//! The figures are assumptions to compare policies under, not measurements of any one cluster.

use std::borrow::Cow;
use std::sync::Arc;

/// Six kinds of days, and any that a user writes down.
#[derive(Debug, Clone, PartialEq)]
pub enum Scenario {
    None,
    Scarce,
    Seed,
    Rich,
    Diurnal,
    Flaky,
    Own(Arc<Around>),
}

/// A user's own kind of days.
#[derive(Debug, Clone, PartialEq)]
pub struct Around {
    pub name: String,
    pub says: Option<String>,
    /// Hour of the day at which every campaign begins.
    pub begins: f64,
    /// Mean extra GPUs from that hour of the day until the next entry, by hour.
    pub extra: Vec<(f64, f64)>,
    /// Hours.
    pub life: f64,
    pub visitors: Option<Visitors>,
}

/// Visitors in the own lane: how many an hour, and their mean length in hours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Visitors {
    pub per_hour: f64,
    pub hours: f64,
}

/// The hour of the day at which every campaign begins: 15:23, the field's own.
pub const BEGINS: f64 = 15.0 + 23.0 / 60.0;
const DAY_BEGINS: f64 = 8.0;
const NIGHT_BEGINS: f64 = 22.0;

impl Scenario {
    pub const ALL: [Scenario; 6] = [
        Scenario::None,
        Scenario::Scarce,
        Scenario::Seed,
        Scenario::Rich,
        Scenario::Diurnal,
        Scenario::Flaky,
    ];

    pub fn word(&self) -> &str {
        match self {
            Scenario::Own(around) => &around.name,
            Scenario::None => "none",
            Scenario::Scarce => "scarce",
            Scenario::Seed => "seed",
            Scenario::Rich => "rich",
            Scenario::Diurnal => "diurnal",
            Scenario::Flaky => "flaky",
        }
    }

    pub fn parse(word: &str) -> Option<Scenario> {
        Scenario::ALL.into_iter().find(|scenario| scenario.word() == word)
    }

    /// For a table's head.
    pub fn sentence(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Scenario::Own(around) => return Cow::Owned(around.sentence()),
            Scenario::None => "no extra GPUs, no visitors in own",
            Scenario::Scarce => "0.5 extra GPUs on average for 2h each, few visitors in own",
            Scenario::Seed => "1.5 extra GPUs on average for 3h each, visitors in own",
            Scenario::Rich => "5 extra GPUs on average for 8h each, few visitors in own",
            Scenario::Diurnal => "6 extra GPUs at night, 0.2 by day, for 4h each, visitors in own",
            Scenario::Flaky => "4 extra GPUs on average for 42 min each, few visitors in own",
        })
    }

    /// Extra GPUs there would be on average if the hour of the day stood still; `hours` since the
    /// beginning.
    pub fn mean_extra(&self, hours: f64) -> f64 {
        match self {
            Scenario::Own(around) => around.mean_extra(hours),
            Scenario::None => 0.0,
            Scenario::Scarce => 0.5,
            Scenario::Seed => 1.5,
            Scenario::Rich => 5.0,
            Scenario::Flaky => 4.0,
            Scenario::Diurnal => {
                let hour = (BEGINS + hours).rem_euclid(24.0);
                if (DAY_BEGINS..NIGHT_BEGINS).contains(&hour) { 0.2 } else { 6.0 }
            }
        }
    }

    /// The most that `mean_extra` ever gives.
    pub fn most_extra(&self) -> f64 {
        match self {
            Scenario::Own(around) => around.extra.iter().map(|(_, mean)| *mean).fold(0.0, f64::max),
            Scenario::Diurnal => 6.0,
            _ => self.mean_extra(0.0),
        }
    }

    /// Mean life of an extra GPU, in hours.
    pub fn life(&self) -> f64 {
        match self {
            Scenario::Own(around) => around.life,
            Scenario::None | Scenario::Scarce => 2.0,
            Scenario::Seed => 3.0,
            Scenario::Rich => 8.0,
            Scenario::Diurnal => 4.0,
            Scenario::Flaky => 0.7,
        }
    }

    pub fn visitors(&self) -> Option<Visitors> {
        match self {
            Scenario::Own(around) => around.visitors,
            Scenario::None => None,
            Scenario::Seed | Scenario::Diurnal => Some(Visitors { per_hour: 0.25, hours: 4.0 }),
            Scenario::Scarce | Scenario::Rich | Scenario::Flaky => {
                Some(Visitors { per_hour: 1.0 / 6.0, hours: 3.0 })
            }
        }
    }
}

impl Around {
    fn mean_extra(&self, hours: f64) -> f64 {
        let hour = (self.begins + hours).rem_euclid(24.0);
        // Before the first entry of a day the last one of the day before holds.
        let entry = self.extra.iter().rev().find(|(from, _)| *from <= hour);
        entry.or(self.extra.last()).map_or(0.0, |(_, mean)| *mean)
    }

    fn sentence(&self) -> String {
        if let Some(says) = &self.says {
            return says.clone();
        }
        let extra = match self.extra.as_slice() {
            [] => "no extra GPUs".to_owned(),
            [(_, mean)] => format!("{mean} extra GPUs on average for {:.1}h each", self.life),
            several => format!(
                "extra GPUs by the hour of the day, {} to {} on average, for {:.1}h each",
                several.iter().map(|(_, mean)| *mean).fold(f64::INFINITY, f64::min),
                several.iter().map(|(_, mean)| *mean).fold(0.0, f64::max),
                self.life
            ),
        };
        match self.visitors {
            None => format!("{extra}, no visitors in own"),
            Some(v) => {
                format!("{extra}, {} visitors an hour in own for {:.1}h each", v.per_hour, v.hours)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nights_are_rich_and_begin_six_hours_and_37_minutes_after_the_start() {
        let mean = |hours| Scenario::Diurnal.mean_extra(hours);
        assert_eq!(
            [mean(0.0), mean(6.6), mean(6.7), mean(16.5), mean(16.7)],
            [0.2, 0.2, 6.0, 6.0, 0.2]
        );
        assert_eq!(mean(24.0 + 6.7), 6.0);
    }

    #[test]
    fn every_word_is_read_again() {
        for scenario in Scenario::ALL {
            assert_eq!(Scenario::parse(scenario.word()), Some(scenario.clone()));
            assert!((0..48).all(|h| scenario.mean_extra(f64::from(h)) <= scenario.most_extra()));
        }
        assert_eq!(Scenario::parse("Seed"), None);
    }

    #[test]
    fn a_table_of_hours_goes_round_midnight() {
        let around = Around {
            name: "ours".to_owned(),
            says: None,
            begins: 21.0,
            extra: vec![(8.0, 0.5), (22.0, 6.0)],
            life: 4.0,
            visitors: None,
        };
        let ours = Scenario::Own(Arc::new(around));
        let found = [0.0, 0.9, 1.0, 3.5, 10.9, 11.0, 25.0].map(|hours| ours.mean_extra(hours));
        assert_eq!(found, [0.5, 0.5, 6.0, 6.0, 6.0, 0.5, 6.0]);
        assert_eq!((ours.most_extra(), ours.word()), (6.0, "ours"));
        assert!(ours.sentence().starts_with("extra GPUs by the hour of the day, 0.5 to 6"));
    }
}
