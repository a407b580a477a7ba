//! The way out, with a driver that keeps its sandboxes in memory and servers on loopback.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use nacre_atproto::Answer;
use nacre_sandbox::fake::{FakeDriver, Guest as Inside};
use nacre_sandbox::{Driver, SandboxId};
use nacre_wire::client::{BoxStream, Client, Dial, Error};
use nacre_wire::control::SandboxState;
use nacre_wire::egress::{EgressEffect, EgressRecord, EgressVerdict, PROTOCOL};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;
use crate::host;
use crate::provider::Models;
use crate::sandboxes::label::Label;
use crate::store::{Desired, Row};

const SOON: Duration = Duration::from_secs(20);

/// Every name is this machine.
struct Here;

impl Resolve for Here {
    fn addresses(&self, _: &str) -> Answer<Vec<IpAddr>> {
        Box::pin(std::future::ready(Ok(vec!["127.0.0.1".parse().unwrap()])))
    }

    fn texts(&self, _: &str) -> Answer<Vec<String>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

/// Some names are asked of a server that is dead, until they are let go: each holds a thread.
#[derive(Clone, Default)]
struct Slow(Arc<(Mutex<bool>, std::sync::Condvar)>);

impl Resolve for Slow {
    fn addresses(&self, name: &str) -> Answer<Vec<IpAddr>> {
        if !name.starts_with("slow") {
            return Here.addresses(name);
        }
        let slow = self.0.clone();
        Box::pin(async move {
            let held = tokio::task::spawn_blocking(move || {
                let over = slow.1.wait_while(slow.0.lock().unwrap(), |over| !*over);
                drop(over.unwrap());
            });
            held.await.map_err(std::io::Error::other)?;
            Ok(Vec::new())
        })
    }

    fn texts(&self, name: &str) -> Answer<Vec<String>> {
        Here.texts(name)
    }
}

/// Lets go of the threads, or the runtime would wait for them after a test that failed.
impl Slow {
    fn let_go(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }
}

struct LetGo(Slow);

impl Drop for LetGo {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

struct Up(Inside);

#[async_trait::async_trait]
impl Dial for Up {
    async fn dial(&self) -> std::io::Result<BoxStream> {
        Ok(Box::new(self.0.dial_host()))
    }
}

struct World {
    id: SandboxId,
    egress: Egress,
    driver: FakeDriver,
    supervisor: Client,
    serving: host::WayUp,
    dir: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        Self::with(EgressConfig::default()).await
    }

    async fn with(config: EgressConfig) -> Self {
        Self::resolving(config, Arc::new(Here)).await
    }

    async fn resolving(config: EgressConfig, resolver: Arc<dyn Resolve>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let id: SandboxId = "sb-1".parse().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        let row = Row {
            id: id.clone(),
            name: "live".to_owned(),
            driver: "fake".to_owned(),
            spec: nacre_sandbox::SandboxSpec::default(),
            desired: Desired::Running,
            created_at: 1,
            run: None,
            unseeded: false,
        };
        store.insert(row, None).await.unwrap();
        let models = Models::start(dir.path(), Default::default(), None, store.clone());
        let models = models.await.unwrap();
        let egress = Egress::with(config, store, dir.path(), resolver).await.unwrap();
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let driver = FakeDriver::new(Arc::new(move |inside, _| {
            let _ = sender.send(inside);
            Box::pin(std::future::ready(()))
        }));
        driver.put(&id, SandboxState::Running);
        driver.dial(&id).await.unwrap();
        let inside = receiver.recv().await.unwrap();
        let services = host::Services {
            models,
            egress: egress.clone(),
            relayed: Default::default(),
            tickets: crate::relayed::Tickets::new().unwrap(),
        };
        let guest =
            host::Guest::new(id.clone(), Label::new("live"), Some("run-1".into()), &services);
        let serving = host::serve(Arc::new(driver.clone()), guest);
        let supervisor = Client::new(Arc::new(Up(inside)), "");
        Self { id, egress, driver, supervisor, serving, dir }
    }

    async fn rule(&self, effect: EgressEffect, target: &str) {
        let target = target.to_owned();
        let rule = EgressRule { effect, target, private: false, default: false };
        self.egress.add_rule(&self.id, &rule).await.unwrap();
    }

