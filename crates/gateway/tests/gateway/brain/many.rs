//! A conversation of ten thousand events.

use std::fmt::Write;
use std::time::Instant;

use nacre_agent::events::{Content, Ended, Event, Update};
use nacre_agent::model::Reply;
use nacre_wire::conductor::CreateConversation;

use super::stage::{Talk, says};

const EVENTS: u64 = 10_000;

fn journal() -> String {
    let mut text = String::new();
    for seq in 1..=EVENTS {
        let update = match seq % 20 {
            1 => Update::UserMessageChunk { content: Content::text(format!("question {seq}")) },
            19 => {
                Update::Reply { reply: Reply { text: format!("answer {seq}"), ..Reply::default() } }
            }
            0 => Update::Ended { how: Ended::Done },
            _ => Update::AgentMessageChunk { content: Content::text(format!("a piece of {seq} ")) },
        };
        let event = Event { seq, at: seq, update };
        writeln!(text, "{}", serde_json::to_string(&event).unwrap()).unwrap();
    }
    text
}

#[tokio::test]
async fn ten_thousand_events_are_there_again_in_order() {
    let mut talk = Talk::set().await;
    let info = talk.begin(CreateConversation::default()).await;
    talk.host.stop(false).await;
    let path = talk.host.data.path().join(format!("conversations/{}.jsonl", info.id));
    std::fs::write(path, journal()).unwrap();
    talk.host.start_again().await;

    let began = Instant::now();
    let mut late = talk.follow(&info.id, EVENTS - 5).await;
    for _ in 0..5 {
        late.next().await;
    }
    println!("the last of them after {:?}", began.elapsed());
    let all = talk.events(&info.id).await;
    assert_eq!(all.len() as u64, EVENTS);
    assert!((1..).zip(&all).all(|(seq, event)| event.seq == seq));

    let began = Instant::now();
    talk.client().send_message(&info.id, "one more").await.unwrap();
    println!("spoken with after {:?}", began.elapsed());
    let mut model = talk.asked().await;
    assert!(model.body.contains("question 1\"") && model.body.contains("answer 9999"));
    model.stream(&says("still here")).await;
    drop(model);
    late.until_ended().await;
    assert!(late.seen > EVENTS);
}
