//! What the inside of a sandbox hears from its host.

use std::time::Duration;

use nacre_wire::ErrorKind;
use nacre_wire::generation::Range;
use nacre_wire::status::Version;

use crate::host::Host;
use crate::world::until;

const PATIENCE: Duration = Duration::from_secs(10);

/// The version of the gateway, asked from inside.
async fn heard(host: &Host, name: &str) -> nacre_wire::client::Result<Version> {
    let door = host.admin().under(&format!("/admin/sandboxes/{name}/door"));
    let asked = tokio::time::timeout(PATIENCE, door.get_json("/supervisor/host")).await;
    asked.expect("the host answers")
}

fn ours() -> Version {
    Version {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: Range::OURS,
        relays: Vec::new(),
    }
}

#[tokio::test]
async fn every_running_sandbox_is_answered() {
    let host = Host::start().await;
    host.create("work").await;
    for name in ["live", "work"] {
        assert_eq!(heard(&host, name).await.unwrap(), ours(), "{name}");
    }
}

#[tokio::test]
async fn a_sandbox_that_was_found_again_is_answered() {
    let mut host = Host::start().await;
    host.kill().await;
    host.start_again().await;
    assert_eq!(heard(&host, "live").await.unwrap(), ours(), "running all the time");

    host.operate("live", "pause").await.unwrap();
    host.kill().await;
    host.start_again().await;
    host.operate("live", "resume").await.unwrap();
    assert_eq!(heard(&host, "live").await.unwrap(), ours(), "paused meanwhile");
}

#[tokio::test]
async fn every_new_start_of_a_supervisor_is_answered() {
    let host = Host::start().await;
    host.operate("live", "stop").await.unwrap();
    assert_eq!(heard(&host, "live").await.unwrap_err().kind(), ErrorKind::Unavailable);
    host.operate("live", "start").await.unwrap();
    assert_eq!(heard(&host, "live").await.unwrap(), ours());

    host.world.crash(&host.info("live").await.id.parse().unwrap());
    until(&host.world, |counts| counts.starts == 3).await;
    host.until("live", |info| info.failure.is_none()).await;
    assert_eq!(heard(&host, "live").await.unwrap(), ours());
}
