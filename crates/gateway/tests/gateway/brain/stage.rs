//! A gateway that can be spoken with, and the model's end of the wire.

use std::collections::BTreeMap;
use std::time::Duration;

use nacre_agent::events::{Event, Update};
use nacre_gateway::{
    Dollars, GatewayConfig, Kind, RawAgentConfig, RawConversationsConfig, RawModelsConfig,
    RawPrice, RawProvider,
};
use nacre_sandbox::fake::FakeDriver;
use nacre_wire::client::{Client, ConversationStream};
use nacre_wire::conductor::{ConversationInfo, ConversationState, CreateConversation};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::host::Host;
use crate::models::stage::{Arrived, REAL_KEY};
use crate::raw::{Wire, within};
use crate::world::world;

pub(crate) struct Talk {
    pub(crate) host: Host,
    upstream: TcpListener,
}

impl Talk {
    pub(crate) async fn set() -> Self {
        Self::set_with(|_| ()).await
    }

    pub(crate) async fn set_with(change: impl FnOnce(&mut GatewayConfig)) -> Self {
        Self::set_up(world(), |_| (), change).await
    }

    /// With more said of the provider.
    pub(crate) async fn set_by(
        provided: impl FnOnce(&mut RawProvider),
        change: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        Self::set_up(world(), provided, change).await
    }

    pub(crate) async fn set_in(
        sandboxes: FakeDriver,
        change: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        Self::set_up(sandboxes, |_| (), change).await
    }

    async fn set_up(
        sandboxes: FakeDriver,
        provided: impl FnOnce(&mut RawProvider),
        change: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dollars = |amount| Dollars::new(amount).unwrap();
        let price =
            RawPrice { input: dollars(1.0), output: dollars(2.0), cached: None, cache_write: None };
        let mut provider = RawProvider {
            kind: Some(Kind::OpenaiCompatible),
            base_url: Some(format!("http://{}/v1", upstream.local_addr().unwrap())),
            key_env: Some("KEY".to_owned()),
            prices: BTreeMap::from([("m".to_owned(), price)]),
            ..RawProvider::default()
        };
        provided(&mut provider);
        let provider = provider.resolve("local", |_| Some(REAL_KEY.to_owned())).unwrap();
        let host = Host::start_in_as(sandboxes, |gateway| {
            gateway.models = RawModelsConfig::default().resolve(vec![provider]);
            let raw = RawConversationsConfig::default();
            gateway.conversations =
                raw.resolve(RawAgentConfig { model: Some("local/m".to_owned()), window: None });
            change(gateway);
        });
        Self { host: host.await, upstream }
    }

    pub(crate) fn client(&self) -> Client {
        self.host.admin().under("/admin/sandboxes")
    }

    pub(crate) async fn begin(&self, wanted: CreateConversation) -> ConversationInfo {
        self.client().create_conversation(&wanted).await.unwrap()
    }

    /// A conversation whose first turn is under way, and the model that was asked.
    pub(crate) async fn speak(&self, wanted: CreateConversation) -> (ConversationInfo, Arrived) {
        let info = self.begin(wanted).await;
        self.client().send_message(&info.id, "go").await.unwrap();
        (info, self.asked().await)
    }

    /// The next time that the model is asked.
    pub(crate) async fn asked(&self) -> Arrived {
        let (stream, _) = within("the model is asked", self.upstream.accept()).await.unwrap();
        Arrived::on(Wire(stream)).await
    }

    pub(crate) async fn follow(&self, id: &str, after: u64) -> Following {
        let stream = self.client().conversation_events(id, after, true).await.unwrap();
        Following { stream, seen: after }
    }

    /// Everything there is now.
    pub(crate) async fn events(&self, id: &str) -> Vec<Event> {
        let mut stream = self.client().conversation_events(id, 0, false).await.unwrap();
        let mut events = Vec::new();
        while let Some(event) = within("events come", stream.next()).await.unwrap() {
            events.push(event);
        }
        events
    }

    pub(crate) async fn info(&self, id: &str) -> ConversationInfo {
        self.client().conversation(id).await.unwrap()
    }

    /// Waits until it looks right: what is known of a turn is written behind its last event.
    pub(crate) async fn until(
        &self,
        id: &str,
        good: impl Fn(&ConversationInfo) -> bool,
    ) -> ConversationInfo {
        for _ in 0..4000 {
            let info = self.info(id).await;
            if good(&info) {
                return info;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it never came to that: {:?}", self.info(id).await);
    }

    pub(crate) async fn until_idle(&self, id: &str) -> ConversationInfo {
        self.until(id, |info| info.state == ConversationState::Idle).await
    }

    /// And what is known of it says so.
    pub(crate) async fn until_steps(&self, id: &str, steps: u64) -> ConversationInfo {
        let done =
            |info: &ConversationInfo| info.state == ConversationState::Idle && info.steps == steps;
        self.until(id, done).await
    }
}

/// One client that reads along.
pub(crate) struct Following {
    stream: ConversationStream,
    pub(crate) seen: u64,
}

impl Following {
    /// The next event: none is left out, and none comes twice.
    pub(crate) async fn next(&mut self) -> Event {
        let next = within("an event comes", self.stream.next::<Event>()).await.unwrap();
        let event = next.expect("it goes on");
        assert_eq!(event.seq, self.seen + 1);
        self.seen = event.seq;
        event
    }

    pub(crate) async fn until(&mut self, good: impl Fn(&Update) -> bool) -> Event {
        loop {
            let event = self.next().await;
            if good(&event.update) {
                return event;
            }
        }
    }

    pub(crate) async fn until_ended(&mut self) -> Event {
        self.until(|update| matches!(update, Update::Ended { .. })).await
    }

    pub(crate) async fn end(mut self) {
        let end = within("the stream ends", self.stream.next::<Event>()).await.unwrap();
        assert_eq!(end, None);
    }
}

fn chunk(delta: Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    format!("data: {}\n\n", json!({ "id": "x", "model": "m", "choices": [choice] }))
}

fn end(finish: &str) -> String {
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
    let usage = json!({ "id": "x", "model": "m", "choices": [], "usage": usage });
    format!("{}data: {usage}\n\ndata: [DONE]\n\n", chunk(json!({}), Some(finish)))
}

/// The beginning of an answer in words, which goes on.
pub(crate) fn word(text: &str) -> String {
    chunk(json!({ "role": "assistant", "content": text }), None)
}

pub(crate) fn says(text: &str) -> String {
    format!("{}{}", word(text), end("stop"))
}

pub(crate) fn stops() -> String {
    end("stop")
}

pub(crate) fn calls(id: &str, name: &str, arguments: Value) -> String {
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    let call = json!({ "index": 0, "id": id, "type": "function", "function": function });
    let delta = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    format!("{}{}", chunk(delta, None), end("tool_calls"))
}

/// A call that changes something.
pub(crate) fn writes(id: &str) -> String {
    calls(id, "write_file", json!({ "path": "a.txt", "content": "hello\n" }))
}
