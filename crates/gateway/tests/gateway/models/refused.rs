//! What is not let through, and what is said then.

use http::StatusCode;
use nacre_wire::models::{Switch, Switched};
use serde_json::Value;

use super::stage::{CHAT, REAL_KEY, Stage, message};
use crate::host::Answer;
use crate::raw::Wire;
use tokio::net::TcpStream;

const BODY: &str = "{\"model\":\"gpt-4o\",\"max_tokens\":1}";

/// Sends these bytes and returns the status.
async fn raw(stage: &Stage, bytes: &str) -> u16 {
    let mut wire = Wire(TcpStream::connect(stage.host.address).await.unwrap());
    wire.send(bytes).await;
    wire.head().await.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn who_has_no_good_token_is_told_so_in_the_providers_own_words() {
    let stage = Stage::set().await;
    let over = stage.token(|wanted| wanted.expires_in_s = Some(0)).await.token;
    let admin: Value = stage
        .host
        .admin()
        .post_json(
            "/admin/sandboxes/tokens",
            &serde_json::json!({ "name": "a", "scopes": ["admin"] }),
        )
        .await
        .unwrap();
    let admin = admin["token"].as_str().unwrap();
    for token in ["", "nacre_model_wrong", &over, admin, REAL_KEY] {
        for (path, kind) in [
            (CHAT, "/error/code=invalid_api_key"),
            ("/provider/v1/anthropic/v1/messages", "/error/type=authentication_error"),
            (
                "/provider/v1/google/v1beta/models/g:generateContent",
                "/error/status=UNAUTHENTICATED",
            ),
            ("/provider/v1/nobody/x", "/error/code=invalid_api_key"),
        ] {
            let answer = stage.post(path, token, BODY).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
            let body: Value = serde_json::from_slice(&answer.body).unwrap();
            let (pointer, expected) = kind.split_once('=').unwrap();
            assert_eq!(body.pointer(pointer).unwrap(), expected, "{body}");
            assert!(message(&answer).contains("policy token"), "{body}");
        }
    }
    let cookie = stage.host.sign_in().await;
    let signed_in = stage.host.request("POST", CHAT, &[("cookie", &cookie)]).await;
    assert_eq!(signed_in.status, StatusCode::UNAUTHORIZED, "a session is no policy token");
    stage.nothing_arrived().await;
}

#[tokio::test]
async fn ssrf_by_path_leads_nowhere() {
    let stage = Stage::set().await;
    let token = stage.token(|_| ()).await.token;
    let host = stage.host.address;
    let targets = [
        "/provider/v1/openai/../anthropic/v1/messages",
        "/provider/v1/openai/%2e%2e/files",
        "/provider/v1/openai/..%2ffiles",
        "/provider/v1/openai//chat/completions",
        "/provider/v1/openai/chat//completions",
        "/provider/v1/openai/chat/completions/",
        "/provider/v1/openai/chat/completions/../../files",
        "/provider/v1/openai/chat%2fcompletions",
        "/provider/v1/openai/chat\\completions",
        "/provider/v1/openai/@evil.example/chat/completions",
        "/provider/v1/openai/http://evil.example/",
        "/provider/v1/openai/files",
        "/provider/v1/openai/batches",
        "/provider/v1/openai/organization/admin_api_keys",
        "/provider/v1/openai/chat/completions;x",
        "/provider/v1/openai/CHAT/completions",
        "/provider/v1/OPENAI/chat/completions",
        "/provider/v1//openai/chat/completions",
        "/PROVIDER/v1/openai/chat/completions",
        "http://evil.example/provider/v1/openai/chat/completions",
        "//evil.example/provider/v1/openai/chat/completions",
    ];
    for target in targets {
        let head = format!(
            "POST {target} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
            BODY.len()
        );
        let status = raw(&stage, &head).await;
        assert!((400..500).contains(&status), "{target}: {status}");
    }
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let bearer = format!("Bearer {token}");
        let answer = stage.host.request(method, CHAT, &[("authorization", &bearer)]).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{method}");
    }
    stage.nothing_arrived().await;
}

