//! Whole turns, with a model that says what the test wants and a real body.

#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nacre_agent::body::{Body, Local};
use nacre_agent::events::{Ended, Event, ToolStatus, Update};
use nacre_agent::journal::{FileJournal, Journal};
use nacre_agent::model::{Call, Error, Line, Message, Model, Script};
use nacre_agent::session::{INTERRUPTED, Session};
use nacre_agent::tools::{BodyTools, Intent, Planner};
use nacre_agent::{Agent, Limits, Mode, Permission};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The owner says the same to everything.
struct Always(bool);

#[async_trait]
impl Permission for Always {
    async fn ask(&self, _: &Call, _: &Intent) -> bool {
        self.0
    }
}

struct Stage {
    dir: TempDir,
    script: Arc<Script>,
    agent: Agent,
    session: Session,
    journal: FileJournal,
    cancel: CancellationToken,
}

impl Stage {
    fn new(lines: impl IntoIterator<Item = Line>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("workspace")).unwrap();
        let body: Arc<dyn Body> = Arc::new(Local::new(dir.path().join("workspace")));
        let script = Arc::new(Script::new(lines));
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

    async fn turn(&mut self) -> Ended {
        let Self { agent, session, journal, cancel, .. } = self;
        let ended = agent.turn(session, journal, "go", cancel).await.unwrap();
        // Whoever reads the journal knows as much as who was there.
        assert_eq!(Session::replay(&self.events()), self.session);
        ended
    }

    fn events(&self) -> Vec<Event> {
        FileJournal::open(&self.dir.path().join("journal")).unwrap().1
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.dir.path().join("workspace").join(name)).ok()
    }

    /// What the model was told when it was asked last.
    fn last_results(&self) -> Vec<(String, bool)> {
        match self.script.asked().last().unwrap().last().unwrap() {
            Message::Results { results } => {
                results.iter().map(|one| (one.text.clone(), one.failed)).collect()
            }
            other => panic!("no results: {other:?}"),
        }
    }
}

fn says(text: &str) -> Line {
    Line::Says(text.to_owned())
}

fn write(path: &str) -> Line {
    Line::calls("write_file", json!({"path": path, "content": "hello\n"}))
}

fn run(command: &str) -> Line {
    Line::calls("run_command", json!({"command": command}))
}

#[tokio::test]
async fn a_task_is_done_step_by_step_and_every_step_is_kept_before_it_happens() {
    let mut stage = Stage::new([
        Line::calls("write_todos", json!({"todos": [{"content": "write"}, {"content": "look"}]})),
        write("a.txt"),
        run("cat a.txt; exit 2"),
        says("it is done"),
    ]);
    assert_eq!(stage.turn().await, Ended::Done);
    assert_eq!(stage.file("a.txt").as_deref(), Some("hello\n"));
    assert_eq!(stage.last_results(), [("hello\n[exit code 2]".to_owned(), true)]);
    assert_eq!((stage.session.steps, stage.session.usage.output), (4, 20));
    assert_eq!(stage.session.plan.len(), 2);
    let kinds: Vec<String> = stage
        .events()
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["sessionUpdate"].as_str().unwrap().into())
        .collect();
    let step = ["reply", "usage_update", "tool_call"];
    let expected: Vec<&str> = ["user_message_chunk"]
        .into_iter()
        .chain(step)
        .chain(["plan", "tool_call_update"])
        .chain(step)
        .chain(["tool_call_update"])
        .chain(step)
        .chain(["tool_call_update", "tool_call_update"])
        .chain(["agent_message_chunk", "agent_message_chunk", "reply", "usage_update", "ended"])
        .collect();
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn a_call_that_does_not_fit_is_given_back_once() {
    let wrong = |arguments: Value| Line::calls("write_file", arguments);
    let mut stage = Stage::new([wrong(json!({"path": "a"})), write("a"), says("done")]);
    assert_eq!(stage.turn().await, Ended::Done);
    let told = &stage.script.asked()[1];
    let Message::Results { results } = told.last().unwrap() else { panic!("{told:?}") };
    assert!(results[0].text.contains("missing field `content`"), "{}", results[0].text);

    for second in [
        wrong(json!({"path": "b", "content": 1})),
        wrong(json!({"path": "b", "content": "x", "mode": 7})),
        wrong(json!("{\"path\":")),
        Line::calls("launch", json!({})),
    ] {
        let mut stage = Stage::new([wrong(json!({})), second, write("b")]);
        assert!(matches!(stage.turn().await, Ended::Invalid(_)));
        assert_eq!(stage.file("b"), None);
    }
}

