//! The tree as it is now, read without being led astray.
//!
//! A scan ([`scan`]) finds the names that are not as they are recorded, [`look`] asks about names
//! that somebody else found, and [`capture`] reads what such names hold. Whoever else writes in the
//! tree does so at the same time and may mean harm: no link is followed, nothing outside is read, and
//! what cannot be read whole and unmixed is said to be torn.

mod capture;
mod exclude;
mod file;
mod lease;
mod near;
mod root;
mod scan;
#[cfg(test)]
mod tests;
mod walk;
mod xattr;

pub(crate) use capture::{Captured, Note, Now, Policy, capture};
pub(crate) use exclude::Exclusions;
pub(crate) use lease::has_writers;
pub(crate) use near::look;
pub(crate) use root::{Root, Signature, Stat, stat_at};
pub(crate) use scan::{Difference, Recorded, Scan, scan};
