//! The path contract from outside: where a path leads, with a session and without.

use http::StatusCode;
use nacre_gateway::routes::{Auth, Owner, Part, Role, TABLE};
use nacre_wire::access::Scope;
use nacre_wire::conductor::relayed;

use crate::host::{Answer, Host};
use crate::tokens;

const HTML: (&str, &str) = ("accept", "text/html");
const SOCKET: [(&str, &str); 2] = [("connection", "upgrade"), ("upgrade", "websocket")];

fn is_error(answer: &Answer, status: StatusCode, kind: &str) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.headers["content-type"], "application/json");
    assert!(answer.text().contains(&format!("\"kind\":\"{kind}\"")), "{}", answer.text());
}

/// In the words of the provider that was meant.
fn wants_a_policy_token(answer: &Answer) {
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.text());
    assert_eq!(answer.headers["content-type"], "application/json");
    assert!(answer.text().contains("a policy token is needed"), "{}", answer.text());
}

#[tokio::test]
async fn without_a_session_every_row_asks_for_what_it_needs() {
    let host = Host::start().await;
    host.create("dev").await;
    for (row, path) in TABLE.iter().flat_map(|row| row.examples.iter().map(move |path| (row, path)))
    {
        let (call, page) = (host.get(path, &[]).await, host.get(path, &[HTML]).await);
        let socket = host.get(path, &SOCKET).await;
        match row.auth {
            Auth::Session => {
                is_error(&call, StatusCode::UNAUTHORIZED, "unauthorized");
                is_error(&socket, StatusCode::UNAUTHORIZED, "unauthorized");
                assert_eq!(page.status, StatusCode::SEE_OTHER, "{path}");
                let to = page.headers["location"].to_str().unwrap();
                assert!(to.starts_with("/login"), "{path}: {to}");
            }
            Auth::PolicyToken => {
                for answer in [call, page, socket] {
                    wants_a_policy_token(&answer);
                }
            }
            Auth::Nothing => {
                assert_ne!(call.status, StatusCode::UNAUTHORIZED, "{path}");
                assert_ne!(page.status, StatusCode::SEE_OTHER, "{path}");
            }
        }
    }
}

#[tokio::test]
async fn a_session_is_no_policy_token() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let answer = host.get("/provider/v1/openai/models", &[("cookie", &cookie)]).await;
    wants_a_policy_token(&answer);
}

#[tokio::test]
async fn with_a_session_every_row_reaches_its_owner_and_no_other() {
    let host = Host::start().await;
    host.create("dev").await;
    let cookie = host.sign_in().await;
    let headers = [("cookie", cookie.as_str())];
    for (row, path) in
        TABLE.iter().flat_map(|row| row.examples.iter().map(move |path| (row, *path)))
    {
        let answer = host.get(path, &headers).await;
        let text = answer.text();
        match row.owner {
            Owner::Role(role) => {
                let prefix = role.prefix();
                let seen = path.strip_prefix(prefix).unwrap();
                assert_eq!(answer.headers["x-nacre-role"], role.as_str(), "{path}");
                if relayed(seen) {
                    // This supervisor does not pass it up, and so is not given it.
                    assert_eq!(answer.status, StatusCode::NOT_IMPLEMENTED, "{path}: {text}");
                    continue;
                }
                if seen == "/supervisor/health" {
                    // It has an answer of its own to that.
                    assert!(text.contains("\"ok\""), "{path}: {text}");
                    continue;
                }
                // What the sandbox's supervisor says it was asked.
                assert!(text.starts_with(&format!("GET {seen}\n")), "{path}: {text}");
                let told = text.contains("\nx-forwarded-prefix: /dev\n");
                assert_eq!(told, role == Role::Dev, "{path}: {text}");
            }
            Owner::Gateway(Part::Slash) => assert_eq!(answer.headers["location"], "/dev/"),
            Owner::Gateway(Part::SignIn | Part::Control) => {
                assert!(!text.starts_with("GET /"), "{path}: {text}");
                assert!(!answer.headers.contains_key("x-nacre-role"), "{path}");
            }
            Owner::Gateway(Part::Provider) => wants_a_policy_token(&answer),
        }
    }
}

#[tokio::test]
async fn dev_gets_its_slash_and_keeps_its_query() {
    let host = Host::start().await;
    host.create("dev").await;
    let (cookie, origin) = (host.sign_in().await, host.origin());
    let headers = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
    let to = |answer: &Answer| {
        (answer.status.as_u16(), answer.headers["location"].to_str().unwrap().to_owned())
    };
    let get = host.get("/dev?a=/b&c", &headers).await;
    assert_eq!(to(&get), (303, "/dev/?a=/b&c".to_owned()));
    let post = host.request("POST", "/dev?a", &headers).await;
    assert_eq!(to(&post), (308, "/dev/?a".to_owned()));
    let socket = host.get("/dev", &[headers[0], headers[1], SOCKET[0], SOCKET[1]]).await;
    assert_eq!(to(&socket), (308, "/dev/".to_owned()));
}

