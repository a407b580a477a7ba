//! What an undo means for the processes, in a supervisor without a door.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nacre_wire::processes::{ProcessInfo, ProcessState};
use tempfile::TempDir;
use tokio::time::timeout;

use super::{Runtime, Settled};
use crate::events::{self, Events};
use crate::exec::{Commands, Defaults, Reap};
use crate::limits::Limits;
use crate::users;
use crate::watch::Watchers;

/// Only turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

struct Sandbox {
    workspace: TempDir,
    runtime: Runtime,
    commands: Arc<Commands>,
}

impl Sandbox {
    /// With the files there already, as after a start of the computer.
    async fn with(files: &[(&str, &str)]) -> Self {
        let workspace = tempfile::tempdir().unwrap();
        for (path, content) in files {
            put(&workspace, path, content);
        }
        let user = users::lookup(&rustix::process::getuid().as_raw().to_string()).unwrap();
        let defaults = Defaults {
            workspace: workspace.path().to_owned(),
            user: user.clone(),
            limits: Limits::take(),
            recorder: crate::history::Recorder::off(),
            surroundings: Default::default(),
        };
        let commands = Commands::start(defaults, Reap::Commands).unwrap();
        let events = Events::start(events::Context {
            workspace: workspace.path().to_owned(),
            user: user.clone(),
            watchers: Watchers::default(),
        });
        let runtime = Runtime::start(Arc::clone(&commands), events, workspace.path(), user);
        Self { workspace, runtime, commands }
    }

    async fn until(&self, name: &str, state: ProcessState) -> ProcessInfo {
        let mut view = self.runtime.inner.view.clone();
        let found = view.wait_for(|view| {
            view.processes.get(name).is_some_and(|entry| entry.info.state == state)
        });
        let view = timeout(PATIENCE, found).await.expect("in time").unwrap();
        view.processes[name].info.clone()
    }

    /// Puts files back and tells of them.
    async fn restore(&self, files: &[(&str, &str)]) -> Vec<Settled> {
        for (path, content) in files {
            put(&self.workspace, path, content);
        }
        let paths: Vec<PathBuf> = files.iter().map(|(path, _)| path.into()).collect();
        timeout(PATIENCE, self.runtime.affected(&paths)).await.expect("in time")
    }

    fn run(&self, name: &str) -> u64 {
        self.runtime.view().processes[name].info.run
    }

    async fn end(self) {
        self.runtime.close();
        self.commands.end_all().await;
    }
}

fn put(workspace: &TempDir, path: &str, content: &str) {
    let path = workspace.path().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn ready(name: &str) -> Settled {
    Settled { name: name.into(), state: ProcessState::Ready, reason: None }
}

#[tokio::test]
async fn an_app_that_was_broken_by_a_file_is_up_again_when_the_file_is_back() {
    let config = "[runtime]\ncommand = \". ./main\"\ndirectory = \"app\"\n\
                  [process.other]\ncommand = \"exec sleep 1000\"\ndirectory = \"other\"\n";
    let files = [("nacre.toml", config), ("app/main", "exit 1"), ("other/x", "")];
    let sandbox = Sandbox::with(&files).await;
    sandbox.until("other", ProcessState::Ready).await;
    sandbox.until("runtime", ProcessState::CrashLooping).await;
    assert_eq!(sandbox.restore(&[("other/x", "new")]).await, []);

    let still = sandbox.restore(&[("app/main", "exit 2")]).await;
    assert_eq!(still.len(), 1);
    assert!(!still[0].is_ready());

    sandbox.until("runtime", ProcessState::BackingOff).await;
    assert_eq!(sandbox.restore(&[("app/main", "exec sleep 1000")]).await, [ready("runtime")]);
    assert_eq!(sandbox.run("other"), 1);
    sandbox.end().await;
}

#[tokio::test]
async fn an_app_that_runs_is_restarted_only_for_what_it_read_once() {
    let config = "[runtime]\ncommand = \"exec sleep 1000\"\ndirectory = \"app\"\n";
    let sandbox = Sandbox::with(&[("nacre.toml", config), ("app/a.js", "")]).await;
    sandbox.until("runtime", ProcessState::Ready).await;
    assert_eq!(sandbox.restore(&[("app/a.js", "1")]).await, []);
    assert_eq!(sandbox.run("runtime"), 1);
    assert_eq!(sandbox.restore(&[("app/package.json", "{}")]).await, [ready("runtime")]);
    assert_eq!(sandbox.run("runtime"), 2);
    assert_eq!(sandbox.restore(&[("app/node_modules/m/i.js", "")]).await, [ready("runtime")]);
    assert_eq!(sandbox.run("runtime"), 3);
    sandbox.end().await;
}

#[tokio::test]
async fn a_restored_configuration_is_adopted_before_anybody_is_told() {
    let config = |a: u32| {
        format!(
            "[process.a]\ncommand = \"exec sleep {a}\"\n\
             [process.b]\ncommand = \"exec sleep 1000\"\n"
        )
    };
    let sandbox = Sandbox::with(&[("nacre.toml", &config(1000))]).await;
    sandbox.until("a", ProcessState::Ready).await;
    sandbox.until("b", ProcessState::Ready).await;
    assert_eq!(sandbox.restore(&[("nacre.toml", &config(1001))]).await, [ready("a")]);
    assert_eq!((sandbox.run("a"), sandbox.run("b")), (2, 1));
    let failing = "[process.b]\ncommand = \"exec sleep 1000\"\n\
                   [process.c]\ncommand = \"exit 4\"\nrestart = \"never\"\n";
    let settled = sandbox.restore(&[("nacre.toml", failing)]).await;
    let expected = Settled {
        name: "c".into(),
        state: ProcessState::Failed,
        reason: Some("ended with exit code 4".into()),
    };
    assert_eq!(settled, [expected]);
    sandbox.end().await;
}
