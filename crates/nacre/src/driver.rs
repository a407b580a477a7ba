//! The driver that `nacre up` and `nacre doctor` use, with the guest binary this file carries.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use nacre_sandbox::namespace::{NamespaceConfig, NamespaceDriver};

use crate::failure::{Failure, Result};

/// Static, so that it runs in any root filesystem.
static GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/nacre-guest"));

/// How many seeds the gateway keeps ready.
pub(crate) const PARKED: usize = 2;
pub(crate) const NOTHING_PARKED: usize = 0;

/// `parked` sandboxes wait to be needed; starting from one takes a few milliseconds.
/// `shown` are directories of this machine that they see besides its system.
pub(crate) fn open(data_dir: &Path, parked: usize, shown: Vec<PathBuf>) -> Result<NamespaceDriver> {
    let config = NamespaceConfig {
        data_dir: data_dir.to_owned(),
        guest: Cow::Borrowed(GUEST),
        parked,
        host_directories: shown,
        shared: Some(data_dir.join(nacre_gateway::SHARED_FOLDER)),
    };
    NamespaceDriver::new(config).map_err(|error| {
        Failure::new(error.to_string())
            .hint("run nacre doctor: it names what is missing and the remedy")
    })
}
