//! Cost grows with what changed and not with what is there: the same small change in trees of
//! different sizes.

use anyhow::{Context, Result};

use super::ours::Ours;
use super::tree::Tree;
use super::{FEW, Plan};
use crate::ground::Ground;
use crate::report::Row;
use crate::samples::Samples;

pub(super) fn measure(plan: Plan, notes: &mut Vec<String>) -> Result<Vec<Row>> {
    let mut checkpoints = Vec::new();
    let mut undos = Vec::new();
    for &files in plan.growth {
        let (recorded, undone) =
            at(files, plan, notes).with_context(|| format!("{FEW} changes in {files} files"))?;
        checkpoints.push(row("checkpoint", files, &recorded));
        undos.push(row("undo", files, &undone));
    }
    checkpoints.extend(undos);
    Ok(checkpoints)
}

/// On fresh ground: blocks that a smaller tree left behind would stay in memory.
fn at(files: usize, plan: Plan, notes: &mut Vec<String>) -> Result<(Samples, Samples)> {
    eprintln!("{FEW} changes in {files} files: {} rounds", plan.few_rounds);
    let ground = Ground::new(plan.ground, notes)?;
    let home = ground.join("ours");
    let mut ours = Ours::new(&home, Tree::plant(&home.join("tree"), files)?);
    ours.first(&ground)?;
    let [mut recorded, mut undone] = std::array::from_fn(|_| Samples::default());
    for round in 0..=plan.few_rounds {
        let (record, undo) = ours.there_and_back(&ground, FEW, round)?;
        if round > 0 {
            recorded.push_ms(record);
            undone.push_ms(undo);
        }
    }
    Ok((recorded, undone))
}

fn row(what: &str, files: usize, samples: &Samples) -> Row {
    let metric = format!("{what} of {FEW} in a tree of {files}, p50");
    Row::lower(metric, "ms", samples.median()).samples(samples.count())
}
