//! What happens around a campaign of one seed: lives of extra GPUs, visits in own. It depends on
//! scenario and seed alone, so that policies are compared on the same luck.

use crate::model::units::{Secs, Time};
use crate::sim::Rng;

use super::scenario::Scenario;

/// An extra GPU that is there from a moment until another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// GPUs that are there at the same time have different places; places are used again.
    pub place: usize,
    pub from: Time,
    pub to: Time,
}

/// Somebody else's job in own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    pub at: Time,
    pub lasts: Secs,
}

/// Drawn as far as it was asked for; the rest is the same however far one asked before.
#[derive(Debug, Clone)]
pub struct Path {
    scenario: Scenario,
    begins: Time,
    births: Rng,
    lives: Rng,
    visits: Rng,
    next_birth: f64,
    next_visit: f64,
    /// Until when each place is taken.
    places: Vec<Time>,
    /// By their beginnings.
    pub extra: Vec<Life>,
    pub visitors: Vec<Visit>,
}

/// Sigma of the logarithm of a visit's length.
const VISIT_SIGMA: f64 = 0.8;
const HOUR: f64 = 3600.0;

impl Path {
    /// `there`: extra GPUs at the beginning, where that is known.
    pub fn new(scenario: Scenario, seed: u64, begins: Time, there: Option<u32>) -> Path {
        let mut path = Path {
            scenario,
            begins,
            births: Rng::stream(seed, 1),
            lives: Rng::stream(seed, 2),
            visits: Rng::stream(seed, 3),
            next_birth: f64::INFINITY,
            next_visit: f64::INFINITY,
            places: Vec::new(),
            extra: Vec::new(),
            visitors: Vec::new(),
        };
        // As many as there are on average at that hour, in the middle of their lives; an
        // exponential life left is as long as a whole one.
        let drawn = poisson(&mut path.births, path.scenario.mean_extra(0.0));
        for _ in 0..there.unwrap_or(drawn) {
            path.born(0.0);
        }
        path.next_birth = path.after_birth(0.0);
        path.next_visit = path.after_visit(0.0);
        path
    }

    /// Draws on until that moment.
    pub fn reach(&mut self, until: Time) {
        let hours = (until.0 - self.begins.0) as f64 / HOUR;
        while self.next_birth <= hours {
            let at = self.next_birth;
            // Thinned where the hour of the day makes births rarer than they ever are.
            let share = self.scenario.mean_extra(at) / self.scenario.most_extra();
            if share >= 1.0 || self.births.chance(share) {
                self.born(at);
            }
            self.next_birth = self.after_birth(at);
        }
        while self.next_visit <= hours {
            let at = self.next_visit;
            if let Some(visitors) = self.scenario.visitors() {
                let length = self.visits.lognormal(visitors.hours, VISIT_SIGMA);
                self.visitors.push(Visit { at: self.moment(at), lasts: seconds(length) });
            }
            self.next_visit = self.after_visit(at);
        }
    }

    fn after_birth(&mut self, at: f64) -> f64 {
        let most = self.scenario.most_extra();
        if most <= 0.0 {
            return f64::INFINITY;
        }
        at + self.births.exponential(self.scenario.life() / most)
    }

    fn after_visit(&mut self, at: f64) -> f64 {
        match self.scenario.visitors() {
            Some(visitors) => at + self.visits.exponential(1.0 / visitors.per_hour),
            None => f64::INFINITY,
        }
    }

    fn born(&mut self, at: f64) {
        let (from, length) = (self.moment(at), self.lives.exponential(self.scenario.life()));
        let to = from + seconds(length);
        let free = self.places.iter().position(|taken| *taken < from);
        let place = free.unwrap_or(self.places.len());
        match self.places.get_mut(place) {
            Some(taken) => *taken = to,
            None => self.places.push(to),
        }
        self.extra.push(Life { place, from, to });
    }

    fn moment(&self, hours: f64) -> Time {
        Time(self.begins.0 + (hours * HOUR).round() as i64)
    }
}

/// At least a second, so that nothing ends before it began.
fn seconds(hours: f64) -> Secs {
    Secs((hours * HOUR).round().max(1.0) as i64)
}

/// By counting exponential gaps: the means are small here.
fn poisson(rng: &mut Rng, mean: f64) -> u32 {
    let mut count = 0;
    let mut sum = rng.exponential(1.0);
    while sum <= mean {
        count += 1;
        sum += rng.exponential(1.0);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Time = Time(1_000_000);

    fn drawn(scenario: Scenario, seed: u64, steps: i64) -> Path {
        let mut path = Path::new(scenario, seed, T0, None);
        for step in 1..=steps {
            path.reach(T0 + Secs(200 * 3600 * step / steps));
        }
        path
    }

    #[test]
    fn the_same_seed_gives_the_same_path_in_one_step_or_in_many() {
        for scenario in Scenario::ALL {
            let (once, often) = (drawn(scenario.clone(), 5, 1), drawn(scenario.clone(), 5, 1200));
            assert_eq!(once.extra, often.extra, "{scenario:?}");
            assert_eq!(once.visitors, often.visitors, "{scenario:?}");
        }
        assert_ne!(drawn(Scenario::Seed, 5, 1).extra, drawn(Scenario::Seed, 6, 1).extra);
    }

    #[test]
    fn gpus_at_one_place_never_overlap_and_their_mean_is_the_scenario_s() {
        for (scenario, mean) in
            [(Scenario::Seed, 1.5), (Scenario::Rich, 5.0), (Scenario::Flaky, 4.0)]
        {
            let mut hours = 0.0;
            for seed in 0..40 {
                let path = drawn(scenario.clone(), seed, 1);
                let end = T0 + Secs(200 * 3600);
                hours +=
                    path.extra.iter().map(|l| l.to.min(end).since(l.from).as_f64()).sum::<f64>();
                for (n, life) in path.extra.iter().enumerate() {
                    let later = path.extra.iter().skip(n + 1).find(|l| l.place == life.place);
                    assert!(later.is_none_or(|l| l.from > life.to), "{life:?}");
                }
            }
            let found = hours / 3600.0 / 200.0 / 40.0;
            assert!((found / mean - 1.0).abs() < 0.1, "{scenario:?}: {found}");
        }
    }

    #[test]
    fn visitors_come_as_often_and_stay_as_long_as_the_scenario_says() {
        let visits: Vec<Visit> =
            (0..40).flat_map(|s| drawn(Scenario::Seed, s, 1).visitors).collect();
        let per_hour = visits.len() as f64 / 8000.0;
        let mean =
            visits.iter().map(|v| v.lasts.as_f64()).sum::<f64>() / visits.len() as f64 / 3600.0;
        assert!((per_hour - 0.25).abs() < 0.02, "{per_hour}");
        assert!((mean - 4.0).abs() < 0.4, "{mean}");
        assert!(drawn(Scenario::None, 1, 1).visitors.is_empty());
    }
}
