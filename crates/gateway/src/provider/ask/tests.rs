use super::*;
use crate::provider::bounds::{USUAL_INPUT, USUAL_OUTPUT};

fn read(api: Api, path: &str, body: &str) -> Result<Ask, String> {
    Ask::read(api, path, body.as_bytes(), &Bounds::default())
}

fn chat(body: &str) -> Result<Ask, String> {
    read(Api::Chat, "chat/completions", body)
}

fn check_edit(body: &str, expected: &str) {
    let edited = chat(body).unwrap().wishing_usage(Bytes::from(body.to_owned()));
    assert_eq!(edited, expected, "{body}");
    serde_json::from_slice::<serde_json::Value>(&edited).unwrap();
}

#[test]
fn the_one_edit_leaves_every_other_byte_alone() {
    let same = |body: &str| check_edit(body, body);
    check_edit(
        " {\n \"stream\":true, \"model\":\"m\",\"x\":\"\u{e9}\\u00e9\" }",
        " {\"stream_options\":{\"include_usage\":true},\n \"stream\":true, \"model\":\"m\",\"x\":\"\u{e9}\\u00e9\" }",
    );
    check_edit(
        r#"{"model":"m","stream":true,"stream_options":{}}"#,
        r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
    );
    check_edit(
        r#"{"model":"m","stream":true,"stream_options": { "x" : 1 }}"#,
        r#"{"model":"m","stream":true,"stream_options": {"include_usage":true, "x" : 1 }}"#,
    );
    same(r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#);
    same(r#"{"model":"m","stream":true,"stream_options":{"include_usage":false}}"#);
    same(r#"{"model":"m","stream":false,"stream_options":null}"#);
    same(r#"{"model":"m"}"#);
    let messages = r#"{"model":"m","stream":true,"max_tokens":5}"#;
    let ask = read(Api::Messages, "v1/messages", messages).unwrap();
    assert_eq!(ask.wishing_usage(Bytes::from(messages)), messages);
}

#[test]
fn null_stream_options_is_replaced() {
    check_edit(
        r#"{"stream_options" : null ,"model":"m","stream":true}"#,
        r#"{"stream_options" : {"include_usage":true} ,"model":"m","stream":true}"#,
    );
}

#[test]
fn as_much_is_put_aside_as_may_come() {
    let output = |body: &str| chat(body).unwrap().most.output;
    assert_eq!(output(r#"{"model":"m"}"#), USUAL_OUTPUT);
    assert_eq!(output(r#"{"model":"m","max_tokens":null}"#), USUAL_OUTPUT);
    assert_eq!(output(r#"{"model":"m","max_tokens":10}"#), 10);
    assert_eq!(output(r#"{"model":"m","max_tokens":9.5}"#), 10);
    assert_eq!(output(r#"{"model":"m","max_tokens":10,"max_completion_tokens":30,"n":2}"#), 60);
    assert_eq!(output(r#"{"model":"m","max_tokens":18446744073709551615,"n":9}"#), MOST_OUTPUT);
    assert_eq!(output(r#"{"model":"m","max_tokens":1e300}"#), MOST_OUTPUT);
    let path = "v1beta/models/g-1:generateContent";
    let body = r#"{"generationConfig":{"maxOutputTokens":7,"candidateCount":3}}"#;
    let ask = read(Api::Gemini, path, body).unwrap();
    assert_eq!((ask.model.as_str(), ask.most.output), ("g-1", 21));
    let embedded = read(Api::Chat, "embeddings", r#"{"model":"m","input":"x"}"#).unwrap();
    assert_eq!(embedded.most.output, 0);
}

#[test]
fn what_means_no_end_bounds_nothing() {
    for body in [
        r#"{"model":"m","max_tokens":-1}"#,
        r#"{"model":"m","max_tokens":0}"#,
        r#"{"model":"m","max_tokens":-2.5,"n":0}"#,
    ] {
        assert_eq!(chat(body).unwrap().most.output, USUAL_OUTPUT, "{body}");
    }
}

#[test]
fn fields_of_other_apis_bound_nothing() {
    let all = r#"{"model":"m","max_tokens":1,"max_output_tokens":2,"max_completion_tokens":3,"n":5,
                  "best_of":7,"generationConfig":{"maxOutputTokens":4}}"#;
    for (api, path, expected) in [
        (Api::Chat, "chat/completions", 15),
        (Api::Chat, "completions", 7),
        (Api::Responses, "responses", 2),
        (Api::Messages, "v1/messages", 1),
        (Api::Gemini, "v1beta/models/g:generateContent", 4),
    ] {
        assert_eq!(read(api, path, all).unwrap().most.output, expected, "{path}");
    }
    let other = r#"{"model":"m","max_output_tokens":1}"#;
    assert_eq!(chat(other).unwrap().most.output, USUAL_OUTPUT);
}

#[test]
fn what_the_owner_knows_of_a_model_goes_before_what_is_usual() {
    let bounds = Bounds {
        output: [("big*".to_owned(), 100_000), ("small".to_owned(), 10)].into(),
        windows: [("big*".to_owned(), 1_000_000)].into(),
    };
    let most =
        |body: &str| Ask::read(Api::Responses, "responses", body.as_bytes(), &bounds).unwrap().most;
    assert_eq!(most(r#"{"model":"small"}"#).output, 10);
    assert_eq!(most(r#"{"model":"small","models":["big-1"]}"#).output, 100_000);
    let body = r#"{"model":"big-1","previous_response_id":"r"}"#;
    assert_eq!(most(body).input, 1_000_000 + body.len().div_ceil(3) as u64);
}

#[test]
fn what_is_not_in_the_body_counts_as_long() {
    let counts = |api, path, body: &str, expected: bool| {
        let input = read(api, path, body).unwrap().most.input;
        assert_eq!(input >= USUAL_INPUT, expected, "{body}");
    };
    for (body, expected) in [
        (r#"{"model":"m","previous_response_id":"resp_1"}"#, true),
        (r#"{"model":"m","previous_response_id":null,"conversation":null}"#, false),
        (r#"{"model":"m","conversation":{"id":"c"}}"#, true),
        (r#"{"model":"m","prompt":{"id":"p"}}"#, true),
        (r#"{"model":"m","input":[{"content":[{"file_id":"f"}]}]}"#, true),
        (r#"{"model":"m","input":"https://example.org"}"#, false),
    ] {
        counts(Api::Responses, "responses", body, expected);
    }
    counts(Api::Chat, "completions", r#"{"model":"m","prompt":"x"}"#, false);
    let cached = r#"{"cachedContent":"cachedContents/1"}"#;
    counts(Api::Gemini, "v1beta/models/g:generateContent", cached, true);
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let bad = [
        r#"{"model":"cheap","model":"dear"}"#,
        r#"{"model":"m","max_tokens":1,"max_tokens":9}"#,
        r#"{"model":"m","\u006dodel":"dear"}"#,
        r#"{"messages":[]}"#,
        r#"{"model":""}"#,
        r#"{"model":"m"} {}"#,
        r#"{"model":"m","max_tokens":"9"}"#,
        "[]",
        "",
        "\u{feff}{}",
    ];
    for body in bad {
        assert!(chat(body).is_err(), "{body}");
    }
    let twice = r#"{"generationConfig":{"maxOutputTokens":1},"generation_config":{}}"#;
    assert!(read(Api::Gemini, "v1beta/models/g:generateContent", twice).is_err());
}

#[test]
fn keys_in_other_cases_are_refused() {
    for key in ["Model", "MODEL", "ma\\u0058_tokens", "max_to\u{212a}ens", "\u{17f}tream", "N"] {
        let body = format!("{{\"model\":\"ok\",\"{key}\":\"forbidden\"}}");
        let why = chat(&body).unwrap_err();
        assert!(why.contains("could be taken for"), "{why}");
    }
    assert!(chat(r#"{"model":"ok","Metadata":{"Model":"x"},"modell":1,"m":2}"#).is_ok());
}

#[test]
fn other_models_in_a_body_are_named() {
    let names = |body: &str| {
        let ask = chat(body).unwrap();
        ask.models().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(r#"{"model":"a","models":["b","c"]}"#), ["a", "b", "c"]);
    assert_eq!(names(r#"{"model":"a","fallbacks":[{"model":"b"},"c"]}"#), ["a", "c", "b"]);
    assert_eq!(names(r#"{"model":"a","preset":"p"}"#), ["a", "@preset/p"]);
    assert_eq!(
        names(
            r#"{"model":"a","tools":["x",{"type":"advisor","model":"b"},{"name":"f","p":{"model":1}}]}"#
        ),
        ["a", "b"]
    );
    assert_eq!(names(r#"{"model":"a","plugins":[{"models":["b"]}],"models":null}"#), ["a", "b"]);
    let many = format!("{{\"model\":\"a\",\"models\":[{}\"z\"]}}", "\"b\",".repeat(70));
    for bad in [
        &many,
        r#"{"model":"a","models":"b"}"#,
        r#"{"model":"a","fallbacks":[{"model":"b","model":"c"}]}"#,
    ] {
        assert!(chat(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_background_response_is_refused() {
    let why = read(Api::Responses, "responses", r#"{"model":"m","background":true}"#).unwrap_err();
    assert!(why.contains("background"), "{why}");
    for body in [r#"{"model":"m","background":false}"#, r#"{"model":"m","background":null}"#] {
        assert!(read(Api::Responses, "responses", body).is_ok(), "{body}");
    }
}

proptest::proptest! {
    /// Whatever comes is read or refused, and the wish leaves a document with all that was in it.
    #[test]
    fn anything_can_come(noise in proptest::prelude::any::<Vec<u8>>(), text in ".{0,30}", number: f64) {
        for api in [Api::Chat, Api::Responses, Api::Messages, Api::Gemini, Api::Free] {
            let _ = Ask::read(api, "chat/completions", &noise, &Bounds::default());
        }
        let document = serde_json::json!({
            "model": "m", "stream": true, "max_tokens": number, (text.clone()): [text, { "url": number }],
        });
        let body = Bytes::from(document.to_string());
        if let Ok(ask) = chat(document.to_string().as_str()) {
            let mut edited: serde_json::Value =
                serde_json::from_slice(&ask.wishing_usage(body)).unwrap();
            let wish = edited.as_object_mut().unwrap().remove("stream_options");
            assert_eq!(wish, Some(serde_json::json!({ "include_usage": true })));
            assert_eq!(edited, serde_json::from_str::<serde_json::Value>(&document.to_string()).unwrap());
        }
    }
}
