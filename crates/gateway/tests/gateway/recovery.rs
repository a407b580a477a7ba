//! The gateway ends at the worst moment; the next one puts things right.

use nacre_wire::control::{CreateSandbox, SandboxInfo, SandboxState, Shutdown};

use crate::host::Host;
use crate::world::{until_held, world};

#[tokio::test]
async fn running_sandboxes_are_found_again_and_not_restarted() {
    let mut host = Host::start().await;
    host.create("work").await;
    host.create("idle").await;
    host.operate("idle", "stop").await.unwrap();
    let before = host.states().await;
    let starts = host.world.counts().starts;
    for way in ["kill", "stop"] {
        match way {
            "kill" => host.kill().await,
            _ => host.stop(false).await,
        }
        host.start_again().await;
        assert_eq!(host.states().await, before, "after {way}");
        assert_eq!(host.world.counts().starts, starts, "after {way}");
    }
}

#[tokio::test]
async fn a_full_stop_ends_sandboxes_and_the_next_start_brings_them_back() {
    let mut host = Host::start().await;
    host.create("work").await;
    let (admin, id) = (host.admin(), host.info("work").await.id);
    // The CLI's way of asking; the process decides when.
    let body = serde_json::to_vec(&Shutdown { stop_sandboxes: true }).unwrap();
    let path = "/admin/sandboxes/gateway/shutdown";
    let request = admin.request(http::Method::POST, path, nacre_wire::client::full(body)).unwrap();
    assert_eq!(admin.send(request).await.unwrap().status(), http::StatusCode::ACCEPTED);
    host.stop(true).await;
    assert!(host.world.sandboxes().iter().all(|(_, state)| *state == SandboxState::Stopped));
    assert!(!host.data.path().join("nacre.sock").exists());

    host.start_again().await;
    host.until(&id, |info| info.state == SandboxState::Running).await;
}

/// Kills the gateway while an operation is held at `point`, twice over, and compares.
async fn check(operation: &'static str, point: &'static str, expected: &[&str]) {
    let mut host = Host::start().await;
    host.create("work").await;
    host.world.hold_at(point);
    let admin = host.admin();
    let request = tokio::spawn(async move {
        match operation {
            "create" => {
                let wanted = CreateSandbox { name: Some("new".to_owned()), ..Default::default() };
                admin.post_json::<SandboxInfo>("/admin/sandboxes", &wanted).await.map(|_| ())
            }
            "destroy" => admin.delete("/admin/sandboxes/work").await,
            op => {
                let path = format!("/admin/sandboxes/work/{op}");
                admin.post_json::<SandboxInfo>(&path, &()).await.map(|_| ())
            }
        }
    });
    until_held(&host.world).await;
    host.kill().await;
    assert!(request.await.unwrap().is_err(), "nobody was told that it worked");

    for round in ["first", "second"] {
        host.start_again().await;
        for name in expected.iter().map(|line| line.split_once(' ').unwrap()) {
            host.until(name.0, |info| format!("{:?}", info.state) == name.1).await;
        }
        assert_eq!(host.states().await, expected, "{operation} at {point}, {round} restart");
        let mut known: Vec<_> = host.list().await.into_iter().map(|info| info.id).collect();
        known.sort();
        let there: Vec<_> =
            host.world.sandboxes().into_iter().map(|(id, _)| id.to_string()).collect();
        assert_eq!(known, there, "{operation} at {point}: the database and the driver agree");
        host.kill().await;
    }
}

#[tokio::test]
async fn a_creation_cut_short_is_undone_or_finished() {
    check("create", "create:before", &["live Running", "work Running"]).await;
    check("create", "create:after", &["live Running", "work Running", "new Stopped"]).await;
}

#[tokio::test]
async fn a_destruction_cut_short_is_finished() {
    check("destroy", "destroy:before", &["live Running"]).await;
    check("destroy", "destroy:after", &["live Running"]).await;
}

#[tokio::test]
async fn a_stop_cut_short_is_finished() {
    check("stop", "stop:before", &["live Running", "work Stopped"]).await;
    check("stop", "stop:after", &["live Running", "work Stopped"]).await;
}

#[tokio::test]
async fn a_first_start_cut_short_starts_afresh() {
    for point in ["create:before", "create:after", "start:before", "start:after"] {
        let world = world();
        world.hold_at(point);
        let data = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.spawn(crate::host::start_gateway(data.path().to_owned(), world.clone()));
        until_held(&world).await;
        tokio::task::spawn_blocking(move || drop(runtime)).await.unwrap();
        world.release();

        let gateway =
            crate::host::start_gateway(data.path().to_owned(), world.clone()).await.unwrap();
        let states: Vec<_> =
            gateway.sandboxes().into_iter().map(|info| (info.name, info.state)).collect();
        assert_eq!(states, [("live".to_owned(), SandboxState::Running)], "{point}");
        assert_eq!(world.sandboxes().len(), 1, "{point}");
        gateway.stop(Shutdown::default()).await;
    }
}

#[tokio::test]
async fn a_sandbox_the_database_lost_is_kept() {
    let world = world();
    world.put(&"sb-lost".parse().unwrap(), SandboxState::Running);
    let host = Host::start_in(world).await;
    host.until("sb-lost", |info| info.state == SandboxState::Stopped).await;
    assert_eq!(host.list().await.len(), 2);
    assert_eq!(host.operate("sb-lost", "start").await.unwrap().state, SandboxState::Running);
}

#[tokio::test]
async fn a_sandbox_whose_files_are_gone_stays_in_sight() {
    let mut host = Host::start().await;
    let id = host.create("work").await.id;
    host.kill().await;
    nacre_sandbox::Driver::destroy(&host.world, &id.parse().unwrap()).await.unwrap();
    host.start_again().await;
    let info = host.info("work").await;
    assert_eq!(
        (info.state, info.failure.as_deref()),
        (SandboxState::Failed, Some("its files are gone"))
    );
    host.admin().delete("/admin/sandboxes/work").await.unwrap();
    assert_eq!(host.states().await, ["live Running"]);
}

#[tokio::test]
async fn a_sandbox_serves_on_when_the_gateway_is_restarted() {
    let mut host = Host::start().await;
    let cookie = host.sign_in().await;
    let headers = [("cookie", cookie.as_str())];
    assert!(host.get("/before", &headers).await.text().starts_with("GET /before\n"));
    host.kill().await;
    host.start_again().await;
    assert!(host.get("/after", &headers).await.text().starts_with("GET /after\n"));
    assert_eq!(host.world.counts().starts, 1, "it was never started again");
}
