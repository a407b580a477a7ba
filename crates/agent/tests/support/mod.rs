//! A turn with a model that says what the test wants, and a real body.

#![allow(dead_code, unreachable_pub, reason = "each test takes what it needs")]
#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nacre_agent::body::{Body, Local};
use nacre_agent::events::{Ended, Event};
use nacre_agent::journal::FileJournal;
use nacre_agent::model::{Call, Line, Message, Model, Script};
use nacre_agent::session::Session;
use nacre_agent::tools::{BodyTools, Intent, Planner};
use nacre_agent::{Agent, Limits, Mode, Permission};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The owner says the same to everything.
pub struct Always(pub bool);

#[async_trait]
impl Permission for Always {
    async fn ask(&self, _: &Call, _: &Intent) -> bool {
        self.0
    }
}

pub struct Stage {
    pub dir: TempDir,
    pub script: Arc<Script>,
    pub agent: Agent,
    pub session: Session,
    pub journal: FileJournal,
    pub cancel: CancellationToken,
}

impl Stage {
    pub fn new(lines: impl IntoIterator<Item = Line>) -> Self {
        Self::of(Script::new(lines))
    }

    pub fn of(script: Script) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("workspace")).unwrap();
        let body: Arc<dyn Body> = Arc::new(Local::new(dir.path().join("workspace")));
        let script = Arc::new(script);
        let agent = Agent {
            model: script.clone() as Arc<dyn Model>,
            body: body.clone(),
            toolboxes: vec![Arc::new(BodyTools::new(body)), Arc::new(Planner)],
            permission: Arc::new(Always(true)),
            system: "be brief".to_owned(),
            mode: Mode::Auto,
            limits: Limits { steps: 5, time: Duration::from_secs(600) },
            scratch: dir.path().join("scratch").display().to_string(),
        };
        let (journal, _) = FileJournal::open(&dir.path().join("journal")).unwrap();
        let (session, cancel) = (Session::default(), CancellationToken::new());
        Self { dir, script, agent, session, journal, cancel }
    }

    pub async fn turn(&mut self) -> Ended {
        let Self { agent, session, journal, cancel, .. } = self;
        let ended = agent.turn(session, journal, "go", cancel).await.unwrap();
        // Whoever reads the journal knows as much as who was there.
        assert_eq!(Session::replay(&self.events()), self.session);
        ended
    }

    pub fn events(&self) -> Vec<Event> {
        FileJournal::open(&self.dir.path().join("journal")).unwrap().1
    }

    pub fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.dir.path().join("workspace").join(name)).ok()
    }

    /// What the model was told when it was asked last.
    pub fn last_results(&self) -> Vec<(String, bool)> {
        match self.script.asked().last().unwrap().last().unwrap() {
            Message::Results { results } => {
                results.iter().map(|one| (one.text.clone(), one.failed)).collect()
            }
            other => panic!("no results: {other:?}"),
        }
    }
}

pub fn says(text: &str) -> Line {
    Line::Says(text.to_owned())
}

pub fn write(path: &str) -> Line {
    Line::calls("write_file", json!({"path": path, "content": "hello\n"}))
}

pub fn run(command: &str) -> Line {
    Line::calls("run_command", json!({"command": command}))
}
