//! Ranges and validators.

use http::{Method, StatusCode};

use crate::harness::{Call, Computer};

#[tokio::test]
async fn a_range_returns_those_bytes() {
    let pc = Computer::start().await;
    let bytes: Vec<u8> = (0..1_500_000u32).map(|i| (i % 253) as u8).collect();
    pc.put("file", &bytes);
    let size = bytes.len();
    let cases = [
        ("bytes=0-0", 0..1),
        ("bytes=0-", 0..size),
        ("bytes=100-199", 100..200),
        ("bytes=-7", size - 7..size),
        ("bytes=-99999999", 0..size),
        ("bytes=1400000-99999999", 1_400_000..size),
        ("bytes=500000-1200000", 500_000..1_200_001),
    ];
    for (range, expected) in cases {
        let answer =
            pc.call(Call::new(Method::GET, "content", "file").header("range", range)).await;
        assert_eq!(answer.status, StatusCode::PARTIAL_CONTENT, "{range}");
        assert!(answer.body == bytes[expected.clone()], "{range}");
        let shown = format!("bytes {}-{}/{size}", expected.start, expected.end - 1);
        assert_eq!(answer.header("content-range"), shown);
        assert_eq!(answer.header("content-length"), expected.len().to_string());
    }
    for ignored in ["bytes=5-3", "lines=1-2", "bytes=0-1,4-5", "nonsense"] {
        let answer =
            pc.call(Call::new(Method::GET, "content", "file").header("range", ignored)).await;
        assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, size), "{ignored}");
    }
    for beyond in ["bytes=1500000-", "bytes=9999999-99999999", "bytes=-0"] {
        let answer =
            pc.call(Call::new(Method::GET, "content", "file").header("range", beyond)).await;
        assert_eq!(answer.status, StatusCode::RANGE_NOT_SATISFIABLE, "{beyond}");
        assert_eq!(answer.header("content-range"), format!("bytes */{size}"));
        assert!(answer.error().message.contains(beyond));
    }
}

#[tokio::test]
async fn an_empty_file_is_read_whole_and_has_no_ranges() {
    let pc = Computer::start().await;
    pc.put("empty", "");
    let answer = pc.call(Call::new(Method::GET, "content", "empty")).await;
    assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 0));
    let answer =
        pc.call(Call::new(Method::GET, "content", "empty").header("range", "bytes=0-")).await;
    assert_eq!(answer.status, StatusCode::RANGE_NOT_SATISFIABLE);
}

#[tokio::test]
async fn a_known_version_is_not_sent_again() {
    let pc = Computer::start().await;
    pc.put("file", "abc");
    let etag = pc.call(Call::new(Method::GET, "content", "file")).await.header("etag").to_owned();
    assert_eq!(pc.client.stat("file").await.unwrap().etag, etag);
    for known in [etag.as_str(), "*", &format!("\"x\", W/{etag}")] {
        let call = Call::new(Method::GET, "content", "file").header("if-none-match", known);
        let answer = pc.call(call).await;
        assert_eq!((answer.status, answer.body.len()), (StatusCode::NOT_MODIFIED, 0), "{known}");
        assert_eq!(answer.header("etag"), etag);
    }
    pc.put("file", "abcd");
    let call = Call::new(Method::GET, "content", "file").header("if-none-match", &etag);
    assert_eq!(pc.call(call).await.body, "abcd");
    // A range of a version that is gone becomes the whole of the new one.
    let call = Call::new(Method::GET, "content", "file")
        .header("range", "bytes=0-0")
        .header("if-range", &etag);
    assert_eq!(pc.call(call).await.status, StatusCode::OK);
}

#[tokio::test]
async fn head_says_what_get_would() {
    let pc = Computer::start().await;
    pc.put("file", vec![1; 2 << 20]);
    let get = pc.call(Call::new(Method::GET, "content", "file")).await;
    let head = pc.call(Call::new(Method::HEAD, "content", "file")).await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    for name in ["etag", "content-length", "accept-ranges", "content-type"] {
        assert_eq!(head.header(name), get.header(name), "{name}");
        assert!(!head.header(name).is_empty(), "{name}");
    }
    let gone = pc.call(Call::new(Method::HEAD, "content", "gone")).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
}
