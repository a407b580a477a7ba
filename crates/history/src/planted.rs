//! Faults put in on purpose, to see that the tests would notice them. There are none unless the
//! feature `planted` is on, and only this crate's own tests turn it on.

#![allow(unreachable_pub, reason = "public only with the feature")]

/// What to do wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Contents are recorded before they are on the disk.
    PackNotSynced,
    /// What is committed is not on the disk.
    LogNotSynced,
    /// New files take their places before they are on the disk.
    StagingNotSynced,
    /// The tree is touched before the journal says how it shall be.
    NoJournal,
    /// The checkpoint is there before the tree is.
    RecordedTooSoon,
    /// One name is not put in its place.
    NameForgotten,
}

#[cfg(feature = "planted")]
mod chosen {
    use std::sync::OnceLock;

    use super::Fault;

    static CHOSEN: OnceLock<Fault> = OnceLock::new();

    /// From here on and for as long as the process lives.
    pub fn plant(fault: Fault) {
        let _ = CHOSEN.set(fault);
    }

    pub(crate) fn is_planted(fault: Fault) -> bool {
        CHOSEN.get() == Some(&fault)
    }
}

#[cfg(not(feature = "planted"))]
mod chosen {
    pub(crate) const fn is_planted(_: super::Fault) -> bool {
        false
    }
}

#[cfg(feature = "planted")]
pub use chosen::plant;

pub(crate) use chosen::is_planted;
