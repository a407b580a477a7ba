//! Health, version and resource use.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, io};

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use nacre_wire::ApiError;
use nacre_wire::conductor::RELAYED;
use nacre_wire::generation::Range;
use nacre_wire::status::{Health, HealthStatus, SupervisorStats, Version};
use tokio::time::Instant;

use crate::exec::Commands;
use crate::failure::Failure;
use crate::panics;

#[derive(Clone)]
pub struct Context {
    workspace: PathBuf,
    commands: Arc<Commands>,
    started: Instant,
}

impl Context {
    pub fn new(workspace: PathBuf, commands: Arc<Commands>) -> Self {
        Self { workspace, commands, started: Instant::now() }
    }
}

pub fn router(context: Context) -> Router {
    Router::new()
        .route("/supervisor/health", get(health))
        .route("/supervisor/version", get(version))
        .route("/supervisor/stats", get(stats))
        .with_state(context)
}

async fn health(State(context): State<Context>) -> Json<Health> {
    let uptime_ms = u64::try_from(context.started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Json(Health { status: HealthStatus::Ok, uptime_ms, contained_panics: panics::seen() })
}

async fn version() -> Json<Version> {
    Json(Version {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: Range::OURS,
        relays: RELAYED.iter().map(ToString::to_string).collect(),
    })
}

async fn stats(State(context): State<Context>) -> Result<Json<SupervisorStats>, Failure> {
    let proc = |what: &'static str| move |error: io::Error| Failure(ApiError::io(what, &error));
    let status = fs::read_to_string("/proc/self/status").map_err(proc("/proc/self/status"))?;
    let disk = rustix::fs::statvfs(&context.workspace)
        .map_err(|error| Failure(ApiError::io(context.workspace.display(), &error.into())))?;
    Ok(Json(SupervisorStats {
        rss_bytes: field(&status, "VmRSS:") * 1024,
        open_fds: fs::read_dir("/proc/self/fd").map_err(proc("/proc/self/fd"))?.count() as u64,
        threads: field(&status, "Threads:"),
        processes: processes().map_err(proc("/proc"))?,
        commands_running: context.commands.running() as u64,
        disk_free_bytes: disk.f_bavail * disk.f_frsize,
        disk_total_bytes: disk.f_blocks * disk.f_frsize,
    }))
}

fn processes() -> io::Result<u64> {
    let numbers = fs::read_dir("/proc")?.flatten().filter(|entry| {
        entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit)
    });
    Ok(numbers.count() as u64)
}

/// A number from `/proc/self/status`.
fn field(status: &str, name: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.split_ascii_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_proc_status_is_found_or_zero() {
        let status = "Name:\tx\nVmRSS:\t    5120 kB\nThreads:\t3\n";
        assert_eq!((field(status, "VmRSS:"), field(status, "Threads:")), (5120, 3));
        assert_eq!(field(status, "Nothing:"), 0);
    }
}