    async fn allow(&self, target: &str) {
        self.rule(EgressEffect::Allow, target).await;
    }

    async fn go(&self, host: &str, port: u16) -> Result<BoxStream, Error> {
        let path = format!("/host/egress?host={host}&port={port}");
        let raw = self.supervisor.switch(&path, PROTOCOL).await?;
        assert_eq!(raw.early.len(), 0);
        Ok(raw.stream)
    }

    async fn refusal(&self, host: &str, port: u16) -> ApiError {
        match self.go(host, port).await {
            Err(Error::Api(error)) => error,
            other => panic!("{host}:{port} gave {other:?}"),
        }
    }

    /// Waits until so many have ended.
    async fn records(&self, count: usize) -> Vec<EgressRecord> {
        timeout(SOON, async {
            loop {
                let query = log::Query { limit: 1000, ended: true, ..log::Query::default() };
                let records = self.egress.log().read(query).await.unwrap();
                if records.len() >= count {
                    return records;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap()
    }
}

async fn server() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Sends back what it gets, and ends when it has all of it.
async fn echo(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let (mut read, mut write) = stream.split();
            let _ = tokio::io::copy(&mut read, &mut write).await;
            let _ = write.shutdown().await;
        });
    }
}

#[tokio::test]
async fn what_is_closed_is_refused_in_words_and_written_down() {
    let world = World::new().await;
    let (_listener, port) = server().await;
    let cases = [
        ("127.0.0.1", ErrorKind::Permission),
        ("name.example.com", ErrorKind::Permission),
        ("localhost", ErrorKind::Permission),
        ("%5B::1%5D", ErrorKind::Permission),
        ("::ffff:127.0.0.1", ErrorKind::Permission),
        ("64:ff9b::7f00:1", ErrorKind::Permission),
        ("169.254.169.254", ErrorKind::Permission),
        ("0.0.0.0", ErrorKind::Permission),
        ("2130706433", ErrorKind::InvalidRequest),
        ("0x7f.1", ErrorKind::InvalidRequest),
        ("127.1", ErrorKind::InvalidRequest),
        ("a%0d%0ab", ErrorKind::InvalidRequest),
    ];
    for (host, kind) in cases {
        assert_eq!(world.refusal(host, port).await.kind, kind, "{host}");
    }
    let records = world.records(cases.len()).await;
    assert_eq!(records.len(), cases.len());
    assert!(records.iter().all(|record| record.verdict == EgressVerdict::Refused), "{records:?}");
    let named = records.iter().find(|record| record.host == "name.example.com").unwrap();
    assert_eq!(named.address.as_deref(), Some("127.0.0.1"));
    assert_eq!(
        named.reason.as_deref(),
        Some("its address 127.0.0.1 is not on the public internet")
    );
}

#[tokio::test]
async fn bytes_pass_half_closed_and_are_written_down_exactly() {
    let world = World::new().await;
    let (listener, port) = server().await;
    world.allow(&format!("127.0.0.1:{port}")).await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut all = Vec::new();
        // The answer begins when the question has ended: a half-close has to arrive.
        stream.read_to_end(&mut all).await.unwrap();
        stream.write_all(&vec![7; all.len() * 2]).await.unwrap();
    });
    let mut stream = world.go("name.example.com", port).await.unwrap();
    let view = world.egress.view(&world.id, "live");
    assert_eq!((view.open.len(), view.open[0].address.as_str()), (1, "127.0.0.1"));
    stream.write_all(&vec![1; 300_001]).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut back = Vec::new();
    timeout(SOON, stream.read_to_end(&mut back)).await.unwrap().unwrap();
    assert_eq!(back.len(), 600_002);
    let record = world.records(1).await.remove(0);
    assert_eq!(record.run.as_deref(), Some("run-1"));
    assert_eq!(
        (record.verdict, record.sent, record.received, record.host.as_str(), record.port),
        (EgressVerdict::Allowed, 300_001, 600_002, "name.example.com", port)
    );
    assert_eq!((record.sandbox.as_str(), record.sandbox_id.as_str()), ("live", "sb-1"));
    assert_eq!(world.egress.view(&world.id, "live").open, []);
    assert_eq!((world.egress.counts().sent(), world.egress.counts().open()), (300_001, 0));
}

