//! A new computer gets the desktop, once.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::StatusCode;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use nacre_gateway::{DesktopConfig, Modules, SHARED_FOLDER};
use nacre_sandbox::fake::FakeDriver;
use nacre_wire::client::{empty, full};
use nacre_wire::control::GatewayStatus;
use nacre_wire::desktop::Seeded;
use tokio::sync::watch;

use crate::host::Host;
use crate::world::supervisor;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Willing,
    Failing,
    /// It never answers.
    Silent,
}

/// Supervisors that note who asked them for the desktop.
#[derive(Clone)]
struct Desks {
    asked: watch::Sender<Vec<String>>,
    mood: watch::Sender<Mood>,
}

impl Desks {
    fn new(mood: Mood) -> Self {
        Self { asked: watch::channel(Vec::new()).0, mood: watch::channel(mood).0 }
    }

    fn world(&self) -> FakeDriver {
        let desks = self.clone();
        FakeDriver::new(Arc::new(move |guest, stream| {
            let (desks, id) = (desks.clone(), guest.id.to_string());
            let seed = move || async move { desks.seed(id).await };
            let router = supervisor(guest).route("/supervisor/desktop/seed", post(seed));
            Box::pin(async move {
                let service = TowerToHyperService::new(router);
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                let _ = connection.await;
            })
        }))
    }

    async fn seed(self, id: String) -> Response {
        let again = self.asked.borrow().contains(&id);
        self.asked.send_modify(|asked| asked.push(id));
        let mood = *self.mood.borrow();
        match mood {
            Mood::Willing => {
                let why = again.then(|| "there is a shell/".to_owned());
                Json(Seeded { seeded: !again, why }).into_response()
            }
            Mood::Failing => (StatusCode::INTERNAL_SERVER_ERROR, "no space left").into_response(),
            Mood::Silent => std::future::pending().await,
        }
    }

    async fn until_asked(&self, times: usize) {
        let mut asked = self.asked.subscribe();
        let waited = asked.wait_for(|asked| asked.len() >= times);
        tokio::time::timeout(Duration::from_secs(10), waited).await.unwrap().unwrap();
    }

    fn asked(&self) -> usize {
        self.asked.borrow().len()
    }
}

fn seeding() -> DesktopConfig {
    DesktopConfig { seed: true, modules: None }
}

async fn reduced(host: &Host) -> Vec<String> {
    let status = host.admin().get_json::<GatewayStatus>("/admin/sandboxes/gateway").await.unwrap();
    status.reduced.into_iter().map(|reduction| reduction.why).collect()
}

