//! The tree as it is now, read without being led astray.
//!
//! A scan ([`scan`]) finds the names that are not as they are recorded, [`look`] asks about names
//! that somebody else found, and [`capture`] reads what such names hold. [`take_in`] does all of it at
//! once where nothing is recorded yet. Whoever else writes in the
//! tree does so at the same time and may mean harm: no link is followed, nothing outside is read, and
//! what cannot be read whole and unmixed is said to be torn.

mod capture;
mod exclude;
mod file;
mod intake;
mod lease;
mod near;
mod root;
mod scan;
#[cfg(test)]
mod tests;
mod walk;
mod xattr;

use std::io;

use rustix::io::Errno;

use crate::error::{Error, Result};

pub(crate) use capture::{Captured, Note, Now, Policy, capture};
pub(crate) use exclude::Exclusions;
pub(crate) use intake::take_in;
pub(crate) use lease::has_writers;
pub(crate) use near::look;
pub(crate) use root::{Root, Signature, Stat, stat_at};
pub(crate) use scan::{Difference, Recorded, Scan, scan};

/// Passes on what the system says about a name. When it is we who lack something, nothing is known
/// about the name, and to record that as a change of it would be wrong: the whole look is given up.
fn about_the_name(error: io::Error) -> Result<io::Error> {
    let ours = [Errno::MFILE, Errno::NFILE, Errno::NOMEM].map(Errno::raw_os_error);
    match error.raw_os_error().is_some_and(|number| ours.contains(&number)) {
        true => Err(Error::Io { context: "look at the tree".to_owned(), source: error }),
        false => Ok(error),
    }
}