#[tokio::test]
async fn a_change_of_the_rules_cuts_what_is_open_against_them() {
    let world = World::new().await;
    let (listener, port) = server().await;
    tokio::spawn(echo(listener));
    world.allow("127.0.0.0/8").await;
    world.allow("stays.example.com").await;
    let mut cut = world.go("goes.example.com", port).await.unwrap();
    let mut stays = world.go("stays.example.com", port).await.unwrap();
    for stream in [&mut cut, &mut stays] {
        stream.write_all(b"hello").await.unwrap();
        let mut back = [0; 5];
        timeout(SOON, stream.read_exact(&mut back)).await.unwrap().unwrap();
    }
    world.rule(EgressEffect::Deny, "goes.example.com").await;
    let mut rest = Vec::new();
    let _ = timeout(SOON, cut.read_to_end(&mut rest)).await.unwrap();
    stays.write_all(b"still").await.unwrap();
    let mut back = [0; 5];
    timeout(SOON, stays.read_exact(&mut back)).await.unwrap().unwrap();
    let record = world.records(1).await.remove(0);
    assert_eq!((record.verdict, record.sent, record.received), (EgressVerdict::Cut, 5, 5));
    assert_eq!(record.reason.as_deref(), Some("the rule \"deny goes.example.com\" is against it"));
    // Taking a rule away and closing the mode do the same.
    world.egress.remove_rule(&world.id, "127.0.0.0/8").await.unwrap();
    let _ = timeout(SOON, stays.read_to_end(&mut rest)).await.unwrap();
    world.records(2).await;
    world.egress.set_mode(&world.id, Some(EgressMode::None)).await.unwrap();
    assert_eq!(world.refusal("stays.example.com", port).await.kind, ErrorKind::Permission);
}

#[tokio::test]
async fn five_hundred_connections_at_once() {
    let world = World::new().await;
    let (listener, port) = server().await;
    tokio::spawn(echo(listener));
    world.allow("127.0.0.1").await;
    let one = async |number: u32| {
        let mut stream = world.go("many.example.com", port).await.unwrap();
        stream.write_all(&number.to_be_bytes()).await.unwrap();
        let mut back = [0; 4];
        stream.read_exact(&mut back).await.unwrap();
        assert_eq!(back, number.to_be_bytes());
        stream
    };
    let all = timeout(SOON, futures_util::future::join_all((0..500).map(one))).await.unwrap();
    assert_eq!(world.egress.view(&world.id, "live").open.len(), 500);
    drop(all);
    let records = timeout(SOON, world.records(500)).await.unwrap();
    assert!(records.iter().all(|record| (record.sent, record.received) == (4, 4)));
}

#[tokio::test]
async fn limits_refuse_and_say_which() {
    let limits = nacre_wire::egress::EgressLimits { connections: 2, connects_per_second: 1000 };
    let world = World::with(EgressConfig { limits, ..EgressConfig::default() }).await;
    let (listener, port) = server().await;
    tokio::spawn(echo(listener));
    world.allow("127.0.0.1").await;
    let held = (world.go("a.example.com", port).await, world.go("b.example.com", port).await);
    let error = world.refusal("c.example.com", port).await;
    assert_eq!(error.kind, ErrorKind::TooMany);
    assert!(error.message.ends_with("2 connections are open already"), "{}", error.message);
    drop(held);
    world.records(3).await;
    world.go("c.example.com", port).await.unwrap();
    let limits = nacre_wire::egress::EgressLimits { connections: 99, connects_per_second: 1 };
    let world = World::with(EgressConfig { limits, ..EgressConfig::default() }).await;
    world.allow("127.0.0.1").await;
    let asked = futures_util::future::join_all((0..4).map(|_| world.go("a.example.com", port)));
    let refused = asked.await.into_iter().filter(
        |asked| matches!(asked, Err(Error::Api(error)) if error.kind == ErrorKind::TooMany),
    );
    assert_eq!(refused.count(), 2, "two seconds' worth at once, and no more");
}