/// Returns when what a start of the gateway owes to the desktop is done: it is asked for last.
async fn settled(host: &Host) {
    for _ in 0..1000 {
        let pending = unseeded(host);
        if pending == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it is still to get the desktop");
}

fn unseeded(host: &Host) -> i64 {
    let path = host.data.path().join("control.db");
    let connection = rusqlite::Connection::open(path).unwrap();
    let count = "SELECT count(*) FROM sandboxes WHERE json_extract(spec, '$.unseeded')";
    connection.query_row(count, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn the_first_sandbox_gets_it_and_no_other() {
    let desks = Desks::new(Mood::Willing);
    let mut host = Host::start_in_as(desks.world(), |config| config.desktop = seeding()).await;
    settled(&host).await;
    assert_eq!(desks.asked(), 1);
    host.create("work").await;
    host.stop(true).await;
    host.start_again().await;
    host.kill().await;
    host.start_again().await;
    settled(&host).await;
    assert_eq!(desks.asked(), 1, "neither for another nor again");
    assert_eq!(reduced(&host).await, Vec::<String>::new());
}

#[tokio::test]
async fn who_does_not_want_it_is_left_alone() {
    let desks = Desks::new(Mood::Willing);
    let mut host = Host::start_in_as(desks.world(), |_| ()).await;
    host.stop(false).await;
    host.config.desktop = seeding();
    host.start_again().await;
    host.stop(false).await;
    assert_eq!(desks.asked(), 0, "a computer that was made without it stays that way");
}

#[tokio::test]
async fn a_gateway_that_is_killed_before_the_answer_asks_again() {
    let desks = Desks::new(Mood::Silent);
    let mut host = Host::start_in_as(desks.world(), |config| config.desktop = seeding()).await;
    desks.until_asked(1).await;
    host.kill().await;
    host.start_again().await;
    desks.until_asked(2).await;
    host.stop(false).await;
    desks.mood.send_replace(Mood::Willing);
    host.start_again().await;
    settled(&host).await;
    assert_eq!(desks.asked(), 3);
}

#[tokio::test]
async fn a_supervisor_that_cannot_is_told_of_and_asked_again_at_the_next_start() {
    let desks = Desks::new(Mood::Failing);
    let mut host = Host::start_in_as(desks.world(), |config| config.desktop = seeding()).await;
    desks.until_asked(1).await;
    let told = async {
        while reduced(&host).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        reduced(&host).await
    };
    let told = tokio::time::timeout(Duration::from_secs(10), told).await.unwrap();
    assert!(told[0].starts_with("its source is not in the workspace: "), "{told:?}");
    host.stop(false).await;
    desks.mood.send_replace(Mood::Willing);
    host.start_again().await;
    settled(&host).await;
    assert_eq!(reduced(&host).await, Vec::<String>::new());
}

fn modules() -> Modules {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(2);
    header.set_mode(0o644);
    tar.append_data(&mut header, "node_modules/vite/package.json", &b"{}"[..]).unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&tar.into_inner().unwrap()).unwrap();
    Modules { id: "00112233445566aa", archive: packed.finish().unwrap().leak() }
}

const UNPACKED: &str = "desktop-00112233445566aa/node_modules/vite/package.json";

#[tokio::test]
async fn its_modules_are_there_before_its_source() {
    let desks = Desks::new(Mood::Silent);
    let desktop = DesktopConfig { modules: Some(modules()), ..seeding() };
    let host = Host::start_in_as(desks.world(), |config| config.desktop = desktop).await;
    desks.until_asked(1).await;
    assert!(host.data.path().join(SHARED_FOLDER).join(UNPACKED).is_file());
}

#[tokio::test]
async fn modules_come_when_they_are_asked_for() {
    let desktop = DesktopConfig { seed: false, modules: Some(modules()) };
    let desks = Desks::new(Mood::Willing);
    let host = Host::start_in_as(desks.world(), |config| config.desktop = desktop).await;
    let unpacked = host.data.path().join(SHARED_FOLDER).join(UNPACKED);
    assert!(!unpacked.exists());
    for _ in 0..2 {
        let path = "/admin/sandboxes/gateway/modules";
        let request = host.admin().request(http::Method::POST, path, empty()).unwrap();
        let answer = host.admin().send(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        assert!(unpacked.is_file());
    }
}

#[tokio::test]
async fn modules_that_cannot_be_unpacked_are_told_of_and_hold_nothing_up() {
    let desks = Desks::new(Mood::Willing);
    let bad = Modules { id: "00112233445566aa", archive: b"not an archive" };
    let desktop = DesktopConfig { modules: Some(bad), ..seeding() };
    let host = Host::start_in_as(desks.world(), |config| config.desktop = desktop).await;
    settled(&host).await;
    assert_eq!(desks.asked(), 1);
    let told = reduced(&host).await;
    assert!(told[0].contains("cannot unpack its modules to "), "{told:?}");
    let body = full("{}");
    let path = "/admin/sandboxes/gateway/modules";
    let request = host.admin().request(http::Method::POST, path, body).unwrap();
    host.admin().send(request).await.unwrap_err();
    assert_eq!(std::fs::read_dir(host.data.path().join(SHARED_FOLDER)).unwrap().count(), 0);
}
