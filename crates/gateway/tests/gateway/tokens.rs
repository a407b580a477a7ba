//! Tokens for programs, at the entrance that browsers use.

use futures_util::StreamExt;
use http::StatusCode;
use nacre_wire::access::{CreateToken, MadeToken, SESSION_ENDED, Scope};
use tokio_tungstenite::tungstenite::Message;

use crate::host::Host;
use crate::raw::within;
use crate::swap::open_with;

pub(crate) async fn make(host: &Host, name: &str, scopes: &[Scope]) -> String {
    let wanted = CreateToken { name: name.to_owned(), scopes: scopes.to_vec(), expires_in_s: None };
    let made: MadeToken = host.admin().post_json("/admin/sandboxes/tokens", &wanted).await.unwrap();
    format!("Bearer {}", made.token)
}

#[tokio::test]
async fn a_token_reaches_what_its_scope_says() {
    let host = Host::start().await;
    host.create("dev").await;
    let status = async |token: &str, method: &str, path: &str| {
        host.request(method, path, &[("authorization", token)]).await.status.as_u16()
    };
    let read = make(&host, "read", &[Scope::Read]).await;
    let live = make(&host, "live", &[Scope::Live]).await;
    let dev = make(&host, "dev", &[Scope::Dev]).await;
    let admin = make(&host, "admin", &[Scope::Admin]).await;
    let cases = [
        ("GET", "/x", [200, 200, 403, 200]),
        ("POST", "/x", [403, 200, 403, 200]),
        ("GET", "/dev/x", [200, 403, 200, 200]),
        ("POST", "/dev/x", [403, 403, 200, 200]),
        ("GET", "/admin/sandboxes", [200, 403, 403, 200]),
        ("POST", "/admin/sandboxes/live/start", [403, 403, 403, 200]),
        ("POST", "/admin/sandboxes/tokens", [403, 403, 403, 403]),
        ("POST", "/admin/sandboxes/gateway/sign-in-link", [403, 403, 403, 403]),
        ("POST", "/admin/sandboxes/gateway/shutdown", [403, 403, 403, 403]),
    ];
    for (method, path, expected) in cases {
        let seen = [
            status(&read, method, path).await,
            status(&live, method, path).await,
            status(&dev, method, path).await,
            status(&admin, method, path).await,
        ];
        assert_eq!(seen, expected, "{method} {path}");
    }
    assert_eq!(host.audit().await[3], "token_created read (read)");
}

#[tokio::test]
async fn a_token_never_reaches_a_sandbox() {
    let host = Host::start().await;
    let token = make(&host, "a", &[Scope::Live]).await;
    let seen = host.get("/x", &[("authorization", &token)]).await;
    assert!(seen.text().starts_with("GET /x"), "{}", seen.text());
    assert!(!seen.text().contains("nacre_") && !seen.text().contains("authorization"));
}

#[tokio::test]
async fn a_wrong_token_is_no_session_and_an_apps_own_is_none_of_ours() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let wrong = [("authorization", "Bearer nacre_0000"), ("cookie", cookie.as_str())];
    assert_eq!(host.get("/x", &wrong).await.status, StatusCode::UNAUTHORIZED);
    for own in ["Bearer abc", "Basic bmFjcmVfOg==", "nacre_0000"] {
        let headers = [("authorization", own), ("cookie", cookie.as_str())];
        assert_eq!(host.get("/x", &headers).await.status, StatusCode::OK, "{own}");
    }
}

#[tokio::test]
async fn what_a_token_has_open_ends_with_it() {
    let host = Host::start().await;
    let token = make(&host, "a", &[Scope::Live]).await;
    let mut socket = open_with(&host, ("authorization", &token), "/ws").await;
    host.admin().delete("/admin/sandboxes/tokens/a").await.unwrap();
    let last = within("a close frame comes", socket.next()).await.unwrap().unwrap();
    assert!(matches!(last, Message::Close(Some(close)) if u16::from(close.code) == SESSION_ENDED));
    assert_eq!(host.get("/x", &[("authorization", &token)]).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn guessing_tokens_is_slowed_down() {
    let host = Host::start().await;
    let good = make(&host, "a", &[Scope::Read]).await;
    for _ in 0..6 {
        host.get("/x", &[("authorization", "Bearer nacre_0000")]).await;
    }
    let answer = host.get("/x", &[("authorization", "Bearer nacre_0000")]).await;
    assert!(answer.text().contains("too many attempts"), "{}", answer.text());
    let link = host.link().await;
    assert_eq!(host.get(&link, &[]).await.status, StatusCode::TOO_MANY_REQUESTS);
    let good = host.get("/x", &[("authorization", &good)]).await;
    assert_eq!(good.status, StatusCode::OK, "who needs not guess is not slowed down");
    let refusals = host.audit().await.iter().filter(|line| **line == "token_refused -").count();
    assert_eq!(refusals, 5);
}
