//! The checks of a swap without the swap, for who wants to see each as it is made.

use std::sync::Arc;

use futures_util::Stream;
use nacre_wire::roles::{SwapCheck, SwapVerdict};
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::AbortOnDropHandle;

use super::dev::no_dev;
use super::swap::verdict;
use super::{Sandboxes, checks};
use crate::routes::Role;

/// They are work for dev, and a script of a page may ask for them in a loop.
const AT_ONCE: usize = 2;

/// Who wants to see them. A script that asks all the time does not keep the owner's page from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Viewer {
    Program,
    Page,
}

/// How many more may look, for each kind of viewer.
pub(super) struct Places {
    programs: Arc<Semaphore>,
    pages: Arc<Semaphore>,
}

impl Default for Places {
    fn default() -> Self {
        let places = || Arc::new(Semaphore::new(AT_ONCE));
        Self { programs: places(), pages: places() }
    }
}

/// What is seen, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Check(SwapCheck),
    /// The last.
    Verdict(SwapVerdict),
}

impl Sandboxes {
    /// Begins at once, ends when nobody reads it any more, and changes nothing.
    pub(crate) fn look(
        &self,
        viewer: Viewer,
    ) -> Result<impl Stream<Item = Seen> + Send + use<>, ApiError> {
        let dev = self.by_role(Role::Dev).ok_or_else(no_dev)?;
        let places = match viewer {
            Viewer::Program => &self.0.looking.programs,
            Viewer::Page => &self.0.looking.pages,
        };
        let place = places.clone().try_acquire_owned().map_err(|_| {
            ApiError::new(ErrorKind::Unavailable, "the checks are being made for others already")
                .hint("try again in a moment")
        })?;
        // There are only so many checks, so nobody can be slow enough to fill it.
        let (sender, seen) = mpsc::unbounded_channel();
        let looking = tokio::spawn(async move {
            let tell = |check: &SwapCheck| drop(sender.send(Seen::Check(check.clone())));
            let checks = checks::all(&dev, &tell).await;
            // Who has read the verdict may ask again.
            drop(place);
            let _ = sender.send(Seen::Verdict(verdict(&checks)));
        });
        let looking = AbortOnDropHandle::new(looking);
        Ok(futures_util::stream::unfold((seen, looking), |(mut seen, looking)| async move {
            Some((seen.recv().await?, (seen, looking)))
        }))
    }
}