#[tokio::test]
async fn everything_ends_when_the_sandbox_stops() {
    let world = World::new().await;
    let (listener, port) = server().await;
    world.allow("127.0.0.1").await;
    let mut stream = world.go("a.example.com", port).await.unwrap();
    let (mut outside, _) = listener.accept().await.unwrap();
    world.driver.crash(&world.id);
    world.serving.ended().await;
    let mut rest = Vec::new();
    timeout(SOON, outside.read_to_end(&mut rest)).await.unwrap().unwrap();
    timeout(SOON, stream.read_to_end(&mut rest)).await.unwrap().unwrap();
    let query = log::Query { limit: 9, ..log::Query::default() };
    let records = world.egress.log().read(query).await.unwrap();
    assert_eq!(records[0].verdict, EgressVerdict::Broken);
    assert_eq!(records[0].reason.as_deref(), Some("the sandbox went away"));
}

#[tokio::test]
async fn a_slow_reader_holds_the_sender_back() {
    let world = World::new().await;
    let (listener, port) = server().await;
    world.allow("127.0.0.1").await;
    let mut slow = world.go("a.example.com", port).await.unwrap();
    let (mut outside, _) = listener.accept().await.unwrap();
    let most = 64 << 20;
    let mut sent: usize = 0;
    // Until nothing more is taken: what is in between is the kernel's buffers and one piece of ours.
    while sent < most {
        match timeout(Duration::from_millis(500), outside.write(&[0; 65536])).await {
            Ok(written) => sent += written.unwrap(),
            Err(_) => break,
        }
    }
    assert!(sent < most, "{sent} bytes were taken for somebody who reads nothing");
    let mut read = vec![0; sent];
    timeout(SOON, slow.read_exact(&mut read)).await.unwrap().unwrap();
}

#[tokio::test]
async fn rules_outlive_the_gateway_and_go_with_a_copy() {
    let world = World::new().await;
    world.egress.set_mode(&world.id, Some(EgressMode::AllowList)).await.unwrap();
    world.allow("*.example.com:443").await;
    world.rule(EgressEffect::Deny, "10.0.0.0/8").await;
    let before = world.egress.view(&world.id, "live");
    let copy: SandboxId = "sb-2".parse().unwrap();
    let store = world.egress.0.store.clone();
    let rows = store.sandboxes().await.unwrap();
    let row = Row { id: copy.clone(), name: "dev".to_owned(), ..rows[0].clone() };
    store.insert(row, None).await.unwrap();
    world.egress.copy(&world.id, &copy).await.unwrap();
    assert_eq!(world.egress.view(&copy, "live"), before);
    world.egress.log().close().await;
    let again = Egress::start(EgressConfig::default(), store.clone(), world.dir.path()).await;
    let again = again.unwrap();
    assert_eq!(
        (again.view(&world.id, "live"), again.view(&copy, "live")),
        (before.clone(), before)
    );
    store.delete(&copy).await.unwrap();
    assert_eq!(store.egress().await.unwrap().len(), 1, "rules go with their sandbox");
}

#[tokio::test]
async fn who_does_not_ask_for_the_protocol_gets_no_connection() {
    let world = World::new().await;
    let (listener, port) = server().await;
    world.allow("127.0.0.1").await;
    let path = format!("/host/egress?host=a.example.com&port={port}");
    let asked: Result<serde_json::Value, _> = world.supervisor.get_json(&path).await;
    assert!(matches!(asked, Err(Error::Api(error)) if error.kind == ErrorKind::InvalidRequest));
    let mut probe = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut first, _) = listener.accept().await.unwrap();
    probe.write_all(b"me").await.unwrap();
    let mut who = [0; 2];
    first.read_exact(&mut who).await.unwrap();
    assert_eq!(&who, b"me", "nothing else had come");
}

#[tokio::test]
async fn slow_names_of_one_sandbox_do_not_stop_others() {
    let limits = nacre_wire::egress::EgressLimits { connections: 9999, connects_per_second: 9999 };
    let connect_timeout = Duration::from_millis(20);
    let config = EgressConfig { limits, connect_timeout, ..EgressConfig::default() };
    let slow = Slow::default();
    let _let_go = LetGo(slow.clone());
    let world = World::resolving(config, Arc::new(slow)).await;
    let (_listener, port) = server().await;
    let other: SandboxId = "sb-2".parse().unwrap();
    let from = |id| passage::From { id, name: "any", run: None };
    // More than there are threads, though never more at a time than one sandbox may be making.
    for round in 0..3 {
        let asked = (0..300).map(async |number| {
            let name = format!("slow-{round}-{number}.example.com");
            let error = world.egress.reach(from(&world.id), &name, port).await.err().unwrap();
            assert_eq!(error.kind, ErrorKind::TimedOut, "{error:?}");
        });
        timeout(SOON, futures_util::future::join_all(asked)).await.unwrap();
    }
    // The database needs a thread, and so would another's names.
    timeout(SOON, world.egress.0.store.egress()).await.unwrap().unwrap();
    let answered = timeout(SOON, world.egress.reach(from(&other), "quick.example.com", port));
    let error = answered.await.unwrap().err().unwrap();
    assert_eq!(error.kind, ErrorKind::Permission, "it was looked up: {error:?}");
}

