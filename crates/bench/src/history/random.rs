//! Numbers that look random and are the same on every run (splitmix64).

#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// At least 0, less than 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Less than `end`, which is not 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        // The bias of the remainder is far below what matters here.
        (self.next() % end as u64) as usize
    }

    pub(super) fn chance(&mut self, of: f64) -> bool {
        self.unit() < of
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// About normal, by the sum of twelve.
    pub(super) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// Distinct numbers below `end`, in no order.
    pub(super) fn distinct(&mut self, count: usize, end: usize) -> Vec<usize> {
        let mut chosen = std::collections::HashSet::new();
        while chosen.len() < count.min(end) {
            chosen.insert(self.below(end));
        }
        let mut chosen: Vec<usize> = chosen.into_iter().collect();
        // A set has an order of its own that differs from run to run.
        chosen.sort_unstable();
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (random.distinct(5, 100), random.next(), random.unit().to_bits())
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn a_normal_number_is_centred_and_as_wide_as_it_should_be() {
        let mut random = Random::new(1);
        let drawn: Vec<f64> = (0..10_000).map(|_| random.normal()).collect();
        let mean = drawn.iter().sum::<f64>() / 10_000.0;
        let width = drawn.iter().map(|one| one * one).sum::<f64>() / 10_000.0;
        assert!(mean.abs() < 0.05 && (width - 1.0).abs() < 0.1, "{mean} {width}");
    }
}
