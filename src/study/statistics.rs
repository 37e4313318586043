//! Means, their 95 % intervals, quantiles.

/// A mean with half the width of its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    pub mean: f64,
    /// Infinite for a single value: nothing is known of its spread.
    pub half: f64,
    pub n: usize,
}

/// `None` without any value. Not-a-numbers and infinities are the caller's to leave out.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    if n == 1 {
        return Some(Estimate { mean, half: f64::INFINITY, n });
    }
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let deviation = (squares / (n - 1) as f64).sqrt();
    Some(Estimate { mean, half: student(n - 1) * deviation / (n as f64).sqrt(), n })
}

/// 97.5 % quantile of Student's t: exact for the first degrees of freedom, then the expansion
/// around the normal one (its error is below 0.002 from there on).
fn student(freedom: usize) -> f64 {
    const FIRST: [f64; 5] = [12.706, 4.303, 3.182, 2.776, 2.571];
    if let Some(exact) = freedom.checked_sub(1).and_then(|at| FIRST.get(at)) {
        return *exact;
    }
    let (z, f) = (1.959_964_f64, freedom as f64);
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * f)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * f * f)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * f * f * f)
}

/// The value below which a share `q` of all lie, between neighbours in proportion; `None` without
/// any value.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let below = *sorted.get(at.floor() as usize)?;
    let above = *sorted.get(at.ceil() as usize)?;
    Some(below + (above - below) * at.fract())
}

/// Jain's index of fairness: 1 where all have the same, 1/n where one has all.
pub fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(s, q), v| (s + v, q + v * v));
    if squares == 0.0 { 1.0 } else { sum * sum / (values.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_student_s() {
        let found = estimate(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("values");
        assert!((found.mean - 3.0).abs() < 1e-12);
        // 2.776 x sqrt(2.5) / sqrt(5)
        assert!((found.half - 1.963).abs() < 0.001, "{found:?}");
        assert_eq!(estimate(&[]), None);
        assert_eq!(estimate(&[7.0]).map(|e| (e.mean, e.half)), Some((7.0, f64::INFINITY)));
    }

    #[test]
    fn student_goes_to_the_normal() {
        for (freedom, value) in [(6, 2.447), (10, 2.228), (30, 2.042), (299, 1.968)] {
            assert!((student(freedom) - value).abs() < 0.002, "{freedom}: {}", student(freedom));
        }
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 0.5), Some(2.5));
        assert_eq!(quantile(&values, 1.0), Some(4.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn jain_is_one_for_equals_and_one_over_n_for_one_who_has_all() {
        assert!((jain(&[2.0; 5]) - 1.0).abs() < 1e-12);
        assert!((jain(&[9.0, 0.0, 0.0]) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(jain(&[0.0, 0.0]), 1.0);
    }
}