#[tokio::test]
async fn smuggled_headers_do_not_get_through() {
    let stage = Stage::set().await;
    let token = stage.token(|_| ()).await.token;
    let (host, length) = (stage.host.address, BODY.len());
    let ours = format!("POST {CHAT} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n");
    let ambiguous = [
        format!("{ours}content-length: {length}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{ours}content-length: {length}\r\ncontent-length: 3\r\n\r\n{BODY}"),
        format!("{ours}host: evil.example\r\ncontent-length: {length}\r\n\r\n{BODY}"),
        format!("{ours}content-encoding: gzip\r\ncontent-length: {length}\r\n\r\n{BODY}"),
    ];
    for head in ambiguous {
        assert_eq!(raw(&stage, &head).await, 400, "{head}");
    }
    let head = format!(
        "{ours}cookie: nacre_session=1\r\nx-nacre-user: mallory\r\nx-forwarded-host: evil.example\r\n\
         forwarded: host=evil.example\r\nx-api-key: sk-other\r\nproxy-authorization: Basic eA==\r\n\
         connection: close, authorization, x-hop\r\nx-hop: 1\r\nupgrade: h2c\r\nte: trailers\r\n\
         openai-organization: org\r\ncontent-length: {length}\r\n\r\n{BODY}"
    );
    let mut client = Wire(TcpStream::connect(host).await.unwrap());
    client.send(head).await;
    let mut arrived = stage.arrives().await;
    let mut names: Vec<_> = arrived
        .head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": ").map(|(name, _)| name))
        .collect();
    names.sort_unstable();
    let expected =
        ["accept-encoding", "authorization", "content-length", "host", "openai-organization"];
    assert_eq!(names, expected, "{}", arrived.head);
    assert!(arrived.head.contains(REAL_KEY));
    arrived.answer("{}").await;
    assert!(client.head().await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn large_bodies_and_other_models_are_refused_with_words() {
    let stage = Stage::set_with(|gateway| gateway.models.largest_body = 2 * 1024 * 1024).await;
    let token = stage.token(|wanted| wanted.scope.models = vec!["gpt-4o*".to_owned()]).await.token;
    let check = |answer: Answer, status: StatusCode, words: &str| {
        assert_eq!(answer.status, status);
        assert!(message(&answer).contains(words), "{}", message(&answer));
    };
    let large = format!("{{\"model\":\"gpt-4o\",\"x\":\"{}\"}}", "y".repeat(3 * 1024 * 1024));
    check(stage.post(CHAT, &token, &large).await, StatusCode::PAYLOAD_TOO_LARGE, "2 MiB");
    check(
        stage.post(CHAT, &token, "{\"model\":\"gpt-5\"}").await,
        StatusCode::FORBIDDEN,
        "\"gpt-5\"",
    );
    let twice = "{\"model\":\"gpt-4o\",\"model\":\"gpt-5\"}";
    check(stage.post(CHAT, &token, twice).await, StatusCode::BAD_REQUEST, "duplicate");
    check(stage.post(CHAT, &token, "hello").await, StatusCode::BAD_REQUEST, "JSON");
    let other =
        stage.token(|wanted| wanted.scope.providers = vec!["anthropic".to_owned()]).await.token;
    check(stage.post(CHAT, &other, BODY).await, StatusCode::NOT_FOUND, "\"openai\"");
    let narrow =
        stage.token(|wanted| wanted.scope.paths = vec!["responses".to_owned()]).await.token;
    check(stage.post(CHAT, &narrow, BODY).await, StatusCode::FORBIDDEN, "chat/completions");
    stage.nothing_arrived().await;
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_not_passed_on() {
    let stage = Stage::set().await;
    let token = stage.token(|_| ()).await.token;
    let (answer, ()) = tokio::join!(stage.post(CHAT, &token, BODY), async {
        let headers = "location: http://evil.example/\r\n";
        stage.arrives().await.answer_with(307, headers, "").await;
    });
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
    assert!(!answer.headers.contains_key("location"));
}

#[tokio::test]
async fn other_models_in_a_body_are_checked() {
    let stage = Stage::set().await;
    let token = stage.token(|wanted| wanted.scope.models = vec!["gpt-4o*".to_owned()]).await.token;
    for other in [
        "\"models\":[\"gpt-4o-mini\",\"gpt-5\"]",
        "\"fallbacks\":[{\"model\":\"gpt-5\"}]",
        "\"tools\":[{\"type\":\"advisor\",\"model\":\"gpt-5\"}]",
    ] {
        let refused = stage.post(CHAT, &token, &format!("{{\"model\":\"gpt-4o\",{other}}}")).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{other}");
        assert!(message(&refused).contains("\"gpt-5\""), "{}", message(&refused));
    }
    for (body, words) in [
        ("{\"model\":\"gpt-4o\",\"Model\":\"gpt-5\"}", "could be taken for"),
        ("{\"model\":\"gpt-4o\",\"background\":true}", "background"),
    ] {
        let refused = stage.post("/provider/v1/openai/responses", &token, body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{body}");
        assert!(message(&refused).contains(words), "{}", message(&refused));
    }
    stage.nothing_arrived().await;
}

#[tokio::test]
async fn what_was_refused_is_in_the_record_and_many_times_the_same_is_one_row() {
    let stage = Stage::set().await;
    let token = stage
        .token(|wanted| {
            wanted.scope.models = vec!["gpt-4o".to_owned()];
            wanted.scope.tokens = Some(10_000);
            wanted.scope.requests_per_minute = Some(1);
        })
        .await
        .token;
    for number in 0..20 {
        let body = format!("{{\"model\":\"gpt-5-{number}\",\"max_tokens\":1}}");
        assert_eq!(stage.post(CHAT, &token, &body).await.status, StatusCode::FORBIDDEN);
    }
    let dear = "{\"model\":\"gpt-4o\",\"max_tokens\":20000}";
    assert_eq!(stage.post(CHAT, &token, dear).await.status, StatusCode::TOO_MANY_REQUESTS);
    let (answer, ()) = tokio::join!(stage.post(CHAT, &token, BODY), async {
        stage.arrives().await.answer("{}").await;
    });
    assert_eq!(answer.status, StatusCode::OK);
    for _ in 0..2 {
        assert_eq!(stage.post(CHAT, &token, BODY).await.status, StatusCode::TOO_MANY_REQUESTS);
    }
    let all = Switch { provider: None };
    let _: Switched =
        stage.host.admin().post_json("/admin/sandboxes/providers/stop", &all).await.unwrap();
    assert_eq!(stage.post(CHAT, &token, BODY).await.status, StatusCode::SERVICE_UNAVAILABLE);
    stage.post(CHAT, "nacre_model_wrong", BODY).await;

    let calls = stage.calls().await;
    let refused: Vec<_> = calls
        .iter()
        .filter(|call| call.state == "refused")
        .map(|call| (call.verdict.as_deref().unwrap(), call.status, call.times))
        .collect();
    let expected = [
        ("stopped", Some(503), None),
        ("rate", Some(429), Some(2)),
        ("budget", Some(429), None),
        ("forbidden", Some(403), Some(20)),
    ];
    assert_eq!(refused, expected);
    assert_eq!(calls.len(), 5);
    assert_eq!(calls[4].model, "gpt-5-0");
    assert_eq!(stage.usage("day").await.total.calls, 1, "those were not made");
}
