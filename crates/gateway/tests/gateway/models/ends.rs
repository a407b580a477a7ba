//! What ends calls: the switch, and the end of a token.

use http::StatusCode;
use http_body_util::BodyExt;
use nacre_wire::models::{ProviderList, Switch, Switched};

use super::stage::{Arrived, CHAT, Stage, message};
use crate::raw::within;

const BODY: &str = "{\"model\":\"gpt-4o\",\"max_tokens\":100,\"stream\":true}";

/// A stream under way, from both sides.
async fn streaming(stage: &Stage, token: &str) -> (hyper::body::Incoming, Arrived) {
    let (response, arrived) = tokio::join!(stage.host.send(stage.call(CHAT, token, BODY)), async {
        let mut arrived = stage.arrives().await;
        arrived.stream("data: {}\n\n").await;
        arrived
    });
    let mut body = response.into_body();
    body.frame().await.unwrap().unwrap();
    (body, arrived)
}

async fn switch(stage: &Stage, how: &str, provider: Option<&str>) -> Switched {
    let wanted = Switch { provider: provider.map(str::to_owned) };
    let path = format!("/admin/sandboxes/providers/{how}");
    stage.host.admin().post_json(&path, &wanted).await.unwrap()
}

#[tokio::test]
async fn the_switch_ends_what_is_under_way_and_a_restart_does_not_undo_it() {
    let mut stage = Stage::set().await;
    let token = stage.token(|_| ()).await.token;
    let (body, mut arrived) = streaming(&stage, &token).await;
    let mut waiting = stage.begin(CHAT, &token, BODY).await;
    let mut unanswered = stage.arrives().await;
    assert_eq!(switch(&stage, "stop", None).await, Switched { stopped: true, ended: 2 });
    assert!(body.collect().await.is_err(), "half of an answer must not look whole");
    arrived.wire.ends().await;
    unanswered.wire.ends().await;
    assert!(waiting.head().await.starts_with("HTTP/1.1 503"));
    let refused = stage.post(CHAT, &token, BODY).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(message(&refused).contains("nacre provider start"), "{}", message(&refused));

    stage.host.kill().await;
    stage.host.start_again().await;
    assert_eq!(stage.post(CHAT, &token, BODY).await.status, StatusCode::SERVICE_UNAVAILABLE);
    let list: ProviderList =
        stage.host.admin().get_json("/admin/sandboxes/providers").await.unwrap();
    assert!(list.stopped && list.providers.iter().all(|provider| provider.stopped));
    switch(&stage, "start", None).await;
    stage.nothing_arrived().await;
}

#[tokio::test]
async fn one_provider_can_be_stopped_alone() {
    let stage = Stage::set().await;
    let token = stage.token(|_| ()).await.token;
    switch(&stage, "stop", Some("anthropic")).await;
    let messages = "/provider/v1/anthropic/v1/messages";
    let refused = stage.post(messages, &token, BODY).await;
    assert!(message(&refused).contains("anthropic"), "{}", message(&refused));
    stage.nothing_arrived().await;
    switch(&stage, "start", Some("anthropic")).await;
    let (answer, ()) = tokio::join!(stage.post(messages, &token, BODY), async {
        stage.arrives().await.answer("{}").await;
    });
    assert_eq!(answer.status, StatusCode::OK);
}

#[tokio::test]
async fn a_token_that_is_revoked_ends_at_once_with_what_it_has_under_way() {
    let stage = Stage::set().await;
    let made = stage.token(|wanted| wanted.scope.run = Some("run-1".to_owned())).await;
    let other = stage.token(|_| ()).await.token;
    let (body, mut arrived) = streaming(&stage, &made.token).await;
    let (other_body, mut other_arrived) = streaming(&stage, &other).await;
    let path = format!("/admin/sandboxes/policy-tokens/{}", made.info.id);
    stage.host.admin().delete(&path).await.unwrap();
    assert!(body.collect().await.is_err());
    arrived.wire.ends().await;
    assert_eq!(stage.post(CHAT, &made.token, BODY).await.status, StatusCode::UNAUTHORIZED);
    other_arrived.wire.send("data: [DONE]\n\n").await;
    other_arrived.wire.shut().await;
    assert!(other_body.collect().await.is_ok(), "others go on");
    assert_eq!(stage.usage("run").await.rows.iter().filter(|row| row.key == "run-1").count(), 1);
    assert!(stage.host.admin().delete(&path).await.is_err(), "it is gone");
}

#[tokio::test]
async fn a_token_that_expires_ends_what_it_has_under_way() {
    let stage = Stage::set().await;
    let token = stage.token(|wanted| wanted.expires_in_s = Some(2)).await.token;
    let (body, mut arrived) = streaming(&stage, &token).await;
    let mut waiting = stage.begin(CHAT, &token, BODY).await;
    let mut unanswered = stage.arrives().await;
    assert!(within("it ends", body.collect()).await.is_err(), "half of it must not look whole");
    arrived.wire.ends().await;
    assert!(within("it ends", waiting.head()).await.starts_with("HTTP/1.1 503"));
    unanswered.wire.ends().await;
    stage.until_call("kept").await;
    assert_eq!(stage.post(CHAT, &token, BODY).await.status, StatusCode::UNAUTHORIZED);
}
