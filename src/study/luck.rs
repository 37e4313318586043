//! What is the same for every policy of one seed: row times, what happens around the campaign, and the
//! least it could take. Drawn once, so that policies side by side share the work as they do the luck.

use std::sync::{Arc, Mutex, PoisonError};

use crate::model::units::Secs;

use super::bound::bound;
use super::campaign::BEGINS;
use super::path::Path;
use super::setting::Setting;

#[derive(Debug, Clone)]
pub struct Luck {
    pub(super) seed: u64,
    /// Row times by shard.
    pub(super) tables: Vec<Vec<Secs>>,
    pub(super) path: Path,
    /// Hours.
    pub(super) bound: f64,
}

impl Luck {
    pub fn of(setting: &Setting, seed: u64) -> Luck {
        let tables = setting.tables(seed);
        let mut path = Path::new(setting.scenario.clone(), seed, BEGINS, setting.extra_at_begin());
        let shortest = setting.shortest(&tables);
        let bound = bound(&mut path, BEGINS, setting.own_free(), setting.limit, &shortest);
        Luck { seed, tables, path, bound }
    }
}

/// For threads that go through the seeds one after the other, each seed under every policy.
pub(super) struct Lucks<'a> {
    setting: &'a Setting,
    drawn: Mutex<Vec<Arc<Luck>>>,
    /// Seeds that are under way at once.
    most: usize,
}

impl<'a> Lucks<'a> {
    pub fn new(setting: &'a Setting, threads: usize) -> Lucks<'a> {
        Lucks { setting, drawn: Mutex::new(Vec::new()), most: threads.max(1) + 1 }
    }

    pub fn of(&self, seed: u64) -> Arc<Luck> {
        let known = |drawn: &[Arc<Luck>]| drawn.iter().find(|luck| luck.seed == seed).cloned();
        if let Some(luck) = known(&self.drawn.lock().unwrap_or_else(PoisonError::into_inner)) {
            return luck;
        }
        // Two threads may draw the same one: it is the same.
        let luck = Arc::new(Luck::of(self.setting, seed));
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if known(&drawn).is_none() {
            drawn.push(Arc::clone(&luck));
        }
        if drawn.len() > self.most {
            drawn.remove(0);
        }
        luck
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::super::campaign::{run, run_with};
    use super::super::method::METHODS;
    use super::super::scenario::Scenario;
    use super::*;

    #[test]
    fn policies_that_share_a_seed_s_luck_run_as_each_does_alone() {
        for scenario in [Scenario::Seed, Scenario::Flaky] {
            let setting = Setting::field(scenario);
            let lucks = Lucks::new(&setting, 1);
            for seed in 1..=3 {
                for method in METHODS.iter().filter(|m| ["v4.1", "best"].contains(&m.name)) {
                    let never = AtomicBool::new(false);
                    let shared = run_with(&setting, method, &lucks.of(seed), &never);
                    assert_eq!(shared, run(&setting, method, seed).map(Some), "{}", method.name);
                }
            }
            assert_eq!(lucks.drawn.lock().expect("nobody fell").len(), 2);
        }
    }
}
