//! Removes what a restore took out of the tree, while the caller goes on.

use std::path::PathBuf;
use std::thread::{Builder, JoinHandle};

use super::displaced::clear;

/// At most one removal is under way. Whatever it leaves goes when the history is opened again.
#[derive(Debug, Default)]
pub(crate) struct Sweeper(Option<JoinHandle<()>>);

impl Sweeper {
    /// Everything in `folder` must be out of sight already: names of files that have others in the
    /// tree would still be counted there.
    pub(crate) fn begin(&mut self, folder: PathBuf) {
        self.finish();
        let sweep = move || {
            let _ = clear(&folder);
        };
        // A process that may not have one more thread leaves it to the next start.
        self.0 = Builder::new().name("sweep".to_owned()).spawn(sweep).ok();
    }

    pub(crate) fn finish(&mut self) {
        if let Some(sweeping) = self.0.take() {
            let _ = sweeping.join();
        }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.finish();
    }
}
