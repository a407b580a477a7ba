//! What every driver must do, as tests that any of them can be run through.
//!
//! [`conformance_tests!`](crate::conformance_tests) turns a [`Subject`] into one test per rule. What
//! stands behind the doors must answer `/supervisor/version`, keep files put at
//! `/supervisor/files/content`, and pass `/supervisor/host` up to its host.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use nacre_wire::client::{BoxStream, Client, Dial, WriteOptions};
use nacre_wire::control::SandboxState;
use nacre_wire::generation::Range;
use nacre_wire::status::Version;

use crate::{Driver, Error, SandboxId, SandboxSpec};

/// A driver under test.
pub struct Subject {
    /// A driver on the same sandboxes as those it made before, as after a restart of the host
    /// process. The one before is gone by then.
    pub restart: Box<dyn Fn() -> Arc<dyn Driver>>,
    /// Whatever has to live as long as the subject.
    pub keep: Box<dyn std::any::Any>,
}

/// One test per rule; `$subject` is an expression that makes a fresh [`Subject`].
#[macro_export]
macro_rules! conformance_tests {
    ($subject:expr) => {
        $crate::conformance_tests!(@each $subject;
            a_new_sandbox_is_stopped
            creating_one_twice_is_refused
            a_started_sandbox_answers
            starting_one_twice_is_refused
            an_unknown_sandbox_is_not_found
            a_stopped_sandbox_cannot_be_reached
            stopping_twice_is_no_error
            files_survive_stop_and_start
            a_paused_sandbox_waits
            a_paused_sandbox_can_be_stopped
            destroying_leaves_nothing
            an_exit_is_noticed
            many_live_at_once
            a_restarted_host_finds_them_again
            an_abandoned_start_can_be_recovered
            the_inside_reaches_its_host
            what_it_uses_can_be_asked
            a_fork_has_the_files_and_goes_its_own_way
            a_stopped_sandbox_can_be_forked
            a_fork_never_replaces_a_sandbox
            a_fork_of_nobody_leaves_nothing
        );
    };
    (@each $subject:expr; $($rule:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                $crate::conformance::$rule($subject).await;
            }
        )*
    };
}

struct Door(Arc<dyn Driver>, SandboxId);

#[async_trait]
impl Dial for Door {
    async fn dial(&self) -> std::io::Result<BoxStream> {
        self.0.dial(&self.1).await.map_err(std::io::Error::other)
    }
}

/// A client for the supervisor in a sandbox.
pub fn client(driver: &Arc<dyn Driver>, id: &SandboxId) -> Client {
    Client::new(Arc::new(Door(driver.clone(), id.clone())), "")
}

fn id(name: &str) -> SandboxId {
    name.parse().expect("a sandbox id")
}

async fn started(subject: &Subject) -> (Arc<dyn Driver>, SandboxId) {
    let (driver, id) = ((subject.restart)(), id("box"));
    driver.create(&id, &SandboxSpec::default()).await.expect("create");
    driver.start(&id).await.expect("start");
    (driver, id)
}

async fn answers(driver: &Arc<dyn Driver>, id: &SandboxId) -> bool {
    let client = client(driver, id);
    tokio::time::timeout(Duration::from_secs(20), client.version())
        .await
        .is_ok_and(|answer| answer.is_ok())
}

pub async fn a_new_sandbox_is_stopped(subject: Subject) {
    let driver = (subject.restart)();
    driver.create(&id("box"), &SandboxSpec::default()).await.expect("create");
    assert_eq!(driver.state(&id("box")).await.expect("state"), SandboxState::Stopped);
}

pub async fn creating_one_twice_is_refused(subject: Subject) {
    let driver = (subject.restart)();
    driver.create(&id("box"), &SandboxSpec::default()).await.expect("create");
    let again = driver.create(&id("box"), &SandboxSpec::default()).await;
    assert!(matches!(again, Err(Error::Exists(_))), "{again:?}");
}

pub async fn a_started_sandbox_answers(subject: Subject) {
    let (driver, id) = started(&subject).await;
    assert_eq!(driver.state(&id).await.expect("state"), SandboxState::Running);
    assert!(answers(&driver, &id).await);
    driver.destroy(&id).await.expect("destroy");
}

pub async fn starting_one_twice_is_refused(subject: Subject) {
    let (driver, id) = started(&subject).await;
    let again = driver.start(&id).await;
    assert!(matches!(again, Err(Error::State { state: SandboxState::Running, .. })), "{again:?}");
    assert!(answers(&driver, &id).await, "the refused start did no harm");
    driver.destroy(&id).await.expect("destroy");
}

pub async fn an_unknown_sandbox_is_not_found(subject: Subject) {
    let (driver, id) = ((subject.restart)(), id("nobody"));
    let answers = [
        driver.start(&id).await.err(),
        driver.pause(&id).await.err(),
        driver.resume(&id).await.err(),
        driver.stop(&id, Duration::ZERO).await.err(),
        driver.dial(&id).await.err(),
        driver.accept(&id).await.err(),
        driver.state(&id).await.err(),
        driver.stats(&id).await.err(),
        driver.logs(&id, 100).await.err(),
    ];
    for answer in answers {
        assert!(matches!(answer, Some(Error::NotFound(_))), "{answer:?}");
    }
    driver.destroy(&id).await.expect("what does not exist is destroyed already");
}

