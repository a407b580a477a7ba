//! Models from inside a sandbox, over the way up.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use http::StatusCode;
use nacre_gateway::{RawModelsConfig, Reload};
use nacre_sandbox::BoxStream;
use nacre_sandbox::fake::{FakeDriver, Guest};
use nacre_wire::client::{Client, Dial};
use nacre_wire::models::{AskEnvironment, GuestEnvironment, PROTOCOL, PolicyTokenList};
use tokio::sync::mpsc;

use super::stage::{Stage, config};
use crate::raw::{Wire, within};

const CHAT: &str = super::stage::CHAT;
const BODY: &str = "{\"model\":\"gpt-4o\",\"max_tokens\":1}";

struct ToHost(Guest);

#[async_trait]
impl Dial for ToHost {
    async fn dial(&self) -> io::Result<BoxStream> {
        Ok(Box::new(self.0.dial_host()))
    }
}

/// A sandbox as its supervisor knows it.
struct Inside(Client);

impl Inside {
    /// Of the sandbox that is called so.
    async fn of(stage: &Stage, world: &mut World, name: &str) -> Self {
        let door = stage.host.admin().under(&format!("/admin/sandboxes/{name}/door"));
        // The door is dialed, and whoever stands behind it shows up.
        let _ = door.health().await;
        let guest = within("the guest shows up", world.guests.recv()).await.unwrap();
        Self(Client::new(Arc::new(ToHost(guest)), ""))
    }

    async fn environment(&self, asked: AskEnvironment) -> GuestEnvironment {
        within("the host answers", self.0.post_json("/host/environment", &asked)).await.unwrap()
    }

    /// A connection as a process in the sandbox has it.
    async fn connect(&self) -> Wire<BoxStream> {
        Wire(self.0.switch("/host/provider", PROTOCOL).await.unwrap().stream)
    }

    async fn post(&self, path: &str, token: &str) -> Wire<BoxStream> {
        let mut wire = self.connect().await;
        wire.send(format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:8002\r\nauthorization: Bearer {token}\r\n\
             content-length: {}\r\n\r\n{BODY}",
            BODY.len()
        ))
        .await;
        wire
    }
}

/// Sandboxes whose guests are handed to the test.
struct World {
    guests: mpsc::UnboundedReceiver<Guest>,
}

fn world() -> (FakeDriver, World) {
    let (sender, guests) = mpsc::unbounded_channel();
    let driver = FakeDriver::new(Arc::new(move |guest, stream| {
        let sender = sender.clone();
        Box::pin(async move {
            let mut wire = Wire(stream);
            let head = wire.head().await;
            if head.starts_with("GET /supervisor/health") {
                let _ = sender.send(guest);
            }
            wire.send("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}").await;
        })
    }));
    (driver, World { guests })
}

#[tokio::test]
async fn the_variables_lead_to_models_and_only_from_their_own_sandbox() {
    let (driver, mut world) = world();
    let stage = Stage::set_in(driver, |_| ()).await;
    stage.host.create("other").await;
    let live = Inside::of(&stage, &mut world, "live").await;
    let other = Inside::of(&stage, &mut world, "other").await;
    let told = live.environment(AskEnvironment::default()).await;
    let token = told.token.clone().unwrap();
    assert_eq!(told.variables["OPENAI_API_KEY"], token);
    assert_eq!(told.variables["OPENAI_BASE_URL"], "http://127.0.0.1:8002/provider/v1/openai");
    assert_eq!(told.variables["ANTHROPIC_AUTH_TOKEN"], token);
    assert_eq!(told.variables["GEMINI_API_KEY"], token);

    let (mut client, ()) = tokio::join!(live.post(CHAT, &token), async {
        stage
            .arrives()
            .await
            .answer("{\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}")
            .await;
    });
    assert!(client.head().await.starts_with("HTTP/1.1 200"));
    let id = stage.host.info("live").await.id;
    assert_eq!(stage.until_call("settled").await.sandbox, Some(id));

    let theirs = other.environment(AskEnvironment::default()).await.token.unwrap();
    assert_ne!(theirs, token);
    assert!(other.post(CHAT, &token).await.head().await.starts_with("HTTP/1.1 401"));
    assert!(live.post(CHAT, &theirs).await.head().await.starts_with("HTTP/1.1 401"));
    let outside = stage.post(CHAT, &token, BODY).await;
    assert_eq!(outside.status, StatusCode::UNAUTHORIZED, "it works inside only");
    stage.nothing_arrived().await;
}

