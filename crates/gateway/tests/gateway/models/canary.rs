//! The real key is shown to nobody but its provider.

use super::stage::{CHAT, REAL_KEY, Stage};
use nacre_wire::client::empty;

use http_body_util::BodyExt;

#[tokio::test]
async fn the_key_is_in_no_answer_and_in_no_file() {
    let stage = Stage::set().await;
    let token = stage.token(|_| ()).await.token;
    let mut seen = Vec::new();
    let (answer, ()) = tokio::join!(stage.post(CHAT, &token, "{\"model\":\"m\"}"), async {
        stage.arrives().await.answer("{}").await;
    });
    seen.push(format!("{:?} {}", answer.headers, answer.text()));
    let broken = tokio::join!(stage.post(CHAT, &token, "{\"model\":\"m\"}"), async {
        drop(stage.arrives().await);
    });
    seen.push(broken.0.text().to_owned());
    seen.push(stage.post("/provider/v1/openai/files", &token, "{}").await.text().to_owned());
    let admin = stage.host.admin();
    for path in ["providers", "policy-tokens", "usage", "calls", "metrics", "gateway", "audit"] {
        let path = format!("/admin/sandboxes/{path}");
        let request = admin.request(http::Method::GET, &path, empty()).unwrap();
        let body =
            admin.send(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
        seen.push(String::from_utf8_lossy(&body).into_owned());
    }
    seen.push(format!("{:?}", stage.host.config));
    for text in &seen {
        assert!(!text.contains(REAL_KEY), "{text}");
    }
    assert!(
        seen.iter().any(|text| text.contains("environment variable KEY")),
        "it is told from where"
    );
    for entry in std::fs::read_dir(stage.host.data.path()).unwrap().flatten() {
        let content = std::fs::read(entry.path()).unwrap_or_default();
        for secret in [REAL_KEY, &token] {
            let found = content.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{}", entry.path().display());
        }
    }
}

/// Servers that complain about a key tend to repeat it.
#[tokio::test]
async fn a_key_that_is_echoed_stays_here() {
    let stage = Stage::set_with(|gateway| gateway.models.keep_bodies = true).await;
    let token = stage.token(|_| ()).await.token;
    let said = format!("{{\"error\":{{\"message\":\"Incorrect API key: {REAL_KEY}\"}}}}");
    let hidden = said.replace(REAL_KEY, &"*".repeat(REAL_KEY.len()));
    let (answer, ()) = tokio::join!(stage.post(CHAT, &token, "{\"model\":\"m\"}"), async {
        let headers = format!("www-authenticate: Bearer x=\"{REAL_KEY}\"\r\nx-request-id: r\r\n");
        stage.arrives().await.answer_with(401, &headers, &said).await;
    });
    assert_eq!((answer.status.as_u16(), answer.text()), (401, hidden.as_str()));
    assert!(!format!("{:?}", answer.headers).contains(REAL_KEY));
    assert_eq!(answer.headers["x-request-id"], "r");
    // Broken in the middle of it, of a length that nobody told, and with the beginning of it at the end.
    let (first, second) = said.split_at(said.find(REAL_KEY).unwrap() + 9);
    let (answer, ()) = tokio::join!(stage.post(CHAT, &token, "{\"model\":\"m\"}"), async {
        let mut arrived = stage.arrives().await;
        arrived.stream(first).await;
        tokio::task::yield_now().await;
        arrived.wire.send(format!("{second}sk-real")).await;
        arrived.wire.shut().await;
    });
    assert_eq!(answer.text(), format!("{hidden}sk-real"));
    stage.calls().await;
    for entry in std::fs::read_dir(stage.host.data.path()).unwrap().flatten() {
        let content = std::fs::read(entry.path()).unwrap_or_default();
        let found = content.windows(REAL_KEY.len()).any(|part| part == REAL_KEY.as_bytes());
        assert!(!found, "{}", entry.path().display());
    }
}
