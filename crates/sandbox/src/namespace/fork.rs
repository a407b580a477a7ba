//! Copying a sandbox that may run meanwhile.
//!
//! A first pass copies everything while the source goes on. Then the source is frozen for as long as
//! it takes to look at every name again and copy what is different, so the copy holds one moment.
//! Without a freezer, passes are repeated until one finds nothing to do; the history of the source
//! is left out then, because a database is only whole at one moment.

use std::ffi::OsString;
use std::io;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nacre_launch::Control;
use nacre_launch::clone::{Cloner, Progress, Report};
use nacre_launch::order::{CloneOrder, CloneTree, Reply, Task};

use super::builder::Builder;
use super::cgroup::Ability;
use super::files::Place;
use super::nursery::{receive, unexpected};
use super::{NamespaceDriver, Running, blocking, io_error};
use crate::{Error, Forked, Result, SandboxId};

/// A first pass that took this long is followed by another before the source is frozen: much may
/// have changed in that time.
const LONG: Duration = Duration::from_secs(1);
/// Without a freezer, or when the source is started and stopped all the time.
const MOST_PASSES: u32 = 5;
/// What overlayfs works with; every sandbox makes its own.
const WORK: &str = "work";
const HISTORY: &str = "history";

/// Copies in this process when it is root, and otherwise in a launcher that has the sandbox's ids.
enum Copier {
    Here(Cloner),
    Launcher { control: Control, child: Mutex<Child>, progress: Arc<Progress> },
}

impl Copier {
    fn start(
        builder: &Builder,
        from: &Place,
        to: &Place,
        leave_out: &[&str],
        progress: Arc<Progress>,
    ) -> io::Result<Self> {
        if builder.ids.chown_to.is_some() {
            let names: Vec<OsString> = leave_out.iter().map(Into::into).collect();
            let cloner = Cloner::new(&from.data(), &to.data(), &names, progress);
            return cloner.map(Self::Here).map_err(from_launch);
        }
        let tree = CloneTree {
            ids: builder.ids.admin.clone(),
            from: from.data(),
            to: to.data(),
            leave_out: leave_out.iter().map(|name| (*name).to_owned()).collect(),
        };
        let (control, child) = builder.nursery.begin(&Task::Clone(tree))?;
        Ok(Self::Launcher { control, child: Mutex::new(child), progress })
    }

    /// Returns how many names were not as the pass before had left them.
    fn pass(&self) -> io::Result<u64> {
        match self {
            Self::Here(cloner) => cloner.pass().map_err(from_launch),
            Self::Launcher { control, progress, .. } => {
                control.send(&CloneOrder::Pass, &[])?;
                loop {
                    match receive(control)? {
                        Reply::Copying { files, bytes } => progress.set(files, bytes),
                        Reply::Passed { changed } => return Ok(changed),
                        other => return Err(unexpected(&other)),
                    }
                }
            }
        }
    }

    fn finish(&self) -> io::Result<Report> {
        match self {
            Self::Here(cloner) => cloner.finish().map_err(from_launch),
            Self::Launcher { control, .. } => {
                control.send(&CloneOrder::Finish, &[])?;
                match receive(control)? {
                    Reply::Cloned(report) => Ok(report),
                    other => Err(unexpected(&other)),
                }
            }
        }
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        if let Self::Launcher { child, .. } = self {
            let child = child.get_mut().unwrap_or_else(PoisonError::into_inner);
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Keeps a running sandbox frozen.
struct Hold(Arc<Running>);

impl Hold {
    async fn on(running: &Arc<Running>) -> io::Result<Self> {
        running.freezer(|freezer| freezer.holds += 1)?;
        let hold = Self(running.clone());
        while !running.cgroups.is_frozen() && !running.process.has_exited() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(hold)
    }

    /// Whether it has been frozen all the time: whoever stops it thaws it.
    fn held(&self) -> bool {
        !self.0.process.has_exited() && self.0.cgroups.is_frozen()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let thawed = self.0.freezer(|freezer| freezer.holds = freezer.holds.saturating_sub(1));
        if let Err(error) = thawed
            && !self.0.process.has_exited()
        {
            tracing::error!(%error, "a sandbox that was being copied stays frozen");
        }
    }
}

impl NamespaceDriver {
    /// Copies the files of `from` into the half-made `to`.
    pub(super) async fn copy_files(
        &self,
        from: &SandboxId,
        to: &Place,
        progress: Arc<Progress>,
    ) -> Result<Forked> {
        let failed = || io_error(format!("copy sandbox \"{from}\""));
        let source = self.known(from)?;
        let freezes = self.hierarchies.has(Ability::Freeze);
        let history = freezes || self.get(from).is_none();
        let leave_out = if history { vec![WORK] } else { vec![WORK, HISTORY] };
        let (builder, to) = (self.builder.clone(), to.clone());
        let copier = blocking(move || Copier::start(&builder, &source, &to, &leave_out, progress));
        let copier = Arc::new(copier.await.map_err(failed())?);
        let begun = Instant::now();
        pass(&copier).await.map_err(failed())?;
        if begun.elapsed() > LONG && self.get(from).is_some() {
            pass(&copier).await.map_err(failed())?;
        }
        let (frozen, unsettled) = self.catch_up(from, &copier, freezes).await?;
        // A source that was destroyed meanwhile looks like one from which everything was removed.
        self.known(from)?;
        let report = blocking(move || copier.finish()).await.map_err(failed())?;
        Ok(Forked { report, frozen, history, unsettled })
    }

    /// Repeats passes until one of them saw the source at rest. Returns how long it was frozen, and
    /// how much was still changing when it was given up.
    async fn catch_up(
        &self,
        from: &SandboxId,
        copier: &Arc<Copier>,
        freezes: bool,
    ) -> Result<(Option<Duration>, u64)> {
        let failed = || io_error(format!("copy sandbox \"{from}\""));
        let mut frozen = None;
        let mut changed = 0;
        for _ in 0..MOST_PASSES {
            let running = self.get(from).filter(|running| !running.process.has_exited());
            let begun = Instant::now();
            let hold = match &running {
                Some(running) if freezes => Some(Hold::on(running).await.map_err(failed())?),
                _ => None,
            };
            changed = pass(copier).await.map_err(failed())?;
            let at_rest = match (&running, &hold) {
                (Some(_), Some(hold)) => hold.held(),
                (Some(_), None) => changed == 0,
                (None, _) => self.get(from).is_none_or(|now| now.process.has_exited()),
            };
            drop(hold);
            if running.is_some() && freezes {
                frozen = Some(frozen.unwrap_or_default() + begun.elapsed());
            }
            if at_rest {
                return Ok((frozen, 0));
            }
        }
        if freezes {
            let source = io::Error::other("it was started and stopped all the time");
            return Err(Error::Io { context: format!("copy sandbox \"{from}\""), source });
        }
        Ok((frozen, changed))
    }
}

async fn pass(copier: &Arc<Copier>) -> io::Result<u64> {
    let copier = copier.clone();
    blocking(move || copier.pass()).await
}

fn from_launch(error: nacre_launch::Error) -> io::Error {
    io::Error::new(error.source.kind(), format!("{}: {}", error.step, error.source))
}
