//! A gateway with one provider, and that provider's end of the wire.

use std::time::Duration;

use axum::body::Body;
use http::StatusCode;
use http_body_util::BodyExt;
use nacre_gateway::{GatewayConfig, Kind, ModelsConfig, Provider, RawModelsConfig, RawProvider};
use nacre_sandbox::fake::FakeDriver;
use nacre_wire::models::{CallInfo, CallPage, CreatePolicyToken, MadePolicyToken, UsageReport};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use crate::host::{Answer, Host};
use crate::raw::{Wire, within};

/// Opens the provider, and must never be seen by anybody else.
pub(crate) const REAL_KEY: &str = "sk-real-key-canary-0123456789";
pub(crate) const CHAT: &str = "/provider/v1/openai/chat/completions";

pub(crate) struct Stage {
    pub(crate) host: Host,
    upstream: TcpListener,
}

/// One request as the provider got it.
pub(crate) struct Arrived {
    pub(crate) head: String,
    pub(crate) body: String,
    pub(crate) wire: Wire<TcpStream>,
}

pub(crate) fn provider(name: &str, kind: Kind, address: &str) -> Provider {
    let raw = RawProvider {
        kind: Some(kind),
        base_url: Some(format!("http://{address}")),
        key_env: Some("KEY".to_owned()),
        ..RawProvider::default()
    };
    raw.resolve(name, |_| Some(REAL_KEY.to_owned())).unwrap()
}

/// One for each wire format.
pub(crate) fn config(address: &str, raw: RawModelsConfig) -> ModelsConfig {
    raw.resolve(vec![
        provider("openai", Kind::Openai, &format!("{address}/v1")),
        provider("anthropic", Kind::Anthropic, address),
        provider("google", Kind::Google, address),
    ])
}

impl Stage {
    pub(crate) async fn set() -> Self {
        Self::set_with(|_| ()).await
    }

    pub(crate) async fn set_with(change: impl FnOnce(&mut GatewayConfig)) -> Self {
        Self::set_in(crate::world::world(), change).await
    }

    pub(crate) async fn set_in(world: FakeDriver, change: impl FnOnce(&mut GatewayConfig)) -> Self {
        let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = upstream.local_addr().unwrap().to_string();
        let host = Host::start_in_as(world, |gateway| {
            gateway.models = config(&address, RawModelsConfig::default());
            change(gateway);
        });
        Self { host: host.await, upstream }
    }

    pub(crate) fn address(&self) -> String {
        self.upstream.local_addr().unwrap().to_string()
    }

    pub(crate) async fn token(
        &self,
        change: impl FnOnce(&mut CreatePolicyToken),
    ) -> MadePolicyToken {
        let mut wanted = CreatePolicyToken { name: "test".to_owned(), ..Default::default() };
        change(&mut wanted);
        self.host.admin().post_json("/admin/sandboxes/policy-tokens", &wanted).await.unwrap()
    }

    /// The next request that reaches the provider, on a connection of its own.
    pub(crate) async fn arrives(&self) -> Arrived {
        let (stream, _) = within("a call arrives", self.upstream.accept()).await.unwrap();
        Arrived::on(Wire(stream)).await
    }

    /// Nothing has: a call that is let through would be there before this one.
    pub(crate) async fn nothing_arrived(&self) {
        let token = self.token(|_| ()).await.token;
        let call = self.post(CHAT, &token, "{\"model\":\"probe\"}");
        let (answer, arrived) = tokio::join!(call, async {
            let mut arrived = self.arrives().await;
            arrived.answer("{}").await;
            arrived
        });
        assert_eq!(answer.status, StatusCode::OK);
        assert!(arrived.body.contains("probe"), "{}\n{}", arrived.head, arrived.body);
    }

    pub(crate) async fn post(&self, path: &str, token: &str, body: &str) -> Answer {
        Answer::read(self.host.send(self.call(path, token, body)).await).await
    }

    pub(crate) fn call(&self, path: &str, token: &str, body: &str) -> http::Request<Body> {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        self.host.build("POST", path, &headers, Body::from(body.to_owned()))
    }

    /// Sends a call and leaves the rest to the test.
    pub(crate) async fn begin(&self, path: &str, token: &str, body: &str) -> Wire<TcpStream> {
        let (host, length) = (self.host.address, body.len());
        let mut wire = Wire(TcpStream::connect(host).await.unwrap());
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        wire.send(head).await;
        wire
    }

    pub(crate) async fn metrics(&self) -> String {
        let admin = self.host.admin();
        let path = "/admin/sandboxes/metrics";
        let request = admin.request(http::Method::GET, path, nacre_wire::client::empty()).unwrap();
        let body = admin.send(request).await.unwrap().into_body().collect().await.unwrap();
        String::from_utf8(body.to_bytes().to_vec()).unwrap()
    }

    pub(crate) async fn until_metric(&self, line: &str) {
        for _ in 0..2000 {
            if self.metrics().await.lines().any(|found| found == line) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("never {line}: {}", self.metrics().await);
    }

    pub(crate) async fn calls(&self) -> Vec<CallInfo> {
        let page: CallPage = self.host.admin().get_json("/admin/sandboxes/calls").await.unwrap();
        page.calls
    }

    /// Waits until the newest call that was made, or was refused, is in this state: its end is written after
    /// the client has it.
    pub(crate) async fn until_call(&self, state: &str) -> CallInfo {
        let refused = |state: &str| state == "refused";
        for _ in 0..2000 {
            let calls = self.calls().await;
            let newest = calls.iter().find(|call| refused(&call.state) == refused(state));
            if let Some(call) = newest.filter(|call| call.state == state) {
                return call.clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("never {state}: {:?}", self.calls().await);
    }

    pub(crate) async fn usage(&self, by: &str) -> UsageReport {
        let path = format!("/admin/sandboxes/usage?by={by}");
        self.host.admin().get_json(&path).await.unwrap()
    }
}

impl Arrived {
    pub(crate) async fn on(mut wire: Wire<TcpStream>) -> Self {
        let head = wire.head().await;
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        within("the body comes", wire.0.read_exact(&mut body)).await.unwrap();
        Self { head, body: String::from_utf8(body).unwrap(), wire }
    }

    pub(crate) async fn answer(&mut self, body: &str) {
        self.answer_with(200, "content-type: application/json\r\n", body).await;
    }

    pub(crate) async fn answer_with(&mut self, status: u16, headers: &str, body: &str) {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}");
        self.wire.send(head).await;
    }

    /// Begins a stream of events, which ends when the connection does.
    pub(crate) async fn stream(&mut self, events: &str) {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        self.wire.send(format!("{head}{events}")).await;
    }
}

/// The message of a refusal, in whichever format.
pub(crate) fn message(answer: &Answer) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    body["error"]["message"].as_str().unwrap().to_owned()
}
