use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::events::{Compaction, Priority, PutAside, Summary, Update};
use crate::model::{Call, Outcome, Usage};
use crate::session::Measured;

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

fn exchange(calls: &[usize]) -> [Message; 2] {
    let call = |n: usize| Call { id: n.to_string(), name: "f".to_owned(), arguments: json!({}) };
    let outcome = |(n, size): (usize, &usize)| Outcome {
        call: n.to_string(),
        name: "f".to_owned(),
        text: "x".repeat(*size),
        failed: false,
    };
    let reply = Reply { calls: (0..calls.len()).map(call).collect(), ..Reply::default() };
    let results = calls.iter().enumerate().map(outcome).collect();
    [Message::Assistant(reply), Message::Results { results }]
}

fn total(messages: &[Message]) -> u64 {
    messages.iter().map(tokens).sum()
}

#[test]
fn large_results_go_first_and_the_oldest_of_them() {
    let mut messages = vec![user("go")];
    for _ in 0..5 {
        messages.extend(exchange(&[9000, 300]));
    }
    // 5 x 3000 tokens and a little; half of 24000 is reached with two of them.
    let choice = choose(&messages, total(&messages), 24_000).unwrap();
    assert_eq!(choice, Choice { put_aside: vec![(2, 0), (4, 0)], summarise: 0 });
}

#[test]
fn what_results_do_not_yield_a_summary_does() {
    let mut messages = vec![user(&"words ".repeat(1000))];
    for _ in 0..20 {
        messages.extend(exchange(&[900]));
    }
    let choice = choose(&messages, total(&messages), 10_000).unwrap();
    assert_eq!(choice.put_aside, []);
    assert!(choice.summarise > 20 && choice.summarise < messages.len() - 2, "{choice:?}");
    assert!(matches!(messages[choice.summarise], Message::Assistant(_)));
}

#[test]
fn nothing_is_done_that_gains_nothing() {
    let small = [vec![user("go")], exchange(&[10]).to_vec()].concat();
    assert_eq!(choose(&small, total(&small), 100_000), None);
    // All that is left is a summary and one exchange that has no large result.
    let summary = Message::Summary { text: "s".repeat(9000) };
    let stuck = [vec![summary], exchange(&[900]).to_vec()].concat();
    assert_eq!(choose(&stuck, total(&stuck), 3000), None);
}

#[test]
fn a_window_is_full_by_the_models_own_word() {
    let mut session = Session { messages: vec![user(&"x".repeat(3000))], ..Session::default() };
    let fill = Fill::of(&session, "", &[]);
    assert_eq!((fill.used, fill.is_full(1300), fill.is_full(1400)), (1008, true, false));
    session.measured = Some(Measured { messages: 1, tokens: 504 });
    let fill = Fill::of(&session, "", &[]);
    assert_eq!((fill.used, fill.estimated), (504, 1008));
    // Its window, in tokens as they are estimated here; a refusal says that it is smaller.
    assert_eq!((fill.window(1000, false), fill.window(1000, true)), (2000, 1008));
}

#[test]
fn a_summary_keeps_the_last_words_and_the_plan() {
    let entry = |content: &str, status| PlanEntry {
        content: content.to_owned(),
        status,
        priority: Priority::Medium,
    };
    let plan = [entry("look", PlanStatus::Completed), entry("act", PlanStatus::InProgress)];
    let gone = [vec![user("first"), user("do *this*\n")], exchange(&[10]).to_vec()].concat();
    let once = summary("It went well.", &gone, &exchange(&[1]), &plan);
    let expected = "It went well.\n\nThe plan as it stands:\n- [x] look\n- [>] act\n\n\
                    The owner's last words, in full:\ndo *this*\n";
    assert_eq!(once, expected);
    // They are still the last when nothing was said until the next time.
    let gone = [Message::Summary { text: once }];
    assert_eq!(summary("Again.", &gone, &[], &plan), expected.replace("It went well", "Again"));
    // What stays needs not be said twice.
    assert_eq!(summary("Again.", &gone, &[user("new")], &[]), "Again.");
}

#[test]
fn a_transcript_tells_who_said_what() {
    let messages = [vec![user("go")], exchange(&[5000]).to_vec()].concat();
    let text = transcript(&messages, false);
    assert!(text.starts_with("## The owner\n\ngo\n\n## The agent\n\n\n\ncalls f {}\n"), "{text}");
    assert!(text.len() < 2500 && transcript(&messages, true).len() > 5000);
    let cut = excerpt(&"ä".repeat(1000), 101);
    assert!(cut.contains("[... left out ...]") && cut.len() < 140, "{cut}");
}

fn conversations() -> impl Strategy<Value = Vec<Message>> {
    let part = prop_oneof![
        (0usize..4000).prop_map(|size| vec![user(&"w".repeat(size))]),
        proptest::collection::vec(0usize..20_000, 1..4).prop_map(|sizes| exchange(&sizes).to_vec()),
        Just(vec![Message::Summary { text: "before".to_owned() }]),
    ];
    proptest::collection::vec(part, 1..30).prop_map(|parts| parts.concat())
}

proptest! {
    /// Whatever was said: calls keep their results, the last exchange stays, it gets shorter, and the
    /// owner's last words are still there.
    #[test]
    fn a_shorter_conversation_is_still_one(messages in conversations(), window in 1000u64..60_000) {
        let before = total(&messages);
        let Some(choice) = choose(&messages, before, window) else { return Ok(()) };
        let cut = choice.summarise;
        prop_assert!(cut < messages.len());
        let parted = matches!(messages[cut], Message::Results { .. });
        prop_assert!(!parted);
        let put_aside = choice.put_aside.iter().map(|&(message, result)| {
            PutAside { message, result, text: "in a file".to_owned() }
        });
        let said = (cut > 0).then(|| Summary {
            messages: cut,
            text: summary("in short", &messages[..cut], &messages[cut..], &[]),
        });
        let change = Compaction { put_aside: put_aside.collect(), summary: said };
        let mut session = Session { messages: messages.clone(), ..Session::default() };
        session.see(&Update::Compacted { change, before, after: 0, used: Usage::default() });
        prop_assert!(total(&session.messages) < before);
        for pair in session.messages.windows(2) {
            let has_calls = matches!(&pair[0], Message::Assistant(_));
            prop_assert_eq!(has_calls, matches!(pair[1], Message::Results { .. }));
        }
        let last = messages.iter().rev().find_map(|message| match message {
            Message::User { text } => Some(text),
            _ => None,
        });
        if let Some(last) = last {
            let kept = session.messages.iter().any(|message| match message {
                Message::User { text } | Message::Summary { text } => text.ends_with(last.as_str()),
                _ => false,
            });
            prop_assert!(kept);
        }
    }
}
