//! The control plane as a page.

use http::StatusCode;
use nacre_wire::control::SandboxInfo;

use crate::host::{Answer, Host};

const NAVIGATES: [(&str, &str); 3] =
    [("accept", "text/html"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];

async fn page(host: &Host, cookie: &str) -> Answer {
    let mut headers = NAVIGATES.to_vec();
    headers.push(("cookie", cookie));
    host.get("/admin/sandboxes", &headers).await
}

fn token(page: &str) -> String {
    let after = page.split("name=\"token\" value=\"").nth(1).expect("a form with a token");
    after.split('"').next().unwrap().to_owned()
}

async fn send(host: &Host, cookie: &str, form: String, extra: &[(&str, &str)]) -> StatusCode {
    let origin = host.origin();
    let mut headers = vec![
        ("cookie", cookie),
        ("origin", origin.as_str()),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    headers.extend(extra);
    let request = host.build("POST", "/admin/sandboxes/page", &headers, form.into());
    host.send(request).await.status()
}

#[tokio::test]
async fn the_page_works_when_every_sandbox_is_dead() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let id = host.info("live").await.id;
    host.operate("live", "stop").await.unwrap();
    let shown = page(&host, &cookie).await;
    assert_eq!(shown.status, StatusCode::OK);
    assert!(
        shown.text().contains("<span class=\"state stopped\">stopped</span>"),
        "{}",
        shown.text()
    );
    assert!(!shown.text().contains("<script"));
    for (header, expected) in [("x-frame-options", "DENY"), ("cache-control", "no-store")] {
        assert_eq!(shown.headers[header], expected);
    }
    let form = format!("token={}&action=start&name={id}", token(shown.text()));
    let sent = send(&host, &cookie, form, &NAVIGATES[1..]).await;
    assert_eq!(sent, StatusCode::SEE_OTHER);
    let shown = page(&host, &cookie).await;
    assert!(shown.text().contains("live has started"), "{}", shown.text());
    assert!(shown.text().contains("state running"));
}

#[tokio::test]
async fn everything_can_be_done_with_forms_alone() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    host.put_app("live", "one").await;
    let act = async |fields: &str| {
        let form = format!("token={}&{fields}", token(page(&host, &cookie).await.text()));
        assert_eq!(send(&host, &cookie, form, &NAVIGATES[1..]).await, StatusCode::SEE_OTHER);
        let shown = page(&host, &cookie).await;
        shown.text().split("role=\"status\">").nth(1).unwrap().split('<').next().unwrap().to_owned()
    };
    assert!(act("action=create-dev").await.starts_with("dev is a copy of live"));
    let (one, two) = (host.info("live").await.id, host.info("dev").await.id);
    assert_eq!(act("action=swap").await, "what was dev is live, and what was live is dev");
    assert_eq!(host.info("live").await.id, two);
    assert_eq!(act("action=rollback").await, "what was live before is live again");
    assert_eq!(host.info("live").await.id, one);
    assert_eq!(act("action=delete-dev").await, "nothing was done: the box was not ticked");
    assert_eq!(act("action=delete-dev&sure=1").await, "dev is removed");
    assert_eq!(act("action=restart&name=live").await, "live has started again");
    assert!(act("action=fly").await.contains("no such action"));
}

/// What a script cannot ask for itself it can put into a form, which is then a navigation.
#[tokio::test]
async fn a_form_that_an_app_submits_changes_nothing() {
    let host = Host::start().await;
    host.make_dev().await;
    // What a sandbox says of itself comes when it has started.
    let all = async || {
        let list = host.list().await.into_iter();
        list.map(|info| SandboxInfo { supervisor: None, ..info }).collect::<Vec<_>>()
    };
    let (before, cookie, origin) = (all().await, host.sign_in().await, host.origin());
    for (path, body) in [
        ("swap", ""),
        ("swap", r#"{"force":true,"x":"="}"#),
        ("dev/reset?force=true", ""),
        ("live/stop", ""),
        ("live/restart", ""),
        ("providers/stop", ""),
        ("", ""),
        ("runs", r#"{"task":"spend","x":"="}"#),
        ("conductor/conversations", ""),
        ("page", "action=stop&name=live"),
        ("page", "token=&action=stop&name=live"),
    ] {
        let path = format!("/admin/sandboxes/{path}");
        let headers = [
            ("cookie", cookie.as_str()),
            ("origin", origin.as_str()),
            ("content-type", "text/plain"),
            ("sec-fetch-site", "same-origin"),
            NAVIGATES[0],
            NAVIGATES[1],
            NAVIGATES[2],
        ];
        // Over plain http a browser does not say what it is.
        for headers in [&headers[..], &headers[..3]] {
            let request = host.build("POST", path.trim_end_matches('/'), headers, body.into());
            assert_eq!(host.send(request).await.status(), StatusCode::FORBIDDEN, "{path}");
        }
    }
    assert_eq!(all().await, before);
}

#[tokio::test]
async fn no_page_reads_through_the_door_of_another_sandbox() {
    let host = Host::start().await;
    host.create("other").await;
    let (cookie, origin) = (host.sign_in().await, host.origin());
    let headers = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
    for path in ["live/door", "other/door/", "other/door/supervisor/files/read?path=a"] {
        let path = format!("/admin/sandboxes/{path}");
        for extra in [&NAVIGATES[..], &[("sec-fetch-mode", "cors")], &[]] {
            let headers = [&headers[..], extra].concat();
            let answer = host.get(&path, &headers).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
            assert!(answer.text().contains("this cannot be done from a browser"));
        }
    }
}

#[tokio::test]
async fn a_script_of_a_page_changes_nothing_and_gets_no_token() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let origin = host.origin();
    let script = [
        ("sec-fetch-site", "same-origin"),
        ("sec-fetch-mode", "cors"),
        ("sec-fetch-dest", "empty"),
    ];
    let mut headers = vec![("cookie", cookie.as_str()), ("origin", origin.as_str())];
    headers.extend(script);
    for (method, path) in [
        ("POST", "/admin/sandboxes/swap"),
        ("POST", "/admin/sandboxes/live/stop"),
        ("POST", "/admin/sandboxes/page"),
        ("DELETE", "/admin/sandboxes/live"),
    ] {
        let refused = host.request(method, path, &headers).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{method} {path}");
        assert!(refused.text().contains("scripts of a page may not change sandboxes"));
    }
    headers.push(("accept", "text/html"));
    let answer = host.get("/admin/sandboxes", &headers).await;
    assert!(answer.text().starts_with("{\"sandboxes\""), "data, not the page with the token");

    let token = token(page(&host, &cookie).await.text());
    let other = host.sign_in().await;
    let form = format!("token={token}&action=stop&name=live");
    let sent = send(&host, &other, form, &NAVIGATES[1..]).await;
    assert_eq!(sent, StatusCode::FORBIDDEN, "a token is good for one session");
    assert_eq!(host.states().await, ["live Running"]);
}
