//! `nacre-bench history`: what it costs to keep every state of a tree and to take changes back,
//! beside git, restic and jj on the same tree.

mod growth;
mod ours;
mod packages;
mod random;
mod rows;
pub(crate) mod sandboxed;
pub(crate) mod soak;
mod text;
mod tools;
mod tree;
mod vandal;
mod walk;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::ground::Ground;
use crate::machine::Machine;
use crate::report::{Report, Row};
use crate::samples::Samples;
use ours::Ours;
use packages::Packages;
use tools::Tool;
use tree::{Edit, Tree};

/// How large, and how often each thing is done.
#[derive(Debug, Clone, Copy)]
struct Plan {
    files: usize,
    /// How many of them a large change touches.
    many: usize,
    first: usize,
    few_rounds: usize,
    many_rounds: usize,
    scan_rounds: usize,
    /// For tools that take seconds for everything.
    slow_rounds: usize,
    /// Whether the tree of the comparison is one of real packages.
    packages: bool,
    growth: &'static [usize],
    copied: usize,
    /// Of the file system; its blocks take memory once they are written.
    ground: u64,
}

const GIB: u64 = 1 << 30;
/// How many files a small change touches.
const FEW: usize = 10;

const FULL: Plan = Plan {
    files: 100_000,
    many: 5000,
    first: 3,
    few_rounds: 30,
    many_rounds: 3,
    scan_rounds: 7,
    slow_rounds: 2,
    packages: true,
    growth: &[10_000, 100_000, 500_000],
    copied: 5000,
    ground: 16 * GIB,
};
const QUICK: Plan = Plan {
    files: 5000,
    many: 250,
    first: 1,
    few_rounds: 10,
    many_rounds: 2,
    scan_rounds: 3,
    slow_rounds: 1,
    packages: false,
    growth: &[1000, 5000],
    copied: 500,
    ground: 3 * GIB,
};

/// Where the trees of the comparison come from.
enum Source {
    Packages(Packages),
    Planted,
}

impl Source {
    fn new(plan: Plan) -> Result<Self> {
        if !plan.packages {
            return Ok(Self::Planted);
        }
        Ok(Self::Packages(Packages::fetch(Path::new("target/bench/packages"))?))
    }

    fn plant(&self, root: &Path, files: usize) -> Result<Tree> {
        match self {
            Self::Packages(packages) => packages.plant(root, files),
            Self::Planted => Tree::plant(root, files),
        }
    }
}

/// What was measured of one tool, ours or another.
#[derive(Debug, Default)]
struct Measured {
    first: Samples,
    few: Samples,
    few_undone: Samples,
    many: Samples,
    many_undone: Samples,
    scan: Samples,
    store: walk::Size,
}

/// What the idle time after the first snapshot is used for.
#[derive(Debug, Default)]
struct Tidied {
    took: Option<Duration>,
    /// Of our store before.
    before: walk::Size,
}

struct Comparison {
    ours: Measured,
    others: BTreeMap<&'static str, Measured>,
    /// The floor under a scan.
    walk: Samples,
    reopen: Samples,
    tidied: Tidied,
}

/// `guest` is for the rows that need a sandbox.
pub(crate) async fn measure(guest: &Path, quick: bool) -> Result<Report> {
    let plan = if quick { QUICK } else { FULL };
    let mut notes = Vec::new();
    let (mut rows, machine) = tokio::task::block_in_place(|| alone(plan, &mut notes))?;
    match sandboxed::measure(guest, plan, &mut notes).await {
        Ok(measured) => rows.extend(measured),
        // The rest took long enough to be kept.
        Err(error) => notes.push(format!("history in a sandbox was not measured: {error:#}")),
    }
    Ok(Report { benchmark: "history", machine, rows, notes })
}

fn alone(plan: Plan, notes: &mut Vec<String>) -> Result<(Vec<Row>, Machine)> {
    let ground = Ground::new(plan.ground, notes)?;
    let machine = Machine::here(ground.path());
    let comparison = compare(&ground, plan, notes)?;
    drop(ground);
    let mut rows = rows::all(&comparison, plan);
    rows.extend(growth::measure(plan, notes)?);
    Ok((rows, machine))
}

fn compare(ground: &Ground, plan: Plan, notes: &mut Vec<String>) -> Result<Comparison> {
    eprintln!("planting a tree of {} files for each tool", plan.files);
    let source = Source::new(plan)?;
    let home = ground.join("ours");
    let ours = Ours::new(&home, source.plant(&home.join("tree"), plan.files)?);
    let others = tools::set_up(ground, &source, plan.files, notes)?;
    let tree = &ours.tree;
    notes.push(format!(
        "{} files, {} directories, {} MB",
        tree.files.len(),
        tree.directories,
        tree.bytes / 1_000_000
    ));
    let mut run = Run { ground, plan, ours, others, result: Comparison::new() };
    run.first().context("first snapshot")?;
    run.changes(FEW, plan.few_rounds).context("small changes")?;
    run.scans().context("scans")?;
    run.changes(plan.many, plan.many_rounds).context("large changes")?;
    run.reopen().context("opening again")?;
    Ok(run.result)
}

