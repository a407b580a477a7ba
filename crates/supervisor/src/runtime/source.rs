//! Where the configuration comes from, and when it is looked at again.
//!
//! One inotify watch on the workspace's top directory, not a subscription to [`crate::watch`]:
//! that one learns the whole tree, which costs memory per file for as long as it lasts, and this
//! has to last for ever. Such a watch does not see what a symlink leads to, so whoever asks for
//! the list has the file compared by its stat as well, and where no watch can be had the same is
//! done now and then.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nacre_wire::ApiError;
use nacre_wire::processes::ConfigError;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{Mode, OFlags, Stat, fstat};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

use super::config::{self, Config, FILE};
use crate::files::hop;
use crate::files::identity::act_as;
use crate::files::root::Root;
use crate::users::User;

const MASK: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR);
/// Editors replace a file in several steps; the file is read when they are through.
const QUIET: Duration = Duration::from_millis(50);
const LONGEST_UNREST: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_secs(2);

pub(crate) struct Source {
    root: Result<Root, ApiError>,
    user: User,
    /// The file that was read last; held while one is read, so that the newest is the last.
    pub(crate) last: Mutex<Stamp>,
}

/// Tells one version of the file from another. `None` when there is none.
pub(crate) type Stamp = Option<[i128; 5]>;

/// Whether to read a file that looks like the last one. Two writes may carry the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Closely,
    OnlyIfNew,
}

impl Source {
    pub(crate) fn new(workspace: &Path, user: User) -> Arc<Self> {
        let root = Root::open(Path::new("/"), workspace);
        Arc::new(Self { root, user, last: Mutex::new(None) })
    }

    /// The configuration in the file, unless it is the one that was read last.
    pub(crate) async fn look(
        self: &Arc<Self>,
        last: &mut Stamp,
        how: Look,
    ) -> Option<Result<Config, ConfigError>> {
        let source = Arc::clone(self);
        let before = *last;
        let looked = hop(move || {
            let root = source.root.as_ref().map_err(Clone::clone)?;
            let stamp = source.stamp(root);
            let same = how == Look::OnlyIfNew && stamp == before;
            Ok((stamp, (!same).then(|| config::load(root, &source.user))))
        })
        .await;
        match looked {
            Ok((stamp, read)) => {
                *last = stamp;
                read
            }
            Err(error) => Some(Err(ConfigError { line: None, reason: error.message })),
        }
    }

    /// Without opening what may be no file at all.
    fn stamp(&self, root: &Root) -> Stamp {
        let path = root.absolute(Path::new(FILE)).ok()?;
        let _acting = act_as(&self.user).ok()?;
        let found = root.descend(&path, OFlags::PATH, Mode::empty()).and_then(fstat);
        match found {
            Ok(stat) => Some(stamp_of(&stat)),
            Err(Errno::NOENT) => None,
            Err(error) => Some([error.raw_os_error().into(), 0, 0, 0, 0]),
        }
    }

    /// Returns when the file may have changed.
    pub(crate) async fn changed(&self, watch: &mut Watch) {
        let Watch::Kernel(inotify) = watch else {
            return sleep(POLL).await;
        };
        if wait(inotify).await.is_err() {
            *watch = Watch::Clock;
            return;
        }
        let end = Instant::now() + LONGEST_UNREST;
        loop {
            let quiet = end.min(Instant::now() + QUIET);
            match timeout_at(quiet, wait(inotify)).await {
                Ok(Ok(())) if Instant::now() < end => {}
                _ => return,
            }
        }
    }

    /// Has to be called before the file is read for the first time.
    pub(crate) fn watch(&self) -> Watch {
        match self.try_watch() {
            Ok(watch) => Watch::Kernel(watch),
            Err(error) => {
                tracing::warn!(%error, "{FILE} is looked at every two seconds instead");
                Watch::Clock
            }
        }
    }

    fn try_watch(&self) -> Result<AsyncFd<OwnedFd>, ApiError> {
        let root = self.root.as_ref().map_err(Clone::clone)?;
        let directory = root.directory(&root.absolute(Path::new("."))?)?;
        let failed = |error: std::io::Error| ApiError::io("cannot watch the workspace", &error);
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(|error| failed(error.into()))?;
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        inotify::add_watch(&fd, path, MASK).map_err(|error| failed(error.into()))?;
        // SAFETY: an `OwnedFd` is one open descriptor until it is dropped, and nothing takes it out.
        let watched = unsafe { AsyncFd::register(fd) };
        watched.map_err(|error| failed(error.into_parts().1))
    }
}

pub(crate) enum Watch {
    Kernel(AsyncFd<OwnedFd>),
    Clock,
}

/// Waits for an event about the file, or about events that were lost.
async fn wait(inotify: &AsyncFd<OwnedFd>) -> Result<(), Errno> {
    loop {
        let mut ready = inotify.readable().await.map_err(|_| Errno::IO)?;
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(inotify.get_ref(), &mut buffer);
        let mut found = false;
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| name.to_bytes());
                    found |= name.is_none_or(|name| name == FILE.as_bytes());
                }
                Err(Errno::WOULDBLOCK) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        ready.clear_ready();
        if found {
            return Ok(());
        }
    }
}

fn stamp_of(stat: &Stat) -> [i128; 5] {
    let time = |seconds: i64, nanos: u64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    [
        i128::from(stat.st_dev),
        i128::from(stat.st_ino),
        i128::from(stat.st_size),
        time(stat.st_mtime, stat.st_mtime_nsec),
        time(stat.st_ctime, stat.st_ctime_nsec),
    ]
}
