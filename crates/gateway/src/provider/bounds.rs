//! How much a call may use that does not say so itself. Pure.

use super::paths::glob;

/// When a call does not say how much may come back. Models that think say more than that seldom.
pub(crate) const USUAL_OUTPUT: u64 = 16_384;
/// When a call names what the provider keeps, or fetches: as much as most models hear.
pub(crate) const USUAL_INPUT: u64 = 200_000;

/// Of one provider: what its owner knows of its models.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Bounds {
    pub(super) output: Vec<(String, u64)>,
    pub(super) input: Vec<(String, u64)>,
}

impl Bounds {
    pub(crate) fn output(&self, model: &str) -> u64 {
        of(&self.output, model).unwrap_or(USUAL_OUTPUT)
    }

    pub(crate) fn input(&self, model: &str) -> u64 {
        of(&self.input, model).unwrap_or(USUAL_INPUT)
    }
}

fn of(own: &[(String, u64)], model: &str) -> Option<u64> {
    own.iter().find(|(name, _)| glob(name, model)).map(|(_, most)| *most)
}