#[tokio::test]
async fn refusals_are_no_faster_than_connections_and_too_many_are_one_row() {
    let limits = nacre_wire::egress::EgressLimits { connections: 99, connects_per_second: 5 };
    let world = World::with(EgressConfig { limits, ..EgressConfig::default() }).await;
    let from = passage::From { id: &world.id, name: "live", run: None };
    let mut kinds = Vec::new();
    for number in 0..200 {
        let hosts = [format!("127.0.0.{number}"), format!("no host {number}")];
        for host in hosts {
            kinds.push(world.egress.reach(from, &host, 80).await.err().unwrap().kind);
        }
    }
    let judged = kinds.iter().filter(|kind| **kind != ErrorKind::TooMany).count();
    assert!((10..100).contains(&judged), "{judged}");
    let records = world.records(2).await;
    let rest: Vec<_> = records.iter().filter(|record| record.host == "*").collect();
    assert_eq!((rest.len(), rest[0].times as usize), (1, 400 - judged));
    assert_eq!(records.len(), judged + 1);
    assert_eq!(rest[0].reason.as_deref(), Some("more than 5 connections a second"));
}

#[tokio::test]
async fn open_connections_survive_kill_in_the_record() {
    let world = World::new().await;
    let (listener, port) = server().await;
    tokio::spawn(echo(listener));
    world.allow("127.0.0.1").await;
    let mut stream = world.go("a.example.com", port).await.unwrap();
    stream.write_all(b"hello").await.unwrap();
    let mut back = [0; 5];
    timeout(SOON, stream.read_exact(&mut back)).await.unwrap().unwrap();
    let query = log::Query { limit: 9, ..log::Query::default() };
    let open = world.egress.log().read(query.clone()).await.unwrap();
    assert_eq!((open.len(), open[0].verdict, open[0].sent), (1, EgressVerdict::Open, 5));
    // What is in the file now is all that a gateway finds after this one was killed.
    let killed = tempfile::tempdir().unwrap();
    for name in ["egress.db", "egress.db-wal"] {
        std::fs::copy(world.dir.path().join(name), killed.path().join(name)).unwrap();
    }
    let found = log::Log::open(&killed.path().join("egress.db"), 100).unwrap();
    let found = found.read(query).await.unwrap();
    assert_eq!((found.len(), found[0].verdict), (1, EgressVerdict::Broken));
    assert_eq!((found[0].host.as_str(), found[0].port), ("a.example.com", port));
    assert_eq!(found[0].reason.as_deref(), Some("the gateway was killed"));
}

#[tokio::test]
async fn a_gateway_that_stops_writes_down_what_was_open() {
    let world = World::new().await;
    let (listener, port) = server().await;
    tokio::spawn(echo(listener));
    world.allow("127.0.0.1").await;
    let mut streams = Vec::new();
    for _ in 0..50 {
        let mut stream = world.go("a.example.com", port).await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        stream.read_exact(&mut [0; 5]).await.unwrap();
        streams.push(stream);
    }
    let World { egress, serving, dir, .. } = world;
    egress.stopping();
    drop(serving);
    egress.close().await;
    let again = log::Log::open(&dir.path().join("egress.db"), 100).unwrap();
    let query = log::Query { limit: 99, ..log::Query::default() };
    let records = again.read(query).await.unwrap();
    assert_eq!(records.len(), 50);
    for record in records {
        assert_eq!((record.verdict, record.sent, record.received), (EgressVerdict::Broken, 5, 5));
        assert_eq!(record.reason.as_deref(), Some("the gateway stopped"));
    }
}
