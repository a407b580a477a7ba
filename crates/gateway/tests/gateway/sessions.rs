//! Sessions end when they should, and everything that hangs on them goes with them.

use std::time::Duration;

use futures_util::StreamExt;
use http::StatusCode;
use nacre_gateway::{RawGatewayConfig, SessionLimits};
use nacre_wire::access::{SESSION_ENDED, SESSION_ENDED_REASON, Scope};
use tokio_tungstenite::tungstenite::Message;

use crate::browser::Browser;
use crate::host::Host;
use crate::raw::{Stage, within};
use crate::swap::{open, open_with};
use crate::tokens;

pub(crate) async fn revoke_all(host: &Host) {
    for session in host.sessions().await.sessions {
        host.admin().delete(&format!("/admin/sandboxes/sessions/{}", session.id)).await.unwrap();
    }
}

#[tokio::test]
async fn a_session_is_listed_and_revoked() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let cookie = [("cookie", cookie.as_str()), ("user-agent", "Firefox")];
    let answer = host.get("/admin/sandboxes/sessions", &cookie).await;
    assert!(answer.text().contains(r#""current":true"#), "{}", answer.text());
    assert!(!answer.text().contains(cookie[0].1.split_once('=').unwrap().1), "it opens nothing");
    let sessions = host.sessions().await.sessions;
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].address.as_deref(), Some("127.0.0.1"));
    assert!(sessions[0].expires_at > sessions[0].seen_at && !sessions[0].current);

    revoke_all(&host).await;
    assert_eq!(host.get("/x", &cookie).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(host.audit().await[0], "session_ended from the terminal");
    let gone = host.admin().delete(&format!("/admin/sandboxes/sessions/{}", sessions[0].id)).await;
    assert!(gone.unwrap_err().to_string().contains("there is no session"));
}

#[tokio::test]
async fn sockets_are_closed_with_the_documented_code_when_their_session_is_revoked() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let token = tokens::make(&host, "a", &[Scope::Admin]).await;
    let live = open(&host, &cookie, "/ws").await;
    let by_name = "/admin/sandboxes/live/door/ws";
    let door = open_with(&host, ("authorization", &token), by_name).await;
    revoke_all(&host).await;
    host.admin().delete("/admin/sandboxes/tokens/a").await.unwrap();
    for mut socket in [live, door] {
        let last = within("a close frame comes", socket.next()).await.unwrap().unwrap();
        let Message::Close(Some(close)) = last else { panic!("not closed: {last:?}") };
        let said = (u16::from(close.code), close.reason.as_str());
        assert_eq!(said, (SESSION_ENDED, SESSION_ENDED_REASON));
    }
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off_when_its_session_is_revoked() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /events", "accept: text/event-stream\r\n").await;
    let (_, mut app) = stage.arrives().await;
    app.send(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )
    .await;
    app.send("8\r\ndata: 1\n\r\n").await;
    client.head().await;
    client.expect("8\r\ndata: 1\n\r\n").await;
    revoke_all(&stage.host).await;
    let (rest, _) = client.rest().await;
    assert_eq!(rest, "", "it is not made to look like a proper end");
}

#[tokio::test]
async fn a_session_that_is_not_used_ends_and_takes_its_sockets_with_it() {
    let idle = Duration::from_millis(400);
    let host = Host::start_as(RawGatewayConfig::default(), |config| {
        config.auth.sessions = SessionLimits { idle, ..SessionLimits::default() };
    })
    .await;
    let cookie = host.sign_in().await;
    let mut socket = open(&host, &cookie, "/ws").await;
    // The sweep that finds it over has been asleep for at most as long as a session lasts unused.
    let last = within("a close frame comes", socket.next()).await.unwrap().unwrap();
    assert!(matches!(last, Message::Close(Some(close)) if u16::from(close.code) == SESSION_ENDED));
    assert_eq!(host.get("/x", &[("cookie", &cookie)]).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(host.sessions().await.sessions, []);
}

#[tokio::test]
async fn the_owner_signs_out_and_others_out_on_their_own_page() {
    let host = Host::start().await;
    let other = host.sign_in().await;
    let mut owner = Browser::new(&host);
    owner.get(&host.link().await).await;
    let page = owner.get("/auth/me").await;
    assert!(page.text().contains("This browser."), "{}", page.text());
    let token = Browser::field(&page, "token");
    let sessions = host.sessions().await.sessions;
    let theirs = sessions.iter().find(|s| page.text().contains(&format!("value=\"{}\"", s.id)));
    let form = format!("token={token}&action=end-session&id={}", theirs.unwrap().id);
    assert_eq!(owner.post("/auth/me", &form.replace(&token, "wrong")).await.status, 403);
    assert_eq!(owner.post("/auth/me", &form).await.status, StatusCode::OK);
    assert_eq!(host.get("/x", &[("cookie", &other)]).await.status, StatusCode::UNAUTHORIZED);

    assert_eq!(owner.post("/auth/me", &format!("token={token}&action=sign-out")).await.status, 303);
    assert_eq!((owner.session(), host.sessions().await.sessions), (None, vec![]));
}

#[tokio::test]
async fn a_script_is_not_shown_the_page_nor_lets_it_act() {
    let host = Host::start().await;
    let mut owner = Browser::new(&host);
    owner.get(&host.link().await).await;
    let token = Browser::field(&owner.get("/auth/me").await, "token");
    let script = [("sec-fetch-mode", "cors"), ("sec-fetch-dest", "empty")];
    let page = owner.ask("GET", "/auth/me", &script, "").await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    assert!(!page.text().contains(&token));
    let origin = host.origin();
    let headers = [script[0], script[1], ("origin", origin.as_str())];
    let form = format!("token={token}&action=sign-out");
    assert_eq!(owner.ask("POST", "/auth/me", &headers, &form).await.status, 403);
    let evil = [("origin", "http://evil.example")];
    assert_eq!(owner.ask("POST", "/auth/me", &evil, &form).await.status, 403);
    assert_eq!(host.sessions().await.sessions.len(), 1);
}
