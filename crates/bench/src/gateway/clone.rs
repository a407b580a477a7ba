//! `nacre dev create` of a large workspace, beside `cp -a` of the same files, on an ext4 in memory.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nacre_sandbox::{Driver, SandboxId};
use tokio::process::Command;

use crate::computer::Computer;
use crate::ground::Ground;
use crate::history::sandboxed::until;
use crate::report::{Row, ratio};
use crate::samples::Samples;

/// Bytes: the tree, its history, and copies of both.
const GROUND: u64 = 12 << 30;
const IN_A_DIRECTORY: usize = 50;

/// Rows for a workspace of `files` files, each copied `rounds` times after a first that warms up.
pub(super) async fn measure(
    guest: &Path,
    files: usize,
    rounds: usize,
    notes: &mut Vec<String>,
) -> Result<Vec<Row>> {
    let ground = Ground::new(GROUND, notes)?;
    let computer = &Computer::new(&ground.join("data"), guest, 1).await?;
    let sandbox = computer.sandbox().await?;
    let place = computer.data().join("sandboxes").join(sandbox.id.as_str()).join("data");
    sandbox.run(&["sh", "-c", &plant(files)]).await.context("plant the workspace")?;
    until(&sandbox, |names| names >= files as u64).await.context("record the workspace")?;
    let [mut ours, mut frozen, mut peer] = std::array::from_fn(|_| Samples::default());
    for round in 0..=rounds {
        ground.settle()?;
        let twin: SandboxId = format!("twin-{round}").parse()?;
        let began = Instant::now();
        let forked = computer.driver().fork(&sandbox.id, &twin, Arc::default()).await?;
        let took = began.elapsed();
        ensure!(forked.report.names as usize >= files, "only {} names", forked.report.names);
        computer.driver().destroy(&twin).await?;
        ground.settle()?;
        let copied = copy(&place, &computer.data().join("peer-copy")).await?;
        if round > 0 {
            ours.push_seconds(took);
            frozen.push_ms(forked.frozen.unwrap_or_default());
            peer.push_seconds(copied);
        }
    }
    sandbox.destroy().await?;
    let what = format!("copy of live with {files} files");
    let (our, theirs) = (ours.median(), peer.median());
    Ok(vec![
        Row::lower(&what, "s", our).peer("cp -a", theirs).samples(ours.count()),
        Row::lower(format!("{what}, against cp -a"), "times", ratio(our, theirs))
            .target(1.0)
            .samples(ours.count()),
        Row::lower(format!("{what}, live stands still"), "ms", frozen.median())
            .samples(frozen.count()),
    ])
}

/// A script that makes small files of different sizes, fast.
fn plant(files: usize) -> String {
    let directories = files.div_ceil(IN_A_DIRECTORY);
    format!(
        "head -c 4000 /dev/zero | tr '\\0' x > .block; for d in $(seq {directories}); do \
         mkdir -p tree/$((d / 100))/$d && split -b $((4000 / {IN_A_DIRECTORY})) -a 2 .block \
         tree/$((d / 100))/$d/f || exit 1; done"
    )
}

async fn copy(from: &Path, to: &Path) -> Result<Duration> {
    let began = Instant::now();
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().await?;
    let took = began.elapsed();
    ensure!(status.success(), "cp -a: {status}");
    std::fs::remove_dir_all(to)?;
    Ok(took)
}