#[tokio::test]
async fn the_owner_lands_where_they_wanted_to_go() {
    let host = Host::start().await;
    let asked = host.get("/dev/notes?page=2&x=%26", &[HTML]).await;
    let login = asked.headers["location"].to_str().unwrap().to_owned();
    assert_eq!(login, "/login?next=/dev/notes%3Fpage%3D2%26x%3D%2526");
    let page = host.get(&login, &[HTML]).await;
    let left = page.headers["set-cookie"].to_str().unwrap();
    assert!(left.contains("; Path=/login; HttpOnly; SameSite=Lax; Max-Age=600"), "{left}");
    let left = left.split(';').next().unwrap();

    let link = host.link().await;
    let welcome = host.get(&link, &[HTML, ("cookie", left)]).await;
    assert_eq!(welcome.headers["location"], "/dev/notes?page=2&x=%26");
    let link = host.link().await;
    let welcome = host.get(&format!("{link}&next=/files"), &[HTML, ("cookie", left)]).await;
    assert_eq!(welcome.headers["location"], "/files", "what the link says counts more");
}

#[tokio::test]
async fn nobody_is_sent_to_another_site() {
    let host = Host::start().await;
    for next in [
        "//evil.example",
        "%2F%2Fevil.example",
        "/%5Cevil.example",
        "https://evil.example",
        "/%09/evil.example",
        "/login",
        "evil",
        "/%2e%2e//evil.example",
    ] {
        let link = host.link().await;
        let cookie = format!("nacre_return={next}");
        let welcome = host.get(&format!("{link}&next={next}"), &[HTML, ("cookie", &cookie)]).await;
        assert_eq!(welcome.status, StatusCode::SEE_OTHER);
        assert_eq!(welcome.headers["location"], "/", "{next}");
        let page = host.get(&format!("/login?next={next}"), &[HTML]).await;
        assert!(!page.headers.contains_key("set-cookie"), "{next}");
    }
}

#[tokio::test]
async fn a_socket_is_opened_by_our_own_pages_alone() {
    let host = Host::start().await;
    host.create("dev").await;
    let (cookie, origin) = (host.sign_in().await, host.origin());
    let socket = [("connection", "upgrade"), ("upgrade", "echo"), ("cookie", cookie.as_str())];
    for path in ["/upgrade", "/dev/upgrade"] {
        for evil in
            ["http://evil.example", "null", "https://127.0.0.1", &origin.replace("http", "https")]
        {
            let answer = host.get(path, &[socket[0], socket[1], socket[2], ("origin", evil)]).await;
            is_error(&answer, StatusCode::FORBIDDEN, "permission");
        }
        let none = host.get(path, &socket).await;
        is_error(&none, StatusCode::FORBIDDEN, "permission");
        let headers = [socket[0], socket[1], socket[2], ("origin", origin.as_str())];
        let request = host.build("GET", path, &headers, axum::body::Body::empty());
        assert_eq!(host.send(request).await.status(), StatusCode::SWITCHING_PROTOCOLS);
    }
}

#[tokio::test]
async fn a_script_that_shadows_the_session_locks_nobody_out() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    // One for each longer path, and as many as a browser keeps for one host.
    for shadows in [2, 5, 180] {
        let shadowed = "nacre_session=evil; ".repeat(shadows) + &cookie;
        for path in ["/x", "/admin/sandboxes", "/auth/me"] {
            let answer = host.get(path, &[("cookie", &shadowed), HTML]).await;
            assert_eq!(answer.status, StatusCode::OK, "{shadows} {path}");
        }
    }
}

#[tokio::test]
async fn apps_have_cookies_of_their_own_per_role() {
    let host = Host::start().await;
    host.create("dev").await;
    let session = host.sign_in().await;
    let cookies = format!("{session}; nacre_app_live_a=1; nacre_app_dev_a=2; plain=3");
    let headers = [("cookie", cookies.as_str())];
    let live = host.get("/x", &headers).await;
    assert!(live.text().contains("\ncookie: a=1\n"), "{}", live.text());
    let dev = host.get("/dev/x", &headers).await;
    assert!(dev.text().contains("\ncookie: a=2\n"), "{}", dev.text());
    let set = dev.headers["set-cookie"].to_str().unwrap();
    assert_eq!(set, "nacre_app_dev_nacre_session=evil; HttpOnly; SameSite=Lax");
    let token = tokens::make(&host, "read", &[Scope::Read]).await;
    let shown = [headers[0], ("authorization", token.as_str())];
    let door = host.get("/admin/sandboxes/live/door/x", &shown).await;
    assert!(door.text().starts_with("GET /x\n"), "{}", door.text());
    assert!(!door.text().contains("cookie"), "{}", door.text());
    assert!(!door.headers.contains_key("set-cookie"));
}
