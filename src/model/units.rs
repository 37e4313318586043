//! Units that are easy to mix up, each with a type of its own.
//!
//! Nothing here reads a clock: a `Time` is always handed in.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// A moment, in whole seconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub i64);

/// A length of time in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Secs(pub i64);

impl Time {
    /// Seconds from `earlier` to `self`, never negative: clocks of two hosts may disagree.
    pub fn since(self, earlier: Time) -> Secs {
        Secs(self.0.saturating_sub(earlier.0).max(0))
    }
}

impl Add<Secs> for Time {
    type Output = Time;
    fn add(self, length: Secs) -> Time {
        Time(self.0.saturating_add(length.0))
    }
}

impl Sub<Secs> for Time {
    type Output = Time;
    fn sub(self, length: Secs) -> Time {
        Time(self.0.saturating_sub(length.0))
    }
}

impl Secs {
    pub const fn minutes(n: i64) -> Secs {
        Secs(n * 60)
    }
    pub const fn hours(n: i64) -> Secs {
        Secs(n * 3600)
    }
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

/// Dollars, counted in billionths, so that the sum of a ledger does not depend on its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Money(pub i64);

impl Money {
    pub const ZERO: Money = Money(0);
    const UNIT: f64 = 1e9;

    /// `None` for what is no amount of money: NaN, infinite, negative, or beyond nine billion.
    pub fn from_dollars(dollars: f64) -> Option<Money> {
        let units = dollars * Self::UNIT;
        (units.is_finite() && units >= 0.0 && units < i64::MAX as f64)
            .then(|| Money(units.round() as i64))
    }

    pub fn dollars(self) -> f64 {
        self.0 as f64 / Self::UNIT
    }
}

impl Add for Money {
    type Output = Money;
    fn add(self, other: Money) -> Money {
        Money(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Money) {
        *self = *self + other;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Money>>(amounts: I) -> Money {
        amounts.fold(Money::ZERO, Add::add)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.2}", self.dollars())
    }
}

/// The weight of a tier in thousandths of a TFLOP/s: 82.6 tflops is 82 600.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tflops(pub u64);

impl Tflops {
    /// `None` where the number is not positive and finite.
    pub fn from_f64(tflops: f64) -> Option<Tflops> {
        let milli = tflops * 1000.0;
        (0.5..1e15).contains(&milli).then(|| Tflops(milli.round() as u64))
    }

    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

/// GPUs x seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GpuSeconds(pub u64);

impl GpuSeconds {
    pub fn of(gpus: u32, length: Secs) -> GpuSeconds {
        GpuSeconds(u64::from(gpus).saturating_mul(length.0.max(0) as u64))
    }

    /// Weighted by a tier: what a lab's usage is charged (policy.md section 7).
    pub fn weighted(self, weight: Tflops) -> Usage {
        Usage(self.0.saturating_mul(weight.0))
    }
}

impl AddAssign for GpuSeconds {
    fn add_assign(&mut self, other: GpuSeconds) {
        self.0 = self.0.saturating_add(other.0);
    }
}

/// A lab's usage in thousandths of a TFLOP-second; whole numbers, so that the sum of the charges
/// IS the usage, to the last digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Usage(pub u64);

impl Usage {
    /// In TFLOP-seconds, the unit that people read.
    pub fn tflop_seconds(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

impl Add for Usage {
    type Output = Usage;
    fn add(self, other: Usage) -> Usage {
        Usage(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        *self = *self + other;
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(amounts: I) -> Usage {
        amounts.fold(Usage::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_refuses_what_is_no_amount() {
        for bad in [f64::NAN, f64::INFINITY, -0.01, 1e12] {
            assert_eq!(Money::from_dollars(bad), None, "{bad}");
        }
        assert_eq!(Money::from_dollars(0.08), Some(Money(80_000_000)));
    }

    #[test]
    fn usage_of_section_8_s5_is_exact() {
        let weight = Tflops::from_f64(82.6).expect("positive");
        let reserved = GpuSeconds::of(1, Secs(300)).weighted(weight);
        assert_eq!(reserved.tflop_seconds(), 24_780.0);
    }

    #[test]
    fn gpu_seconds_beyond_all_counting_stay_the_most_there_is() {
        assert_eq!(GpuSeconds::of(u32::MAX, Secs(i64::MAX)), GpuSeconds(u64::MAX));
    }

    #[test]
    fn a_clock_that_stepped_back_gives_no_negative_length() {
        assert_eq!(Time(10).since(Time(20)), Secs(0));
    }
}
