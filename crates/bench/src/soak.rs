//! `nacre-bench soak`: thousands of commands and sandboxes, then a comparison of what was there
//! before with what is there after.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::census;
use crate::computer::{Computer, Sandbox};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Commands in one sandbox
    #[arg(long, default_value_t = 10_000)]
    execs: usize,
    /// Sandboxes made, used and removed
    #[arg(long, default_value_t = 200)]
    cycles: usize,
}

/// One thing that is counted before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Count {
    what: &'static str,
    before: u64,
    after: u64,
    /// Growth that is no leak: allocators keep some of what they were given.
    slack: u64,
}

impl Count {
    fn grew(&self) -> bool {
        self.after > self.before + self.slack
    }
}

const WARM_EXECS: usize = 200;
const WARM_CYCLES: usize = 5;
const AT_ONCE: usize = 8;
const MIB: u64 = 1 << 20;
/// Clean-up and the next seeds are made in the background.
const SETTLE: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(15);

/// What the driver, a long-lived sandbox and this process hold.
struct Snapshot {
    counts: Vec<(&'static str, u64, u64)>,
}

impl Snapshot {
    async fn take(computer: &Computer, resident: &Sandbox) -> Result<Self> {
        let guest = resident.client.stats().await?;
        let own = census::memory(std::process::id()).unwrap_or_default();
        let cgroups = census::folders_with(Path::new("/sys/fs/cgroup"), &computer.cgroup_name()?);
        let folders = census::folders_with(computer.data(), "/sandboxes/");
        let counts = vec![
            ("open files of the host process", census::open_fds() as u64, 0),
            ("memory of the host process", own.rss, 8 * MIB),
            ("mounts of the host", census::mounts() as u64, 0),
            ("child processes", census::descendants(std::process::id()).len() as u64, 0),
            ("cgroups", cgroups.len() as u64, 0),
            ("processes in the cgroups", census::processes_of(&cgroups) as u64, 0),
            ("folders of sandboxes", folders.len() as u64, 0),
            ("open files of the supervisor", guest.open_fds, 0),
            ("threads of the supervisor", guest.threads, 2),
            ("processes in the sandbox", guest.processes, 0),
            ("memory of the supervisor", guest.rss_bytes, 2 * MIB),
        ];
        Ok(Self { counts })
    }

    fn compare(&self, after: &Self) -> Vec<Count> {
        let pairs = self.counts.iter().zip(&after.counts);
        pairs
            .map(|(&(what, before, slack), &(_, after, _))| Count { what, before, after, slack })
            .collect()
    }
}

/// Returns what grew, after printing everything that was counted.
pub(crate) async fn run(computer: &Computer, options: &Options) -> Result<Vec<Count>> {
    let resident = computer.sandbox().await?;
    execs(&resident, WARM_EXECS).await?;
    cycles(computer, WARM_CYCLES).await?;
    tokio::time::sleep(SETTLE).await;
    let before = Snapshot::take(computer, &resident).await?;
    let began = Instant::now();
    execs(&resident, options.execs).await?;
    println!("{} execs in {:.1?}", options.execs, began.elapsed());
    let began = Instant::now();
    cycles(computer, options.cycles).await?;
    println!("{} sandboxes in {:.1?}", options.cycles, began.elapsed());
    let counts = settled(computer, &resident, &before).await?;
    resident.destroy().await?;
    for count in &counts {
        let verdict = if count.grew() { "GREW" } else { "ok" };
        println!("{:<32} {:>12} -> {:>12}  {verdict}", count.what, count.before, count.after);
    }
    Ok(counts.into_iter().filter(Count::grew).collect())
}

/// Looks until nothing is more than before, or a leak is the only explanation left.
async fn settled(computer: &Computer, resident: &Sandbox, before: &Snapshot) -> Result<Vec<Count>> {
    let began = Instant::now();
    loop {
        tokio::time::sleep(SETTLE).await;
        let counts = before.compare(&Snapshot::take(computer, resident).await?);
        if began.elapsed() > PATIENCE || !counts.iter().any(Count::grew) {
            return Ok(counts);
        }
    }
}

async fn execs(sandbox: &Sandbox, count: usize) -> Result<()> {
    stream::iter((0..count).map(|_| sandbox.run(&["true"])))
        .buffer_unordered(AT_ONCE)
        .try_for_each(|_| async { Ok(()) })
        .await
}

async fn cycles(computer: &Computer, count: usize) -> Result<()> {
    for _ in 0..count {
        let sandbox = computer.sandbox().await?;
        sandbox.run(&["true"]).await?;
        sandbox.destroy().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_beyond_the_slack_is_a_leak() {
        let check = |before, after, slack, grew| {
            assert_eq!(Count { what: "x", before, after, slack }.grew(), grew);
        };
        check(10, 10, 0, false);
        check(10, 9, 0, false);
        check(10, 11, 0, true);
        check(10, 12, 2, false);
        check(10, 13, 2, true);
    }
}
