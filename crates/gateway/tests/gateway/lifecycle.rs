//! Making, running and removing sandboxes, and what happens when one crashes.

use nacre_wire::ErrorKind;
use nacre_wire::control::{CreateSandbox, GatewayStatus, SandboxInfo, SandboxState};

use crate::host::{Host, mode, start_gateway};
use crate::world::{until, until_held};

#[tokio::test]
async fn the_first_start_makes_a_live_sandbox() {
    let host = Host::start().await;
    let live = host.until("live", |info| info.supervisor.is_some()).await;
    assert_eq!((live.role.as_deref(), live.state), (Some("live"), SandboxState::Running));
    assert_eq!(live.supervisor.as_deref(), Some("9.9.9"));
    assert_eq!(host.info(&live.id).await, live, "an id is as good as a name");

    let status: GatewayStatus = host.admin().get_json("/admin/sandboxes/gateway").await.unwrap();
    assert_eq!(status.url, host.origin());
    assert_eq!(status.sandboxes, [live]);
    assert_eq!(mode(&host.data.path().join("nacre.sock")), 0o600);
}

#[tokio::test]
async fn a_second_gateway_is_told_who_has_the_data() {
    let host = Host::start().await;
    let data = host.data.path().to_owned();
    let refused = start_gateway(data.clone(), host.world.clone()).await.err().unwrap();
    let expected =
        format!("a gateway already runs for {} (process {})", data.display(), std::process::id());
    assert_eq!(refused.to_string(), expected);
    assert!(refused.hint().unwrap().contains("nacre down"));
}

#[tokio::test]
async fn a_sandbox_goes_through_its_life() {
    let host = Host::start().await;
    assert_eq!(host.create("work").await.state, SandboxState::Running);
    for (op, state) in [
        ("start", SandboxState::Running),
        ("pause", SandboxState::Paused),
        ("pause", SandboxState::Paused),
        ("resume", SandboxState::Running),
        ("stop", SandboxState::Stopped),
        ("stop", SandboxState::Stopped),
        ("start", SandboxState::Running),
    ] {
        assert_eq!(host.operate("work", op).await.unwrap().state, state, "{op}");
    }
    host.operate("work", "pause").await.unwrap();
    let refused = host.operate("work", "start").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert_eq!(refused.to_string(), "sandbox \"work\" is paused");

    host.admin().delete("/admin/sandboxes/work").await.unwrap();
    assert_eq!(host.states().await, ["live Running"]);
    assert_eq!(host.world.sandboxes().len(), 1);
    assert_eq!(host.operate("work", "start").await.unwrap_err().kind(), ErrorKind::NotFound);
    host.create("work").await;
}

#[tokio::test]
async fn names_are_checked_and_unique() {
    let host = Host::start().await;
    let create = async |name: &str| {
        let wanted = CreateSandbox { name: Some(name.to_owned()), ..Default::default() };
        host.admin().post_json::<SandboxInfo>("/admin/sandboxes", &wanted).await
    };
    assert_eq!(create("No Good").await.unwrap_err().kind(), ErrorKind::InvalidRequest);
    assert_eq!(create("gateway").await.unwrap_err().kind(), ErrorKind::InvalidRequest);
    assert_eq!(create("live").await.unwrap_err().kind(), ErrorKind::Exists);
    let id = host.info("live").await.id;
    assert_eq!(create(&id).await.unwrap_err().kind(), ErrorKind::Exists);

    let (a, b) = tokio::join!(create("twin"), create("twin"));
    assert_ne!(a.is_ok(), b.is_ok(), "one of two that race gets the name");
    assert_eq!(host.world.sandboxes().len(), 2);
}

#[tokio::test]
async fn a_client_that_leaves_does_not_leave_a_sandbox_half_made() {
    let host = Host::start().await;
    host.world.hold_at("create:before");
    let admin = host.admin();
    let request = tokio::spawn(async move {
        let wanted =
            CreateSandbox { name: Some("slow".to_owned()), start: true, ..Default::default() };
        admin.post_json::<SandboxInfo>("/admin/sandboxes", &wanted).await
    });
    until_held(&host.world).await;
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    host.world.release();
    until(&host.world, |counts| counts.starts == 2).await;
    host.until("slow", |info| info.state == SandboxState::Running).await;
}

#[tokio::test]
async fn a_crashed_supervisor_is_started_again() {
    let host = Host::start().await;
    let id = host.info("live").await.id;
    host.world.crash(&id.parse().unwrap());
    until(&host.world, |counts| counts.starts == 2).await;
    host.until("live", |info| info.state == SandboxState::Running && info.failure.is_none()).await;
    let door = host.admin().under("/admin/sandboxes/live/door");
    assert_eq!(door.version().await.unwrap().version, "9.9.9");
}

#[tokio::test]
async fn a_crash_loop_ends_in_failure_until_somebody_starts_it() {
    let host = Host::start().await;
    let id = host.info("live").await.id;
    host.world.let_starts_fail(true);
    host.world.crash(&id.parse().unwrap());
    let gave_up = |info: &SandboxInfo| {
        info.failure.as_deref().is_some_and(|why| why.ends_with("4 times in a row"))
    };
    let failed = host.until("live", gave_up).await;
    assert_eq!(failed.state, SandboxState::Failed);
    assert_eq!(host.world.counts().starts, 1);

    let refused = host.operate("live", "start").await.unwrap_err();
    assert_eq!(refused.to_string(), "sandbox \"live\" did not start: told to fail");
    host.world.let_starts_fail(false);
    assert_eq!(host.operate("live", "start").await.unwrap().state, SandboxState::Running);
    host.world.crash(&id.parse().unwrap());
    until(&host.world, |counts| counts.starts == 3).await;
}

#[tokio::test]
async fn logs_are_text_and_can_be_followed() {
    use http_body_util::BodyExt;
    let host = Host::start().await;
    let admin = host.admin();
    for path in ["/admin/sandboxes/live/logs", "/admin/sandboxes/live/logs?follow=true"] {
        let request = admin.request(http::Method::GET, path, nacre_wire::client::empty()).unwrap();
        let mut body = admin.send(request).await.unwrap().into_body();
        let chunk = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(chunk, "hello from the supervisor\n", "{path}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_does_not_leave_a_restart_half_done() {
    let host = Host::start().await;
    host.create("work").await;
    let starts = host.world.counts().starts;
    host.world.hold_at("stop:before");
    let admin = host.admin();
    let restarting = tokio::spawn(async move {
        admin.post_json::<SandboxInfo>("/admin/sandboxes/work/restart", &()).await
    });
    until_held(&host.world).await;
    restarting.abort();
    assert!(restarting.await.unwrap_err().is_cancelled());
    // The gateway has noticed by then.
    for _ in 0..20 {
        host.list().await;
    }
    host.world.release();
    until(&host.world, |counts| counts.starts == starts + 1).await;
    host.until("work", |info| info.state == SandboxState::Running).await;
}

#[tokio::test]
async fn a_gateway_that_dies_in_a_restart_has_it_done_by_the_next() {
    for point in ["stop:before", "stop:after", "start:before"] {
        let mut host = Host::start().await;
        host.create("work").await;
        host.world.hold_at(point);
        let admin = host.admin();
        let restarting = tokio::spawn(async move {
            admin.post_json::<SandboxInfo>("/admin/sandboxes/work/restart", &()).await
        });
        until_held(&host.world).await;
        host.kill().await;
        restarting.abort();
        host.start_again().await;
        host.until("work", |info| info.state == SandboxState::Running).await;
    }
}
