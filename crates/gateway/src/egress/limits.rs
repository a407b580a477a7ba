//! How often: a bucket that fills by itself and holds two seconds' worth. Pure.

use std::time::Instant;

#[derive(Debug)]
pub(super) struct Bucket {
    per_second: f64,
    left: f64,
    at: Instant,
}

impl Bucket {
    #[expect(clippy::cast_precision_loss, reason = "a rate of connects")]
    pub(super) fn full(per_second: u64) -> Self {
        let per_second = per_second as f64;
        Self { per_second, left: per_second * 2.0, at: Instant::now() }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * self.per_second).min(self.per_second * 2.0);
        self.at = now;
        let there = self.left >= 1.0;
        if there {
            self.left -= 1.0;
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn two_seconds_worth_at_once_and_then_as_it_fills() {
        let mut bucket = Bucket::full(10);
        let now = bucket.at;
        let taken = |bucket: &mut Bucket, at| (0..100).filter(|_| bucket.take(at)).count();
        assert_eq!(taken(&mut bucket, now), 20);
        assert_eq!(taken(&mut bucket, now + Duration::from_millis(500)), 5);
        assert_eq!(taken(&mut bucket, now + Duration::from_secs(60)), 20);
        assert_eq!(taken(&mut bucket, now), 0, "a clock that goes back gives nothing");
    }
}
