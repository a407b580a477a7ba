//! Budgets hold, whatever clients do.

use http::StatusCode;
use http_body_util::BodyExt;
use nacre_wire::models::PolicyTokenList;

use super::stage::{CHAT, Stage, message};

const CALL: &str = "{\"model\":\"gpt-4o\",\"max_tokens\":100}";

#[tokio::test]
async fn of_fifty_calls_at_once_against_a_budget_for_one_exactly_one_passes() {
    let stage = Stage::set().await;
    let token = stage.token(|wanted| wanted.scope.tokens = Some(150)).await.token;
    let calls = futures_util::future::join_all((0..50).map(|_| stage.post(CHAT, &token, CALL)));
    let (answers, arrived) = tokio::join!(calls, async {
        let mut arrived = stage.arrives().await;
        // Not before the others had their chance.
        stage.until_metric("nacre_model_refusals_total{reason=\"budget\"} 49").await;
        arrived.answer("{\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}").await;
        arrived
    });
    let passed = answers.iter().filter(|answer| answer.status == StatusCode::OK).count();
    let refused = answers.iter().filter(|answer| answer.status == StatusCode::TOO_MANY_REQUESTS);
    assert_eq!((passed, refused.count()), (1, 49));
    let words = answers.iter().find(|answer| answer.status != StatusCode::OK).map(message).unwrap();
    assert!(words.contains("\"test\"") && words.contains("150 tokens"), "{words}");
    drop(arrived);

    // What was used took the place of what was reserved: there is room for one more.
    stage.until_call("settled").await;
    let (answer, ()) = tokio::join!(stage.post(CHAT, &token, CALL), async {
        stage.arrives().await.answer("{}").await;
    });
    assert_eq!(answer.status, StatusCode::OK);
}

#[tokio::test]
async fn a_client_that_vanishes_keeps_its_reservation_and_the_provider_is_told() {
    let stage = Stage::set().await;
    let token = stage.token(|wanted| wanted.scope.tokens = Some(150)).await.token;
    let body = "{\"model\":\"gpt-4o\",\"max_tokens\":100,\"stream\":true}";
    let (response, mut arrived) =
        tokio::join!(stage.host.send(stage.call(CHAT, &token, body)), async {
            let mut arrived = stage.arrives().await;
            arrived.stream("data: {\"choices\":[]}\n\n").await;
            arrived
        });
    let mut body = response.into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    // The connection to the provider goes with the client.
    arrived.wire.ends().await;
    let kept = stage.until_call("kept").await;
    assert_eq!(kept.output_tokens, 100);
    let refused = stage.post(CHAT, &token, CALL).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);

    // The same when it goes before there is an answer.
    let token = stage.token(|_| ()).await.token;
    let client = stage.begin(CHAT, &token, CALL).await;
    let mut arrived = stage.arrives().await;
    drop(client);
    arrived.wire.ends().await;
    stage.until_call("kept").await;
}

#[tokio::test]
async fn what_was_under_way_when_the_gateway_was_killed_is_still_counted() {
    let mut stage = Stage::set().await;
    let made = stage.token(|wanted| wanted.scope.tokens = Some(150)).await;
    let token = made.token;
    let client = stage.begin(CHAT, &token, CALL).await;
    let arrived = stage.arrives().await;
    stage.host.kill().await;
    drop((client, arrived));
    stage.host.start_again().await;
    let call = stage.calls().await.remove(0);
    assert_eq!((call.state.as_str(), call.output_tokens), ("kept", 100));
    assert_eq!(stage.post(CHAT, &token, CALL).await.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn dollars_requests_and_days_are_limits_with_words() {
    let stage = Stage::set_with(|gateway| {
        gateway.models.day.tokens = Some(1_000_000);
    })
    .await;
    // 100 tokens at $10 a million are $0.001.
    let poor = stage.token(|wanted| wanted.scope.dollars = Some(0.0005)).await.token;
    let refused = stage.post(CHAT, &poor, CALL).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers["x-should-retry"], "false");
    assert!(message(&refused).contains("$0.0005"), "{}", message(&refused));

    let slow = stage.token(|wanted| wanted.scope.requests_per_minute = Some(1)).await.token;
    let (first, ()) = tokio::join!(stage.post(CHAT, &slow, CALL), async {
        stage.arrives().await.answer("{}").await;
    });
    assert_eq!(first.status, StatusCode::OK);
    let refused = stage.post(CHAT, &slow, CALL).await;
    assert!(message(&refused).contains("1 requests a minute"), "{}", message(&refused));
    assert!(refused.headers.contains_key("retry-after"));

    let large = "{\"model\":\"gpt-4o\",\"max_tokens\":2000000}";
    let refused = stage.post(CHAT, &stage.token(|_| ()).await.token, large).await;
    let words = message(&refused);
    assert!(words.contains("of a day") && words.contains("00:00 UTC"), "{words}");
    stage.nothing_arrived().await;
}

/// What a provider has told is not taken back by a client that does not stay for the rest.
#[tokio::test]
async fn what_was_told_before_a_disconnect_is_counted() {
    let stage = Stage::set().await;
    let cases = [
        (
            "/provider/v1/anthropic/v1/messages",
            "event: message_start\ndata: {\"message\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1,\
             \"cache_creation_input_tokens\":200000,\"cache_read_input_tokens\":50000}}}\n\n",
            // 200,000 at $3.75 and 50,000 at $0.30 a million.
            (200_003, 50_000, 0.765),
        ),
        (
            "/provider/v1/google/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
            "data: {\"usageMetadata\":{\"promptTokenCount\":200000,\"candidatesTokenCount\":300}}\n\n",
            (200_000, 0, 0.5),
        ),
    ];
    for (path, told, (input, cached, dollars)) in cases {
        let made = stage.token(|_| ()).await;
        let body = "{\"model\":\"claude-sonnet-4-5\",\"max_tokens\":300,\"stream\":true,\
                    \"generationConfig\":{\"maxOutputTokens\":100}}";
        let sending = stage.host.send(stage.call(path, &made.token, body));
        let (response, mut arrived) = tokio::join!(sending, async {
            let mut arrived = stage.arrives().await;
            arrived.stream(told).await;
            arrived
        });
        let mut body = response.into_body();
        body.frame().await.unwrap().unwrap();
        drop(body);
        arrived.wire.ends().await;
        let kept = stage.until_call("kept").await;
        assert!(kept.input_tokens >= input && kept.input_tokens < input + 100, "{kept:?}");
        assert_eq!((kept.cached_tokens, kept.output_tokens), (cached, 300), "{path}");
        assert!(kept.dollars >= dollars && kept.dollars < dollars + 0.01, "{kept:?}");
        let list: PolicyTokenList =
            stage.host.admin().get_json("/admin/sandboxes/policy-tokens").await.unwrap();
        let used = list.tokens.iter().find(|token| token.id == made.info.id).unwrap().used_tokens;
        assert_eq!(used, kept.input_tokens + cached + 300, "{path}");
    }
}

/// What a call names and does not hold is as long as the owner says, or as most models hear.
#[tokio::test]
async fn what_is_named_and_not_sent_is_put_aside_too() {
    let stage = Stage::set().await;
    let token = stage.token(|wanted| wanted.scope.tokens = Some(100_000)).await.token;
    let path = "/provider/v1/openai/responses";
    let body =
        "{\"model\":\"gpt-4o\",\"max_output_tokens\":10,\"previous_response_id\":\"resp_1\"}";
    let refused = stage.post(path, &token, body).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(message(&refused).contains("this call may need 2000"), "{}", message(&refused));
    stage.nothing_arrived().await;
}
