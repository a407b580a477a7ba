//! What history costs in a sandbox that runs: the time it adds to a copy, and the memory of the
//! supervisor.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nacre_wire::files::Remove;
use nacre_wire::history::{HistoryState, HistoryStatus};
use tokio::process::Command;

use super::Plan;
use super::tree::Tree;
use crate::computer::{Computer, Sandbox};
use crate::ground::Ground;
use crate::report::{Row, ratio};
use crate::samples::Samples;
use crate::sandbox::bodies;

const STATUS: &str = "/supervisor/history/status";
const POLL: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(300);
/// A folder of the sandbox that is on the same disk, in the layer over the system.
const OUTSIDE: &str = "/var/tmp";

/// No rows, and a note, when this guest keeps no history.
pub(super) async fn measure(guest: &Path, plan: Plan, notes: &mut Vec<String>) -> Result<Vec<Row>> {
    let ground = Ground::new(plan.ground, notes)?;
    let computer = Computer::new(&ground.join("data"), guest, 1).await?;
    let sandbox = computer.sandbox().await?;
    let rows = match offered(&sandbox).await {
        Ok(()) => rows(&sandbox, &ground, plan).await,
        Err(why) => {
            let note = format!("copying and memory in a sandbox with history: not yet ({why:#})");
            println!("{note}");
            notes.push(note);
            Ok(Vec::new())
        }
    };
    sandbox.destroy().await?;
    rows
}

async fn offered(sandbox: &Sandbox) -> Result<()> {
    let status: HistoryStatus = sandbox.client.get_json(STATUS).await?;
    match status.state {
        HistoryState::Starting | HistoryState::Recording => Ok(()),
        HistoryState::Refusing { why } | HistoryState::Off { why } => bail!("{why}"),
    }
}

async fn rows(sandbox: &Sandbox, ground: &Ground, plan: Plan) -> Result<Vec<Row>> {
    let mut rows = copy(sandbox, ground, plan).await.context("copy")?;
    rows.push(memory(sandbox, ground, plan).await.context("memory")?);
    Ok(rows)
}

/// There is no switch for history, so the same copy is made where none is kept: beside the
/// workspace on the host, which is the same file system, and in the sandbox outside of the
/// workspace, which is an overlay over it. The target is against the first, the faster of the two.
async fn copy(sandbox: &Sandbox, ground: &Ground, plan: Plan) -> Result<Vec<Row>> {
    let tree = Tree::plant(&ground.join("copied"), plan.copied)?;
    send(sandbox, ground, &tree, "source").await?;
    let files = plan.copied as u64;
    let base = until(sandbox, |names| names >= files).await?;
    sandbox.run(&["cp", "-r", "/workspace/source", OUTSIDE]).await?;
    let [mut with, mut host, mut layer] = std::array::from_fn(|_| Samples::default());
    for round in 0..=plan.scan_rounds {
        ground.settle()?;
        let ours = timed_exec(sandbox, "/workspace/source", "/workspace/copy").await?;
        // What history has still to do belongs to nobody else's time.
        until(sandbox, |names| names >= base + files).await?;
        remove(sandbox, "copy").await?;
        until(sandbox, |names| names <= base).await?;
        ground.settle()?;
        let beside = timed_host(&tree.root, &ground.join("copy")).await?;
        ground.settle()?;
        let outside = timed_exec(sandbox, "/var/tmp/source", "/var/tmp/copy").await?;
        sandbox.run(&["rm", "-r", "/var/tmp/copy"]).await?;
        if round > 0 {
            with.push_ms(ours);
            host.push_ms(beside);
            layer.push_ms(outside);
        }
    }
    remove(sandbox, "source").await?;
    let what = format!("copy of {} files with history, p50", plan.copied);
    let row = Row::lower(&what, "ms", with.median())
        .peer("host, same disk", host.median())
        .peer("outside the workspace", layer.median());
    let multiple = ratio(with.median(), host.median());
    let multiple = Row::lower(format!("{what}, as a multiple of one without"), "x", multiple);
    Ok(vec![row.samples(with.count()), multiple.target(1.3).samples(with.count())])
}

async fn memory(sandbox: &Sandbox, ground: &Ground, plan: Plan) -> Result<Row> {
    let tree = Tree::plant(&ground.join("large"), plan.files)?;
    send(sandbox, ground, &tree, "large").await?;
    until(sandbox, |names| names >= plan.files as u64).await?;
    let resident = sandbox.client.stats().await?.rss_bytes as f64 / 1e6;
    let metric = format!("supervisor with {} files in its history, resident", plan.files);
    Ok(Row::lower(metric, "MB", Some(resident)).target(60.0))
}

async fn send(sandbox: &Sandbox, ground: &Ground, tree: &Tree, to: &str) -> Result<()> {
    let archive = ground.join("archive.tar");
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(&archive).arg("-C").arg(&tree.root).arg(".");
    let status = tar.status().await?;
    ensure!(status.success(), "tar ended with {status}");
    sandbox.client.unpack(to, bodies::file(&archive).await?).await?;
    std::fs::remove_file(archive)?;
    Ok(())
}

async fn remove(sandbox: &Sandbox, path: &str) -> Result<()> {
    let request = Remove { path: path.into(), recursive: true, if_match: None };
    sandbox.client.remove(&request).await.with_context(|| format!("cannot remove {path}"))
}

/// Waits until history records and knows of as many names as it should.
pub(crate) async fn until(sandbox: &Sandbox, enough: impl Fn(u64) -> bool) -> Result<u64> {
    let began = Instant::now();
    loop {
        let status: HistoryStatus = sandbox.client.get_json(STATUS).await?;
        if status.state == HistoryState::Recording && enough(status.names) {
            return Ok(status.names);
        }
        let waited = began.elapsed();
        ensure!(waited < PATIENCE, "{:?}, {} names", status.state, status.names);
        tokio::time::sleep(POLL).await;
    }
}

async fn timed_exec(sandbox: &Sandbox, from: &str, to: &str) -> Result<Duration> {
    let began = Instant::now();
    sandbox.run(&["cp", "-r", from, to]).await?;
    Ok(began.elapsed())
}

async fn timed_host(from: &Path, to: &Path) -> Result<Duration> {
    let began = Instant::now();
    let status = Command::new("cp").arg("-r").arg(from).arg(to).status().await?;
    let took = began.elapsed();
    ensure!(status.success(), "cp ended with {status}");
    std::fs::remove_dir_all(to)?;
    Ok(took)
}
