//! What is kept ready: seeds for sandboxes that exist, and blanks for those that will.
//!
//! A blank is a sandbox with everything but a name. How many are kept follows [`Demand`]. Both are
//! made in the background, once nothing was taken or begun for a moment: in a burst the cores have
//! better things to do.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use super::base::Prepared;
use super::builder::{Blank, Builder};
use super::demand::{Demand, PERIOD};
use super::nursery::{PATIENCE, Seed};

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct Stock(Arc<Inner>);

struct Inner {
    builder: Arc<Builder>,
    /// Seeds to keep parked.
    keep: usize,
    shelves: Mutex<Shelves>,
    /// Somebody has finished their work.
    finished: Condvar,
}

struct Shelves {
    seeds: Vec<Seed>,
    blanks: Vec<Blank>,
    demand: Demand,
    /// How often something was taken or began to run.
    taken: u64,
    /// A visit is planned that gives up what nobody wants any more.
    trim_planned: bool,
    at_work: usize,
    closed: bool,
}

enum Missing {
    Seed,
    Blank,
}

impl Stock {
    pub(super) fn new(builder: Arc<Builder>, keep: usize) -> Self {
        let shelves = Shelves {
            seeds: Vec::new(),
            blanks: Vec::new(),
            demand: Demand::new(keep, Instant::now()),
            taken: 0,
            trim_planned: false,
            at_work: 0,
            closed: false,
        };
        let (shelves, finished) = (Mutex::new(shelves), Condvar::new());
        Self(Arc::new(Inner { builder, keep, shelves, finished }))
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        self.0.shelves.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A blank, if one is ready.
    pub(super) fn take_blank(&self) -> Option<Blank> {
        let taken = loop {
            let mut shelves = self.shelves();
            match shelves.blanks.pop() {
                Some(dead) if dead.built.seed.process.has_exited() => {
                    drop(shelves);
                    self.scrap(dead);
                }
                other => {
                    shelves.demand.note(Instant::now());
                    break other;
                }
            }
        };
        self.refill();
        taken
    }

    /// A seed and what it will mount; a parked one unless it has to open the root filesystem itself.
    pub(super) fn seed(&self, rootfs: Option<PathBuf>) -> io::Result<(Seed, Prepared)> {
        let _at_work = AtWork::begin(&self.0)?;
        let builder = &self.0.builder;
        let seed = match rootfs.as_ref().filter(|_| builder.base.seed_opens_rootfs()) {
            Some(rootfs) => builder.nursery.make(Some(rootfs.clone()))?,
            None => match self.take_seed() {
                Some(seed) => seed,
                None => builder.nursery.make(None)?,
            },
        };
        match builder.prepare(&seed, rootfs.as_deref()) {
            Ok(prepared) => Ok((seed, prepared)),
            Err(error) => {
                seed.end();
                Err(error)
            }
        }
    }

    fn take_seed(&self) -> Option<Seed> {
        let taken = loop {
            let popped = self.shelves().seeds.pop();
            match popped {
                Some(dead) if dead.process.has_exited() => dead.end(),
                other => break other,
            }
        };
        self.refill();
        taken
    }

    /// One that was wanted runs. What is missing has waited for that.
    pub(super) fn met(&self) {
        self.shelves().demand.met();
        self.refill();
    }

    /// Ends a blank in the background.
    pub(super) fn scrap(&self, blank: Blank) {
        let builder = self.0.builder.clone();
        tokio::task::spawn_blocking(move || builder.scrap(&blank));
    }

    /// Makes what is missing, in the background and after a moment without demand.
    fn refill(&self) {
        const QUIET: Duration = Duration::from_millis(20);
        let taken = {
            let mut shelves = self.shelves();
            shelves.taken += 1;
            shelves.taken
        };
        let stock = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(QUIET).await;
            let still = move |stock: &Self| stock.shelves().taken == taken;
            if still(&stock) {
                // Whoever needs what could not be made reports the reason.
                let _ = stock.fill_while(still).await;
            }
        });
    }

    /// Makes what is missing.
    pub(super) async fn fill(&self) -> io::Result<()> {
        self.fill_while(|_| true).await
    }

    async fn fill_while(&self, wanted: impl Fn(&Self) -> bool + Send + 'static) -> io::Result<()> {
        let stock = self.clone();
        let work = move || -> io::Result<()> {
            while wanted(&stock)
                && let Some(missing) = stock.missing()
            {
                stock.make(&missing)?;
            }
            Ok(())
        };
        tokio::task::spawn_blocking(work).await.map_err(io::Error::other)??;
        self.plan_trim();
        Ok(())
    }

    fn missing(&self) -> Option<Missing> {
        let mut shelves = self.shelves();
        if shelves.seeds.len() < self.0.keep {
            return Some(Missing::Seed);
        }
        let target = shelves.demand.target(Instant::now(), free_memory());
        (shelves.blanks.len() < target).then_some(Missing::Blank)
    }

    fn make(&self, missing: &Missing) -> io::Result<()> {
        // Counted until it stands among the others: whoever closes the stock waits for it.
        let _at_work = AtWork::begin(&self.0)?;
        match missing {
            Missing::Seed => {
                let seed = self.0.builder.nursery.make(None)?;
                self.shelves().seeds.push(seed);
            }
            Missing::Blank => {
                let blank = self.0.builder.blank()?;
                self.shelves().blanks.push(blank);
            }
        }
        Ok(())
    }

    /// Comes back when a burst is forgotten and gives up what it had made us keep.
    fn plan_trim(&self) {
        let mut shelves = self.shelves();
        if shelves.trim_planned || shelves.blanks.len() <= self.0.keep {
            return;
        }
        shelves.trim_planned = true;
        let stock: Weak<Inner> = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(2 * PERIOD).await;
            if let Some(inner) = stock.upgrade() {
                Self(inner).trim();
            }
        });
    }

    fn trim(&self) {
        let extra: Vec<Blank> = {
            let mut shelves = self.shelves();
            shelves.trim_planned = false;
            let target = shelves.demand.target(Instant::now(), free_memory());
            let kept = shelves.blanks.len().min(target);
            shelves.blanks.split_off(kept)
        };
        for blank in extra {
            self.scrap(blank);
        }
        self.plan_trim();
    }

    /// Ends everything that is kept, for a process that is about to end itself.
    pub(super) fn close(&self) {
        let mut shelves = self.shelves();
        shelves.closed = true;
        let waited =
            self.0.finished.wait_timeout_while(shelves, PATIENCE, |shelves| shelves.at_work > 0);
        let mut shelves = match waited {
            Ok((shelves, _)) => shelves,
            Err(poisoned) => poisoned.into_inner().0,
        };
        let (seeds, blanks) =
            (std::mem::take(&mut shelves.seeds), std::mem::take(&mut shelves.blanks));
        drop(shelves);
        // All at once, and then one after the other: the kernel takes its time for each.
        for seed in seeds.iter().chain(blanks.iter().map(|blank| &blank.built.seed)) {
            seed.process.kill();
        }
        for seed in seeds {
            seed.end();
        }
        for blank in blanks {
            self.0.builder.scrap(&blank);
        }
    }
}

/// Counts somebody at work, for as long as they are.
struct AtWork<'a>(&'a Inner);

impl<'a> AtWork<'a> {
    fn begin(inner: &'a Inner) -> io::Result<Self> {
        let mut shelves = inner.shelves.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if shelves.closed {
            return Err(io::Error::other("the driver is closing"));
        }
        shelves.at_work += 1;
        Ok(Self(inner))
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let mut shelves = self.0.shelves.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        shelves.at_work -= 1;
        self.0.finished.notify_all();
    }
}

/// What programs could still take, as the kernel guesses it.
fn free_memory() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = meminfo.lines().find_map(|line| {
        line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kib.unwrap_or_default() * 1024
}
