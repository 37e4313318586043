//! What the cluster around a campaign is like: GPUs that come and go in extra, visitors in own.
//!
//! The figures are assumptions to compare policies under, not measurements of any one cluster.

/// Six kinds of days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    None,
    Scarce,
    Seed,
    Rich,
    Diurnal,
    Flaky,
}

/// Visitors in the own lane: how many an hour, and their mean length in hours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Visitors {
    pub per_hour: f64,
    pub hours: f64,
}

/// The hour of the day at which every campaign begins: 15:23, the field's own.
const BEGINS: f64 = 15.0 + 23.0 / 60.0;
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

    pub fn word(self) -> &'static str {
        match self {
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
    pub fn sentence(self) -> &'static str {
        match self {
            Scenario::None => "no extra GPUs, no visitors in own",
            Scenario::Scarce => "0.5 extra GPUs on average for 2 h each, few visitors in own",
            Scenario::Seed => "1.5 extra GPUs on average for 3 h each, visitors in own",
            Scenario::Rich => "5 extra GPUs on average for 8 h each, few visitors in own",
            Scenario::Diurnal => "6 extra GPUs at night, 0.2 by day, for 4 h each, visitors in own",
            Scenario::Flaky => "4 extra GPUs on average for 42 min each, few visitors in own",
        }
    }

    /// Extra GPUs there would be on average if the hour of the day stood still; `hours` since the
    /// beginning.
    pub fn mean_extra(self, hours: f64) -> f64 {
        match self {
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
    pub fn most_extra(self) -> f64 {
        match self {
            Scenario::Diurnal => 6.0,
            _ => self.mean_extra(0.0),
        }
    }

    /// Mean life of an extra GPU, in hours.
    pub fn life(self) -> f64 {
        match self {
            Scenario::None | Scenario::Scarce => 2.0,
            Scenario::Seed => 3.0,
            Scenario::Rich => 8.0,
            Scenario::Diurnal => 4.0,
            Scenario::Flaky => 0.7,
        }
    }

    pub fn visitors(self) -> Option<Visitors> {
        match self {
            Scenario::None => None,
            Scenario::Seed | Scenario::Diurnal => Some(Visitors { per_hour: 0.25, hours: 4.0 }),
            Scenario::Scarce | Scenario::Rich | Scenario::Flaky => {
                Some(Visitors { per_hour: 1.0 / 6.0, hours: 3.0 })
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
            assert_eq!(Scenario::parse(scenario.word()), Some(scenario));
            assert!((0..48).all(|h| scenario.mean_extra(f64::from(h)) <= scenario.most_extra()));
        }
        assert_eq!(Scenario::parse("Seed"), None);
    }
}
