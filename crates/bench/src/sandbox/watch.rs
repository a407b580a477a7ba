//! How soon a watcher learns of a change.

use std::time::Instant;

use anyhow::{Result, bail};
use nacre_wire::client::{WatchStream, WriteOptions};
use nacre_wire::watch::WatchMessage;

use super::Rounds;
use crate::computer::Computer;
use crate::report::Row;
use crate::samples::Samples;

/// From before the write is asked for, so the write itself is in the number.
pub(super) async fn latency(computer: &Computer, rounds: Rounds) -> Result<Row> {
    let sandbox = computer.sandbox().await?;
    let mut watch = sandbox.client.watch("/workspace").await?;
    let mut samples = Samples::default();
    for round in 0..rounds.watch {
        let path = format!("/workspace/seen-{round}");
        let began = Instant::now();
        let options = WriteOptions::default();
        let write = sandbox.client.write(&path, "x", &options);
        let (written, seen) = tokio::join!(write, until(&mut watch, &path));
        let seen = seen?;
        written?;
        samples.push_ms(seen.duration_since(began));
    }
    sandbox.destroy().await?;
    Ok(Row::lower("watch event after a write, p50", "ms", samples.median())
        .target(5.0)
        .samples(samples.count()))
}

/// The moment a change of `path` is reported.
async fn until(watch: &mut WatchStream, path: &str) -> Result<Instant> {
    loop {
        match watch.next().await? {
            WatchMessage::Changes { changes } => {
                if changes.iter().any(|change| change.path.as_path().as_os_str() == path) {
                    return Ok(Instant::now());
                }
            }
            WatchMessage::Error(error) => bail!(error),
            WatchMessage::Ready { .. } | WatchMessage::Overflow { .. } => {}
        }
    }
}
