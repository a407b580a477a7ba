//! What passes, passes as it is.

use http::StatusCode;

use super::stage::{CHAT, REAL_KEY, Stage};

const ANSWER: &str = "{ \"choices\" : [ ] ,\n \"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":500,\
                      \"prompt_tokens_details\":{\"cached_tokens\":200}} }";

#[tokio::test]
async fn bytes_pass_as_they_are_and_the_key_is_put_in() {
    let stage = Stage::set().await;
    let token = stage.token(|_| ()).await.token;
    let sent = "{ \"model\" : \"gpt-4o\",\n\t\"messages\": [ {\"content\": \"\\u00e9\u{e9}\"} ], \"x\": 1.0e2 }";
    let path = format!("{CHAT}?a=%20b&c");
    let (answer, arrived) = tokio::join!(stage.post(&path, &token, sent), async {
        let mut arrived = stage.arrives().await;
        arrived
            .answer_with(
                200,
                "content-type: application/json\r\nx-request-id: r1\r\nset-cookie: a=b\r\n",
                ANSWER,
            )
            .await;
        arrived
    });
    assert_eq!(arrived.body, sent);
    assert!(
        arrived.head.starts_with("POST /v1/chat/completions?a=%20b&c HTTP/1.1\r\n"),
        "{}",
        arrived.head
    );
    assert!(
        arrived.head.contains(&format!("authorization: bearer {REAL_KEY}\r\n")),
        "{}",
        arrived.head
    );
    assert!(arrived.head.contains(&format!("host: {}\r\n", stage.address())), "{}", arrived.head);
    assert!(!arrived.head.contains(&token), "{}", arrived.head);
    assert_eq!((answer.status, answer.text()), (StatusCode::OK, ANSWER));
    assert_eq!(answer.headers["x-request-id"], "r1");
    assert!(!answer.headers.contains_key("set-cookie"));

    let call = stage.until_call("settled").await;
    assert_eq!((call.model.as_str(), call.status), ("gpt-4o", Some(200)));
    assert_eq!((call.input_tokens, call.cached_tokens, call.output_tokens), (800, 200, 500));
    // 800 at $2.50, 200 at $1.25 and 500 at $10 a million.
    assert!((call.dollars - 0.007_25).abs() < 1e-9, "{call:?}");
    let usage = stage.usage("model").await;
    assert_eq!((usage.rows[0].key.as_str(), usage.total.calls), ("gpt-4o", 1));
}

#[tokio::test]
async fn a_stream_passes_piece_by_piece_in_every_format() {
    let stage = Stage::set().await;
    let token = stage.token(|_| ()).await.token;
    let cases = [
        (
            CHAT,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
        ),
        (
            "/provider/v1/openai/responses",
            "event: response.created\ndata: {\"response\":{\"usage\":null}}\n\n",
            "event: response.completed\ndata: {\"response\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":2}}}\n\n",
        ),
        (
            "/provider/v1/anthropic/v1/messages",
            "event: message_start\ndata: {\"message\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n",
            "event: message_delta\ndata: {\"usage\":{\"output_tokens\":2}}\n\nevent: message_stop\ndata: {}\n\n",
        ),
        (
            "/provider/v1/google/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
            "data: {\"usageMetadata\":{\"promptTokenCount\":3}}\r\n\r\n",
            "data: {\"usageMetadata\":{\"promptTokenCount\":3,\"candidatesTokenCount\":2}}\r\n\r\n",
        ),
    ];
    for (path, first, second) in cases {
        let body = "{\"model\":\"m\",\"stream\":true,\"max_tokens\":9}";
        let sending = stage.host.send(stage.call(path, &token, body));
        let (response, mut arrived) = tokio::join!(sending, async {
            let mut arrived = stage.arrives().await;
            arrived.stream(first).await;
            arrived
        });
        let mut body = response.into_body();
        let frame = http_body_util::BodyExt::frame(&mut body).await.unwrap().unwrap();
        // Before the rest was even sent.
        assert_eq!(frame.into_data().unwrap(), first, "{path}");
        arrived.wire.send(second).await;
        arrived.wire.shut().await;
        let rest = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
        assert_eq!(rest, second, "{path}");
        let call = stage.until_call("settled").await;
        assert_eq!((call.input_tokens, call.output_tokens), (3, 2), "{path}");
        assert!(path.contains(&call.path), "{path} {}", call.path);
    }
}

/// The one edit there is, and only where there is a budget.
#[tokio::test]
async fn usage_is_wished_for_in_a_stream_of_chat() {
    let stage = Stage::set().await;
    let token = stage.token(|_| ()).await.token;
    let sent = "{\"model\":\"m\",  \"stream\":true}";
    let (_, arrived) = tokio::join!(stage.post(CHAT, &token, sent), async {
        let mut arrived = stage.arrives().await;
        arrived.answer("{}").await;
        arrived
    });
    let edited = "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",  \"stream\":true}";
    assert_eq!(arrived.body, edited);
}

