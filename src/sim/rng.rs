//! Numbers by chance that anybody can draw again: the same seed gives the same run.
//!
//! No entropy and no clock: a run is named by its number.

/// splitmix64: one word of state, any seed is a good one, and two streams are a seed apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    state: u64,
}

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng { state: seed }
    }

    /// A stream of its own for purpose number `n`, so that more draws for one purpose leave the
    /// others as they were (policies are compared on the same numbers).
    pub fn stream(seed: u64, n: u64) -> Rng {
        let mut mixed = Rng::new(seed ^ n.wrapping_mul(0xA24B_AED4_963E_E407));
        Rng::new(mixed.word())
    }

    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In [0, 1), 53 bits of it.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// In 0..n; 0 where n is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(n)) >> 64) as u64
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Time to the next event of a Poisson process.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// By its mean and the sigma of its logarithm.
    pub fn lognormal(&mut self, mean: f64, sigma: f64) -> f64 {
        self.draw(Lognormal::new(mean, sigma))
    }

    /// By its mean and its coefficient of variation (deviation / mean).
    pub fn lognormal_cv(&mut self, mean: f64, cv: f64) -> f64 {
        self.draw(Lognormal::of_cv(mean, cv))
    }

    pub fn draw(&mut self, Lognormal { base, sigma }: Lognormal) -> f64 {
        (base + sigma * self.normal()).exp()
    }
}

/// A distribution for those who draw many times: what is the same each time is worked out once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lognormal {
    base: f64,
    sigma: f64,
}

impl Lognormal {
    fn new(mean: f64, sigma: f64) -> Lognormal {
        Lognormal { base: mean.ln() - sigma * sigma / 2.0, sigma }
    }

    pub fn of_cv(mean: f64, cv: f64) -> Lognormal {
        Lognormal::new(mean, (1.0 + cv * cv).ln().sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(n: u32, mut draw: impl FnMut() -> f64) -> f64 {
        (0..n).map(|_| draw()).sum::<f64>() / f64::from(n)
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_streams_differ() {
        let draw = |mut rng: Rng| (0..4).map(|_| rng.word()).collect::<Vec<_>>();
        assert_eq!(draw(Rng::new(7)), draw(Rng::new(7)));
        assert_ne!(draw(Rng::new(7)), draw(Rng::new(8)));
        assert_ne!(draw(Rng::stream(7, 0)), draw(Rng::stream(7, 1)));
    }

    #[test]
    fn means_are_as_asked() {
        let mut rng = Rng::new(1);
        assert!((mean_of(20_000, || rng.unit()) - 0.5).abs() < 0.01);
        assert!((mean_of(20_000, || rng.exponential(3.0)) - 3.0).abs() < 0.1);
        assert!((mean_of(20_000, || rng.lognormal_cv(2.0, 0.4)) - 2.0).abs() < 0.05);
        assert!((0..1000).all(|_| rng.below(7) < 7));
    }
}
