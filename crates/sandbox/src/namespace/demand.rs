//! How many blanks to keep: as many as were lately wanted at once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Each costs about as much memory as an idle sandbox.
const MOST: usize = 64;
const BYTES_EACH: u64 = 2 << 20;
/// The share of free memory that may go to sandboxes that nobody asked for.
const SHARE: u64 = 32;
/// What is wanted within this time, and does not run yet, is wanted at once.
const AT_ONCE: Duration = Duration::from_millis(200);
/// A burst is remembered for one to two of these.
pub(super) const PERIOD: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(super) struct Demand {
    /// What is kept without any demand; with 0 nothing ever is.
    keep: usize,
    /// When each was wanted that does not run yet.
    recent: VecDeque<Instant>,
    period_began: Instant,
    peak: usize,
    peak_before: usize,
}

impl Demand {
    pub(super) fn new(keep: usize, now: Instant) -> Self {
        Self { keep, recent: VecDeque::new(), period_began: now, peak: 0, peak_before: 0 }
    }

    /// One more was wanted.
    pub(super) fn note(&mut self, now: Instant) {
        self.turn(now);
        self.recent.push_back(now);
        while self.recent.front().is_some_and(|first| now.duration_since(*first) > AT_ONCE) {
            self.recent.pop_front();
        }
        self.peak = self.peak.max(self.recent.len());
    }

    /// One that was wanted runs.
    pub(super) fn met(&mut self) {
        self.recent.pop_front();
    }

    /// How many to have ready.
    pub(super) fn target(&mut self, now: Instant, free_bytes: u64) -> usize {
        self.turn(now);
        let room = usize::try_from(free_bytes / SHARE / BYTES_EACH).unwrap_or(MOST).min(MOST);
        match self.keep {
            0 => 0,
            keep => self.peak.max(self.peak_before).min(room).max(keep),
        }
    }

    fn turn(&mut self, now: Instant) {
        let passed = now.duration_since(self.period_began);
        if passed < PERIOD {
            return;
        }
        self.peak_before = if passed < 2 * PERIOD { self.peak } else { 0 };
        self.peak = 0;
        self.period_began = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLENTY: u64 = 1 << 40;

    fn burst(demand: &mut Demand, at: Instant, count: usize) {
        (0..count).for_each(|_| demand.note(at));
    }

    #[test]
    fn a_burst_is_remembered_for_a_while() {
        let begin = Instant::now();
        let mut demand = Demand::new(2, begin);
        assert_eq!(demand.target(begin, PLENTY), 2);
        burst(&mut demand, begin, 50);
        assert_eq!(demand.target(begin + PERIOD / 2, PLENTY), 50);
        assert_eq!(demand.target(begin + PERIOD, PLENTY), 50);
        assert_eq!(demand.target(begin + 2 * PERIOD, PLENTY), 2);
    }

    #[test]
    fn one_after_another_is_not_at_once() {
        let begin = Instant::now();
        let mut demand = Demand::new(2, begin);
        for _ in 0..100 {
            demand.note(begin);
            demand.met();
        }
        assert_eq!(demand.target(begin, PLENTY), 2);
        (0..100).for_each(|turn| demand.note(begin + turn * AT_ONCE));
        assert_eq!(demand.target(begin + 100 * AT_ONCE, PLENTY), 2, "or are never started");
    }

    #[test]
    fn there_is_an_upper_limit() {
        let begin = Instant::now();
        let mut demand = Demand::new(2, begin);
        burst(&mut demand, begin, 1000);
        assert_eq!(demand.target(begin, PLENTY), MOST);
        assert_eq!(demand.target(begin, 10 * SHARE * BYTES_EACH), 10);
        assert_eq!(demand.target(begin, 0), 2, "what is configured is kept");
    }

    #[test]
    fn who_keeps_nothing_is_taught_nothing() {
        let begin = Instant::now();
        let mut demand = Demand::new(0, begin);
        burst(&mut demand, begin, 50);
        assert_eq!(demand.target(begin, PLENTY), 0);
    }
}
