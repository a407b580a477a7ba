//! Whole turns, with a model that says what the test wants and a real body.

#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

mod support;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nacre_agent::events::{Ended, Event, ToolKind, ToolStatus, Update};
use nacre_agent::journal::{FileJournal, Journal};
use nacre_agent::model::{Call, Error, Line, Message, Tool};
use nacre_agent::session::INTERRUPTED;
use nacre_agent::tools::{Answer, Context, Intent, Ready, Toolbox};
use nacre_agent::{Mode, Permission};
use serde_json::{Value, json};
use support::{Always, Stage, run, says, write};
use tokio_util::sync::CancellationToken;

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

/// An owner who takes their time.
struct Slow(Duration);

#[async_trait]
impl Permission for Slow {
    async fn ask(&self, _: &Call, _: &Intent) -> bool {
        tokio::time::sleep(self.0).await;
        true
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_turn_stands_still_while_the_owner_is_asked() {
    let mut stage = Stage::new([write("a"), write("b"), says("ok")]);
    stage.agent.mode = Mode::Ask;
    stage.agent.permission = Arc::new(Slow(Duration::from_secs(3600)));
    stage.agent.limits.time = Duration::from_secs(60);
    assert_eq!(stage.turn().await, Ended::Done);
    assert_eq!(stage.file("b").as_deref(), Some("hello\n"));
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
async fn of_output_that_was_not_kept_nobody_says_that_it_is_whole() {
    let mut stage = Stage::new([run("head -c 9000000 /dev/zero | tr '\\0' x"), says("long")]);
    assert_eq!(stage.turn().await, Ended::Done);
    let (text, _) = &stage.last_results()[0];
    assert!(!text.contains("the whole is in"), "{}", &text[8000..8400]);
    let lost = 9_000_000 - (8 << 20);
    assert!(text.contains(&format!("not the whole: {lost} bytes were not kept]")));
    let path = text.split("more of it is in ").nth(1).unwrap().split(',').next().unwrap();
    assert!(std::fs::metadata(path).unwrap().len() > 8 << 20);
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

/// A tool that goes beyond the sandbox, and a remark before each step.
struct Beyond;

#[async_trait]
impl Toolbox for Beyond {
    async fn refresh(&self) -> Vec<Update> {
        vec![Update::Notice { message: "the post is closed".to_owned() }]
    }

    fn tools(&self) -> Vec<Tool> {
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            description: "sends".to_owned(),
            schema: json!({"type": "object"}),
        };
        vec![tool("send"), tool("list_files")]
    }

    fn prepare(&self, call: &Call) -> Option<Result<Box<dyn Ready>, String>> {
        (call.name == "send").then(|| Ok(Box::new(Send) as Box<dyn Ready>))
    }
}

struct Send;

#[async_trait]
impl Ready for Send {
    fn intent(&self) -> Intent {
        let (title, kind) = ("send it".to_owned(), ToolKind::Fetch);
        Intent { title, kind, locations: Vec::new(), changes: false, asks: true }
    }

    async fn run(self: Box<Self>, _: &mut Context<'_>) -> Answer {
        Answer::ok("sent")
    }
}

#[tokio::test]
async fn what_goes_beyond_the_sandbox_is_asked_about_in_every_mode() {
    for mode in [Mode::Plan, Mode::Ask, Mode::Auto] {
        for (allowed, told) in [(true, "sent"), (false, "the owner does not want this")] {
            let mut stage = Stage::new([Line::calls("send", json!({})), says("so")]);
            stage.agent.mode = mode;
            stage.agent.permission = Arc::new(Always(allowed));
            stage.agent.toolboxes.push(Arc::new(Beyond));
            assert_eq!(stage.turn().await, Ended::Done);
            assert_eq!(stage.last_results(), [(told.to_owned(), !allowed)], "{mode:?}");
            let notices = |event: &Event| matches!(event.update, Update::Notice { .. });
            assert_eq!(stage.events().iter().filter(|event| notices(event)).count(), 2);
        }
    }
}

#[tokio::test]
async fn a_plan_is_adopted_by_name() {
    let adopt = |name: &str| Line::calls("adopt_plan", json!({"name": name}));
    let mut stage = Stage::new([adopt("mine"), adopt("nothing"), says("on it")]);
    let plans = stage.dir.path().join("workspace/plans");
    std::fs::create_dir(&plans).unwrap();
    let text = "---\nname: Mine\ndescription: my way\n---\n\n## Look\n\nTwice.\n\n## Leap\n";
    std::fs::write(plans.join("m.md"), text).unwrap();
    assert_eq!(stage.turn().await, Ended::Done);
    let steps: Vec<&str> = stage.session.plan.iter().map(|entry| entry.content.as_str()).collect();
    assert_eq!(steps, ["Look", "Leap"]);
    let asked = stage.script.asked();
    let Message::Results { results } = asked[1].last().unwrap() else { panic!("{asked:?}") };
    assert!(results[0].text.starts_with("# Mine (plans/m.md)\n"), "{}", results[0].text);
    assert!(results[0].text.ends_with("## Look\n\nTwice.\n\n## Leap"));
    let (text, failed) = &stage.last_results()[0];
    assert!(
        *failed && text.starts_with("there is no plan \"nothing\"; there are: Mine, "),
        "{text}"
    );
}