#[tokio::test]
async fn each_provider_gets_its_key_in_its_own_way_and_takes_ours_in_any() {
    let stage = Stage::set().await;
    let token = stage.token(|_| ()).await.token;
    let cases = [
        ("/provider/v1/anthropic/v1/messages", "x-api-key", "", "x-api-key"),
        ("/provider/v1/anthropic/v1/messages", "authorization", "", "x-api-key"),
        (
            "/provider/v1/google/v1beta/models/g:generateContent",
            "x-goog-api-key",
            "",
            "x-goog-api-key",
        ),
        ("/provider/v1/google/v1beta/models/g:generateContent", "x-none", "key", "x-goog-api-key"),
        ("/provider/v1/openai/chat/completions", "x-api-key", "", "authorization: bearer"),
    ];
    for (path, header, query, theirs) in cases {
        let path = if query.is_empty() {
            path.to_owned()
        } else {
            format!("{path}?{query}={token}&alt=json")
        };
        let value =
            if header == "authorization" { format!("Bearer {token}") } else { token.clone() };
        let headers = [
            (header, value.as_str()),
            ("anthropic-version", "2023-06-01"),
            ("anthropic-beta", "x"),
        ];
        let request =
            stage.host.build("POST", &path, &headers, "{\"model\":\"m\",\"max_tokens\":1}".into());
        let (response, arrived) = tokio::join!(stage.host.send(request), async {
            let mut arrived = stage.arrives().await;
            arrived.answer("{}").await;
            arrived
        });
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        // Wherever else it was, it must not go on.
        let rest = arrived.head.replace("x-none", "");
        assert!(header == "x-none" || !rest.contains(&token), "{rest}");
        assert!(!arrived.head.lines().next().unwrap().contains(&token), "{}", arrived.head);
        let separator = if theirs.contains(':') { " " } else { ": " };
        assert!(
            arrived.head.contains(&format!("{theirs}{separator}{REAL_KEY}\r\n")),
            "{}",
            arrived.head
        );
        for kept in ["anthropic-version: 2023-06-01\r\n", "anthropic-beta: x\r\n"] {
            assert!(arrived.head.contains(kept), "{}", arrived.head);
        }
    }
}

#[tokio::test]
async fn a_provider_that_asks_for_patience_gets_it_and_what_broke_off_is_not_repeated() {
    let stage = Stage::set().await;
    let token = stage.token(|_| ()).await.token;
    let body = "{\"model\":\"m\"}";
    let (answer, ()) = tokio::join!(stage.post(CHAT, &token, body), async {
        let mut first = stage.arrives().await;
        first.answer_with(429, "retry-after: 0\r\nconnection: close\r\n", "{}").await;
        let mut second = stage.arrives().await;
        assert_eq!(second.body, body);
        second.answer("{\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}").await;
        // So that the next comes on a connection of its own.
        second.wire.shut().await;
    });
    assert_eq!(answer.status, StatusCode::OK);

    // One that took a request and hung up may have done the work.
    let (answer, ()) = tokio::join!(stage.post(CHAT, &token, body), async {
        drop(stage.arrives().await);
    });
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
    assert_eq!(stage.until_call("kept").await.output_tokens, 16_384);
    stage.nothing_arrived().await;

    // A long pause is the client's to make.
    let (answer, ()) = tokio::join!(stage.post(CHAT, &token, body), async {
        stage.arrives().await.answer_with(429, "retry-after: 60\r\n", "{\"error\":{}}").await;
    });
    assert_eq!(
        (answer.status, &answer.headers["retry-after"]),
        (StatusCode::TOO_MANY_REQUESTS, &"60".parse().unwrap())
    );
    assert_eq!(stage.until_call("failed").await.dollars, 0.0);
}

/// Usage cannot be read off it, so what was put aside counts.
#[tokio::test]
async fn an_answer_that_is_compressed_all_the_same_passes_and_its_reservation_stays() {
    let stage = Stage::set().await;
    let token = stage.token(|_| ()).await.token;
    let body = "{\"model\":\"gpt-4o\",\"max_tokens\":77}";
    // Bytes that are no text.
    let packed = "\u{1f}\u{8b}\u{8}\u{0}{\"usage\":";
    let (answer, arrived) = tokio::join!(stage.post(CHAT, &token, body), async {
        let mut arrived = stage.arrives().await;
        arrived.answer_with(200, "content-encoding: gzip\r\n", packed).await;
        arrived
    });
    assert!(arrived.head.contains("accept-encoding: identity\r\n"), "{}", arrived.head);
    assert_eq!(
        (answer.text(), &answer.headers["content-encoding"]),
        (packed, &"gzip".parse().unwrap())
    );
    assert_eq!(stage.until_call("kept").await.output_tokens, 77);
}

#[tokio::test]
async fn bodies_are_kept_where_the_owner_wants_that() {
    for wanted in [false, true] {
        let stage = Stage::set_with(|gateway| gateway.models.keep_bodies = wanted).await;
        let token = stage.token(|_| ()).await.token;
        let body = format!("{{\"model\":\"m\",\"x\":\"{}\"}}", "y".repeat(2 * 1024 * 1024));
        let (answer, _) = tokio::join!(stage.post(CHAT, &token, &body), async {
            let mut arrived = stage.arrives().await;
            arrived.answer(ANSWER).await;
            arrived
        });
        assert_eq!(answer.status, StatusCode::OK);
        let call = stage.until_call("settled").await;
        let database = rusqlite::Connection::open(stage.host.data.path().join("usage.db")).unwrap();
        let found: Vec<(i64, Vec<u8>, Vec<u8>)> = database
            .prepare("SELECT call, request, response FROM bodies")
            .and_then(|mut read| {
                read.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
            })
            .unwrap();
        let kept = (call.id, body.as_bytes()[..1024 * 1024].to_vec(), ANSWER.as_bytes().to_vec());
        let expected = if wanted { vec![kept] } else { Vec::new() };
        assert!(found == expected, "wanted: {wanted}, {} rows", found.len());
    }
}
