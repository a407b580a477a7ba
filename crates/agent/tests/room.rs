//! Conversations that are too long for their model.

#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

mod support;

use nacre_agent::events::{Compaction, Ended, Update};
use nacre_agent::model::{Error, Line, Message, Script};
use serde_json::json;
use support::{Stage, run, says};

/// What gave way, each time.
fn compacted(stage: &Stage) -> Vec<Compaction> {
    let change = |update| match update {
        Update::Compacted { change, before, after, .. } => {
            assert!(after < before, "{before} {after}");
            Some(change)
        }
        _ => None,
    };
    stage.events().into_iter().filter_map(|event| change(event.update)).collect()
}

/// A call that is long itself.
fn long(path: &str) -> Line {
    Line::calls("write_file", json!({"path": path, "content": "word ".repeat(3400)}))
}

#[tokio::test]
async fn old_results_go_to_files_and_the_rest_stays() {
    let lines = [run("seq 1 4000"), run("seq 4001 8000"), run("echo short"), says("done")];
    let mut stage = Stage::of(Script::new(lines).with_window(8000));
    assert_eq!(stage.turn().await, Ended::Done);
    let [change] = compacted(&stage).try_into().unwrap();
    assert_eq!((change.put_aside.len(), &change.summary), (1, &None));
    let asked = stage.script.asked();
    let Message::Results { results } = &asked[2][2] else { panic!("{:?}", asked[2]) };
    let path = results[0].text.split("run_command gave are in ").nth(1).unwrap();
    let kept = std::fs::read_to_string(path.trim_end_matches(']')).unwrap();
    assert!(kept.starts_with("1\n2\n") && kept.contains("the whole is in"), "as the model had it");
    let Message::Results { results } = &asked[2][4] else { panic!("{:?}", asked[2]) };
    assert!(results[0].text.starts_with("4001\n"), "the last one is as it was");
}

#[tokio::test]
async fn what_was_said_is_told_in_short_with_the_last_words_and_the_plan() {
    let todo = json!({"todos": [{"content": "count", "status": "in_progress"}]});
    let lines = [
        Line::calls("write_todos", todo),
        long("one"),
        long("two"),
        says("It counted to 4000."),
        says("done"),
    ];
    let mut stage = Stage::of(Script::new(lines).with_window(8000));
    assert_eq!(stage.turn().await, Ended::Done);
    let asked = stage.script.asked();
    let Message::User { text } = &asked[3][0] else { panic!("{:?}", asked[3]) };
    assert!(text.starts_with("## The owner\n\ngo\n") && asked[3].len() == 1, "{text}");
    let Message::Summary { text } = &asked[4][0] else { panic!("{:?}", asked[4]) };
    let end = "It counted to 4000.\n\nThe plan as it stands:\n- [>] count\n\n\
               The owner's last words, in full:\ngo";
    assert!(text.ends_with(end), "{text}");
    assert!(matches!(asked[4][1], Message::Assistant(_)), "a call keeps its result");
    assert_eq!(stage.session.usage.input, 50, "the summary is counted too");
    // The next turn goes on from there.
    let steps = stage.session.steps;
    stage.script.add(says("still here"));
    assert_eq!((stage.turn().await, stage.session.steps), (Ended::Done, steps + 1));
}

#[tokio::test]
async fn a_model_that_cannot_summarise_loses_nothing() {
    let broken = Line::Fails(Error::Refused("no".to_owned()));
    let mut stage =
        Stage::of(Script::new([long("one"), long("two"), broken, says("done")]).with_window(8000));
    assert_eq!(stage.turn().await, Ended::Done);
    let Message::Summary { text } = &stage.session.messages[0] else { panic!() };
    let path = text.split("All of it is in ").nth(1).unwrap().split(':').next().unwrap();
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(kept.contains("calls write_file") && kept.contains("word word"), "{kept}");
}

#[tokio::test]
async fn a_model_that_refuses_is_asked_once_more_with_less() {
    let long = || Line::Fails(Error::TooLong("9 > 8".to_owned()));
    let mut stage = Stage::new([run("seq 1 4000"), long(), says("done")]);
    assert_eq!(stage.turn().await, Ended::Done);
    assert_eq!(compacted(&stage).len(), 1);
    let mut stage = Stage::new([run("seq 1 4000"), long(), long(), says("never")]);
    let reason = "the conversation is too long for the model: 9 > 8".to_owned();
    assert_eq!(stage.turn().await, Ended::Model(reason.clone()));
    // With nothing to leave out, it is not asked again.
    let mut stage = Stage::new([long(), says("never")]);
    assert_eq!(stage.turn().await, Ended::Model(reason));
    assert_eq!(stage.script.asked().len(), 1);
}
