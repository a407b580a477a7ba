//! Small jobs on files that ids of the sandbox own, for a host process that is not root.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::thread::UnshareFlags;

use crate::base::{self, Owner};
use crate::clone::{Cloner, Progress};
use crate::launcher::in_user_namespace;
use crate::order::{CloneOrder, CloneTree, Ids, OwnedLayer, Reply};
use crate::seed::Guest;
use crate::{Control, Result, Step};

pub(crate) fn make_directory(control: &Control, ids: &Ids, path: &Path) -> Result<Option<Guest>> {
    act(control, ids, || {
        fs::create_dir(path).step(|| format!("create {}", path.display()))?;
        Owner::new(true).own(path, 0)
    })
}

pub(crate) fn remove(control: &Control, ids: &Ids, path: &Path) -> Result<Option<Guest>> {
    act(control, ids, || match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.step(|| format!("remove {}", path.display())),
    })
}

/// Made beside its place and moved there when it is whole. Two who make the same at once do not
/// meet: the second to finish finds the place taken and drops its own. Whoever clears away what
/// others left half-made takes the lock alone, so nothing is taken from under us.
pub(crate) fn make_layer(
    control: &Control,
    ids: &Ids,
    layer: &OwnedLayer,
) -> Result<Option<Guest>> {
    let new = layer.to.with_extension(format!("new{}", std::process::id()));
    // Held by this process and its child until both have ended, however they end.
    let _shared = lock_around(&layer.to)?;
    act(control, ids, || {
        base::make(layer, &new)?;
        match fs::rename(&new, &layer.to) {
            Err(_) if layer.to.is_dir() => {
                fs::remove_dir_all(&new).step(|| format!("remove {}", new.display()))
            }
            other => other.step(|| format!("publish {}", layer.to.display())),
        }
    })
}

/// A shared lock on the directory that holds `layer`.
fn lock_around(layer: &Path) -> Result<fs::File> {
    let around = layer.parent().unwrap_or(Path::new("/"));
    let step = || format!("lock {}", around.display());
    let directory = fs::File::open(around).step(step)?;
    directory.lock_shared().step(step)?;
    Ok(directory)
}

/// Copies in passes, as it is told to, until it is told to finish or nobody is left to tell.
pub(crate) fn clone(control: &Control, tree: &CloneTree) -> Result<Option<Guest>> {
    in_user_namespace(
        &tree.ids,
        UnshareFlags::NEWUSER,
        || Ok(()),
        |()| {
            let progress = Arc::new(Progress::default());
            let leave_out: Vec<_> = tree.leave_out.iter().map(Into::into).collect();
            let cloner = Cloner::new(&tree.from, &tree.to, &leave_out, progress.clone())?;
            while let Some(order) =
                control.receive::<CloneOrder>().step(|| "read an order".to_owned())?
            {
                let reply = match order.message {
                    CloneOrder::Pass => {
                        let changed = reporting(control, &progress, || cloner.pass())?;
                        Reply::Passed { changed }
                    }
                    CloneOrder::Finish => Reply::Cloned(cloner.finish()?),
                };
                control.send(&reply, &[]).step(|| "report".to_owned())?;
            }
            Ok(None)
        },
    )
}

/// Says how far the work is while it lasts, so that the host knows we live.
fn reporting<T>(control: &Control, progress: &Progress, work: impl FnOnce() -> T) -> T {
    const EVERY: Duration = Duration::from_millis(200);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reporter = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                std::thread::park_timeout(EVERY);
                let (files, bytes) = progress.now();
                if done.load(Ordering::Acquire)
                    || control.send(&Reply::Copying { files, bytes }, &[]).is_err()
                {
                    return;
                }
            }
        });
        let outcome = work();
        done.store(true, Ordering::Release);
        reporter.thread().unpark();
        outcome
    })
}

fn act(control: &Control, ids: &Ids, job: impl FnOnce() -> Result<()>) -> Result<Option<Guest>> {
    in_user_namespace(
        ids,
        UnshareFlags::NEWUSER,
        || Ok(()),
        |()| {
            job()?;
            control.send(&Reply::Done, &[]).step(|| "report".to_owned())?;
            Ok(None)
        },
    )
}
