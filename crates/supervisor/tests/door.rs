//! What every request meets: the protocol generation, typed errors, and the first page.

#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

mod support;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use nacre_wire::ErrorKind;
use nacre_wire::error::ErrorBody;
use nacre_wire::generation::{HEADER, Range};
use nacre_wire::status::{Health, HealthStatus, Version};
use support::Supervisor;

async fn with_protocol(supervisor: &Supervisor, protocol: &str) -> (StatusCode, String, Bytes) {
    let request = Request::get("/supervisor/version").header("host", "door");
    let request = request.header(HEADER, protocol).body(Full::default()).unwrap();
    let response = supervisor.send(request).await;
    let (parts, body) = response.into_parts();
    let spoken = parts.headers[HEADER].to_str().unwrap().to_owned();
    (parts.status, spoken, body.collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn old_and_new_clients_agree_and_strangers_are_told_what_is_spoken() {
    let supervisor = Supervisor::start().await;
    let (status, spoken, body) = with_protocol(&supervisor, "1-99").await;
    assert_eq!((status, spoken), (StatusCode::OK, Range::OURS.newest.to_string()));
    let version: Version = serde_json::from_slice(&body).unwrap();
    assert_eq!(version.protocol, Range::OURS);
    let (status, spoken, body) = with_protocol(&supervisor, "98-99").await;
    assert_eq!((status, spoken), (StatusCode::UPGRADE_REQUIRED, Range::OURS.to_string()));
    let error = serde_json::from_slice::<ErrorBody>(&body).unwrap().error;
    assert_eq!(error.kind, ErrorKind::Incompatible);
}

#[tokio::test]
async fn health_and_stats_are_plausible() {
    let supervisor = Supervisor::start().await;
    let health: Health = supervisor.get("/supervisor/health").await;
    assert_eq!((health.status, health.contained_panics), (HealthStatus::Ok, 0));
    let stats = supervisor.stats().await;
    assert!(stats.rss_bytes > 0 && stats.threads >= 3 && stats.processes >= 2, "{stats:?}");
    assert!(stats.open_fds < 32 && stats.disk_free_bytes <= stats.disk_total_bytes, "{stats:?}");
}

#[tokio::test]
async fn errors_are_typed_wherever_they_happen() {
    let supervisor = Supervisor::start().await;
    let check = async |method: &str, path: &str, body: &'static str, status, kind| {
        let (got, body) = supervisor.call(method, path, body).await;
        let error = serde_json::from_slice::<ErrorBody>(&body).unwrap().error;
        assert_eq!((got, error.kind), (status, kind), "{method} {path}: {error:?}");
    };
    let (bad, missing) = (StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND);
    check("GET", "/supervisor/nope", "", missing, ErrorKind::NotFound).await;
    check("GET", "/elsewhere", "", missing, ErrorKind::NotFound).await;
    check("GET", "/supervisor/commands/x", "", missing, ErrorKind::NotFound).await;
    check("GET", "/supervisor/commands/x/attach", "", missing, ErrorKind::NotFound).await;
    check("POST", "/supervisor/commands", "{", bad, ErrorKind::InvalidRequest).await;
    check("POST", "/supervisor/commands", "{}", bad, ErrorKind::InvalidRequest).await;
    check("GET", "/supervisor/exec", "", bad, ErrorKind::InvalidRequest).await;
    let wrong = StatusCode::METHOD_NOT_ALLOWED;
    check("PUT", "/supervisor/commands", "", wrong, ErrorKind::InvalidRequest).await;
}

#[tokio::test]
async fn the_first_page_is_served_with_a_strict_policy() {
    let supervisor = Supervisor::start().await;
    let response = supervisor.request("GET", "/supervisor/", Bytes::new()).await;
    let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'nonce-"), "{policy}");
    assert!(!policy.contains("unsafe"));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.starts_with(b"<!doctype html>"));
}
