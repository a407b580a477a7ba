//! How much a call may use that does not say so itself. Pure.

use std::collections::BTreeMap;

use super::paths::glob;

/// When a call does not say how much may come back. Models that think say more than that seldom.
pub(crate) const USUAL_OUTPUT: u64 = 16_384;
/// When a call names what the provider keeps, or fetches: as much as most models hear.
pub(crate) const USUAL_INPUT: u64 = 200_000;

/// Of one provider: what its owner knows of its models, in tokens. Names may hold `*`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Bounds {
    pub(super) output: BTreeMap<String, u64>,
    pub(super) windows: BTreeMap<String, u64>,
}

impl Bounds {
    /// What is put aside for an answer.
    pub(crate) fn output(&self, model: &str) -> u64 {
        of(&self.output, model).unwrap_or(USUAL_OUTPUT)
    }

    /// What is put aside for what a call names and does not hold: no more than the model can hear.
    pub(crate) fn input(&self, model: &str) -> u64 {
        self.window(model).unwrap_or(USUAL_INPUT)
    }

    /// How much a model can hear and say at once, where the owner has said so.
    pub(crate) fn window(&self, model: &str) -> Option<u64> {
        of(&self.windows, model)
    }
}

/// The longest name that fits is the one that is meant.
fn of(own: &BTreeMap<String, u64>, model: &str) -> Option<u64> {
    let fit = own.iter().filter(|(name, _)| glob(name, model));
    fit.max_by_key(|(name, _)| name.len()).map(|(_, tokens)| *tokens)
}
