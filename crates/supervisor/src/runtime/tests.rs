//! What an undo means for the processes, in a supervisor without a door.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nacre_wire::processes::{ProcessInfo, ProcessState};
use tempfile::TempDir;
use tokio::time::timeout;

use super::{Mount, Pages, Runtime, Settled, View};
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
        Self::with_patience(files, super::IDLE).await
    }

    async fn with_patience(files: &[(&str, &str)], idle: Duration) -> Self {
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
        let runtime =
            Runtime::start_with(Arc::clone(&commands), events, workspace.path(), user, idle);
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

/// An app whose port is a listener of the test's.
fn listening(keys: &str) -> (tokio::net::TcpListener, String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = format!("[runtime]\ncommand = \"exec sleep 1000\"\nport = {port}\n{keys}\n");
    (tokio::net::TcpListener::from_std(listener).unwrap(), config)
}

#[tokio::test]
async fn an_instance_that_nobody_uses_ends_and_one_that_is_used_stays() {
    const SHORT: Duration = Duration::from_millis(200);
    let (_app, config) = listening("per_mount = true");
    let sandbox = Sandbox::with_patience(&[("nacre.toml", &config)], SHORT).await;
    sandbox.until("runtime", ProcessState::Ready).await;
    let mount = |prefix: &'static str| {
        let header = (super::mount::FORWARDED_PREFIX.parse().unwrap(), prefix.parse().unwrap());
        Mount::of(&http::HeaderMap::from_iter([header]))
    };
    let used = |pages| match pages {
        Pages::App(app) => app.entry.usage.hold(),
        other => panic!("{other:?}"),
    };
    let hold = used(sandbox.runtime.pages(&mount("/a")).await.unwrap());
    sandbox.runtime.pages(&mount("/b")).await.unwrap();
    let mut view = sandbox.runtime.inner.view.clone();
    let gone = async |view: &mut tokio::sync::watch::Receiver<_>, name: &str| {
        let gone = view.wait_for(|view: &Arc<View>| !view.processes.contains_key(name));
        timeout(PATIENCE, gone).await.expect("in time").unwrap().processes.len()
    };
    assert_eq!(gone(&mut view, "runtime@b").await, 2);
    tokio::time::sleep(2 * SHORT).await;
    assert_eq!(sandbox.run("runtime@a"), 1);
    drop(hold);
    assert_eq!(gone(&mut view, "runtime@a").await, 1);
    // And comes back when it is asked for.
    used(sandbox.runtime.pages(&mount("/a")).await.unwrap());
    sandbox.end().await;
}

#[tokio::test]
async fn an_app_that_hangs_is_restarted_for_anything_that_is_put_back() {
    let (app, config) = listening("ready = \"/\"\ndirectory = \"app\"");
    let sandbox = Sandbox::with(&[("nacre.toml", &config), ("app/x", "")]).await;
    let answer = async |many: usize| {
        for _ in 0..many {
            let (mut stream, _) = app.accept().await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await.unwrap();
        }
    };
    let (ready_now, ()) = tokio::join!(sandbox.until("runtime", ProcessState::Ready), answer(1));
    assert_eq!(ready_now.run, 1);
    let (none, ()) = tokio::join!(sandbox.restore(&[("other", "1")]), answer(1));
    assert_eq!(none, []);
    // It takes the connection and says nothing.
    let restored = sandbox.restore(&[("other", "2")]);
    let come_back = async {
        sandbox.until("runtime", ProcessState::Starting).await;
        loop {
            answer(1).await;
        }
    };
    let settled = tokio::select! { settled = restored => settled, () = come_back => Vec::new() };
    assert_eq!(settled, [ready("runtime")]);
    assert_eq!(sandbox.run("runtime"), 2);
    sandbox.end().await;
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
async fn an_app_that_hangs_while_it_starts_is_started_anew_by_an_undo() {
    let (app, config) = listening("directory = \"app\"");
    let config = config.replace("exec sleep 1000", ". ./main");
    // Nothing listens until the file is right.
    drop(app);
    let port = config.split("port = ").nth(1).unwrap().split('\n').next().unwrap();
    let files = [("nacre.toml", config.as_str()), ("app/main", "while :; do sleep 1; done")];
    let sandbox = Sandbox::with(&files).await;
    sandbox.until("runtime", ProcessState::Starting).await;
    assert_eq!(sandbox.restore(&[("other", "1")]).await, [], "none of its own");

    let server = format!("exec python3 -m http.server --bind 127.0.0.1 {port}");
    assert_eq!(sandbox.restore(&[("app/main", &server)]).await, [ready("runtime")]);
    assert_eq!(sandbox.run("runtime"), 2);
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