#[tokio::test]
async fn a_model_that_goes_round_in_circles_is_stopped() {
    let mut stage = Stage::new((0..9).map(|_| run("echo again >> log")));
    assert_eq!(stage.turn().await, Ended::MaxSteps);
    assert_eq!(stage.file("log").unwrap().lines().count(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_busy_or_breaks_off_is_asked_again() {
    let busy = Error::Busy { message: "later".to_owned(), again: Some(Duration::from_secs(7)) };
    let started = tokio::time::Instant::now();
    let mut stage =
        Stage::new([Line::Fails(busy), Line::Breaks("half an ans".to_owned()), says("whole")]);
    assert_eq!(stage.turn().await, Ended::Done);
    assert!(started.elapsed() >= Duration::from_secs(7), "it was told when");
    let retries = stage.events().into_iter().filter(|e| matches!(e.update, Update::Retry { .. }));
    assert_eq!(retries.count(), 2);
    let Some(Message::Assistant(reply)) = stage.session.messages.last() else { panic!() };
    assert_eq!(reply.text, "whole");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_ends_the_turn_with_its_reason() {
    let broken = || Line::Fails(Error::Broken("no".to_owned()));
    let check = async |lines: Vec<Line>, expected: Ended| {
        assert_eq!(Stage::new(lines).turn().await, expected);
    };
    let spent = Error::Spent("the budget of this run is used up".to_owned());
    let reason = Ended::Budget(spent.to_string());
    check(vec![Line::Fails(spent)], reason).await;
    let refused = Error::Refused("no such model".to_owned());
    let reason = Ended::Model(refused.to_string());
    check(vec![Line::Fails(refused)], reason).await;
    let reason = Ended::Model("the model cannot be reached: no".to_owned());
    check(vec![broken(), broken(), broken(), broken()], reason).await;
}

#[tokio::test]
async fn a_turn_that_is_stopped_ends_its_command_and_says_so_to_the_model() {
    let mut stage = Stage::new([run("touch begun; sleep 60; touch finished"), says("ah")]);
    let (cancel, begun) = (stage.cancel.clone(), stage.dir.path().join("workspace/begun"));
    tokio::spawn(async move {
        while !begun.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    });
    assert_eq!(stage.turn().await, Ended::Cancelled);
    stage.cancel = CancellationToken::new();
    assert_eq!(stage.turn().await, Ended::Done);
    let asked = stage.script.asked();
    let Message::Results { results } = &asked[1][2] else { panic!("{asked:?}") };
    assert_eq!(results[0].text, INTERRUPTED);
    assert_eq!(stage.file("finished"), None);
}

#[tokio::test]
async fn time_that_is_up_ends_a_turn() {
    let mut stage = Stage::new([run("sleep 60")]);
    stage.agent.limits.time = Duration::from_millis(100);
    assert_eq!(stage.turn().await, Ended::TimeOut);
}

#[tokio::test]
async fn while_planning_nothing_is_changed() {
    let mut stage = Stage::new([
        Line::calls("list_files", json!({})),
        write("a"),
        run("touch b"),
        says("I would write a"),
    ]);
    stage.agent.mode = Mode::Plan;
    assert_eq!(stage.turn().await, Ended::Done);
    assert_eq!((stage.file("a"), stage.file("b")), (None, None));
    let asked = stage.script.asked();
    let Message::Results { results } = asked[1].last().unwrap() else { panic!() };
    assert_eq!(results[0].text, "(nothing is there)");
}

#[tokio::test]
async fn the_owner_is_asked_before_a_change() {
    for allowed in [true, false] {
        let mut stage = Stage::new([Line::calls("list_files", json!({})), write("a"), says("ok")]);
        stage.agent.mode = Mode::Ask;
        stage.agent.permission = Arc::new(Always(allowed));
        assert_eq!(stage.turn().await, Ended::Done);
        assert_eq!(stage.file("a").is_some(), allowed);
        let asked = stage.events().into_iter().filter_map(|event| match event.update {
            Update::PermissionOutcome { allowed, .. } => Some(allowed),
            _ => None,
        });
        assert_eq!(asked.collect::<Vec<_>>(), [allowed], "only the write is asked about");
    }
}

#[tokio::test]
async fn long_output_goes_to_a_file() {
    let mut stage = Stage::new([run("seq 1 20000"), says("long")]);
    assert_eq!(stage.turn().await, Ended::Done);
    let (text, _) = &stage.last_results()[0];
    assert!(
        text.len() < 20_000 && text.starts_with("1\n2\n") && text.ends_with("20000\n[exit code 0]")
    );
    let path = text.split("the whole is in ").nth(1).unwrap().split(']').next().unwrap();
    let whole = std::fs::read_to_string(path).unwrap();
    assert_eq!(whole.lines().count(), 20_001);
}

/// Keeps so many events and then no more, like a disk that is full.
struct Full(FileJournal, usize);

impl Journal for Full {
    fn keep(&mut self, update: Update) -> io::Result<Event> {
        if self.1 == 0 {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.1 -= 1;
        self.0.keep(update)
    }
}

#[tokio::test]
async fn nothing_happens_that_cannot_be_written_down() {
    // The user's words, the reply, its usage; the call itself does not fit any more.
    for room in 0..4 {
        let stage = Stage::new([write("a"), says("done")]);
        let Stage { agent, mut session, journal, cancel, dir, .. } = stage;
        let mut full = Full(journal, room);
        let error = agent.turn(&mut session, &mut full, "go", &cancel).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(!dir.path().join("workspace/a").exists(), "{room}");
    }
}

#[tokio::test]
async fn every_call_has_an_end_whatever_the_body_says() {
    let mut stage = Stage::new([
        Line::calls("read_file", json!({"path": "nothing"})),
        Line::calls("edit_file", json!({"path": "nothing", "old_string": "a", "new_string": "b"})),
        Line::calls("search", json!({"pattern": "("})),
        says("so be it"),
    ]);
    assert_eq!(stage.turn().await, Ended::Done);
    let failed = stage.events().into_iter().filter(|event| {
        matches!(event.update, Update::ToolCallUpdate { status: ToolStatus::Failed, .. })
    });
    assert_eq!(failed.count(), 3);
}
