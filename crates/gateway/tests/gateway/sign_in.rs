//! Who gets in from a browser.

use http::StatusCode;
use nacre_wire::access::Scope;
use nacre_wire::control::{CreateSandbox, SandboxInfo};

use crate::host::Host;
use crate::tokens;

const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml");

#[tokio::test]
async fn a_link_opens_one_session_however_many_race_for_it() {
    let host = Host::start().await;
    let link = host.link().await;
    let tries = (0..16).map(|_| host.get(&link, &[HTML]));
    let answers = futures_util::future::join_all(tries).await;
    let (won, lost): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == StatusCode::SEE_OTHER);
    assert_eq!((won.len(), lost.len()), (1, 15));
    // The address that all of them come from has failed a little often by then.
    let refusals = [StatusCode::UNAUTHORIZED, StatusCode::TOO_MANY_REQUESTS];
    assert!(lost.iter().all(|answer| refusals.contains(&answer.status)));

    let cookie = won[0].headers["set-cookie"].to_str().unwrap();
    for part in ["; Path=/", "; HttpOnly", "; SameSite=Lax", "; Max-Age=2592000"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert_eq!(won[0].headers["location"], "/");
}

#[tokio::test]
async fn only_the_newest_link_works_and_looking_does_not_spend_it() {
    let host = Host::start().await;
    let old = host.link().await;
    let new = host.link().await;
    assert_eq!(host.get(&old, &[]).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(host.request("HEAD", &new, &[]).await.status, StatusCode::OK);
    assert_eq!(host.get(&new, &[]).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_session_survives_a_restart_of_the_gateway() {
    let mut host = Host::start().await;
    let cookie = host.sign_in().await;
    host.kill().await;
    host.start_again().await;
    assert_eq!(host.get("/x", &[("cookie", &cookie)]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn without_a_session_pages_lead_to_sign_in_and_calls_are_refused() {
    let host = Host::start().await;
    let page = host.get("/desktop", &[HTML]).await;
    assert_eq!(
        (page.status, &page.headers["location"]),
        (StatusCode::SEE_OTHER, &"/login?next=/desktop".parse().unwrap())
    );

    let login = host.get("/login", &[HTML]).await;
    assert_eq!(login.status, StatusCode::OK);
    assert!(login.text().contains("nacre login"));

    let websocket = [("connection", "upgrade"), ("upgrade", "websocket"), HTML];
    let forged = [("cookie", "nacre_session=0000")];
    let cases = [
        ("GET", "/supervisor/health", &[][..]),
        ("POST", "/", &[HTML][..]),
        ("GET", "/ws", &websocket[..]),
        ("GET", "/admin/sandboxes", &forged[..]),
        ("GET", "/dev/", &[][..]),
    ];
    for (method, path, headers) in cases {
        let answer = host.request(method, path, headers).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path}");
        assert!(answer.text().contains(r#""kind":"unauthorized""#), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_foreign_page_changes_nothing() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let cookie = ("cookie", cookie.as_str());
    let origin = host.origin();
    let evil = ("origin", "http://evil.example");
    let websocket = [("connection", "upgrade"), ("upgrade", "websocket")];

    let stop = "/admin/sandboxes/live/stop";
    for headers in [&[cookie][..], &[cookie, evil], &[cookie, ("sec-fetch-site", "same-site")]] {
        let answer = host.request("POST", stop, headers).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{headers:?}");
    }
    let answer = host.get("/upgrade", &[cookie, evil, websocket[0], websocket[1]]).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(host.states().await, ["live Running"]);

    // Pages of sandboxes have this origin too: what changes is a form of ours, with its token.
    let answer = host.request("POST", stop, &[cookie, ("origin", &origin)]).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(host.states().await, ["live Running"]);
}

#[tokio::test]
async fn a_name_that_was_rebound_to_this_machine_is_refused() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let answer = host.get("/", &[("cookie", &cookie), ("host", "evil.example")]).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let link = host.link().await;
    assert_eq!(host.get(&link, &[("host", "evil.example")]).await.status, StatusCode::FORBIDDEN);
    assert_eq!(
        host.get("/", &[("cookie", &cookie), ("host", "localhost:1")]).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn what_reaches_into_the_host_is_not_for_browsers() {
    let host = Host::start().await;
    let (cookie, origin) = (host.sign_in().await, host.origin());
    let session = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
    let token = tokens::make(&host, "admin", &[Scope::Admin]).await;
    for headers in [&session[..], &[("authorization", token.as_str())]] {
        for path in ["/admin/sandboxes/gateway/sign-in-link", "/admin/sandboxes/gateway/shutdown"] {
            let answer = host.request("POST", path, headers).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
        }
        let body = r#"{"name":"spy","rootfs":"/"}"#;
        let request = host.build("POST", "/admin/sandboxes", headers, body.into());
        assert_eq!(host.send(request).await.status(), StatusCode::FORBIDDEN);
    }

    let wanted = CreateSandbox {
        name: Some("ok".to_owned()),
        rootfs: Some("/srv".into()),
        ..Default::default()
    };
    let made: SandboxInfo = host.admin().post_json("/admin/sandboxes", &wanted).await.unwrap();
    assert_eq!(made.rootfs, Some("/srv".into()));
}
