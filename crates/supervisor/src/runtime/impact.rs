//! Which processes have to be restarted when files were put back by an undo or a restore. Pure.
//!
//! A dev server sees changed files by itself, so one that runs is left alone, unless what it read
//! only once was changed: what it depends on. One that is down was perhaps down because of the
//! very files that are right again, and one that is starting may hang on them for ever.

use std::path::{Component, Path};

use nacre_wire::processes::ProcessState;

const READ_ONCE: [&str; 12] = [
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "bun.lockb",
    "deno.lock",
    "Cargo.lock",
    "poetry.lock",
    "uv.lock",
    "Pipfile.lock",
];
const DEPENDENCIES: &str = "node_modules";

/// What the paths mean for one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Impact {
    None,
    Restart,
}

/// `directory` and `paths` are relative to the workspace.
pub(crate) fn impact<'a>(
    state: ProcessState,
    directory: &Path,
    paths: impl IntoIterator<Item = &'a Path>,
) -> Impact {
    let mut touched = false;
    let mut dependencies = false;
    for path in paths {
        // A directory that was put back holds everything below it.
        let below = path.strip_prefix(directory).ok();
        touched |= below.is_some() || directory.starts_with(path);
        dependencies |= directory.starts_with(path) || below.is_some_and(is_dependency);
    }
    match state {
        _ if !touched => Impact::None,
        ProcessState::Starting
        | ProcessState::BackingOff
        | ProcessState::CrashLooping
        | ProcessState::Failed => Impact::Restart,
        ProcessState::Ready if dependencies => Impact::Restart,
        ProcessState::Ready
        | ProcessState::Stopped
        | ProcessState::Stopping
        | ProcessState::Unknown => Impact::None,
    }
}

fn is_dependency(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| READ_ONCE.contains(&name))
        || path.components().any(|part| part == Component::Normal(DEPENDENCIES.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(state: ProcessState, directory: &str, paths: &[&str], expected: Impact) {
        let found = impact(state, Path::new(directory), paths.iter().map(Path::new));
        assert_eq!(found, expected, "{state:?} in {directory:?}: {paths:?}");
    }

    #[test]
    fn a_ready_process_is_restarted_only_for_what_it_read_once() {
        let ready = ProcessState::Ready;
        check(ready, "shell", &["shell/src/main.ts"], Impact::None);
        check(ready, "shell", &["shell/package.json"], Impact::Restart);
        check(ready, "shell", &["shell/pnpm-lock.yaml"], Impact::Restart);
        check(ready, "shell", &["shell/node_modules/a/b.js"], Impact::Restart);
        check(ready, "shell", &["other/package.json"], Impact::None);
        check(ready, "", &["other/package.json"], Impact::Restart);
        check(ready, "shell", &["shellfish/package.json"], Impact::None);
        check(ready, "shell", &["shell"], Impact::Restart);
    }

    #[test]
    fn one_that_is_not_up_is_restarted_for_anything_of_its_own() {
        for state in [
            ProcessState::Starting,
            ProcessState::BackingOff,
            ProcessState::CrashLooping,
            ProcessState::Failed,
        ] {
            check(state, "shell", &["shell/src/main.ts"], Impact::Restart);
            check(state, "shell", &["other/x"], Impact::None);
            check(state, "", &["x"], Impact::Restart);
        }
    }

    #[test]
    fn what_was_stopped_stays_so() {
        check(ProcessState::Stopped, "", &["package.json"], Impact::None);
        check(ProcessState::Stopping, "", &["package.json"], Impact::None);
    }
}
