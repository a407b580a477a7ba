//! Repeated measurements of one thing.

use std::time::Duration;

/// In the order they were taken, in the unit of the row they end up in.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn push_ms(&mut self, took: Duration) {
        self.push(took.as_secs_f64() * 1e3);
    }

    pub(crate) fn push_seconds(&mut self, took: Duration) {
        self.push(took.as_secs_f64());
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The smallest sample that at least `percent` of them do not exceed; `None` of none.
    pub(crate) fn percentile(&self, percent: u32) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() * percent as usize).div_ceil(100).max(1);
        sorted.get(rank - 1).copied()
    }

    pub(crate) fn median(&self) -> Option<f64> {
        self.percentile(50)
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<T: IntoIterator<Item = Duration>>(durations: T) -> Self {
        let mut samples = Self::default();
        durations.into_iter().for_each(|took| samples.push_ms(took));
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[f64], percent: u32, expected: Option<f64>) {
        assert_eq!(Samples(values.to_vec()).percentile(percent), expected, "{values:?} p{percent}");
    }

    #[test]
    fn percentiles_are_samples_that_were_taken() {
        check(&[], 50, None);
        check(&[7.0], 99, Some(7.0));
        check(&[3.0, 1.0, 2.0], 50, Some(2.0));
        check(&[4.0, 3.0, 2.0, 1.0], 50, Some(2.0));
        check(&[4.0, 3.0, 2.0, 1.0], 99, Some(4.0));
        check(&[4.0, 3.0, 2.0, 1.0], 0, Some(1.0));
    }
}
