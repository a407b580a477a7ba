//! One-shot runs, below `/admin/sandboxes`.

use utoipa::openapi::{HttpMethod, Required};

use super::call::Call;
use crate::runs::{RunInfo, RunList, StartRun};

const ONE: &str = "/admin/sandboxes/runs/{id}";
const TAR: &str = "application/x-tar";

pub(super) fn calls() -> Vec<Call> {
    let all = "/admin/sandboxes/runs";
    let calls = [
        Call::new(HttpMethod::Get, all, "list_runs", "One-shot runs")
            .gives::<RunList>("200", "Newest first"),
        Call::new(HttpMethod::Post, all, "start_run", "Do a task in a sandbox of its own")
            .takes::<StartRun>(Required::True)
            .gives::<RunInfo>("201", "It waits for its turn, or for its files"),
        Call::new(HttpMethod::Get, ONE, "get_run", "One run")
            .gives::<RunInfo>("200", "As it is now"),
        Call::new(HttpMethod::Delete, ONE, "cancel_run", "Cancel a run, or forget one that ended")
            .gives_nothing("204", "Its sandbox is gone"),
    ];
    calls.into_iter().chain(streams()).map(|call| call.tag("runs")).collect()
}

fn streams() -> [Call; 4] {
    [
        Call::new(
            HttpMethod::Put,
            "/admin/sandboxes/runs/{id}/input",
            "put_run_input",
            "The files that it begins with; it waits for them when it was started with `input`",
        )
        .takes_bytes(TAR)
        .gives::<RunInfo>("200", "They are there, and it waits for its turn"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/runs/{id}/events",
            "follow_run",
            "A RunEvent per line, from the first on, until it has ended",
        )
        .gives_bytes("200", "Goes on as they happen", "application/x-ndjson"),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/runs/{id}/files",
            "get_run_files",
            "What it added and changed",
        )
        .gives_bytes("200", "Paths are those in the workspace", TAR),
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/runs/{id}/patch",
            "get_run_patch",
            "What it changed, line by line",
        )
        .gives_bytes("200", "For `patch -p1`", "text/x-diff; charset=utf-8"),
    ]
}
