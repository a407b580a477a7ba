//! Dollars and tokens, counted in whole numbers.

use std::fmt;

use serde::{Deserialize, Deserializer};

const NANOS: f64 = 1e9;
/// More than anybody means.
const MOST: f64 = 1e9;

/// In billionths, so that a token of the cheapest model is still a whole number of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Dollars(pub u64);

impl Dollars {
    /// `None` for what is no amount.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    pub fn new(amount: f64) -> Option<Self> {
        (0.0..=MOST).contains(&amount).then(|| Self((amount * NANOS).round() as u64))
    }

    #[expect(clippy::cast_precision_loss, reason = "for people")]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / NANOS
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = self.as_f64();
        if amount > 0.0 && amount < 0.01 {
            write!(f, "${amount:.6}")
        } else {
            write!(f, "${amount:.2}")
        }
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amount = f64::deserialize(deserializer)?;
        Self::new(amount).ok_or_else(|| {
            serde::de::Error::custom(format!("{amount} is not an amount of dollars"))
        })
    }
}

/// What something cost, or may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Amount {
    pub(crate) tokens: u64,
    pub(crate) dollars: Dollars,
}

impl Amount {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            dollars: Dollars(self.dollars.0.saturating_add(other.dollars.0)),
        }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            dollars: Dollars(self.dollars.0.saturating_sub(other.dollars.0)),
        }
    }
}

/// How much may be used; what is absent does not restrict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    pub tokens: Option<u64>,
    pub dollars: Option<Dollars>,
}

impl Limits {
    pub(crate) fn is_none(self) -> bool {
        self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_and_readable() {
        assert_eq!(Dollars::new(0.075), Some(Dollars(75_000_000)));
        for (amount, text) in [(5.0, "$5.00"), (0.0, "$0.00"), (0.000_123, "$0.000123")] {
            assert_eq!(Dollars::new(amount).unwrap().to_string(), text);
        }
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e12] {
            assert_eq!(Dollars::new(bad), None, "{bad}");
        }
    }
}