pub async fn a_stopped_sandbox_cannot_be_reached(subject: Subject) {
    let (driver, id) = started(&subject).await;
    driver.stop(&id, Duration::from_secs(5)).await.expect("stop");
    assert_eq!(driver.state(&id).await.expect("state"), SandboxState::Stopped);
    let dialled = driver.dial(&id).await;
    assert!(
        matches!(dialled, Err(Error::State { state: SandboxState::Stopped, .. })),
        "{dialled:?}"
    );
}

pub async fn stopping_twice_is_no_error(subject: Subject) {
    let (driver, id) = started(&subject).await;
    driver.stop(&id, Duration::from_secs(5)).await.expect("stop");
    driver.stop(&id, Duration::from_secs(5)).await.expect("stop again");
}

pub async fn files_survive_stop_and_start(subject: Subject) {
    let (driver, id) = started(&subject).await;
    let written = client(&driver, &id).write("a.txt", "pearl", &WriteOptions::default()).await;
    written.expect("write");
    driver.stop(&id, Duration::from_secs(5)).await.expect("stop");
    driver.start(&id).await.expect("start");
    assert_eq!(client(&driver, &id).read("a.txt").await.expect("read"), "pearl");
    driver.destroy(&id).await.expect("destroy");
}

pub async fn a_paused_sandbox_waits(subject: Subject) {
    let (driver, id) = started(&subject).await;
    if !driver.capabilities().pause {
        let refused = driver.pause(&id).await;
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
        return driver.destroy(&id).await.expect("destroy");
    }
    driver.pause(&id).await.expect("pause");
    assert_eq!(driver.state(&id).await.expect("state"), SandboxState::Paused);
    let dialled = driver.dial(&id).await;
    assert!(
        matches!(dialled, Err(Error::State { state: SandboxState::Paused, .. })),
        "{dialled:?}"
    );
    driver.resume(&id).await.expect("resume");
    assert!(answers(&driver, &id).await);
    driver.destroy(&id).await.expect("destroy");
}

pub async fn a_paused_sandbox_can_be_stopped(subject: Subject) {
    let (driver, id) = started(&subject).await;
    if driver.capabilities().pause {
        driver.pause(&id).await.expect("pause");
    }
    driver.stop(&id, Duration::from_secs(5)).await.expect("stop");
    assert_eq!(driver.state(&id).await.expect("state"), SandboxState::Stopped);
}

pub async fn destroying_leaves_nothing(subject: Subject) {
    let (driver, id) = started(&subject).await;
    client(&driver, &id).write("a.txt", "old", &WriteOptions::default()).await.expect("write");
    driver.destroy(&id).await.expect("destroy");
    assert!(matches!(driver.state(&id).await, Err(Error::NotFound(_))));
    assert!(driver.reconcile().await.expect("reconcile").is_empty());
    driver.create(&id, &SandboxSpec::default()).await.expect("create again");
    driver.start(&id).await.expect("start again");
    assert!(client(&driver, &id).read("a.txt").await.is_err(), "a new sandbox has no old files");
    driver.destroy(&id).await.expect("destroy");
}

pub async fn an_exit_is_noticed(subject: Subject) {
    let (driver, id) = started(&subject).await;
    let watching = {
        let (driver, id) = (driver.clone(), id.clone());
        tokio::spawn(async move { driver.exited(&id).await })
    };
    driver.stop(&id, Duration::from_secs(5)).await.expect("stop");
    watching.await.expect("noticed");
    driver.exited(&id).await;
}

pub async fn many_live_at_once(subject: Subject) {
    let driver = (subject.restart)();
    let lives = (0..8).map(|number| {
        let (driver, id) = (driver.clone(), id(&format!("box-{number}")));
        tokio::spawn(async move {
            driver.create(&id, &SandboxSpec::default()).await.expect("create");
            driver.start(&id).await.expect("start");
            let client = client(&driver, &id);
            client.write("who", id.to_string(), &WriteOptions::default()).await.expect("write");
            assert_eq!(client.read("who").await.expect("read"), id.to_string());
            driver.destroy(&id).await.expect("destroy");
        })
    });
    for life in lives.collect::<Vec<_>>() {
        life.await.expect("a whole life");
    }
}

pub async fn a_restarted_host_finds_them_again(subject: Subject) {
    let (driver, runs) = started(&subject).await;
    let stopped = id("stopped");
    driver.create(&stopped, &SandboxSpec::default()).await.expect("create");
    drop(driver);
    let driver = (subject.restart)();
    let found = driver.reconcile().await.expect("reconcile");
    let expected =
        [(runs.clone(), SandboxState::Running), (stopped.clone(), SandboxState::Stopped)];
    assert_eq!(found, expected);
    assert!(answers(&driver, &runs).await, "it lived on");
    driver.destroy(&runs).await.expect("destroy");
    driver.destroy(&stopped).await.expect("destroy");
}

