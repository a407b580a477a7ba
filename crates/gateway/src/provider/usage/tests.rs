use super::*;
use proptest::prelude::*;

fn usage(input: u64, cached: u64, cache_write: u64, output: u64) -> Usage {
    Usage { input, cached, cache_write, output, dollars: None }
}

/// In pieces of every size: where they end must not matter.
fn check(api: Api, streamed: bool, text: &str, expected: Option<Usage>) {
    for size in [1, 2, 3, 7, 64, text.len().max(1)] {
        let mut watch = Watch::new(api, streamed);
        text.as_bytes().chunks(size).for_each(|piece| watch.read(piece));
        assert_eq!(watch.outcome(true), expected, "in pieces of {size}: {text}");
    }
}

#[test]
fn documents_of_every_api() {
    check(
        Api::Chat,
        false,
        r#"{"id":"x","choices":[{"message":{"content":"\"usage\": {\"prompt_tokens\": 9}"}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4}}}"#,
        Some(usage(6, 4, 0, 5)),
    );
    check(
        Api::Responses,
        false,
        r#"{"usage":{"input_tokens":7,"output_tokens":3,"input_tokens_details":{"cached_tokens":2}},"output":[]}"#,
        Some(usage(5, 2, 0, 3)),
    );
    check(
        Api::Messages,
        false,
        r#"{"content":[{"usage":{"output_tokens":99}}],"usage":{"input_tokens":3,"output_tokens":4,
        "cache_read_input_tokens":5,"cache_creation_input_tokens":6}}"#,
        Some(usage(3, 5, 6, 4)),
    );
    check(
        Api::Gemini,
        false,
        r#"[{"candidates":[{}],"usageMetadata":{"promptTokenCount":8}},
        {"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":2,"thoughtsTokenCount":1,"cachedContentTokenCount":3}}]"#,
        Some(usage(5, 3, 0, 3)),
    );
}

#[test]
fn streams_of_every_api() {
    check(
        Api::Chat,
        true,
        ": OPENROUTER PROCESSING\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n\
         data: {\"choices\":[],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n",
        Some(usage(2, 0, 0, 1)),
    );
    check(
        Api::Responses,
        true,
        "event: response.created\r\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\r\n\r\n\
         event: response.completed\r\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"a\":[1]}],\
         \"usage\":{\"input_tokens\":4,\"output_tokens\":6}}}\r\n\r\n",
        Some(usage(4, 0, 0, 6)),
    );
    check(
        Api::Messages,
        true,
        "event: message_start\ndata: {\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n\
         event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":12}}\n\n",
        Some(usage(9, 0, 0, 12)),
    );
}

#[test]
fn what_is_not_complete_is_not_believed() {
    check(Api::Chat, false, r#"{"choices":[]}"#, None);
    check(Api::Chat, false, r#"{"usage":null}"#, None);
    check(Api::Chat, false, r#"{"usage":{"prompt_tokens":1"#, None);
    check(Api::Chat, true, "data: {\"choices\":[{\"delta\":{\"content\":\"usage\"}}]}\n\n", None);
    let begun = "data: {\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n";
    check(Api::Messages, true, begun, None);
    check(Api::Chat, false, r#"{"choices":[{"usage":{"prompt_tokens":1}}]}"#, None);
    check(Api::Responses, false, r#"{"response":{"x":{"usage":{"input_tokens":1}}}}"#, None);
    let long = format!("{{\"usage\":{{\"x\":\"{}\"}}}}", "y".repeat(100_000));
    check(Api::Chat, false, &long, None);
    let mut gemini = Watch::new(Api::Gemini, true);
    gemini.read(b"data: {\"usageMetadata\":{\"promptTokenCount\":8}}\n\n");
    assert_eq!(gemini.outcome(false), None);
}

#[test]
fn a_price_that_is_told_is_kept() {
    let told = r#"{"usage":{"prompt_tokens":1,"completion_tokens":1,"cost":0.5}}"#;
    let expected = Usage { dollars: Dollars::new(0.5), ..usage(1, 0, 0, 1) };
    check(Api::Chat, false, told, Some(expected));
}

#[test]
fn what_a_call_speaks_is_seen_from_its_path() {
    let post = http::Method::POST;
    for (path, api) in [
        ("chat/completions", Api::Chat),
        ("embeddings", Api::Chat),
        ("responses", Api::Responses),
        ("responses/compact", Api::Responses),
        ("v1/messages", Api::Messages),
        ("v1/messages/count_tokens", Api::Free),
        ("v1beta/models/g:streamGenerateContent", Api::Gemini),
        ("v1beta/models/g:countTokens", Api::Free),
    ] {
        assert_eq!(Api::of(&post, path), api, "{path}");
    }
    assert_eq!(Api::of(&http::Method::GET, "models"), Api::Free);
}

proptest! {
    /// Whatever comes, and in whatever pieces, nothing breaks; and a document around the value with
    /// anything beside it gives the value.
    #[test]
    fn anything_can_come(noise in any::<Vec<u8>>(), streamed: bool, size in 1usize..9) {
        for api in [Api::Chat, Api::Responses, Api::Messages, Api::Gemini, Api::Free] {
            let mut watch = Watch::new(api, streamed);
            noise.chunks(size).for_each(|piece| watch.read(piece));
        }
    }

    #[test]
    fn what_stands_beside_it_does_not_matter(text in ".{0,40}", numbers in prop::collection::vec(any::<i64>(), 0..9)) {
        let beside = serde_json::json!({ "a": text, "b": [numbers, { "usage": 1 }], "c": null });
        let document = serde_json::json!({
            "a": beside, "usage": { "prompt_tokens": 3, "completion_tokens": 4 }, "z": [beside],
        });
        check(Api::Chat, false, &document.to_string(), Some(usage(3, 0, 0, 4)));
    }
}