impl Comparison {
    fn new() -> Self {
        Self {
            ours: Measured::default(),
            others: BTreeMap::new(),
            walk: Samples::default(),
            reopen: Samples::default(),
            tidied: Tidied::default(),
        }
    }
}

struct Run<'a> {
    ground: &'a Ground,
    plan: Plan,
    ours: Ours,
    others: Vec<Tool>,
    result: Comparison,
}

impl Run<'_> {
    fn first(&mut self) -> Result<()> {
        let Self { ground, plan, ours, others, result } = self;
        eprintln!("first snapshot: {} rounds", plan.first);
        for round in 0..plan.first {
            result.ours.first.push_seconds(ours.first(ground)?);
            for tool in others.iter().filter(|tool| round == 0 || !tool.is_slow()) {
                let measured = result.others.entry(tool.name()).or_default();
                measured.first.push_seconds(tool.first(ground)?);
            }
        }
        ground.settle()?;
        result.tidied.before = walk::size(ours.store())?;
        result.tidied.took = Some(ours.tidy()?);
        ground.settle()?;
        result.ours.store = walk::size(ours.store())?;
        for tool in others {
            let measured = result.others.entry(tool.name()).or_default();
            measured.store = walk::size(&tool.store())?;
        }
        Ok(())
    }

    /// Each round edits other files; the first is thrown away.
    fn changes(&mut self, count: usize, rounds: usize) -> Result<()> {
        let Self { ground, plan, ours, others, result } = self;
        eprintln!("{count} of {} changed: {rounds} rounds", plan.files);
        for round in 0..=rounds {
            let seed = count * 1000 + round;
            let (recorded, undone) = ours.there_and_back(ground, count, seed)?;
            if round > 0 {
                result.ours.push(count, recorded, Some(undone));
            }
            for tool in others.iter().filter(|tool| round <= plan.slow_rounds || !tool.is_slow()) {
                let (recorded, undone) = there_and_back(tool, ground, count, seed)?;
                if round > 0 {
                    let measured = result.others.entry(tool.name()).or_default();
                    measured.push(count, recorded, undone);
                }
            }
        }
        Ok(())
    }

    fn scans(&mut self) -> Result<()> {
        let Self { ground, plan, ours, others, result } = self;
        eprintln!("scan with nothing changed: {} rounds", plan.scan_rounds);
        for round in 0..=plan.scan_rounds {
            ground.settle()?;
            let scanned = ours.scan()?;
            let (names, walked) = walk::walk(&ours.tree.root)?;
            let expected = (ours.tree.files.len() + ours.tree.directories) as u64;
            ensure!(names == expected, "the walk met {names} names of {expected}");
            if round > 0 {
                result.ours.scan.push_ms(scanned);
                result.walk.push_ms(walked);
            }
            for tool in others.iter() {
                let looked = tool.look()?.filter(|_| round > 0);
                let measured = result.others.entry(tool.name()).or_default();
                looked.into_iter().for_each(|took| measured.scan.push_ms(took));
            }
        }
        Ok(())
    }

    fn reopen(&mut self) -> Result<()> {
        for round in 0..=self.plan.scan_rounds {
            self.ground.settle()?;
            let took = self.ours.reopen()?;
            if round > 0 {
                self.result.reopen.push_seconds(took);
            }
        }
        Ok(())
    }
}

impl Measured {
    fn push(&mut self, count: usize, recorded: Duration, undone: Option<Duration>) {
        let (change, back) = if count == FEW {
            (&mut self.few, &mut self.few_undone)
        } else {
            (&mut self.many, &mut self.many_undone)
        };
        change.push_ms(recorded);
        undone.into_iter().for_each(|took| back.push_ms(took));
    }
}

fn there_and_back(
    tool: &Tool,
    ground: &Ground,
    count: usize,
    seed: usize,
) -> Result<(Duration, Option<Duration>)> {
    ground.settle()?;
    let edit = Edit::make(&tool.tree, count, seed)?;
    let recorded = tool.record()?;
    ground.settle()?;
    let undone = tool.undo()?;
    if undone.is_some() {
        ensure!(edit.is_undone()?, "{} did not bring back what was there", tool.name());
    }
    Ok((recorded, undone))
}