pub async fn an_abandoned_start_can_be_recovered(subject: Subject) {
    let (driver, id) = ((subject.restart)(), id("box"));
    driver.create(&id, &SandboxSpec::default()).await.expect("create");
    for wait in [0, 1, 3, 10] {
        let starting = driver.start(&id);
        let _ = tokio::time::timeout(Duration::from_millis(wait), starting).await;
        driver.reconcile().await.expect("reconcile");
        driver.stop(&id, Duration::ZERO).await.expect("stop");
    }
    driver.start(&id).await.expect("start");
    assert!(answers(&driver, &id).await);
    driver.destroy(&id).await.expect("destroy");
}

pub async fn the_inside_reaches_its_host(subject: Subject) {
    let (driver, id) = started(&subject).await;
    let host = {
        let (driver, id) = (driver.clone(), id.clone());
        // A supervisor asks its host for other things too, on connections of their own.
        tokio::spawn(async move {
            while let Ok(stream) = driver.accept(&id).await {
                tokio::spawn(serve_version(stream));
            }
        })
    };
    let version: Version =
        client(&driver, &id).get_json("/supervisor/host").await.expect("up and back");
    assert_eq!(version.version, "the host's");
    host.abort();
    driver.destroy(&id).await.expect("destroy");
}

pub async fn what_it_uses_can_be_asked(subject: Subject) {
    let (driver, id) = started(&subject).await;
    let stats = driver.stats(&id).await.expect("stats");
    if driver.capabilities().pids_limit {
        assert!(stats.pids.expect("pids") >= 1, "{stats:?}");
    }
    if driver.capabilities().memory_limit {
        assert!(stats.memory_bytes.expect("memory") > 0, "{stats:?}");
    }
    driver.logs(&id, 1000).await.expect("logs");
    driver.destroy(&id).await.expect("destroy");
}

pub async fn a_fork_has_the_files_and_goes_its_own_way(subject: Subject) {
    let (driver, source) = started(&subject).await;
    let twin = id("twin");
    let plain = WriteOptions::default();
    client(&driver, &source).write("a.txt", "pearl", &plain).await.expect("write");
    let forked = driver.fork(&source, &twin, Arc::default()).await.expect("fork");
    assert!(forked.report.names >= 1, "{forked:?}");
    assert_eq!(driver.state(&twin).await.expect("state"), SandboxState::Stopped);
    assert_eq!(driver.state(&source).await.expect("state"), SandboxState::Running);
    driver.start(&twin).await.expect("start");
    client(&driver, &twin).write("b.txt", "twin's", &plain).await.expect("write");
    client(&driver, &source).write("a.txt", "changed", &plain).await.expect("write");
    assert_eq!(client(&driver, &twin).read("a.txt").await.expect("read"), "pearl");
    assert!(client(&driver, &source).read("b.txt").await.is_err(), "the source has no new file");
    driver.destroy(&source).await.expect("destroy");
    assert_eq!(client(&driver, &twin).read("a.txt").await.expect("read"), "pearl");
    driver.destroy(&twin).await.expect("destroy");
}

pub async fn a_stopped_sandbox_can_be_forked(subject: Subject) {
    let (driver, source) = started(&subject).await;
    let written = client(&driver, &source).write("a", "pearl", &WriteOptions::default()).await;
    written.expect("write");
    driver.stop(&source, Duration::from_secs(5)).await.expect("stop");
    driver.fork(&source, &id("twin"), Arc::default()).await.expect("fork");
    driver.start(&id("twin")).await.expect("start");
    assert_eq!(client(&driver, &id("twin")).read("a").await.expect("read"), "pearl");
    driver.destroy(&id("twin")).await.expect("destroy");
}

pub async fn a_fork_never_replaces_a_sandbox(subject: Subject) {
    let (driver, source) = started(&subject).await;
    driver.create(&id("taken"), &SandboxSpec::default()).await.expect("create");
    let refused = driver.fork(&source, &id("taken"), Arc::default()).await;
    assert!(matches!(refused, Err(Error::Exists(_))), "{refused:?}");
    driver.destroy(&source).await.expect("destroy");
}

pub async fn a_fork_of_nobody_leaves_nothing(subject: Subject) {
    let driver = (subject.restart)();
    let refused = driver.fork(&id("nobody"), &id("twin"), Arc::default()).await;
    assert!(matches!(refused, Err(Error::NotFound(_))), "{refused:?}");
    assert!(driver.reconcile().await.expect("reconcile").is_empty());
}

async fn serve_version(stream: BoxStream) {
    let service =
        hyper::service::service_fn(|request: http::Request<hyper::body::Incoming>| async move {
            let version = Version {
                version: "the host's".to_owned(),
                protocol: Range::OURS,
                relays: Vec::new(),
            };
            let (status, body) = match request.uri().path() {
                "/host/version" => (StatusCode::OK, serde_json::to_vec(&version).expect("json")),
                _ => (StatusCode::NOT_FOUND, Vec::new()),
            };
            Response::builder().status(status).body(Full::new(Bytes::from(body)))
        });
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
