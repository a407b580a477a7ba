//! Whether a process that is ready still answers. The judgement is pure; who asks is [`super::run`].

use std::time::Duration;

/// So many questions in a row without an answer.
const MOST_MISSED: u8 = 2;
pub(crate) const EVERY: Duration = Duration::from_secs(1);
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Pulse {
    missed: u8,
}

impl Pulse {
    /// Takes in one question. Says so when what is known of the process changes.
    pub(crate) fn asked(&mut self, answered: bool) -> Option<bool> {
        let before = self.missed;
        self.missed = if answered { 0 } else { (before + 1).min(MOST_MISSED) };
        let responds = |missed: u8| missed < MOST_MISSED;
        (responds(before) != responds(self.missed)).then(|| responds(self.missed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_misses_in_a_row_count_and_one_answer_makes_up_for_them() {
        let mut pulse = Pulse::default();
        let told: Vec<_> = [true, false, true, false, false, false, true, true, false]
            .into_iter()
            .map(|answered| pulse.asked(answered))
            .collect();
        let mut expected = vec![None; 9];
        (expected[4], expected[6]) = (Some(false), Some(true));
        assert_eq!(told, expected);
    }
}
