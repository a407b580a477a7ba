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
