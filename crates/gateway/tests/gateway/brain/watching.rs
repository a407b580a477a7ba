//! Those who read along: they come, go, are slow and are many, and the turn does not care.

use http_body_util::BodyExt;
use nacre_agent::events::{Ended, Event, Update};
use nacre_wire::client::empty;
use nacre_wire::conductor::{ChangeConversation, CreateConversation};

use super::stage::{Talk, stops, word};
use crate::raw::within;

#[tokio::test]
async fn who_comes_back_gets_what_they_missed_once_and_then_what_comes() {
    let talk = Talk::set().await;
    let (info, mut model) = talk.speak(CreateConversation::default()).await;
    let mut first = talk.follow(&info.id, 0).await;
    let mut second = talk.follow(&info.id, 0).await;
    model.stream(&word("one ")).await;
    let words = |update: &Update| matches!(update, Update::AgentMessageChunk { .. });
    first.until(words).await;
    let seen = first.seen;
    drop(first);
    // While nobody but the second is there.
    for text in ["two ", "three "] {
        model.wire.send(word(text)).await;
    }
    second.until(words).await;
    let mut back = talk.follow(&info.id, seen).await;
    model.wire.send(word("four ")).await;
    model.wire.send(stops()).await;
    drop(model);
    for reader in [&mut back, &mut second] {
        let Update::Ended { how: Ended::Done } = reader.until_ended().await.update else {
            panic!()
        };
    }
    assert_eq!(back.seen, second.seen);
}

#[tokio::test]
async fn a_turn_needs_nobody_to_watch_it() {
    let talk = Talk::set().await;
    let (info, mut model) = talk.speak(CreateConversation::default()).await;
    model.stream(&word("alone")).await;
    model.wire.send(stops()).await;
    drop(model);
    let after = talk.until_steps(&info.id, 1).await;
    let events = talk.events(&info.id).await;
    assert_eq!(events.len() as u64, after.seq);
    let Some(Update::Ended { how: Ended::Done }) = events.last().map(|event| &event.update) else {
        panic!("{events:?}")
    };
}

/// As a browser's own client has them, with the header that it sends by itself.
#[tokio::test]
async fn events_are_a_stream_that_browsers_know() {
    let talk = Talk::set().await;
    let (info, mut model) = talk.speak(CreateConversation::default()).await;
    model.stream(&word("hello")).await;
    model.wire.send(stops()).await;
    drop(model);
    talk.until_idle(&info.id).await;
    let all = talk.events(&info.id).await;
    let client = talk.client();
    let get = async |query: &str, last: Option<&'static str>| {
        let path = format!("/conductor/conversations/{}/events?{query}", info.id);
        let mut request = client.request(http::Method::GET, &path, empty()).unwrap();
        if let Some(last) = last {
            request.headers_mut().insert("last-event-id", last.parse().unwrap());
        }
        let response = client.send(request).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let body = within("it ends", response.into_body().collect()).await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        let mut events = Vec::new();
        for block in text.split_terminator("\n\n") {
            let (id, data) = block.split_once('\n').unwrap();
            let event: Event = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(id, format!("id: {}", event.seq));
            events.push(event);
        }
        events
    };
    assert_eq!(get("follow=false", None).await, all);
    assert_eq!(get("follow=false&after=2", None).await, all[2..]);
    assert_eq!(get("follow=false&after=1", Some("3")).await, all[3..]);
}

#[tokio::test]
async fn a_title_and_a_role_are_changed_and_listed_last_used_first() {
    let talk = Talk::set().await;
    let old = talk.begin(CreateConversation::default()).await;
    let new = talk.begin(CreateConversation::default()).await;
    let wanted = ChangeConversation {
        title: Some("about\nthe site".to_owned()),
        role: Some("live".to_owned()),
        ..ChangeConversation::default()
    };
    let changed = talk.client().change_conversation(&old.id, &wanted).await.unwrap();
    assert_eq!((changed.title.as_str(), changed.role.as_deref()), ("about", Some("live")));
    let mut talk = talk;
    talk.host.stop(false).await;
    talk.host.start_again().await;
    let listed = talk.client().conversations().await.unwrap().conversations;
    let ids: Vec<_> = listed.iter().map(|info| info.id.as_str()).collect();
    assert!(ids == [old.id.as_str(), new.id.as_str()] || old.updated_at == new.updated_at);
    assert!(listed.contains(&changed), "{listed:?}");
}