/// Processes of a sandbox are not its supervisor.
#[tokio::test]
async fn nothing_but_models_is_behind_that_connection() {
    let (driver, mut world) = world();
    let stage = Stage::set_in(driver, |_| ()).await;
    let live = Inside::of(&stage, &mut world, "live").await;
    let token = live.environment(AskEnvironment::default()).await.token.unwrap();
    for path in
        ["/host/version", "/host/environment", "/admin/sandboxes", "/", "/supervisor/health"]
    {
        let head = live.post(path, &token).await.head().await;
        assert!(head.starts_with("HTTP/1.1 404"), "{path}: {head}");
    }
    for path in
        ["http://127.0.0.1:8002/provider/v1/openai/chat/completions", "/provider/v1/openai/../x"]
    {
        let head = live.post(path, &token).await.head().await;
        assert!(head.starts_with("HTTP/1.1 4"), "{path}: {head}");
    }
    stage.nothing_arrived().await;
}

#[tokio::test]
async fn it_ends_with_the_sandbox_and_connections_are_bounded() {
    let (driver, mut world) = world();
    let stage = Stage::set_in(driver, |_| ()).await;
    stage.host.create("work").await;
    let work = Inside::of(&stage, &mut world, "work").await;
    let token = work.environment(AskEnvironment::default()).await.token.unwrap();
    let mut held = Vec::new();
    while held.len() < 256 {
        held.push(work.connect().await);
    }
    let refused = work.0.switch("/host/provider", PROTOCOL).await.unwrap_err();
    assert!(refused.to_string().contains("256 connections"), "{refused}");
    held.truncate(200);
    // The end of a connection is noticed a moment later.
    let mut client = loop {
        match work.0.switch("/host/provider", PROTOCOL).await {
            Ok(raw) => break Wire(raw.stream),
            Err(_) => tokio::task::yield_now().await,
        }
    };
    client
        .send(format!(
            "POST {CHAT} HTTP/1.1\r\nhost: x\r\nx-api-key: {token}\r\ncontent-length: {}\r\n\r\n{BODY}",
            BODY.len()
        ))
        .await;
    let mut arrived = stage.arrives().await;
    stage.host.operate("work", "stop").await.unwrap();
    arrived.wire.ends().await;
    client.ends().await;
    held[0].ends().await;

    stage.host.admin().delete("/admin/sandboxes/work").await.unwrap();
    let list: PolicyTokenList =
        stage.host.admin().get_json("/admin/sandboxes/policy-tokens").await.unwrap();
    let id = stage.host.info("live").await.id;
    let others = list.tokens.iter().filter(|token| token.scope.sandbox.as_ref() != Some(&id));
    assert_eq!(others.count(), 0, "those of a sandbox that is gone are gone");
}

#[tokio::test]
async fn processes_keep_their_token_when_the_gateway_restarts() {
    let (driver, mut world) = world();
    let mut stage = Stage::set_in(driver, |_| ()).await;
    let live = Inside::of(&stage, &mut world, "live").await;
    let told = live.environment(AskEnvironment::default()).await;
    stage.host.kill().await;
    stage.host.start_again().await;
    let held = AskEnvironment { token: told.token.clone(), version: None };
    assert_eq!(live.environment(held).await, told);
    // A supervisor that knows nothing is a new one, and so are its processes.
    stage.host.kill().await;
    stage.host.start_again().await;
    let fresh = live.environment(AskEnvironment::default()).await;
    assert_ne!(fresh.token, told.token);
    let old = told.token.unwrap();
    assert!(live.post(CHAT, &old).await.head().await.starts_with("HTTP/1.1 401"));
}

#[tokio::test]
async fn a_new_provider_is_told_at_once() {
    let (driver, mut world) = world();
    let stage = Stage::set_in(driver, |gateway| {
        let address = "127.0.0.1:1".to_owned();
        gateway.models = RawModelsConfig::default().resolve(Vec::new());
        gateway.reload_models =
            Some(Reload(Arc::new(move || Ok(config(&address, RawModelsConfig::default())))));
    })
    .await;
    let live = Inside::of(&stage, &mut world, "live").await;
    let none = live.environment(AskEnvironment::default()).await;
    assert!(none.variables.is_empty() && none.token.is_none());
    let waiting = live.environment(AskEnvironment { token: None, version: Some(none.version) });
    let reload = async {
        tokio::task::yield_now().await;
        let admin = stage.host.admin();
        admin
            .post_json::<serde_json::Value>("/admin/sandboxes/providers/reload", &())
            .await
            .unwrap();
    };
    let (told, ()) = tokio::join!(waiting, reload);
    assert!(told.variables.contains_key("OPENAI_BASE_URL"), "{told:?}");
}
